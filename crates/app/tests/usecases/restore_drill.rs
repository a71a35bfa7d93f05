//! The restore drill: runs a load, copies its database after every tenth of it, and restores each
//! copy against the chain, which has everything. Afterwards no trade has failed, none was executed
//! twice, and feed readers see every event once.
//!
//! `FORETELL_DRILL_TRADES` sets the number of trades (default: 100).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use app::feed::{FeedStart, read};
use chain::EventKind as OnChain;
use domain::ErrorCode;
use domain::event::{EventKind, FeedPosition};
use domain::ids::{TradeId, UserId};
use domain::key::Tier;
use domain::trade::Status;
use store::Store;
use store::testing::copy;
use testkit::{TestApp, TestKey, TestMarket};

/// The number of copies of a load.
const COPIES: usize = 10;
/// The number of trades after each restore.
const AFTERWARDS: usize = 5;

struct Drill {
    app: TestApp,
    markets: Vec<TestMarket>,
    keys: Vec<TestKey>,
    users: Vec<UserId>,
    made: usize,
}

impl Drill {
    async fn on(store: Store) -> Self {
        let app = TestApp::with().on(store).start().await;
        let (mut keys, mut users) = (Vec::new(), Vec::new());
        for name in ["ada", "bob", "eve"] {
            let user = app.user(name).funded("100000").await;
            keys.push(app.key(&user, Tier::Mm).await);
            users.push(user.id);
        }
        let markets = vec![app.market(&["Yes", "No"]).await, app.market(&["A", "B", "C"]).await];
        Self { app, markets, keys, users, made: 0 }
    }

    /// Creates the load's next trade: mostly buys, every fourth one a sale.
    async fn trade(&mut self) -> TradeId {
        let n = self.made;
        self.made += 1;
        let key = &self.keys[n % self.keys.len()];
        let market = &self.markets[n / 3 % self.markets.len()];
        let request = if n % 4 == 3 && n > 20 { key.sell(market, 0, "0.5") } else { key.buy(market, 0, "5") };
        request.await.id
    }

    /// Restarts the service on an earlier copy.
    async fn restore(&mut self, copy: Store, n: usize) {
        self.app.restore(copy, &format!("restored {n}")).await;
        self.keys = self.keys.iter().map(|key| key.in_process(self.app.ctx.clone())).collect();
    }

    async fn positions(&self) -> Vec<FeedPosition> {
        let mut positions = Vec::new();
        for user in &self.users {
            positions.push(
                read(&self.app.ctx, *user, FeedStart::Latest, EventKind::ALL, 1).await.unwrap().position,
            );
        }
        positions
    }

    /// Counts how often the chain executed each trade, and how many it rejected.
    async fn on_chain(&self) -> (BTreeMap<TradeId, usize>, usize) {
        let head = self.app.ctx.chain.head().await.unwrap().number;
        let (mut made, mut failed) = (BTreeMap::new(), 0);
        for event in self.app.ctx.chain.events(0, head).await.unwrap() {
            match event.kind {
                OnChain::Trade { trade_id: Some(id), .. } => *made.entry(TradeId(id)).or_default() += 1,
                OnChain::IntentFailed { .. } | OnChain::IntentDuplicate { .. } => failed += 1,
                _ => {}
            }
        }
        (made, failed)
    }

    /// Asserts that a reader with a position of an earlier generation starts again and sees every
    /// event of its user once.
    async fn assert_feeds_begin_again(&self, positions: &[FeedPosition]) {
        for (user, position) in self.users.iter().zip(positions) {
            let place = FeedStart::Behind(*position);
            let refusal = read(&self.app.ctx, *user, place, EventKind::ALL, 1).await.unwrap_err();
            assert_eq!(refusal.code, ErrorCode::FeedRestarted);
            let (mut place, mut numbers, mut ids) = (FeedStart::Oldest, Vec::new(), BTreeSet::new());
            loop {
                let part = read(&self.app.ctx, *user, place, EventKind::ALL, 50).await.unwrap();
                for event in &part.events {
                    numbers.push(event.seq);
                    assert!(ids.insert(event.id.to_string()), "an event comes twice");
                }
                place = FeedStart::Behind(part.position);
                if !part.has_more {
                    break;
                }
            }
            assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "the numbers have gaps");
        }
    }
}

fn load() -> usize {
    std::env::var("FORETELL_DRILL_TRADES").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

store::on_each_engine! {
    async fn a_restore_at_any_tenth_of_a_load_keeps_every_trade_once(store: Store) {
        let began = Instant::now();
        let engine = format!("{:?}", store.engine());
        let mut drill = Drill::on(store).await;
        let (trades, mut copies) = (load(), Vec::new());
        for n in 0..trades {
            drill.trade().await;
            match n % 5 {
                // Trades are copied in all states: pending, signed, mined but not read, completed.
                1 => drill.app.workers.execute(&drill.app.ctx).await,
                3 => drill.app.run_workers().await,
                _ => {}
            }
            if n % (trades / COPIES).max(1) == 0 && copies.len() < COPIES {
                copies.push(copy(&drill.app.ctx.store).await);
            }
        }
        drill.app.run_workers().await;
        let positions = drill.positions().await;
        let (mut recovered, mut corrected) = (0, 0);
        for (n, copy) in copies.into_iter().enumerate() {
            drill.restore(copy, n).await;
            let mut afterwards = Vec::new();
            for _ in 0..AFTERWARDS {
                afterwards.push(drill.trade().await);
                drill.app.run_workers().await;
            }
            drill.app.run_workers().await;
            for id in afterwards {
                assert_eq!(drill.app.status(id).await, Status::Completed, "a trade after restore {n}");
            }
            let (made, failed) = drill.on_chain().await;
            assert_eq!(failed, 0, "the Gate refused a trade after restore {n}");
            for (id, times) in made {
                assert_eq!((times, drill.app.status(id).await), (1, Status::Completed), "{id} after restore {n}");
            }
            drill.app.assert_ledger_equals_chain().await;
            drill.assert_feeds_begin_again(&positions).await;
            let changes =
                drill.app.ctx.store.read((), |tx, ()| Box::pin(store::recoveries::find(tx, 1))).await;
            let changes = changes.unwrap().expect("the loss was detected").changes;
            recovered += changes.recovered_trades;
            corrected += changes.corrected_trades;
        }
        println!(
            "restore drill on {engine}: {trades} trades, {COPIES} restores, {recovered} trades recovered, {corrected} \
             corrected, 0 failed, 0 doubled, {:.1} s",
            began.elapsed().as_secs_f64()
        );
    }
}
