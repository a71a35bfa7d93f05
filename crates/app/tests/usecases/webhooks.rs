//! Deliveries: bodies, signatures, order and attempts.

use domain::key::{LimitOverrides, Tier};
use domain::webhook::{self, DeliveryStatus, StandardHeaders, WebhookSecret};
use domain::{Timestamp, Usdc};
use store::Store;
use store::trades::{Traced, Trade};
use store::webhooks::{Attempt, Delivery, DeliveryFilter};
use testkit::{Delivered, Receiver, Reply, TestApp, TestKey, TestMarket, TestUser, key_of};

pub struct WebhookScene {
    pub app: TestApp,
    pub ada: TestUser,
    pub key: TestKey,
    pub market: TestMarket,
    pub receiver: Receiver,
}

impl WebhookScene {
    /// Creates Ada with 10,000 USDC and a key with a webhook receiver.
    pub async fn on(store: Store) -> Self {
        let app = TestApp::with().on(store).start().await;
        let receiver = app.receiver().await;
        let ada = app.user("ada").funded("10000").await;
        let key = app.key_to(&ada, Tier::Mm, &receiver).await;
        let market = app.market(&["Yes", "No"]).await;
        Self { app, ada, key, market, receiver }
    }

    /// Buys and lets the trade end, so that its event is due. No two trades end in the same
    /// millisecond.
    pub async fn traded(&self) -> Trade {
        self.later(1);
        let trade = self.key.buy(&self.market, 0, "1").await;
        self.app.workers.execute(&self.app.ctx).await;
        self.app.workers.synchronise(&self.app.ctx).await;
        trade
    }

    pub async fn dispatch(&self) -> usize {
        self.app.workers.dispatch(&self.app.ctx).await
    }

    pub fn now(&self) -> Timestamp {
        self.app.ctx.now()
    }

    /// Advances only the service's clock. The chain is not used after that.
    pub fn later(&self, ms: i64) {
        self.app.clock.advance(ms);
    }

    /// Changes one row directly in the database.
    pub async fn exec(&self, sql: &'static str) {
        let changed = self.app.ctx.store.write(sql, |tx, sql| Box::pin(tx.exec(sql, &[]))).await;
        assert_eq!(changed, Ok(1));
    }

    /// Returns the deliveries of Ada's events, oldest first.
    pub async fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries_of(&self.ada).await
    }

    /// Returns the deliveries of the user's events, oldest first.
    pub async fn deliveries_of(&self, user: &TestUser) -> Vec<Delivery> {
        let page = domain::page::Page { after: None, limit: 100 };
        let listed = self
            .app
            .ctx
            .store
            .read((user.id, page), |tx, (user, page)| {
                Box::pin(
                    async move { store::webhooks::list(tx, *user, &DeliveryFilter::default(), page).await },
                )
            })
            .await;
        listed.unwrap().into_iter().rev().collect()
    }

    /// Returns the delivery of Ada's only event.
    pub async fn delivery(&self) -> Delivery {
        let mut all = self.deliveries().await;
        assert_eq!(all.len(), 1, "deliveries");
        all.remove(0)
    }

    pub async fn attempts(&self, of: &Delivery) -> Vec<Attempt> {
        let listed = self
            .app
            .ctx
            .store
            .read(of.event_id, |tx, id| Box::pin(store::webhooks::list_attempts(tx, *id)))
            .await;
        listed.unwrap()
    }

    /// Returns the time at which the queue of Ada's key is due.
    pub async fn due_at(&self) -> Option<Timestamp> {
        let found = self
            .app
            .ctx
            .store
            .read(self.key.caller.key.id, |tx, id| Box::pin(store::webhooks::find_endpoint(tx, *id)))
            .await;
        found.unwrap().and_then(|endpoint| endpoint.head).map(|head| head.due_at)
    }

    /// Waits until the queue is due and dispatches it. Returns the waiting time in milliseconds.
    pub async fn next_attempt(&self) -> i64 {
        let wait_ms = self.due_at().await.expect("something waits").since_ms(self.now());
        self.later(wait_ms - 1);
        assert_eq!(self.dispatch().await, 0, "an attempt before it is due");
        self.later(1);
        assert_eq!(self.dispatch().await, 1);
        wait_ms
    }

    pub async fn redeliver(&self, of: &Delivery) -> store::webhooks::Redelivered {
        let input = (self.ada.id, of.event_id, self.now());
        let asked = self
            .app
            .ctx
            .store
            .write(input, |tx, (user, id, now)| Box::pin(store::webhooks::redeliver(tx, *user, *id, *now)))
            .await;
        asked.unwrap()
    }

    pub async fn trace(&self, trade: &Trade) -> Vec<Traced> {
        let read =
            self.app.ctx.store.read(trade.id, |tx, id| Box::pin(store::trades::list_trace(tx, *id))).await;
        read.unwrap()
    }
}

/// Returns the body, with ids and hashes that differ between runs replaced by names.
fn shown(delivered: &Delivered, trade: &Trade) -> String {
    let body = delivered.json();
    assert_eq!(body["id"], delivered.id());
    assert_eq!(body["data"]["tradeId"], trade.id.to_string());
    assert_eq!(body["data"]["marketId"], trade.market_id.to_string());
    assert_eq!(body["data"]["correlationId"], trade.correlation_id.to_string());
    let mut text = serde_json::to_string_pretty(&body).unwrap();
    for (id, name) in [
        (delivered.id(), "{event}"),
        (trade.id.to_string(), "{trade}"),
        (trade.market_id.to_string(), "{market}"),
        (trade.correlation_id.to_string(), "{correlation}"),
        (body["data"]["txHash"].as_str().unwrap_or("{none}").to_owned(), "{hash}"),
    ] {
        text = text.replace(&id, name);
    }
    text
}

store::on_each_engine! {
    async fn each_of_the_four_event_kinds_is_sent_with_its_body(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let receiver = app.receiver().await;
        let ada = app.user("ada").funded("100000").await;
        let mut wanted = key_of(&ada, Tier::Enterprise);
        wanted.webhook_url = Some(receiver.url.clone());
        wanted.overrides = LimitOverrides { high_value: Some(Usdc::from_whole(100)), ..LimitOverrides::default() };
        let key = app.issue(wanted).await.unwrap();
        app.enable(&ada, &key).await;
        let market = app.market(&["Yes", "No"]).await;
        let held = key.buy(&market, 0, "100").with(|draft| {
            draft.metadata = Some([("desk".to_owned(), "alpha".to_owned())].into());
        });
        let held = held.await;
        app.run_workers().await;
        let mut shown_all = vec![shown(&receiver.one(), &held)];
        key.confirm(&held, &key.token(&held)).await.unwrap();
        app.run_workers().await;
        let completed = receiver.one();
        assert_eq!(completed.json()["data"]["txHash"].as_str().map(str::len), Some(66));
        shown_all.push(shown(&completed, &held));
        let expired = key.buy(&market, 0, "100").await;
        app.run_workers().await;
        receiver.one();
        app.advance_ms(app.ctx.config.confirmation_window_ms).await;
        app.run_workers().await;
        shown_all.push(shown(&receiver.one(), &expired));
        let rejected = key.buy(&market, 0, "1").await;
        app.freeze(market).await;
        app.run_workers().await;
        shown_all.push(shown(&receiver.one(), &rejected));
        insta::allow_duplicates! { insta::assert_snapshot!("bodies", shown_all.join("\n")); }
        app.assert_ledger_equals_chain().await;
    }

    async fn a_delivery_verifies_under_the_keys_secret_by_both_schemes(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        scene.dispatch().await;
        let came = scene.receiver.one();
        let secret = secret_of(&scene).await;
        assert_eq!(webhook::verify(came.header("x-service-signature"), came.body.as_bytes(), &secret, scene.now()), Ok(()));
        let standard = StandardHeaders {
            id: came.header("webhook-id"),
            timestamp: came.header("webhook-timestamp"),
            signature: came.header("webhook-signature"),
        };
        assert_eq!(webhook::verify_standard(standard, came.body.as_bytes(), &secret, scene.now()), Ok(()));
        assert_eq!(came.header("content-type"), "application/json");
        assert_eq!(came.header("x-service-api-version"), came.json()["apiVersion"]);
        assert_eq!(came.header("webhook-id"), came.id());
    }

    async fn two_secrets_sign_events_for_a_week_after_a_rotation(store: Store) {
        let scene = WebhookScene::on(store).await;
        let fresh = WebhookSecret::from_bytes([5; 32]);
        rotate(&scene, &fresh).await;
        let signatures = |came: &Delivered| came.header("x-service-signature").matches("v1=").count();
        scene.traded().await;
        scene.dispatch().await;
        let came = scene.receiver.one();
        assert_eq!(signatures(&came), 2);
        assert_eq!(webhook::verify(came.header("x-service-signature"), came.body.as_bytes(), &fresh, scene.now()), Ok(()));
        scene.redeliver(&scene.delivery().await).await;
        scene.dispatch().await;
        assert_eq!(signatures(&scene.receiver.one()), 1);
        scene.app.advance_ms(webhook::OVERLAP_MS).await;
        scene.traded().await;
        scene.dispatch().await;
        assert_eq!(signatures(&scene.receiver.one()), 1);
    }

    async fn events_keep_their_order_and_a_failure_delays_only_its_key(store: Store) {
        let scene = WebhookScene::on(store).await;
        let elsewhere = scene.app.receiver().await;
        let other = scene.app.key_to(&scene.ada, Tier::Mm, &elsewhere).await;
        scene.receiver.next([Reply::Status(500)]);
        let first = scene.traded().await;
        let second = scene.traded().await;
        other.buy(&scene.market, 0, "1").await;
        scene.app.run_workers().await;
        assert_eq!((scene.receiver.take().len(), elsewhere.take().len()), (1, 1));
        assert_eq!(scene.dispatch().await, 0);
        scene.next_attempt().await;
        let came: Vec<_> = scene.receiver.take().iter().map(|came| came.json()["data"]["tradeId"].clone()).collect();
        assert_eq!(came, [first.id.to_string(), second.id.to_string()]);
        assert_eq!(scene.receiver.most_at_once(), 1);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn an_event_has_ten_attempts_over_about_a_day(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.receiver.always(Reply::Status(503));
        let trade = scene.traded().await;
        let began = scene.now();
        scene.dispatch().await;
        let id = scene.receiver.one().id();
        for wait_s in [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200] {
            let waited_ms = scene.next_attempt().await;
            assert!((waited_ms - wait_s * 1_000).abs() <= wait_s * 100, "{waited_ms} for {wait_s} s");
            assert_eq!(scene.receiver.one().id(), id);
            let expected = if wait_s == 43_200 { DeliveryStatus::Failed } else { DeliveryStatus::Retrying };
            assert_eq!(scene.delivery().await.status, expected);
        }
        let hours = scene.now().since_ms(began) / 3_600_000;
        assert!((20..26).contains(&hours), "{hours}");
        let delivery = scene.delivery().await;
        assert_eq!((delivery.attempts, delivery.last_status_code), (10, Some(503)));
        assert_eq!(delivery.terminal_failure_at, Some(scene.now()));
        assert_eq!(delivery.last_failure_code.as_deref(), Some("HTTP_5XX"));
        assert_eq!((scene.due_at().await, scene.attempts(&delivery).await.len()), (None, 10));
        let trace = scene.trace(&trade).await;
        let kinds: Vec<_> = trace.iter().filter(|event| event.stage.as_str() == "webhook").map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds[..9], ["webhook.attempt-failed"; 9]);
        assert_eq!(kinds[9..], ["webhook.failed"]);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn an_event_that_waited_for_days_has_one_attempt(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.receiver.always(Reply::Status(500));
        scene.traded().await;
        scene.later(3 * domain::time::DAY_MS);
        scene.dispatch().await;
        let delivery = scene.delivery().await;
        assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Failed, 1));
    }

    async fn a_permanent_failure_ends_the_event_and_the_next_is_sent(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.receiver.next([Reply::Status(410)]);
        scene.traded().await;
        scene.traded().await;
        assert_eq!(scene.dispatch().await, 1);
        let all = scene.deliveries().await;
        let statuses: Vec<_> = all.iter().map(|delivery| (delivery.status, delivery.attempts)).collect();
        assert_eq!(statuses, [(DeliveryStatus::Failed, 1), (DeliveryStatus::Delivered, 1)]);
        assert_eq!(all[0].last_failure_code.as_deref(), Some("HTTP_4XX"));
        assert_eq!(all[0].terminal_failure_at, Some(scene.now()));
        assert_eq!(all[1].last_delivered_at, Some(scene.now()));
    }

    async fn a_redirect_is_retried_and_not_followed(store: Store) {
        let scene = WebhookScene::on(store).await;
        let canary = scene.app.receiver().await;
        scene.receiver.next([Reply::Redirect(canary.url.clone())]);
        scene.traded().await;
        scene.dispatch().await;
        assert_eq!(scene.delivery().await.status, DeliveryStatus::Retrying);
        scene.next_attempt().await;
        assert_eq!(scene.delivery().await.status, DeliveryStatus::Delivered);
        assert_eq!((scene.receiver.take().len(), canary.take().len()), (2, 0));
    }

    async fn a_retry_after_delays_the_next_attempt(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.receiver.next([Reply::RetryAfter(429, "3600"), Reply::RetryAfter(503, "1")]);
        scene.traded().await;
        scene.dispatch().await;
        assert_eq!(scene.next_attempt().await, 3_600_000);
        let waited_ms = scene.next_attempt().await;
        assert!((27_000..=33_000).contains(&waited_ms), "{waited_ms}");
        assert_eq!(scene.delivery().await.status, DeliveryStatus::Delivered);
    }

    async fn the_trace_lists_each_attempt(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.receiver.next([Reply::Status(500)]);
        let trade = scene.traded().await;
        scene.dispatch().await;
        scene.next_attempt().await;
        let trace = scene.trace(&trade).await;
        let [.., failed, delivered] = trace.as_slice() else { panic!("{trace:?}") };
        assert_eq!((failed.kind.as_str(), delivered.kind.as_str()), ("webhook.attempt-failed", "webhook.delivered"));
        assert_eq!(failed.status, domain::trade::Status::Completed);
        let expected = serde_json::json!({
            "eventId": scene.delivery().await.event_id.to_string(), "eventType": "trade.completed",
            "attempt": 1, "durationMs": 0, "statusCode": 500, "failureCode": "HTTP_5XX",
        });
        assert_eq!(serde_json::Value::from(failed.attributes.clone()), expected);
        assert_eq!(delivered.attributes["attempt"], 2);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn usage_counts_delivered_failed_and_queued_events(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.receiver.next([Reply::Status(200), Reply::Status(400), Reply::Status(500)]);
        for _ in 0..4 {
            scene.traded().await;
        }
        scene.dispatch().await;
        let used = app::usage::of_key(&scene.app.ctx, &scene.key.caller).await.unwrap().webhooks;
        assert_eq!((used.day.delivered, used.day.failed, used.day.failed_attempts, used.day.pending), (1, 1, 2, 2));
        assert_eq!(used.day, used.month);
        scene.later(domain::time::DAY_MS);
        let used = app::usage::of_key(&scene.app.ctx, &scene.key.caller).await.unwrap().webhooks;
        assert_eq!((used.day.delivered, used.week.delivered, used.day.pending, used.week.pending), (0, 1, 0, 2));
    }
}

async fn secret_of(scene: &WebhookScene) -> WebhookSecret {
    let id = scene.key.caller.key.id;
    let found =
        scene.app.ctx.store.write(id, |tx, id| Box::pin(store::webhooks::find_secrets(tx, *id))).await;
    let sealed = found.unwrap().unwrap().current;
    app::webhooks::secret::unseal(&scene.app.ctx, id, &sealed).unwrap()
}

async fn rotate(scene: &WebhookScene, fresh: &WebhookSecret) {
    let (id, now) = (scene.key.caller.key.id, scene.now());
    let keys = &scene.app.ctx.config.sealing_keys;
    let sealed = keys.seal(fresh.expose().as_bytes(), &id.to_string(), [1; 24]).unwrap();
    let rotated = scene
        .app
        .ctx
        .store
        .write((id, sealed, now), |tx, (id, sealed, now)| {
            Box::pin(store::webhooks::rotate(tx, *id, sealed, *now, webhook::previous_expires_at(*now)))
        })
        .await;
    rotated.unwrap();
}
