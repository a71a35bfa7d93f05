//! Several processes on one database and chain: only one of them works at a time, and none repeats
//! another's work.

use std::sync::Arc;
use std::time::Duration;

use app::lease::{self, LeaseHolder};
use app::worker::{Progress, Worker};
use app::{AppError, Ctx};
use domain::ErrorCode;
use domain::key::Tier;
use domain::trade::Status;
use store::{SqlValue, Store, StoreError};
use testkit::TestApp;

use crate::scene::Scene;

async fn write_under(ctx: &Ctx, lease: store::leases::Lease) -> Result<(), AppError> {
    ctx.store.try_write(lease, |tx, held| Box::pin(async move { lease::check(tx, held).await })).await
}

/// Returns the application's context with leases of a third of a second.
fn with_short_leases(app: &TestApp) -> Ctx {
    let mut ctx = app.ctx.clone();
    let mut config = ctx.config.as_ref().clone();
    config.lease_ms = 300;
    ctx.config = Arc::new(config);
    ctx
}

async fn lease_end(ctx: &Ctx, name: &'static str) -> i64 {
    const SQL: &str = "SELECT until_ms FROM leases WHERE name = $1";
    let found: Result<Option<i64>, StoreError> = ctx
        .store
        .read(name, |tx, name| {
            Box::pin(async move { tx.find(SQL, &[SqlValue::from(*name)], |row| row.get("until_ms")).await })
        })
        .await;
    found.unwrap().unwrap_or_default()
}

/// Waits until the lease was renewed at the present time.
async fn renewed(ctx: &Ctx, name: &'static str) {
    let mut polls = tokio::time::interval(Duration::from_millis(5));
    for _ in 0..2_000 {
        polls.tick().await;
        if lease_end(ctx, name).await == ctx.now().plus_ms(ctx.config.lease_ms).ms() {
            return;
        }
    }
    panic!("the lease is not renewed while its holder works");
}

store::on_each_engine! {
    async fn a_lease_is_renewed_while_its_holder_waits_for_a_slow_node(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let trade = key.buy(&market, 0, "10").await;
        app.workers.release(&app.ctx).await;
        let ctx = with_short_leases(&app);
        let held = app.faults.hold("eth_feeHistory");
        let slow = app.another_process("slow");
        let ticks = {
            let ctx = ctx.clone();
            tokio::spawn(async move { slow.executors[0].tick(&ctx).await })
        };
        held.reached().await;
        let other = app.another_process("other");
        for _ in 0..4 {
            app.clock.advance(ctx.config.lease_ms - 50);
            renewed(&ctx, "executor:0").await;
            assert_eq!(other.executors[0].tick(&ctx).await.unwrap(), Progress::Idle);
        }
        held.release();
        ticks.await.unwrap().unwrap();
        assert_eq!(app.status(trade.id).await, Status::Executing);
        assert_eq!(app.rows().await.batches, 1);
    }

    async fn a_holder_stops_when_its_lease_is_lost(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let trade = key.buy(&market, 0, "10").await;
        app.workers.release(&app.ctx).await;
        let ctx = with_short_leases(&app);
        let _never_released = app.faults.hold("eth_feeHistory");
        let frozen = LeaseHolder::new("executor:0".to_owned(), "frozen".to_owned());
        let lease = frozen.claim(&ctx).await.unwrap().unwrap();
        let (work, at_work) = (tokio::sync::Notify::new(), ctx.clone());
        let keeps = frozen.keep(&ctx, &lease, async {
            work.notify_one();
            at_work.chain.fees().await?;
            Ok(())
        });
        let takes_over = async {
            work.notified().await;
            let successor = app.another_process("successor");
            // If a renewal comes first, the successor has nothing to do.
            while !app.status(trade.id).await.is_terminal() {
                app.clock.advance(ctx.config.lease_ms);
                drop(successor.try_run(&ctx).await);
            }
        };
        let (kept, ()) = tokio::join!(keeps, takes_over);
        assert!(lease::is_lost(&kept.unwrap_err()));
        assert_eq!(app.status(trade.id).await, Status::Completed);
    }

    async fn a_sync_settles_as_many_blocks_as_a_turn_has_time_for(store: Store) {
        let Scene { app, key, market, .. } = Scene::of(TestApp::with().on(store).confirmations(5).start().await).await;
        app.run_workers().await;
        let trade = key.buy(&market, 0, "10").await;
        app.workers.execute(&app.ctx).await;
        app.mine(40).await;
        let mut ctx = app.ctx.clone();
        let mut config = ctx.config.as_ref().clone();
        // No time at all: one group of blocks is verified and settled, the others in the next tick.
        config.lease_ms = 0;
        ctx.config = Arc::new(config);
        let mut ticks = 0;
        while app.workers.sync.tick(&ctx).await.unwrap() == Progress::More {
            ticks += 1;
        }
        assert!(ticks >= 2, "{ticks}");
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_lease_has_one_owner_until_it_expires(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ctx = &app.ctx;
        let [one, two] = ["one", "two"].map(|owner| LeaseHolder::new("work".to_owned(), owner.to_owned()));
        let first = one.claim(ctx).await.unwrap().unwrap();
        assert_eq!(two.claim(ctx).await.unwrap(), None);
        app.clock.advance(ctx.config.lease_ms - 1);
        assert_eq!(two.claim(ctx).await.unwrap(), None);
        app.clock.advance(1);
        let second = two.claim(ctx).await.unwrap().unwrap();
        assert!(second.epoch > first.epoch);
        assert_eq!(write_under(ctx, first).await.unwrap_err().code, ErrorCode::DependencyUnavailable);
        write_under(ctx, second).await.unwrap();
        assert_eq!(one.claim(ctx).await.unwrap(), None);
    }

    async fn a_lease_renewed_in_time_keeps_its_epoch(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ctx = &app.ctx;
        let [one, two] = ["one", "two"].map(|owner| LeaseHolder::new("work".to_owned(), owner.to_owned()));
        let first = one.claim(ctx).await.unwrap();
        for _ in 0..5 {
            app.clock.advance(ctx.config.lease_ms / 2);
            assert_eq!(one.claim(ctx).await.unwrap(), first);
            assert_eq!(two.claim(ctx).await.unwrap(), None);
        }
        one.release(ctx).await.unwrap();
        assert!(two.claim(ctx).await.unwrap().is_some());
    }

    async fn a_returning_owner_gets_a_new_lease(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ctx = &app.ctx;
        let [one, two] = ["one", "two"].map(|owner| LeaseHolder::new("work".to_owned(), owner.to_owned()));
        let first = one.claim(ctx).await.unwrap().unwrap();
        app.clock.advance(ctx.config.lease_ms);
        two.claim(ctx).await.unwrap().unwrap();
        app.clock.advance(ctx.config.lease_ms);
        let third = one.claim(ctx).await.unwrap().unwrap();
        assert_eq!(third.epoch, first.epoch + 2);
        write_under(ctx, first).await.unwrap_err();
        write_under(ctx, third).await.unwrap();
    }

    async fn an_executor_frozen_while_signing_changes_nothing_later(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let trade = key.buy(&market, 0, "10").await;
        let before = app.faults.sent().len();
        let frozen = app.another_process("frozen");
        app.workers.release(&app.ctx).await;
        // It has claimed and checked the trade, and now requests its nonce.
        let held = app.faults.hold("eth_getTransactionCount");
        let ctx = app.ctx.clone();
        let thaws = tokio::spawn(async move { frozen.executors[0].tick(&ctx).await });
        held.reached().await;
        assert_eq!(app.status(trade.id).await, Status::Validating);

        app.advance_ms(app.ctx.config.lease_ms).await;
        let successor = app.another_process("successor");
        successor.run(&app.ctx).await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        held.release();
        let refusal = thaws.await.unwrap().unwrap_err();
        assert_eq!(refusal.code, ErrorCode::DependencyUnavailable, "its lease is over: {refusal}");

        assert_eq!(app.rows().await.batches, 1);
        assert_eq!(app.faults.sent().len(), before + 1);
        app.assert_ledger_equals_chain().await;
    }

    async fn an_executor_frozen_before_sending_executes_nothing_twice(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let trade = key.buy(&market, 0, "10").await;
        let frozen = app.another_process("frozen");
        app.workers.release(&app.ctx).await;
        let held = app.faults.hold("eth_sendRawTransaction");
        let ctx = app.ctx.clone();
        let thaws = tokio::spawn(async move { frozen.executors[0].tick(&ctx).await.map(drop) });
        held.reached().await;
        app.clock.advance(app.ctx.config.lease_ms);
        let successor = app.another_process("successor");
        successor.run(&app.ctx).await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        held.release();
        // It finds out that nothing is left to do, or that it may no longer write.
        drop(thaws.await.unwrap());
        successor.run(&app.ctx).await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_sync_frozen_while_reading_writes_nothing_twice(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "10").await;
        app.workers.execute(&app.ctx).await;
        app.workers.release(&app.ctx).await;
        let frozen = app.another_process("frozen");
        let held = app.faults.hold("eth_getLogs");
        let ctx = app.ctx.clone();
        let thaws = tokio::spawn(async move { frozen.sync.tick(&ctx).await });
        held.reached().await;
        app.clock.advance(app.ctx.config.lease_ms);
        let successor = app.another_process("successor");
        successor.run(&app.ctx).await;
        held.release();
        thaws.await.unwrap().unwrap_err();
        assert_eq!(app.rows().await.movements, 1);
        app.assert_ledger_equals_chain().await;
    }

    async fn three_processes_that_lose_leases_execute_nothing_twice(store: Store) {
        let app = TestApp::with().on(store).lanes(2).start().await;
        let market = app.market(&["Yes", "No"]).await;
        app.workers.release(&app.ctx).await;
        let mut keys = Vec::new();
        for n in 0..4 {
            let user = app.user(&format!("user {n}")).funded("1000").await;
            keys.push(app.key(&user, Tier::Mm).await);
        }
        let mut trades = Vec::new();
        for round in 0..15usize {
            for key in &keys {
                trades.push(key.buy(&market, (round % 2) as u8, "3").await.id);
            }
            let processes = (0..3).map(|n| {
                let workers = app.another_process(&format!("process {n} of round {round}"));
                let ctx = app.ctx.clone();
                let clock = app.clock.clone();
                tokio::spawn(async move {
                    // Enough time to lose a lease passes while the others work.
                    for _ in 0..3 {
                        clock.advance(ctx.config.lease_ms / 3);
                        drop(workers.try_run(&ctx).await);
                    }
                })
            });
            for process in futures::future::join_all(processes).await {
                process.unwrap();
            }
        }
        app.clock.advance(app.ctx.config.lease_ms);
        app.run_workers().await;
        for id in &trades {
            assert_eq!(app.status(*id).await, Status::Completed);
        }
        assert_eq!(app.rows().await.movements, 60);
        app.assert_ledger_equals_chain().await;
    }
}
