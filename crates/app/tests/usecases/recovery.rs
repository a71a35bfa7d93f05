//! A database that was set back while the chain was not: lost data is recovered, and nothing
//! executes twice.

use std::collections::BTreeMap;

use app::AppError;
use app::feed::{FeedStart, read};
use app::ledger::{SYNC_LEASE, Sync};
use app::recovery::{
    Advance, BlockReader, RecoveryDriver, RecoveryStep, advance, is_open, open_for_operator, plan,
};
use chain::EventKind as OnChain;
use domain::ErrorCode;
use domain::event::{EventKind, FIRST_GENERATION, FeedPosition};
use domain::ids::TradeId;
use domain::key::Tier;
use domain::trade::{State, Status};
use store::testing::copy;
use store::{Store, StoreError};
use testkit::{Fault, TestApp, TestKey};

use crate::scene::Scene;

/// Counts how often the chain executed each trade.
async fn made(app: &TestApp) -> BTreeMap<TradeId, usize> {
    let head = app.ctx.chain.head().await.unwrap().number;
    let mut made = BTreeMap::new();
    for event in app.ctx.chain.events(0, head).await.unwrap() {
        if let OnChain::Trade { trade_id: Some(id), .. } = event.kind {
            *made.entry(TradeId(id)).or_default() += 1;
        }
    }
    made
}

/// Asserts that every trade on chain was executed once and is completed in the tables.
async fn assert_nothing_lost_or_doubled(app: &TestApp) {
    for (id, times) in made(app).await {
        assert_eq!(times, 1, "{id} was made {times} times");
        assert_eq!(app.status(id).await, Status::Completed, "{id}");
    }
    app.assert_ledger_equals_chain().await;
}

async fn last_recovery(app: &TestApp) -> store::recoveries::Recovery {
    let found = app.ctx.store.read((), |tx, ()| Box::pin(store::recoveries::find(tx, 1))).await;
    found.unwrap().expect("there was a recovery")
}

fn executors(app: &TestApp) -> Vec<alloy_primitives::Address> {
    app.roles.executors.iter().map(chain::Signer::address).collect()
}

/// A service whose database was set back to before some of its trades.
struct Restored {
    scene: Scene,
    key: TestKey,
    /// Trades that were created after the copy.
    lost: Vec<TradeId>,
    /// Trades that were pending in the copy and executed afterwards.
    set_back: Vec<TradeId>,
    /// A feed reader's position.
    position: FeedPosition,
}

impl Restored {
    async fn on(store: Store) -> Self {
        let mut scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &mut scene;
        let gated = app
            .key_with(
                ada,
                Tier::Enterprise,
                domain::key::LimitOverrides {
                    high_value: Some(domain::Usdc::from_whole(50)),
                    ..domain::key::LimitOverrides::default()
                },
            )
            .await;
        key.buy(market, 0, "100").await;
        app.run_workers().await;
        let held = gated.buy(market, 0, "60").await;
        let waiting = key.buy(market, 1, "20").await.id;
        let earlier = copy(&app.ctx.store).await;

        gated.confirm(&held, &gated.token(&held)).await.unwrap();
        app.run_workers().await;
        let mut lost = Vec::new();
        for request in
            [key.buy(market, 0, "10.5"), key.sell(market, 0, "5"), key.buy(market, 1, "3").in_tokens()]
        {
            lost.push(request.await.id);
            app.run_workers().await;
        }
        lost.push(key.sell_all(market, 1).await.id);
        app.run_workers().await;
        let position = read(&app.ctx, ada.id, FeedStart::Latest, EventKind::ALL, 1).await.unwrap().position;
        app.assert_ledger_equals_chain().await;
        app.restore(earlier, "restored").await;
        let key = key.in_process(app.ctx.clone());
        Self { scene, key, lost, set_back: vec![held.id, waiting], position }
    }
}

store::on_each_engine! {
    async fn lost_trades_are_restored_and_none_executes_twice(store: Store) {
        let Restored { scene: Scene { app, ada, market, .. }, key, lost, set_back, position } =
            Restored::on(store).await;
        let next = key.buy(&market, 0, "7").await.id;
        app.run_workers().await;
        app.run_workers().await;
        assert!(!is_open(&app.ctx).await.unwrap());
        for id in &lost {
            let trade = app.trade(*id).await;
            assert_eq!(trade.state.status(), Status::Completed);
            assert!(trade.recovered_at.is_some() && trade.nonce.is_some());
        }
        let asked: Vec<_> = futures::future::join_all(lost.iter().map(|id| app.trade(*id))).await;
        let asked: Vec<_> = asked.iter().map(|t| (t.side.as_str(), t.amount_type.as_str(), t.amount_text.as_str())).collect();
        assert_eq!(asked, [("buy", "usdc", "10.50"), ("sell", "usdc", "5.00"), ("buy", "tokens", "3.00"), ("sell", "all", "")]);
        for id in &set_back {
            let trade = app.trade(*id).await;
            assert_eq!((trade.state.status(), trade.recovered_at), (Status::Completed, None));
        }
        assert_eq!(app.status(next).await, Status::Completed);
        assert_nothing_lost_or_doubled(&app).await;

        let recovery = last_recovery(&app).await;
        assert_eq!((recovery.changes.recovered_trades, recovery.changes.corrected_trades), (4, 2));
        assert!(recovery.changes.raised_nonces > 0 && recovery.ended_at.is_some());
        // Feed readers start again, and then see every event once.
        let refusal = read(&app.ctx, ada.id, FeedStart::Behind(position), EventKind::ALL, 1).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::FeedRestarted);
        let part = read(&app.ctx, ada.id, FeedStart::Oldest, EventKind::ALL, 1_000).await.unwrap();
        assert!(part.position.generation > FIRST_GENERATION);
        let completed = part.events.iter().filter(|event| event.kind == EventKind::TradeCompleted).count();
        assert_eq!(completed, made(&app).await.len());
    }

    async fn nothing_is_signed_and_no_trade_is_accepted_before_recovery(store: Store) {
        let Restored { scene: Scene { app, market, .. }, key, lost, .. } = Restored::on(store).await;
        let sent = app.faults.sent().len();
        // Only the lanes run: no sync has read the chain yet.
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.faults.sent().len(), sent, "a lane that takes over looks for lost data first");
        assert!(is_open(&app.ctx).await.unwrap());
        app::kill_switches::refresh(&app.ctx).await.unwrap();
        let refusal = app.ctx.process.switches.check("POST", "/v1/trades", true).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::DependencyUnavailable);
        assert!(refusal.retry_after_s.is_some());
        app.ctx.process.switches.check("GET", "/v1/trades", false).unwrap();
        // The recovery waits for the sync.
        let waiting = advance(&app.ctx, &executors(&app)).await.unwrap();
        assert!(matches!(&waiting, Advance::Waiting(why) if why.contains("not settled")), "{waiting:?}");
        app.run_workers().await;
        app.ctx.process.switches.check("POST", "/v1/trades", true).unwrap();
        assert_eq!(app.status(lost[0]).await, Status::Completed);
        key.buy(&market, 0, "1").await;
        app.run_workers().await;
        assert_nothing_lost_or_doubled(&app).await;
    }

    async fn a_recovery_without_a_service_reads_the_blocks_itself(store: Store) {
        let Restored { scene: Scene { app, .. }, lost, .. } = Restored::on(store).await;
        let open = open_for_operator(&app.ctx, None).await.unwrap();
        let driver = RecoveryDriver::new(Some(Sync::new("a command".to_owned(), 0)), executors(&app));
        let mut waits = Vec::new();
        while let RecoveryStep::Waiting(wait) = driver.step(&app.ctx).await.unwrap() {
            waits.push(wait);
            assert!(waits.len() < 10, "{waits:?}");
        }
        let head = app.ctx.chain.head().await.unwrap().number;
        let [wait] = &waits[..] else { panic!("{waits:?}") };
        assert_eq!((wait.reader, wait.read, wait.settled, wait.head), (BlockReader::Driver, Some(head), Some(head), head));
        assert!(wait.to_string().starts_with(&format!("block {head} is not settled yet. Blocks read: up to {head}")), "{wait}");
        driver.release(&app.ctx).await.unwrap();
        let ended = app.ctx.store.read(open.id, |tx, id| Box::pin(store::recoveries::find(tx, *id))).await;
        assert_eq!(ended.unwrap().unwrap().changes.recovered_trades, 4);
        assert_eq!(app.status(lost[0]).await, Status::Completed);
        // A service that starts now goes on at once.
        assert!(!is_open(&app.ctx).await.unwrap());
        app.run_workers().await;
        assert_nothing_lost_or_doubled(&app).await;
    }

    async fn a_recovery_leaves_the_blocks_to_the_service_that_reads_them(store: Store) {
        let Restored { scene: Scene { app, .. }, .. } = Restored::on(store).await;
        open_for_operator(&app.ctx, None).await.unwrap();
        let now = app.ctx.now();
        let held = app.ctx.store.write((now, now.plus_ms(15_000)), |tx, (now, until)| {
            Box::pin(store::leases::claim(tx, SYNC_LEASE, "a service", *now, *until))
        });
        held.await.unwrap().expect("nobody has the lease");
        for sync in [Some(Sync::new("a command".to_owned(), 0)), None] {
            let driver = RecoveryDriver::new(sync, executors(&app));
            let RecoveryStep::Waiting(wait) = driver.step(&app.ctx).await.unwrap() else { panic!() };
            assert_eq!(wait.reader, BlockReader::Service);
            assert!(wait.read < Some(wait.head) && wait.to_string().ends_with("a running process reads them"), "{wait}");
        }
        app.clock.advance(15_001);
        let RecoveryStep::Waiting(wait) = RecoveryDriver::new(None, executors(&app)).step(&app.ctx).await.unwrap() else { panic!() };
        assert_eq!(wait.reader, BlockReader::Nobody);
    }

    async fn a_recovery_interrupted_anywhere_is_completed_once(store: Store) {
        let Restored { scene: Scene { app, .. }, lost, .. } = Restored::on(store).await;
        app.workers.synchronise(&app.ctx).await;
        assert!(is_open(&app.ctx).await.unwrap(), "the sync finds trades that are missing");
        for method in ["eth_getTransactionByHash", "eth_getLogs", "eth_call"] {
            for skipped in 0..3 {
                app.faults.after(skipped, method, Fault::LostRequest);
                let cut: Result<Advance, AppError> = advance(&app.ctx, &executors(&app)).await;
                app.faults.heal();
                if cut.is_ok() {
                    break;
                }
            }
        }
        while is_open(&app.ctx).await.unwrap() {
            advance(&app.ctx, &executors(&app)).await.unwrap();
        }
        assert_eq!(advance(&app.ctx, &executors(&app)).await.unwrap(), Advance::Idle);
        let recovery = last_recovery(&app).await;
        assert_eq!((recovery.changes.recovered_trades, recovery.changes.corrected_trades), (4, 2));
        let generations: Vec<_> = recovery.generation.into_iter().collect();
        assert_eq!(generations.len(), 1);
        app.run_workers().await;
        assert_eq!(app.status(lost[3]).await, Status::Completed);
        assert_nothing_lost_or_doubled(&app).await;
    }

    async fn a_dry_run_reports_the_changes_and_changes_nothing(store: Store) {
        let Restored { scene: Scene { app, .. }, lost, set_back, .. } = Restored::on(store).await;
        let before = app.rows().await;
        let planned = plan(&app.ctx, Some(0)).await.unwrap();
        assert_eq!(app.rows().await, before);
        assert!(!is_open(&app.ctx).await.unwrap());
        let mut named: Vec<_> = planned.trades.iter().map(|trade| trade.trade_id).collect();
        named.sort();
        let mut expected: Vec<_> = lost.iter().chain(&set_back).copied().collect();
        expected.sort();
        assert_eq!(named, expected);
        assert!(planned.trades.iter().all(|trade| trade.is_attributed && trade.becomes == Status::Completed));
        assert!(!planned.raised_nonces.is_empty());
        app.run_workers().await;
        let planned = plan(&app.ctx, Some(0)).await.unwrap();
        assert_eq!((planned.trades, planned.raised_nonces), (vec![], vec![]));
    }

    async fn an_ended_trade_that_executed_on_chain_becomes_completed(store: Store) {
        let Restored { scene: Scene { app, .. }, set_back, .. } = Restored::on(store).await;
        // The held trade's window passes before the loss is detected.
        app.advance_ms(app.ctx.config.confirmation_window_ms).await;
        app.workers.expire(&app.ctx).await;
        assert_eq!(app.status(set_back[0]).await, Status::Failed);
        app.run_workers().await;
        assert_eq!(app.status(set_back[0]).await, Status::Completed);
        assert_nothing_lost_or_doubled(&app).await;
    }

    async fn a_lost_failure_on_chain_is_restored(store: Store) {
        let mut scene = Scene::on(store).await;
        let Scene { app, key, market, .. } = &mut scene;
        let earlier = copy(&app.ctx.store).await;
        let id = key.buy(market, 0, "10").await.id;
        app.faults.next_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        app.freeze(*market).await;
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        let State::Failed(failure) = app.trade(id).await.state else { panic!("not failed") };
        app.restore(earlier, "restored").await;
        app.run_workers().await;
        let State::Failed(recovered) = app.trade(id).await.state else { panic!("not failed") };
        assert_eq!((recovered.code, recovered.tx_hash), (failure.code, failure.tx_hash));
        app.assert_ledger_equals_chain().await;
    }

    async fn a_lost_key_is_counted_and_stops_nothing(store: Store) {
        let mut scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &mut scene;
        key.buy(market, 0, "10").await;
        app.run_workers().await;
        let earlier = copy(&app.ctx.store).await;
        let later = app.key(ada, Tier::Mm).await;
        later.buy(market, 0, "10").await;
        app.run_workers().await;
        app.restore(earlier, "restored").await;
        let key = key.in_process(app.ctx.clone());
        app.run_workers().await;
        let recovery = last_recovery(app).await;
        assert_eq!((recovery.changes.recovered_trades, recovery.changes.unattributed_trades), (0, 1));
        // A new key gets the index of the lost one, whose nonces the Gate has seen.
        let again = app.key(ada, Tier::Mm).await;
        for key in [&key, &again] {
            let id = key.buy(market, 0, "10").await.id;
            app.run_workers().await;
            app.run_workers().await;
            assert_eq!(app.status(id).await, Status::Completed);
        }
    }

    async fn takeovers_without_lost_data_start_no_recovery(store: Store) {
        let mut scene = Scene::on(store).await;
        for n in 0..5 {
            let Scene { app, key, market, .. } = &mut scene;
            key.buy(market, 0, "10").await;
            // A process dies with a batch that is mined but not read.
            app.workers.execute(&app.ctx).await;
            key.buy(market, 1, "10").await;
            app.restart(&format!("life {n}")).await;
            app.workers.execute(&app.ctx).await;
            app.run_workers().await;
        }
        let open: Result<i64, StoreError> = scene
            .app
            .ctx
            .store
            .read((), |tx, ()| {
                Box::pin(async move {
                    Ok(tx.find("SELECT COUNT(*) FROM recoveries", &[], |row| row.only::<i64>()).await?.unwrap_or_default())
                })
            })
            .await;
        assert_eq!(open.unwrap(), 0);
        assert_nothing_lost_or_doubled(&scene.app).await;
    }
}
