//! Spending caps, to the micro-USDC and to the millisecond.

use domain::key::{LimitOverrides, Tier};
use domain::time::DAY_MS;
use domain::trade::Status;
use domain::{ErrorCode, Usdc};
use futures::future::join_all;
use store::Store;
use testkit::TestApp;

use crate::scene::{Scene, assert_refused};

async fn free_key() -> Scene {
    Scene::with(TestApp::new().await, "100000", Tier::Free).await
}

#[tokio::test]
async fn one_trade_is_at_most_the_cap_per_trade() {
    let Scene { app, key, market, .. } = free_key().await;
    let refusal =
        assert_refused(&app, key.buy(&market, 0, "500.000001"), ErrorCode::SpendingLimitExceeded).await;
    assert_eq!(refusal.extensions["cap"], "per_trade");
    let trade = key.buy(&market, 0, "500").await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
}

#[tokio::test]
async fn the_cap_per_trade_counts_the_proceeds_of_a_sale() {
    let Scene { app, ada, key, market } = free_key().await;
    let rich = app.key(&ada, Tier::Mm).await;
    rich.buy(&market, 0, "2000").await;
    app.run_workers().await;
    let refusal =
        assert_refused(&app, key.sell(&market, 0, "500.000001"), ErrorCode::SpendingLimitExceeded).await;
    assert_eq!(refusal.extensions["cap"], "per_trade");
    assert_refused(&app, key.sell_all(&market, 0), ErrorCode::SpendingLimitExceeded).await;
    let sold = key.sell(&market, 0, "500").await;
    app.run_workers().await;
    assert_eq!(app.status(sold.id).await, Status::Completed);
    // Sales do not use the daily cap.
    assert_eq!(app.spent(&key).await, Usdc::ZERO);
}

#[tokio::test]
async fn the_daily_cap_can_be_used_up_exactly() {
    let Scene { app, key, market, .. } = free_key().await;
    key.buy(&market, 0, "500").await;
    key.buy(&market, 1, "499.5").await;
    let refusal =
        assert_refused(&app, key.buy(&market, 0, "0.500001"), ErrorCode::SpendingLimitExceeded).await;
    assert_eq!(refusal.extensions["cap"], "daily_volume");
    key.buy(&market, 0, "0.5").await;
    assert_refused(&app, key.buy(&market, 0, "0.000002"), ErrorCode::SpendingLimitExceeded).await;
    app.run_workers().await;
    assert_refused(&app, key.buy(&market, 0, "0.000002"), ErrorCode::SpendingLimitExceeded).await;
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_trade_leaves_the_window_after_exactly_24_hours() {
    let Scene { app, key, market, .. } = free_key().await;
    key.buy(&market, 0, "500").await;
    app.run_workers().await;
    app.advance_ms(DAY_MS / 2).await;
    key.buy(&market, 1, "500").await;
    app.run_workers().await;

    app.advance_ms(DAY_MS / 2 - 1).await;
    assert_refused(&app, key.buy(&market, 0, "0.000002"), ErrorCode::SpendingLimitExceeded).await;
    app.advance_ms(1).await;
    key.buy(&market, 0, "500").await;
    assert_refused(&app, key.buy(&market, 0, "0.000002"), ErrorCode::SpendingLimitExceeded).await;
    app.advance_ms(DAY_MS / 2).await;
    key.buy(&market, 0, "500").await;
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_rejected_trade_releases_its_reservation() {
    let Scene { app, ada, key, market } = free_key().await;
    let trade = key.buy(&market, 0, "500").await;
    assert_eq!(
        (app.spent(&key).await, app.reserved(&ada).await),
        (Usdc::from_whole(500), Usdc::from_whole(500))
    );
    app.freeze(market).await;
    app.workers.synchronise(&app.ctx).await;
    app.workers.execute(&app.ctx).await;
    assert_eq!(app.status(trade.id).await, Status::Rejected);
    assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (Usdc::ZERO, Usdc::ZERO));
    app.unfreeze(market).await;
    app.run_workers().await;
    key.buy(&market, 0, "500").await;
    key.buy(&market, 0, "500").await;
    app.run_workers().await;
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_failed_trade_releases_its_reservation() {
    let Scene { app, ada, key, market } = free_key().await;
    let trade = key.buy(&market, 0, "500").await;
    app.advance_ms(app.ctx.config.intent_lifetime_ms).await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Failed);
    assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (Usdc::ZERO, Usdc::ZERO));
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_reservation_outside_the_window_is_not_released_twice() {
    let Scene { app, key, market, .. } = free_key().await;
    let late = key.buy(&market, 0, "500").await;
    app.advance_ms(DAY_MS).await;
    key.buy(&market, 0, "300").await;
    app.run_workers().await;
    assert_eq!(app.status(late.id).await, Status::Failed);
    assert_eq!(app.spent(&key).await, Usdc::from_whole(300));
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_key_has_its_own_caps_and_shares_the_balance() {
    let Scene { app, ada, key, market } = free_key().await;
    let overrides = LimitOverrides { per_trade: Some(Usdc::from_whole(7)), ..LimitOverrides::default() };
    let second = app.key_with(&ada, Tier::Mm, overrides).await;
    key.buy(&market, 0, "500").await;
    key.buy(&market, 0, "500").await;
    assert_refused(&app, second.buy(&market, 0, "7.000001"), ErrorCode::SpendingLimitExceeded).await;
    second.buy(&market, 0, "7").await;
    assert_eq!(app.reserved(&ada).await, Usdc::from_whole(1_007));
}

/// The model's state of a trade: its time, its amount, and whether it still counts.
struct Made {
    id: domain::ids::TradeId,
    at: domain::Timestamp,
    usdc: u64,
    counts: bool,
}

store::on_each_engine! {
    async fn every_24_hour_window_admits_exactly_up_to_the_cap(store: Store) {
        const CAP: u64 = 1_000_000_000;
        let app = TestApp::with().on(store).start().await;
        let Scene { app, key, market, .. } = Scene::with(app, "1000000", Tier::Free).await;
        let dice = app::entropy::SeededEntropy::new(11);
        let roll = |sides: u64| {
            let mut bytes = [0; 8];
            app::entropy::Entropy::fill(&dice, &mut bytes);
            u64::from_be_bytes(bytes) % sides
        };
        let mut made: Vec<Made> = Vec::new();
        let mut refused = 0;
        for _ in 0..150 {
            app.advance_ms((roll(2 * 3_600_000) as i64) + 1).await;
            let now = app.ctx.now();
            let in_window = made.iter().filter(|made| made.counts && now.since_ms(made.at) < DAY_MS);
            let spent: u64 = in_window.map(|made| made.usdc).sum();
            // Often exactly the remaining amount, or a millionth more.
            let usdc = match roll(4) {
                0 => CAP - spent,
                1 => CAP - spent + 1,
                _ => 1_000_000 + roll(299_000_000),
            };
            let usdc = usdc.clamp(1_000_000, 500_000_000);
            let amount = format!("{}.{:06}", usdc / 1_000_000, usdc % 1_000_000);
            match key.buy(&market, u8::try_from(roll(2)).unwrap(), &amount).send().await {
                Ok(app::trades::Accepted::Created(trade)) => {
                    assert!(spent + usdc <= CAP, "{spent} and {usdc} were allowed");
                    made.push(Made { id: trade.id, at: now, usdc, counts: true });
                }
                Ok(other) => panic!("{other:?}"),
                Err(refusal) => {
                    assert_eq!(refusal.code, ErrorCode::SpendingLimitExceeded, "{refusal}");
                    assert!(spent + usdc > CAP, "{spent} and {usdc} were refused");
                    refused += 1;
                }
            }
            // In every third step, trades wait until the next step, and most of them are too late
            // then.
            if roll(3) > 0 {
                app.run_workers().await;
                for made in made.iter_mut().rev().take(5) {
                    made.counts = !matches!(app.status(made.id).await, Status::Failed | Status::Rejected);
                }
            }
            assert!(app.spent(&key).await.atomic() <= CAP);
        }
        assert!(refused > 20 && made.iter().any(|made| !made.counts), "{refused}");
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn spending_counts_again_after_a_fast_clock_is_corrected(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let Scene { app, key, market, .. } = Scene::with(app, "100000", Tier::Free).await;
        key.buy(&market, 0, "500").await;
        key.buy(&market, 0, "499").await;
        app.clock.advance(2 * DAY_MS);
        key.buy(&market, 0, "300").await;
        app.clock.advance(-2 * DAY_MS);
        let spent = store::keys::find_spent;
        let input = (key.caller.key.id, app.ctx.now());
        let spent =
            app.ctx.store.read(input, move |tx, (id, now)| Box::pin(spent(tx, *id, *now))).await;
        assert_eq!(spent, Ok(Usdc::from_whole(1_299)));
        assert_refused(&app, key.buy(&market, 0, "0.000002"), ErrorCode::SpendingLimitExceeded).await;
        app.clock.advance(DAY_MS);
        key.buy(&market, 0, "500").await;
    }

    async fn fifty_parallel_buys_at_the_edge_fill_the_daily_cap_exactly(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let Scene { app, key, market, .. } = Scene::with(app, "100000", Tier::Free).await;
        let buys = (0..50).map(|_| {
            let key = key.clone();
            tokio::spawn(async move { key.buy(&market, 0, "37").send().await.map(drop) })
        });
        let outcomes: Vec<_> = join_all(buys).await.into_iter().map(Result::unwrap).collect();
        for refusal in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert_eq!(refusal.code, ErrorCode::SpendingLimitExceeded, "{refusal} {:?}", refusal.source);
        }
        // 27 times 37 is 999; the cap is 1,000.
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 27);
        key.buy(&market, 0, "1").await;
        assert_eq!(app.spent(&key).await, Usdc::from_whole(1_000));
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn fifty_parallel_buys_of_two_keys_take_exactly_the_balance(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let Scene { app, ada, key, market } = Scene::with(app, "250", Tier::Mm).await;
        let keys = [key, app.key(&ada, Tier::Mm).await];
        let buys = (0..50).map(|n| {
            let key = keys[n % 2].clone();
            tokio::spawn(async move { key.buy(&market, 0, "10").send().await.map(drop) })
        });
        let outcomes: Vec<_> = join_all(buys).await.into_iter().map(Result::unwrap).collect();
        for refusal in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert_eq!(refusal.code, ErrorCode::InsufficientBalance, "{refusal} {:?}", refusal.source);
        }
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 25);
        app.run_workers().await;
        assert_eq!(app.balance(&ada).await, Usdc::ZERO);
        app.assert_ledger_equals_chain().await;
    }
}
