//! Usage of keys: counted in memory, summed in the database over all processes and restarts, and
//! reported in windows.

use std::sync::Arc;

use app::cleanup::Cleaner;
use app::usage::{self, Flusher, Usage};
use app::worker::{Progress, Worker};
use app::{AppError, Ctx};
use domain::ErrorCode;
use domain::Usdc;
use domain::ids::KeyId;
use domain::key::Tier;
use domain::time::{DAY_MS, HOUR_MS};
use domain::trade::State;
use domain::usage::{GasCounts, KEEP_MS, TradeCounts};
use store::Store;
use testkit::{START, TestApp, TestKey};

use crate::scene::Scene;

/// Returns another process on the same database and chain, with no counts of its own.
fn another_process(ctx: &Ctx) -> Ctx {
    let mut other = ctx.clone();
    other.process = Arc::default();
    other
}

fn record(ctx: &Ctx, key: &TestKey, latency_ms: u64) {
    ctx.process.usage.record(key.caller.key.id, None, latency_ms, ctx.now());
}

async fn told(ctx: &Ctx, key: &TestKey) -> Usage {
    usage::of_key(ctx, &key.caller).await.unwrap()
}

/// Returns the numbers of requests in the last 24 hours, 7 days and 30 days.
async fn requests(ctx: &Ctx, key: &TestKey) -> [u64; 3] {
    let told = told(ctx, key).await.requests;
    [told.day, told.week, told.month].map(|requests| requests.latency.count())
}

async fn key(app: &TestApp) -> TestKey {
    let ada = app.user("ada").await;
    app.disabled_key(&ada, Tier::Mm).await
}

store::on_each_engine! {
    async fn usage_of_two_processes_is_added_up(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let key = key(&app).await;
        let (one, two) = (app.ctx.clone(), another_process(&app.ctx));
        for (ctx, latency_ms) in [(&one, 10), (&one, 20), (&two, 500)] {
            record(ctx, &key, latency_ms);
            ctx.process.usage.record(key.caller.key.id, Some(ErrorCode::IpNotAllowed), 0, ctx.now());
        }
        assert_eq!((requests(&one, &key).await, requests(&two, &key).await), ([2; 3], [1; 3]));
        usage::flush(&one).await.unwrap();
        assert_eq!((requests(&one, &key).await, requests(&two, &key).await), ([2; 3], [3; 3]));
        usage::flush(&two).await.unwrap();
        for ctx in [&one, &two] {
            let told = told(ctx, &key).await;
            let latency = told.requests.day.latency;
            let percentiles = [33, 66, 99].map(|percent| latency.percentile_ms(percent));
            assert_eq!(percentiles, [10, 20, 504].map(Some));
            assert_eq!(told.requests.month.refusals().collect::<Vec<_>>(), [(ErrorCode::IpNotAllowed, 3)]);
        }
    }

    async fn concurrent_additions_lose_nothing(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let mut keys = Vec::new();
        for _ in 0..3 {
            keys.push(app.disabled_key(&ada, Tier::Mm).await);
        }
        let processes = (0..4).map(|_| {
            let (ctx, keys) = (another_process(&app.ctx), keys.clone());
            tokio::spawn(async move {
                for round in 0..20 {
                    keys.iter().for_each(|key| record(&ctx, key, round));
                    usage::flush(&ctx).await.unwrap();
                }
            })
        });
        for process in futures::future::join_all(processes).await {
            process.unwrap();
        }
        for key in &keys {
            assert_eq!(requests(&app.ctx, key).await, [80; 3]);
        }
    }

    async fn only_flushed_usage_survives_a_crash(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let key = key(&app).await;
        record(&app.ctx, &key, 3);
        usage::flush(&app.ctx).await.unwrap();
        app.clock.advance(1_000);
        record(&app.ctx, &key, 4);
        assert_eq!(told(&app.ctx, &key).await.last_used_at, Some(app.ctx.now()));
        let next_life = another_process(&app.ctx);
        assert_eq!(requests(&next_life, &key).await, [1; 3]);
        assert_eq!(told(&next_life, &key).await.last_used_at, Some(START));
    }

    async fn memory_and_database_count_the_same_hours_of_a_window(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (first, last) = (key(&app).await, key(&app).await);
        assert_eq!(START.ms() % HOUR_MS, 0, "tests begin with an hour");
        record(&app.ctx, &first, 1);
        app.clock.advance(HOUR_MS - 1);
        record(&app.ctx, &last, 1);
        let flushed = another_process(&app.ctx);
        record(&flushed, &last, 1);
        usage::flush(&flushed).await.unwrap();
        // An hour leaves a window together with its first millisecond.
        let mut at = HOUR_MS - 1;
        for (days, inside, outside) in
            [(1, [1, 1, 1], [0, 1, 1]), (7, [0, 1, 1], [0, 0, 1]), (30, [0, 0, 1], [0, 0, 0])]
        {
            app.clock.advance(days * DAY_MS - 1 - at);
            assert_eq!(requests(&app.ctx, &first).await, inside, "{days}");
            assert_eq!(requests(&app.ctx, &last).await, inside.map(|count| 2 * count), "{days}");
            app.clock.advance(1);
            assert_eq!(requests(&app.ctx, &first).await, outside, "{days}");
            assert_eq!(requests(&app.ctx, &last).await, outside.map(|count| 2 * count), "{days}");
            at = days * DAY_MS;
        }
    }

    async fn trades_are_counted_when_they_happen_and_for_their_own_key(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        let other = app.key(&ada, Tier::Mm).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        let open = key.buy(&market, 0, "5").await;
        app.freeze(market).await;
        app.advance_ms(DAY_MS).await;
        app.run_workers().await;
        assert!(app.status(open.id).await.is_terminal());
        let trades = told(&app.ctx, &key).await.trades;
        assert_eq!((trades.day.created, trades.week.created), (0, 2));
        assert_eq!((trades.day.completed, trades.week.completed), (0, 1));
        let ended = trades.day.failed + trades.day.rejected;
        assert_eq!((ended, trades.week.failed + trades.week.rejected), (1, 1));
        assert_eq!((trades.day.volume_usdc, trades.week.volume_usdc), (Usdc::ZERO, Usdc::from_whole(10)));
        assert_eq!(trades.week, trades.month);
        assert_eq!(told(&app.ctx, &other).await.trades.month, TradeCounts::default());
        app.assert_ledger_equals_chain().await;
    }

    async fn the_gas_of_a_batch_is_divided_among_the_keys_of_its_trades(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let bob = app.user("bob").funded("100").await;
        let bob = app.key(&bob, Tier::Mm).await;
        let first = key.buy(&market, 0, "10").await;
        key.buy(&market, 1, "10").await;
        bob.buy(&market, 0, "10").await;
        app.run_workers().await;
        let State::Completed(settlement) = app.trade(first.id).await.state else { panic!("not completed") };
        let receipt = app.ctx.chain.receipt(settlement.tx_hash).await.unwrap().unwrap();
        let part = GasCounts::part_of(receipt.gas_used, receipt.effective_gas_price, 3);
        assert!(part.gas_used > 0 && part.fee_wei > 0);
        let (of_key, of_bob) = (told(&app.ctx, &key).await.gas, told(&app.ctx, &bob).await.gas);
        assert_eq!((of_key.day, of_bob.day), (part.times(2), part));
        assert_eq!((of_key.month, of_bob.week), (part.times(2), part));
        // A batch is counted once, no matter how often the workers run.
        app.advance_ms(HOUR_MS).await;
        app.run_workers().await;
        assert_eq!(told(&app.ctx, &bob).await.gas.month, part);
    }

    async fn the_gas_of_a_batch_is_counted_once_its_block_is_final(store: Store) {
        let app = TestApp::with().on(store).confirmations(3).start().await;
        let Scene { app, key, market, .. } = Scene::of(app).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        assert_eq!(told(&app.ctx, &key).await.gas.day, GasCounts::default(), "not before it is final");
        app.mine(3).await;
        app.run_workers().await;
        assert!(told(&app.ctx, &key).await.gas.day.gas_used > 0);
    }

    async fn reported_spending_equals_the_count_of_the_cap(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let spend = async || {
            let spend = usage::spend(&app.ctx, &key.caller).await.unwrap();
            assert_eq!(spend.last_24h.checked_add(spend.remaining), Some(key.caller.limits().daily));
            spend.last_24h
        };
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.advance_ms(HOUR_MS).await;
        key.buy(&market, 0, "5").await;
        app.run_workers().await;
        key.sell(&market, 0, "3").await;
        app.run_workers().await;
        assert_eq!(spend().await, Usdc::from_whole(15));
        app.advance_ms(DAY_MS - HOUR_MS - 1).await;
        assert_eq!(spend().await, Usdc::from_whole(15));
        app.advance_ms(1).await;
        assert_eq!(spend().await, Usdc::from_whole(5));
        app.advance_ms(HOUR_MS).await;
        assert_eq!(spend().await, Usdc::ZERO);
    }

    async fn the_cleaner_deletes_hours_outside_every_window(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let key = key(&app).await;
        record(&app.ctx, &key, 1);
        app.ctx.process.usage.record(key.caller.key.id, Some(ErrorCode::ApiKeyExpired), 1, app.ctx.now());
        usage::flush(&app.ctx).await.unwrap();
        assert_eq!(app.usage_rows().await, 3);
        let cleaner = Cleaner;
        app.clock.advance(KEEP_MS);
        cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!(app.usage_rows().await, 3);
        app.clock.advance(1);
        cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!(app.usage_rows().await, 1, "when the key was last used is kept");
        assert_eq!(told(&app.ctx, &key).await.last_used_at, Some(START));
    }
}

#[tokio::test]
async fn requests_are_stored_only_when_the_flusher_ticks() {
    let app = TestApp::new().await;
    let key = key(&app).await;
    for latency_ms in 0..1_000 {
        record(&app.ctx, &key, latency_ms % 7);
    }
    assert_eq!(app.usage_rows().await, 0);
    assert_eq!(Flusher.tick(&app.ctx).await.unwrap(), Progress::Idle);
    // One row for the latency, and the time of the last use.
    assert_eq!(app.usage_rows().await, 2);
    assert_eq!(requests(&app.ctx, &key).await, [1_000; 3]);
}

#[tokio::test]
async fn usage_that_cannot_be_stored_stays_counted() {
    let app = TestApp::new().await;
    // More than one transaction writes.
    let ids: Vec<KeyId> = (0..500).map(|_| KeyId(app.ctx.uuid())).collect();
    for id in &ids {
        app.ctx.process.usage.record(*id, None, 1, app.ctx.now());
    }
    app.ctx.store.close().await;
    let refused: AppError = usage::flush(&app.ctx).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::DependencyUnavailable);
    for id in &ids {
        assert_eq!(app.ctx.process.usage.of_key(*id)[0].counts.latency.count(), 1);
    }
}
