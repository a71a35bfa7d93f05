//! Deliveries when receivers, senders and processes fail.

use std::sync::Arc;
use std::time::Duration;

use app::webhooks::set_webhook_url;
use app::webhooks::{Dispatcher, dispatch_due};
use app::worker::{Progress, Worker};
use domain::key::Tier;
use domain::webhook::DeliveryStatus;
use store::{Store, StoreError};
use testkit::{Reply, key_of};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::webhooks::WebhookScene;

/// Makes every due attempt until the breaker opens. Returns how long the breaker then delays the
/// queue.
async fn fail_until_open(scene: &WebhookScene) -> i64 {
    for _ in 0..5 {
        let wait_ms = scene.due_at().await.unwrap().since_ms(scene.now());
        scene.later(wait_ms.max(0));
        scene.dispatch().await;
    }
    scene.due_at().await.unwrap().since_ms(scene.now())
}

/// Starts a receiver that accepts a connection's first delivery and answers everything after it
/// with 410, which ends an event for good. Returns its URL.
async fn poisoned_receiver() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut request, mut status) = (Vec::new(), "200 OK");
                while matches!(stream.read_buf(&mut request).await, Ok(1..)) {
                    // The body is JSON, and the head has no brace.
                    if request.ends_with(b"}") {
                        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                        stream.write_all(answer.as_bytes()).await.unwrap();
                        (request, status) = (Vec::new(), "410 Gone");
                    }
                }
            });
        }
    });
    url
}

store::on_each_engine! {
    async fn what_one_users_receiver_sends_ends_no_event_of_another_user(store: Store) {
        let scene = WebhookScene::on(store).await;
        let url = poisoned_receiver().await;
        set_webhook_url(&scene.app.ctx, scene.key.caller.key.id, Some(url.clone())).await.unwrap();
        let bob = scene.app.user("bob").funded("100").await;
        let mut wanted = key_of(&bob, Tier::Mm);
        wanted.webhook_url = Some(url);
        let key = scene.app.issue(wanted).await.unwrap();
        scene.app.enable(&bob, &key).await;
        scene.traded().await;
        scene.dispatch().await;
        key.buy(&scene.market, 0, "1").await;
        scene.app.run_workers().await;
        for user in [&scene.ada, &bob] {
            let statuses: Vec<_> = scene.deliveries_of(user).await.iter().map(|event| event.status).collect();
            assert_eq!(statuses, [DeliveryStatus::Delivered]);
        }
    }

    async fn five_failures_in_a_row_open_the_breaker_and_one_probe_closes_it(store: Store) {
        let scene = WebhookScene::on(store).await;
        // The first four fail once each, so that the fifth failure is the second event's first.
        scene.receiver.always(Reply::Status(500));
        scene.traded().await;
        scene.dispatch().await;
        scene.traded().await;
        assert!(fail_until_open(&scene).await >= 30_000);
        let all = scene.deliveries().await;
        let before = (all[0].attempts, all[1].attempts);
        // A pause does not use up attempts, no matter how often the queue is checked.
        scene.later(1_000);
        assert_eq!(scene.dispatch().await, 0);
        let all = scene.deliveries().await;
        assert_eq!((all[0].attempts, all[1].attempts), before);
        scene.receiver.take();
        scene.receiver.always(Reply::Status(200));
        scene.next_attempt().await;
        assert_eq!(scene.receiver.take().len(), 2, "the probe, and what it lets through");
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn an_open_breaker_delays_the_next_event_without_an_attempt(store: Store) {
        let scene = WebhookScene::on(store).await;
        // Three of the first five attempts fail.
        scene.receiver.next([Reply::Status(200), Reply::Status(500), Reply::Status(200), Reply::Status(500)]);
        scene.receiver.always(Reply::Status(500));
        for _ in 0..4 {
            scene.traded().await;
        }
        scene.dispatch().await;
        scene.next_attempt().await;
        scene.next_attempt().await;
        let kept_back_ms = scene.due_at().await.unwrap().since_ms(scene.now());
        assert!(kept_back_ms >= 29_000, "{kept_back_ms}");
        let came = scene.receiver.take().len();
        scene.later(kept_back_ms - 1);
        assert_eq!((scene.dispatch().await, scene.receiver.take().len()), (0, 0), "after {came}");
        scene.later(1);
        scene.dispatch().await;
        assert_eq!(scene.receiver.take().len(), 1, "a failed probe is one attempt");
        assert!(scene.due_at().await.unwrap().since_ms(scene.now()) >= 30_000);
    }

    async fn an_overtaken_sender_writes_nothing(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        let held = scene.receiver.hold(200);
        let (ctx, sender) = (scene.app.ctx.clone(), Arc::clone(&scene.app.workers.sender));
        let slow = tokio::spawn(async move { dispatch_due(&ctx, &sender).await.unwrap() });
        held.reached().await;
        // While the queue is held, no other process sends from it.
        scene.later(scene.app.ctx.config.webhooks.hold_ms - 1);
        assert_eq!(scene.dispatch().await, 0);
        scene.later(1);
        let other = scene.app.another_process("two");
        assert_eq!(other.dispatch(&scene.app.ctx_of_another_process()).await, 1);
        let before = scene.delivery().await;
        held.release();
        slow.await.unwrap();
        assert_eq!(scene.delivery().await, before);
        assert_eq!((before.status, before.attempts), (DeliveryStatus::Delivered, 1));
        let came = scene.receiver.take();
        assert_eq!((came.len(), came[0].id()), (2, came[1].id()));
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn an_unrecorded_delivery_is_posted_again_with_the_same_id(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        let held = scene.receiver.hold(200);
        let (ctx, sender) = (scene.app.ctx.clone(), Arc::clone(&scene.app.workers.sender));
        let dies = tokio::spawn(async move { dispatch_due(&ctx, &sender).await });
        held.reached().await;
        dies.abort();
        assert!(dies.await.is_err());
        assert_eq!(scene.delivery().await.attempts, 0);
        assert_eq!(scene.dispatch().await, 0, "its hold lasts");
        scene.later(scene.app.ctx.config.webhooks.hold_ms);
        assert_eq!(scene.dispatch().await, 1);
        let came = scene.receiver.take();
        assert_eq!((came.len(), came[0].id()), (2, came[1].id()));
        let delivery = scene.delivery().await;
        assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Delivered, 1));
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn a_stop_waits_for_the_current_attempt_and_releases_the_rest(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        scene.traded().await;
        let held = scene.receiver.hold(200);
        let ctx = &scene.app.ctx;
        let dispatcher = Dispatcher::new(Arc::clone(&scene.app.workers.sender), 8);
        assert_eq!(dispatcher.tick(ctx).await.unwrap(), Progress::Idle);
        held.reached().await;
        // The receiver is slow, and the tick did not wait for it.
        assert_eq!(dispatcher.tick(ctx).await.unwrap(), Progress::Idle);
        let stop = dispatcher.release(ctx);
        let answer = async {
            tokio::task::yield_now().await;
            held.release();
        };
        let (stopped, ()) = tokio::join!(stop, answer);
        stopped.unwrap();
        let statuses: Vec<_> = scene.deliveries().await.iter().map(|delivery| delivery.status).collect();
        assert_eq!(statuses, [DeliveryStatus::Delivered, DeliveryStatus::Pending]);
        assert_eq!(scene.dispatch().await, 1, "nobody waits for the hold's end");
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn a_slow_receiver_uses_one_slot_and_the_others_continue(store: Store) {
        let scene = WebhookScene::on(store).await;
        let elsewhere = scene.app.receiver().await;
        let other = scene.app.key_to(&scene.ada, Tier::Mm, &elsewhere).await;
        scene.traded().await;
        let held = scene.receiver.hold(200);
        let dispatcher = Dispatcher::new(Arc::clone(&scene.app.workers.sender), 2);
        dispatcher.tick(&scene.app.ctx).await.unwrap();
        held.reached().await;
        let next = elsewhere.hold(200);
        other.buy(&scene.market, 0, "1").await;
        scene.app.workers.execute(&scene.app.ctx).await;
        scene.app.workers.synchronise(&scene.app.ctx).await;
        dispatcher.tick(&scene.app.ctx).await.unwrap();
        next.reached().await;
        next.release();
        held.release();
        dispatcher.release(&scene.app.ctx).await.unwrap();
        assert_eq!((scene.receiver.kinds(), elsewhere.kinds()), (vec!["trade.completed".to_owned()], vec!["trade.completed".to_owned()]));
    }

    async fn a_slow_receiver_gives_its_slot_to_a_queue_that_waits(store: Store) {
        let scene = WebhookScene::on(store).await;
        let ctx = &scene.app.ctx;
        let elsewhere = scene.app.receiver().await;
        let other = scene.app.key_to(&scene.ada, Tier::Mm, &elsewhere).await;
        scene.traded().await;
        scene.traded().await;
        let (first, second) = (scene.receiver.hold(200), scene.receiver.hold(200));
        let dispatcher = Dispatcher::new(Arc::clone(&scene.app.workers.sender), 1);
        dispatcher.tick(ctx).await.unwrap();
        first.reached().await;
        let next = elsewhere.hold(200);
        other.buy(&scene.market, 0, "1").await;
        scene.app.workers.execute(ctx).await;
        scene.app.workers.synchronise(ctx).await;
        scene.later(5_000);
        first.release();
        // The queue of the slow receiver has one more event, which is due.
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        let is_next = async {
            loop {
                dispatcher.tick(ctx).await.unwrap();
                tokio::select! {
                    () = next.reached() => return,
                    _ = looks.tick() => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), is_next).await.expect("the other queue gets the slot");
        assert_eq!(scene.receiver.take().len(), 1);
        next.release();
        second.release();
        dispatcher.release(ctx).await.unwrap();
    }

    async fn a_former_receivers_running_attempt_decides_nothing(store: Store) {
        let scene = WebhookScene::on(store).await;
        let ctx = &scene.app.ctx;
        let elsewhere = scene.app.receiver().await;
        scene.traded().await;
        let held = scene.receiver.hold(410);
        let dispatcher = Dispatcher::new(Arc::clone(&scene.app.workers.sender), 8);
        dispatcher.tick(ctx).await.unwrap();
        held.reached().await;
        set_webhook_url(ctx, scene.key.caller.key.id, Some(elsewhere.url.clone())).await.unwrap();
        // The former receiver has not answered yet.
        assert_eq!((scene.dispatch().await, elsewhere.take().len()), (1, 1));
        held.release();
        dispatcher.release(ctx).await.unwrap();
        let delivery = scene.delivery().await;
        assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Delivered, 1));
    }

    async fn a_key_without_its_url_delivers_nothing_and_reports_it(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        scene.exec("UPDATE keys SET webhook_url = NULL").await;
        scene.dispatch().await;
        let delivery = scene.delivery().await;
        assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Failed, 1));
        assert_eq!(delivery.last_failure_code.as_deref(), Some("NO_ENDPOINT"));
        assert!(scene.receiver.take().is_empty());
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn a_forbidden_address_is_never_called_and_ends_the_event(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        scene.exec("UPDATE keys SET webhook_url = 'http://169.254.169.254/latest'").await;
        scene.dispatch().await;
        let delivery = scene.delivery().await;
        assert_eq!((delivery.status, delivery.last_failure_code.as_deref()), (DeliveryStatus::Failed, Some("TARGET_NOT_ALLOWED")));
    }

    async fn an_unreadable_secret_fails_attempts_on_schedule(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        scene.exec("UPDATE keys SET name = webhook_secret_sealed, webhook_secret_sealed = 'unreadable'").await;
        for (attempts, wait_ms) in [(1, 5_000), (2, 30_000)] {
            scene.next_attempt().await;
            let delivery = scene.delivery().await;
            assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Retrying, attempts));
            assert_eq!(delivery.last_failure_code.as_deref(), Some("SECRET_UNREADABLE"));
            let until_next_ms = scene.due_at().await.unwrap().since_ms(scene.now());
            assert!((wait_ms * 9 / 10..=wait_ms * 11 / 10).contains(&until_next_ms), "{until_next_ms}");
        }
        assert!(scene.receiver.take().is_empty());
        scene.exec("UPDATE keys SET webhook_secret_sealed = name").await;
        scene.next_attempt().await;
        assert_eq!(scene.delivery().await.status, DeliveryStatus::Delivered);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn an_unreadable_previous_secret_does_not_stop_deliveries(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        scene.exec(
            "UPDATE keys SET previous_webhook_secret_sealed = 'unreadable',
            previous_webhook_secret_until_ms = 9000000000000",
        )
        .await;
        scene.dispatch().await;
        assert_eq!(scene.delivery().await.status, DeliveryStatus::Delivered);
        assert_eq!(scene.receiver.one().header("x-service-signature").matches("v1=").count(), 1);
    }

    async fn a_new_url_gets_the_queued_events_at_once(store: Store) {
        let scene = WebhookScene::on(store).await;
        let elsewhere = scene.app.receiver().await;
        scene.receiver.always(Reply::Status(500));
        scene.traded().await;
        scene.traded().await;
        assert!(fail_until_open(&scene).await >= 30_000);
        set_webhook_url(&scene.app.ctx, scene.key.caller.key.id, Some(elsewhere.url.clone())).await.unwrap();
        scene.dispatch().await;
        assert_eq!(elsewhere.take().len(), 2);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn an_event_behind_five_failures_waits_without_an_attempt(store: Store) {
        let scene = WebhookScene::on(store).await;
        for _ in 0..6 {
            scene.traded().await;
        }
        scene.exec("UPDATE keys SET webhook_url = 'http://169.254.169.254/'").await;
        scene.dispatch().await;
        let standing = async || scene.deliveries().await.iter().map(|event| event.attempts).collect::<Vec<_>>();
        // Each failed permanently at once, so only the breaker delays the sixth.
        assert_eq!(standing().await, [1, 1, 1, 1, 1, 0]);
        assert_eq!(scene.next_attempt().await, 30_000);
        assert_eq!(standing().await, [1; 6]);
    }
}

/// The end of a transaction that waits for the test's permission.
#[derive(Clone, Default)]
struct Gate(Arc<Notify>);

/// On PostgreSQL two transactions meet at a queue: one releases it because it is empty, and the
/// other has queued an event and not committed yet.
#[tokio::test]
async fn an_event_queued_during_a_release_of_its_queue_is_due() {
    const QUEUED: [&str; 2] = [
        "UPDATE webhook_endpoints SET tail = tail + 1, due_at_ms = COALESCE(due_at_ms, 1)",
        "INSERT INTO webhook_queue (key_id, position, event_id, replay, attempts, began_at_ms)
        SELECT key_id, 99, event_id, 1, 0, 1 FROM deliveries",
    ];
    const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock'";
    const DUE: &str = "SELECT COUNT(*) FROM webhook_endpoints WHERE due_at_ms IS NOT NULL";
    let Some(store) = store::testing::postgres().await else { return };
    let scene = WebhookScene::on(store.clone()).await;
    scene.traded().await;
    scene.dispatch().await;
    scene.exec("UPDATE webhook_endpoints SET due_at_ms = 1").await;
    let now = scene.now();
    let held = store
        .write(now, |tx, now| Box::pin(store::webhooks::claim_due(tx, *now, now.plus_ms(1_000), 1)))
        .await;
    let held = held.unwrap()[0];
    let number = async |sql: &'static str| {
        let read: Result<Option<i64>, StoreError> =
            store.read(sql, |tx, sql| Box::pin(tx.find(sql, &[], |row| row.only::<i64>()))).await;
        read.unwrap().unwrap()
    };
    let (queued, commit) = (Gate::default(), Gate::default());
    let queue = store.write((queued.clone(), commit.clone()), |tx, (queued, commit)| {
        Box::pin(async move {
            for sql in QUEUED {
                tx.exec(sql, &[]).await?;
            }
            queued.0.notify_one();
            commit.0.notified().await;
            Ok::<_, StoreError>(())
        })
    });
    let give_back = async {
        queued.0.notified().await;
        store.write(held, |tx, held| Box::pin(store::webhooks::let_go(tx, *held))).await
    };
    let allow = async {
        while number(WAITING).await == 0 {}
        commit.0.notify_one();
    };
    let (queue, give_back, ()): (Result<(), StoreError>, Result<(), StoreError>, ()) =
        tokio::join!(queue, give_back, allow);
    assert_eq!((queue, give_back), (Ok(()), Ok(())));
    assert_eq!(number(DUE).await, 1);
}
