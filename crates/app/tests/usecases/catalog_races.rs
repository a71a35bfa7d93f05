//! Concurrent changes of the catalog and rebuilds of aggregates, on PostgreSQL, where transactions
//! run concurrently.

use std::sync::Arc;

use app::catalog;
use domain::ids::{OrganizationId, ThreadId};
use store::listed::ScopeKind;
use store::traders::backlog;
use store::{BoxFuture, Store, StoreError, Tx, testing};
use testkit::TestApp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::aggregates::{organization, put_under, thread, totals};
use crate::scene::Scene;

fn on_postgres<F: Future<Output = ()>>(test: impl FnOnce(Store) -> F) {
    testing::block_on(async {
        if let Some(store) = testing::postgres().await {
            test(store).await;
        }
    });
}

/// Runs `second` while a transaction that has done `first` is kept open, until `second` waits for
/// it or is done. Returns the result of `second`.
async fn beside<T: Send + 'static>(
    app: &TestApp,
    first: impl for<'a> Fn(&'a mut Tx) -> BoxFuture<'a, Result<(), StoreError>> + Send + Sync + 'static,
    second: impl Future<Output = T> + Send + 'static,
) -> T {
    let (done, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let first: JoinHandle<Result<(), StoreError>> = tokio::spawn({
        let (store, input) = (app.ctx.store.clone(), (first, Arc::clone(&done), Arc::clone(&end)));
        async move {
            store
                .write(input, |tx, (first, done, end)| {
                    Box::pin(async move {
                        first(tx).await?;
                        done.notify_one();
                        end.notified().await;
                        Ok(())
                    })
                })
                .await
        }
    });
    done.notified().await;
    let second = tokio::spawn(second);
    while !second.is_finished() && sessions_that_wait(&app.ctx.store).await == 0 {}
    end.notify_one();
    first.await.unwrap().unwrap();
    second.await.unwrap()
}

async fn sessions_that_wait(store: &Store) -> i64 {
    const SQL: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let found: Result<Option<i64>, StoreError> =
        store.read((), |tx, ()| Box::pin(tx.find(SQL, &[], |row| row.only::<i64>()))).await;
    found.unwrap().unwrap()
}

fn forget_all_sums(tx: &mut Tx) -> BoxFuture<'_, Result<(), StoreError>> {
    Box::pin(async move {
        store::leases::exclude(tx, "sync").await?;
        backlog::restart(tx).await
    })
}

/// Moves a thread like the operator's command.
async fn moved(tx: &mut Tx, id: ThreadId, to: OrganizationId) -> Result<(), StoreError> {
    let thread = store::catalog::lock_thread(tx, id, testkit::START).await?.unwrap();
    store::catalog::put_thread(tx, &store::catalog::Thread { organization_id: Some(to), ..thread }).await
}

#[test]
fn a_market_changed_during_a_reset_of_sums_is_counted_again() {
    on_postgres(|store| async move {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let one = thread(&app, None, "One").await;
        put_under(&app, market.id, Some(one)).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        let before = (totals(&app, ScopeKind::All, "").await, totals(&app, ScopeKind::Thread, one).await);
        let ctx = app.ctx.clone();
        let change = async move {
            catalog::change_market(&ctx, market.id, |listing| listing.tags = vec!["new".to_owned()]).await
        };
        beside(&app, forget_all_sums, change).await.unwrap();
        app.run_workers().await;
        let after = (totals(&app, ScopeKind::All, "").await, totals(&app, ScopeKind::Thread, one).await);
        assert_eq!(after, before);
        app.assert_aggregates().await;
    });
}

#[test]
fn a_thread_moved_during_a_reset_of_sums_takes_its_markets() {
    on_postgres(|store| async move {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let (club, league) = (organization(&app, "club").await, organization(&app, "league").await);
        let one = thread(&app, Some(club), "One").await;
        put_under(&app, market.id, Some(one)).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        let before = totals(&app, ScopeKind::Organization, club).await;
        let ctx = app.ctx.clone();
        let change = async move {
            catalog::change_thread(&ctx, one, move |thread| thread.organization_id = Some(league)).await
        };
        beside(&app, forget_all_sums, change).await.unwrap();
        app.run_workers().await;
        assert_eq!(totals(&app, ScopeKind::Organization, league).await, before);
        app.assert_aggregates().await;
    });
}

#[test]
fn a_market_created_during_a_move_of_its_thread_moves_too() {
    on_postgres(|store| async move {
        let app = TestApp::with().on(store).start().await;
        let (club, league) = (organization(&app, "club").await, organization(&app, "league").await);
        let one = thread(&app, Some(club), "One").await;
        let new = app::markets::NewMarket {
            thread_id: Some(one),
            organization_id: Some(club),
            ..testkit::market_of(&app, &["Yes", "No"])
        };
        let (ctx, resolver) = (app.ctx.clone(), app.roles.resolver.clone());
        let create = async move { app::markets::create(&ctx, &resolver, new).await };
        beside(&app, move |tx| Box::pin(moved(tx, one, league)), create).await.unwrap();
        app.run_workers().await;
        assert_eq!(totals(&app, ScopeKind::Organization, league).await.markets, 1);
        app.assert_aggregates().await;
    });
}

#[test]
fn a_market_added_to_a_thread_during_its_move_moves_too() {
    on_postgres(|store| async move {
        let Scene { app, market, .. } = Scene::on(store).await;
        let (club, league) = (organization(&app, "club").await, organization(&app, "league").await);
        let one = thread(&app, Some(club), "One").await;
        let ctx = app.ctx.clone();
        let change = async move {
            catalog::change_market(&ctx, market.id, move |listing| listing.thread_id = Some(one)).await
        };
        let listing = beside(&app, move |tx| Box::pin(moved(tx, one, league)), change).await.unwrap();
        assert_eq!(listing.organization_id, Some(league));
        app.assert_aggregates().await;
    });
}

#[test]
fn changes_during_a_sync_and_a_rebuild_keep_sums_correct() {
    on_postgres(|store| async move {
        let Scene { app, market, .. } = Scene::on(store).await;
        let (club, league) = (organization(&app, "club").await, organization(&app, "league").await);
        let (one, two) = (thread(&app, Some(club), "One").await, thread(&app, Some(league), "Two").await);
        let mut markets = vec![market];
        for number in 0..5 {
            let question = format!("Does it happen {number} times?");
            markets.push(app.market_with(&["Yes", "No"], |new| new.question = question).await);
        }
        for market in &markets {
            put_under(&app, market.id, Some(one)).await;
            app.stranger_buys(*market, 0, "5").await;
        }
        let edits = (0..60_usize).map(|n| {
            let (ctx, id) = (app.ctx.clone(), markets[n % markets.len()].id);
            tokio::spawn(async move {
                match n % 3 {
                    0 => {
                        let to = Some(if n % 2 == 0 { one } else { two });
                        catalog::change_market(&ctx, id, move |listing| listing.thread_id = to)
                            .await
                            .map(drop)
                    }
                    1 => {
                        let to = Some(if n % 2 == 0 { club } else { league });
                        catalog::change_thread(&ctx, one, move |thread| thread.organization_id = to)
                            .await
                            .map(drop)
                    }
                    _ => catalog::change_market(&ctx, id, move |listing| listing.tags = vec![n.to_string()])
                        .await
                        .map(drop),
                }
            })
        });
        let edits: Vec<_> = edits.collect();
        let ctx = app.ctx.clone();
        let rebuilt = tokio::spawn(async move { app::ledger::aggregates::rebuild(&ctx).await });
        app.run_workers().await;
        for edit in edits {
            edit.await.unwrap().unwrap();
        }
        rebuilt.await.unwrap().unwrap();
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    });
}
