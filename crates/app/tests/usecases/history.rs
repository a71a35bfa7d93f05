//! Stored candles, compared with the market's movements.

use std::collections::BTreeMap;

use alloy_primitives::U256;
use app::worker::{Progress, Worker};
use app::{AppError, markets};
use domain::candle::{Bucket, Candle, Course, Interval, distance};
use domain::time::MINUTE_MS;
use domain::trade::Side;
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use store::Store;
use store::movements::Movement;
use testkit::{Anvil, START, TestApp, TestMarket, hub};

use crate::scene::Scene;

const EVER: Timestamp = Timestamp::from_ms(i64::MAX);

/// A market's bucket computed by definition: every outcome's distance is recorded after every
/// trade.
#[derive(Debug, Default, PartialEq, Eq)]
struct Defined {
    at_ms: i64,
    block: u64,
    market_trades: u64,
    quantities: Vec<Wad>,
    distances: Vec<Vec<Wad>>,
    traded: Vec<(Usdc, Wad, u64)>,
}

async fn trades(app: &TestApp, market: TestMarket) -> Vec<Movement> {
    let mut all = Vec::new();
    loop {
        let after = all.last().map_or_else(String::new, |last: &Movement| last.id.clone());
        let page = app
            .ctx
            .store
            .read((market.id, after), |tx, (id, after)| {
                Box::pin(store::movements::list_of_market(tx, *id, after, 1_000))
            })
            .await;
        let page = page.unwrap();
        if page.is_empty() {
            return all.into_iter().filter(|movement| movement.cost.is_some()).collect();
        }
        all.extend(page);
    }
}

async fn stored(app: &TestApp, market: TestMarket, interval: Interval) -> Vec<Bucket> {
    let input = (market.id, interval);
    let read = app
        .ctx
        .store
        .read(input, |tx, (id, interval)| {
            Box::pin(store::candles::list(tx, *id, *interval, Timestamp::from_ms(0), EVER))
        })
        .await;
    read.unwrap()
}

/// Asserts that the stored buckets are exactly those that follow from the movements.
async fn assert_candles(app: &TestApp, market: TestMarket) {
    let (_, outcomes) = app.market_row(market).await;
    let trades = trades(app, market).await;
    for interval in Interval::STORED {
        let mut quantities: Vec<Wad> = outcomes.iter().map(|outcome| outcome.opening).collect();
        let mut defined: BTreeMap<i64, Defined> = BTreeMap::new();
        for (n, trade) in (1u64..).zip(&trades) {
            let (cost, index) = (trade.cost.unwrap(), usize::from(trade.outcome_index));
            quantities[index] = trade.quantity.unwrap();
            let bucket = defined.entry(interval.floor(trade.created_at).ms()).or_default();
            bucket.at_ms = trade.created_at.ms();
            bucket.block = trade.block_number;
            bucket.market_trades = n;
            bucket.quantities.clone_from(&quantities);
            bucket.distances.resize(outcomes.len(), Vec::new());
            bucket.traded.resize(outcomes.len(), (Usdc::ZERO, Wad::ZERO, 0));
            for (seen, quantity) in bucket.distances.iter_mut().zip(&quantities) {
                seen.push(distance(cost, *quantity));
            }
            let (usdc, tokens, count) = &mut bucket.traded[index];
            *usdc = usdc.checked_add(trade.usdc).unwrap();
            *tokens = tokens.checked_add(trade.tokens).unwrap();
            *count += 1;
        }
        let found = stored(app, market, interval).await;
        let starts: Vec<i64> = found.iter().map(|bucket| bucket.start.ms()).collect();
        assert_eq!(starts, defined.keys().copied().collect::<Vec<_>>(), "{interval:?}");
        for (bucket, defined) in found.iter().zip(defined.values()) {
            let place = format!("{interval:?} at {}", bucket.start);
            assert_eq!((bucket.at.ms(), bucket.block), (defined.at_ms, defined.block), "{place}");
            assert_eq!(bucket.market_trades, defined.market_trades, "{place}");
            assert_eq!(bucket.quantities, defined.quantities, "{place}");
            for (index, seen) in (0u8..).zip(&defined.distances) {
                let (volume, tokens, trades) = defined.traded[usize::from(index)];
                let course = Course {
                    open: seen[0],
                    high: *seen.iter().max().unwrap(),
                    low: *seen.iter().min().unwrap(),
                    close: *seen.last().unwrap(),
                };
                let expected = Candle { distance: course, volume, tokens, trades };
                assert_eq!(bucket.candle(index), expected, "outcome {index} of {place}");
            }
        }
    }
}

/// A reproducible random generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }

    /// Buys and sells as the stranger: some in the same second, some minutes or hours apart. Reads
    /// the chain now and then.
    async fn trade(&mut self, app: &TestApp, market: TestMarket, outcomes: u64, trades: u32) {
        let hub = app.ctx.chain.contracts().hub;
        for _ in 0..trades {
            let outcome = u8::try_from(self.roll(outcomes)).unwrap();
            app.stranger_buys(market, outcome, &format!("{}", 1 + self.roll(40))).await;
            if self.roll(2) == 0 {
                let tokens = U256::from(10u64.pow(17) * (1 + self.roll(9)));
                app.send(&app.roles.stranger, hub, hub::sell(market, outcome, tokens)).await;
            }
            let wait_ms = [0, 1_000, 61_000, 7 * MINUTE_MS, 3 * 60 * MINUTE_MS];
            app.clock.advance(wait_ms[usize::try_from(self.roll(5)).unwrap()]);
            if self.roll(2) == 0 {
                app.run_workers().await;
            }
        }
    }
}

async fn sql(app: &TestApp, sql: &'static str) {
    let done = app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(sql, &[]))).await;
    done.unwrap();
}

/// Puts the database in the state that an older version of the service would have left.
async fn forget_candles(app: &TestApp) {
    sql(app, "DELETE FROM candles").await;
    sql(app, "INSERT INTO candle_backlog (market_id, after_movement_id) SELECT DISTINCT market_id, '' FROM movements").await;
}

store::on_each_engine! {
    async fn candles_equal_the_movements_through_trades_and_reorgs(store: Store) {
        let app = TestApp::with().on(store).forkable().confirmations(60).start().await;
        let (two, three) = (app.market(&["Yes", "No"]).await, app.market(&["A", "B", "C"]).await);
        let mut dice = Dice(7);
        dice.trade(&app, two, 2, 6).await;
        dice.trade(&app, three, 3, 8).await;
        app.run_workers().await;
        assert_candles(&app, two).await;
        assert_candles(&app, three).await;

        app.branches().part();
        // In the same second as the last remaining block, and later.
        app.stranger_buys(three, 1, "5").await;
        dice.trade(&app, three, 3, 6).await;
        app.run_workers().await;
        let abandoned = stored(&app, three, Interval::OneMinute).await;
        assert_candles(&app, three).await;
        app.branches().switch();
        app.mine(40).await;
        app.run_workers().await;
        assert!(stored(&app, three, Interval::OneMinute).await.len() < abandoned.len());
        assert_candles(&app, three).await;
        dice.trade(&app, three, 3, 6).await;
        app.run_workers().await;
        assert_candles(&app, two).await;
        assert_candles(&app, three).await;
        app.assert_ledger_equals_chain().await;
    }

    async fn candles_rebuilt_from_the_first_movement_are_equal(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let market = app.market(&["A", "B", "C"]).await;
        Dice(11).trade(&app, market, 3, 8).await;
        app.resolve(market, 1).await;
        app.run_workers().await;
        assert_candles(&app, market).await;
        let before = stored(&app, market, Interval::OneMinute).await;
        forget_candles(&app).await;
        app.run_workers().await;
        assert_candles(&app, market).await;
        assert_eq!(stored(&app, market, Interval::OneMinute).await, before);
        app.forget_what_was_read().await;
        app.run_workers().await;
        assert_eq!(stored(&app, market, Interval::OneMinute).await, before);
    }

    async fn a_gap_in_the_candles_is_filled_at_the_next_trade(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (market, other) = (app.market(&["Yes", "No"]).await, app.market(&["Yes", "No"]).await);
        let mut dice = Dice(13);
        dice.trade(&app, market, 2, 3).await;
        dice.trade(&app, other, 2, 3).await;
        app.run_workers().await;
        // As if a process of an older version had read a trade.
        sql(&app, "DELETE FROM candles WHERE at_ms = (SELECT MAX(at_ms) FROM candles)").await;
        app.stranger_buys(other, 0, "3").await;
        app.run_workers().await;
        assert_eq!(stored(&app, other, Interval::OneMinute).await, []);
        app.run_workers().await;
        assert_candles(&app, other).await;
        assert_candles(&app, market).await;
    }

    async fn a_backlog_is_processed_in_parts_during_the_sync(store: Store) {
        let Scene { app, key, market, .. } = Scene::of(TestApp::with().on(store).start().await).await;
        for n in 0..3u8 {
            key.buy(&market, n % 2, "10").await;
            app.run_workers().await;
        }
        // The same trades 900 times over, in the chain's first block: 2,700 movements that exist
        // only in the database.
        let real = trades(&app, market).await;
        let copies = (0..2_700u32).zip(real.iter().cycle()).map(|(n, trade)| Movement {
            id: Movement::id_at(1, n),
            block_number: 1,
            log_index: n,
            created_at: START.plus_ms(MINUTE_MS * (i64::from(n / 3) - 1_000)),
            trade_id: None,
            ..trade.clone()
        });
        let copies: Vec<Movement> = copies.collect();
        let added =
            app.ctx.store.write(copies, |tx, copies| Box::pin(store::movements::insert(tx, copies))).await;
        added.unwrap();
        sql(&app, "UPDATE markets SET trade_count = trade_count + 2700").await;
        forget_candles(&app).await;

        assert_eq!(app.workers.sync.tick(&app.ctx).await.unwrap(), Progress::More);
        let first = stored(&app, market, Interval::OneMinute).await;
        assert_eq!(first.last().unwrap().market_trades, 1_000);
        let (row, outcomes) = app.market_row(market).await;
        let refused: AppError =
            markets::history(&app.ctx, &row, &outcomes, markets::Span::default()).await.unwrap_err();
        assert_eq!((refused.code, refused.retry_after_s), (ErrorCode::DependencyUnavailable, Some(5)));
        // A movement that is read in the meantime waits in the backlog.
        app.stranger_buys(market, 1, "5").await;
        assert_eq!(app.workers.sync.tick(&app.ctx).await.unwrap(), Progress::More);
        assert_eq!(trades(&app, market).await.len(), 2_704);
        assert_eq!(stored(&app, market, Interval::OneMinute).await.last().unwrap().market_trades, 2_000);
        app.workers.synchronise(&app.ctx).await;
        assert_eq!(stored(&app, market, Interval::OneDay).await.last().unwrap().market_trades, 2_704);
        assert_candles(&app, market).await;
        markets::history(&app.ctx, &row, &outcomes, markets::Span::default()).await.unwrap();
    }

    async fn a_reorg_during_a_backlog_restarts_it(store: Store) {
        let app = TestApp::with().on(store).forkable().confirmations(60).start().await;
        let market = app.market(&["Yes", "No"]).await;
        let mut dice = Dice(17);
        dice.trade(&app, market, 2, 3).await;
        app.run_workers().await;
        app.branches().part();
        dice.trade(&app, market, 2, 4).await;
        app.run_workers().await;
        // The backlog has reached the last movement, which the other branch does not have.
        sql(&app, "INSERT INTO candle_backlog (market_id, after_movement_id) SELECT market_id, MAX(id) FROM movements
            GROUP BY market_id").await;
        app.branches().switch();
        app.stranger_buys(market, 1, "9").await;
        app.mine(30).await;
        app.run_workers().await;
        app.run_workers().await;
        assert_candles(&app, market).await;
    }

    async fn quotes_at_past_blocks_use_their_state_on_anvil(store: Store) {
        let Some(anvil) = Anvil::start() else { return };
        let app = TestApp::with().over(anvil.provider.clone()).on(store).start().await;
        let market = app.market(&["Yes", "No"]).await;
        let action = markets::QuoteRequest { side: Side::Buy, amount: U256::from(25_000_000) };
        let id = market.id.to_string();
        app.stranger_buys(market, 1, "30").await;
        app.run_workers().await;
        let live = markets::quote(&app.ctx, &id, 0, action, None).await.unwrap();
        app.stranger_buys(market, 0, "50").await;
        app.freeze(market).await;
        app.run_workers().await;
        let past = markets::quote(&app.ctx, &id, 0, action, Some(live.block.number)).await.unwrap();
        assert_eq!((past.fill, past.block), (live.fill, live.block));
        assert_eq!(past.outcomes[1].quantity, live.outcomes[1].quantity);
        for block in [0, 1, 1_000_000] {
            let refused = markets::quote(&app.ctx, &id, 0, action, Some(block)).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::ValidationFailed, "{block}");
            assert_eq!(refused.extensions["errors"][0]["pointer"], "/block", "{block}");
        }
    }
}

#[tokio::test]
async fn a_trade_at_the_start_of_a_bucket_belongs_to_it() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    assert_eq!(Interval::OneHour.floor(START), START);
    app.clock.advance(60 * MINUTE_MS - 1_000);
    app.stranger_buys(market, 0, "5").await;
    app.clock.advance(1_000);
    app.stranger_buys(market, 0, "7").await;
    app.run_workers().await;
    let hours = stored(&app, market, Interval::OneHour).await;
    let volumes: Vec<_> =
        hours.iter().map(|hour| (hour.start.since_ms(START), hour.candle(0).volume)).collect();
    assert_eq!(volumes, [(0, Usdc::from_whole(5)), (60 * MINUTE_MS, Usdc::from_whole(7))]);
}
