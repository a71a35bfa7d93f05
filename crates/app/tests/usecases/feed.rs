//! The events of a user's feed: their content, time and number.

use app::config::Redemptions;
use app::feed::{FeedStart, Happening, read, read_market};
use domain::event::EventKind::{self, MarketResolved, PositionClaimable, RedemptionCompleted};
use domain::event::FeedPosition;
use domain::ids::UserId;
use domain::key::Tier;
use domain::market::MarketStatus;
use domain::{ErrorCode, Usdc};
use serde_json::Value;
use store::Store;
use testkit::{TestApp, TestMarket};

use crate::scene::Scene;

/// Returns the kinds and data of the user's events of these kinds.
async fn told(app: &TestApp, user: UserId, kinds: &[EventKind]) -> Vec<(EventKind, Value)> {
    let part = read(&app.ctx, user, FeedStart::Oldest, kinds, 1_000).await.unwrap();
    let data = |body: &str| serde_json::from_str::<Value>(body).unwrap()["data"].take();
    part.events.iter().map(|event| (event.kind, data(&event.body))).collect()
}

const OF_MARKETS: &[EventKind] = &[MarketResolved, PositionClaimable, RedemptionCompleted];

fn kinds(told: &[(EventKind, Value)]) -> Vec<EventKind> {
    told.iter().map(|(kind, _)| *kind).collect()
}

/// Returns the market's trades by outcome, and its statuses.
async fn happened(app: &TestApp, market: TestMarket, after: &str) -> Vec<(String, String)> {
    let told = read_market(&app.ctx, market.id, after, 100).await.unwrap();
    assert!(!told.has_more);
    let text = |happening: &Happening| match happening {
        Happening::Trade(movement) => format!("{} {}", movement.kind, movement.outcome_index),
        Happening::Status(change) => change.status.to_string(),
    };
    told.happenings.iter().map(|one| (one.id().to_owned(), text(one))).collect()
}

fn words(happened: &[(String, String)]) -> Vec<&str> {
    happened.iter().map(|(_, word)| word.as_str()).collect()
}

store::on_each_engine! {
    async fn holders_are_notified_once_of_a_result_and_their_payouts(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &scene;
        let bob = app.user("bob").funded("1000").await;
        let his = app.key(&bob, Tier::Mm).await;
        let (eve, other) = (app.user("eve").funded("1000").await, app.market(&["Yes", "No"]).await);
        app.key(&eve, Tier::Mm).await.buy(&other, 0, "10").await;
        key.buy(market, 0, "100").await;
        key.buy(market, 1, "40").await;
        his.buy(market, 1, "40").await;
        app.run_workers().await;
        app.workers.announce(&app.ctx).await;
        assert_eq!(told(app, ada.id, OF_MARKETS).await, []);

        app.resolve(*market, 0).await;
        app.run_workers().await;
        for _ in 0..3 {
            app.workers.announce(&app.ctx).await;
        }
        let hers = told(app, ada.id, OF_MARKETS).await;
        assert_eq!(kinds(&hers), [MarketResolved, PositionClaimable]);
        assert_eq!(hers[0].1["status"], "RESOLVED");
        assert_eq!(hers[0].1["payouts"][0], "1000000000000000000");
        assert_eq!((&hers[1].1["marketId"], &hers[1].1["outcomeIndex"]), (&market.id.to_string().into(), &0.into()));
        assert_ne!(hers[1].1["claimableUsdc"], "0");
        assert_eq!(kinds(&told(app, bob.id, OF_MARKETS).await), [MarketResolved], "what lost pays nothing");
        assert_eq!(told(app, eve.id, OF_MARKETS).await, []);

        let claim = key.redeemed(market, 0).await;
        app.run_workers().await;
        app.run_workers().await;
        let paid = told(app, ada.id, &[RedemptionCompleted]).await;
        assert_eq!(paid.len(), 1);
        let expected = (claim.id.to_string(), app.claim(ada, claim.id).await.paid.to_string());
        let text = |member: &str| paid[0].1[member].as_str().unwrap().to_owned();
        assert_eq!((text("redemptionId"), text("amount")), expected);
        assert_eq!(expected.1, hers[1].1["claimableUsdc"].as_str().unwrap());
    }

    async fn automatic_payouts_notify_many_holders_once_each(store: Store) {
        let app = TestApp::with().on(store).automatic_redemptions().start().await;
        assert_eq!(app.ctx.config.redemptions, Redemptions::Automatic);
        let market = app.market(&["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"]).await;
        let mut users = Vec::new();
        for n in 0..11 {
            let user = app.user(&format!("user {n}")).funded("1000").await;
            let key = app.key(&user, Tier::Mm).await;
            for outcome in 0..10 {
                key.buy(&market, outcome, "5").await;
            }
            users.push(user);
        }
        app.run_workers().await;
        app.cancel(market).await;
        app.run_workers().await;
        let workers = app.another_process("another");
        app.workers.announce(&app.ctx).await;
        workers.announce(&app.ctx).await;
        for user in &users {
            let hers = told(&app, user.id, &[MarketResolved, PositionClaimable]).await;
            assert_eq!(kinds(&hers), [MarketResolved]);
            assert_eq!((&hers[0].1["status"], &hers[0].1["payouts"]), (&"CANCELLED".into(), &Value::Null));
        }
    }

    async fn no_event_announces_a_result_before_it_is_final(store: Store) {
        let app = TestApp::with().on(store).confirmations(4).start().await;
        let scene = Scene::of(app).await;
        let Scene { app, ada, key, market } = &scene;
        key.buy(market, 0, "100").await;
        app.run_workers().await;
        app.mine(4).await;
        app.run_workers().await;
        let before = happened(app, *market, "").await;
        assert_eq!(words(&before).last(), Some(&"buy 0"));
        app.resolve(*market, 0).await;
        app.run_workers().await;
        app.workers.announce(&app.ctx).await;
        assert_eq!(told(app, ada.id, OF_MARKETS).await, []);
        app.mine(4).await;
        app.run_workers().await;
        app.workers.announce(&app.ctx).await;
        assert_eq!(kinds(&told(app, ada.id, OF_MARKETS).await), [MarketResolved, PositionClaimable]);
        let behind = happened(app, *market, &before.last().unwrap().0).await;
        assert_eq!(words(&behind).last(), Some(&MarketStatus::Resolved.as_str()));
    }

    async fn market_events_have_the_chains_order_and_the_scheduled_end(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, key, market, .. } = &scene;
        key.buy(market, 0, "100").await;
        app.run_workers().await;
        app.freeze(*market).await;
        app.unfreeze(*market).await;
        app.run_workers().await;
        key.buy(market, 1, "10").await;
        app.run_workers().await;
        let all = happened(app, *market, "").await;
        let traded: Vec<_> = words(&all).into_iter().skip_while(|word| *word != "buy 0").collect();
        assert_eq!(traded, ["buy 0", "FROZEN", "OPEN", "buy 1"]);
        // After every position, the remaining events are the same.
        for (at, (id, _)) in all.iter().enumerate() {
            assert_eq!(happened(app, *market, id).await, all[at + 1..], "{id}");
        }
        let (row, _) = app.market_row(*market).await;
        app.advance_ms(row.end_time.since_ms(app.ctx.now()) + 1_000).await;
        app.run_workers().await;
        let ended = happened(app, *market, &all.last().unwrap().0).await;
        assert_eq!(words(&ended), ["FROZEN"]);
        assert_eq!(app.market_row(*market).await.0.status, MarketStatus::Frozen);
    }

    async fn a_position_outside_the_feed_is_rejected_and_oldest_works(store: Store) {
        const PRUNE: &str = "UPDATE feeds SET pruned_seq = 2";
        let scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &scene;
        let behind = |sequence| FeedStart::Behind(FeedPosition { generation: 1, sequence });
        let at = async |place: FeedStart| read(&app.ctx, ada.id, place, EventKind::ALL, 2).await;
        // An empty feed returns nothing, and a position to continue from.
        let nothing = at(FeedStart::Oldest).await.unwrap();
        assert_eq!((nothing.events.len(), nothing.position.sequence, nothing.has_more), (0, 0, false));
        assert_eq!(at(behind(0)).await.unwrap(), nothing);
        key.buy(market, 0, "100").await;
        app.run_workers().await;
        let pruned =
            app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(PRUNE, &[]))).await;
        assert_eq!(pruned.unwrap(), 1);
        let last = at(FeedStart::Latest).await.unwrap().position.sequence;
        assert!(last > 3, "{last}");
        for place in [behind(0), behind(1), behind(last + 1)] {
            let refusal = at(place).await.unwrap_err();
            assert_eq!((refusal.code, &refusal.extensions["oldestSequence"]), (ErrorCode::CursorExpired, &3.into()));
        }
        assert_eq!(at(behind(2)).await.unwrap().events[0].seq, 3);
        assert!(at(FeedStart::Oldest).await.is_ok());
        let end = at(behind(last)).await.unwrap();
        assert_eq!((end.events.len(), end.position.sequence), (0, last));
    }
}

/// A claim that was paid in two payments has two events, each with its own part.
#[tokio::test]
async fn a_refund_paid_in_two_parts_is_two_events() {
    let scene = Scene::new().await;
    let Scene { app, ada, key, market } = &scene;
    key.buy(market, 0, "100").await;
    app.run_workers().await;
    app.cancel(*market).await;
    app.run_workers().await;
    let claim = key.redeemed(market, 0).await;
    app.run_workers().await;
    let first = app.claim(ada, claim.id).await.paid;
    assert!(first > Usdc::ZERO);
    let payment = store::redemptions::Payment {
        id: claim.id,
        movement_id: "999999999999-000001".to_owned(),
        tx_hash: alloy_primitives::B256::repeat_byte(0xaa),
        usdc: Usdc::from_whole(3),
    };
    for counted in [true, false] {
        let again = app
            .ctx
            .store
            .write((payment.clone(), app.ctx.now()), |tx, (payment, now)| {
                Box::pin(store::redemptions::complete(tx, payment, *now))
            })
            .await;
        assert_eq!(again.unwrap(), counted);
    }
    let paid = told(app, ada.id, &[RedemptionCompleted]).await;
    let amounts: Vec<_> = paid.iter().map(|(_, data)| data["amount"].as_str().unwrap()).collect();
    assert_eq!(amounts, [first.atomic().to_string().as_str(), "3000000"]);
}
