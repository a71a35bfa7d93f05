//! What PostgreSQL's failures look like from above: which unit was kept, which was not, and how long one that hangs holds
//! the others up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use store::testing::{PostgresProxy, ProxyFault, TestDatabase};
use store::{Store, StoreError, params, testing};
use tokio::sync::Notify;

use crate::fixture::{add, count, insert, new_counter, prepare, value_of};

/// A fresh database with the fixture behind a proxy, if a test cluster is named.
fn behind_proxy<F: Future<Output = ()>>(test: impl FnOnce(Store, PostgresProxy) -> F) {
    testing::block_on(async {
        if let Some((store, proxy)) = testing::proxied_postgres("").await {
            prepare(&store).await;
            test(store, proxy).await;
        }
    });
}

/// A fresh database with the fixture whose sessions have these options, if a test cluster is named.
fn with_options<F: Future<Output = ()>>(options: &str, test: impl FnOnce(Store) -> F) {
    testing::block_on(async {
        let Some(database) = TestDatabase::create().await else { return };
        let store = Store::open(&format!("{}?{options}", database.url)).await.unwrap();
        prepare(&store).await;
        test(store).await;
    });
}

async fn insert_one(store: &Store) -> Result<u64, StoreError> {
    store.write((), |tx, ()| insert(tx, "a", 1)).await
}

#[test]
fn a_commit_without_an_answer_leaves_the_outcome_unknown_and_is_not_run_again() {
    behind_proxy(|store, proxy| async move {
        proxy.plan("COMMIT\0", ProxyFault::CutBefore, 1);
        let unknown = insert_one(&store).await;
        assert!(matches!(unknown, Err(StoreError::CommitUnknown(_))), "{unknown:?}");
        assert_eq!(count(&store).await, 0);
        proxy.plan("COMMIT\0", ProxyFault::CutAfter, 1);
        let unknown = insert_one(&store).await;
        assert!(matches!(unknown, Err(StoreError::CommitUnknown(_))), "{unknown:?}");
        assert_eq!(count(&store).await, 1);
    });
}

#[test]
fn a_unit_whose_connection_breaks_before_its_commit_runs_again() {
    behind_proxy(|store, proxy| async move {
        for fault in [ProxyFault::CutBefore, ProxyFault::Panic] {
            proxy.plan("INSERT INTO counters", fault, 3);
        }
        assert_eq!(insert_one(&store).await, Ok(1));
        assert_eq!(count(&store).await, 1);
    });
}

#[test]
fn a_server_that_panics_is_unavailable_and_keeps_nothing() {
    behind_proxy(|store, proxy| async move {
        proxy.plan("INSERT INTO counters", ProxyFault::Panic, usize::MAX);
        let refused = insert_one(&store).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        let read: Result<_, StoreError> = store
            .read((), |tx, ()| Box::pin(tx.find("SELECT 'INSERT INTO counters'", &[], |row| row.text(0))))
            .await;
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
        assert_eq!(count(&store).await, 0);
    });
}

#[test]
fn a_server_that_panics_during_a_commit_leaves_the_outcome_unknown() {
    behind_proxy(|store, proxy| async move {
        proxy.plan("COMMIT\0", ProxyFault::Panic, 1);
        let unknown = insert_one(&store).await;
        assert!(matches!(unknown, Err(StoreError::CommitUnknown(_))), "{unknown:?}");
    });
}

#[test]
fn a_database_that_fails_in_any_way_is_unavailable_and_no_bug() {
    with_options("statement_timeout_ms=200", |store| async move {
        for code in ["53100", "53300", "57014", "58030", "XX000", "XX001", "08006"] {
            let sql: &'static str =
                format!("DO 'BEGIN RAISE EXCEPTION ''x'' USING ERRCODE = ''{code}''; END'").leak();
            let refused: Result<u64, StoreError> =
                store.write(sql, |tx, sql| Box::pin(async move { tx.exec(sql, &[]).await })).await;
            assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{code}: {refused:?}");
        }
        let slow: Result<_, StoreError> = store
            .read((), |tx, ()| Box::pin(tx.find("SELECT 1 FROM pg_sleep(60)", &[], |row| row.int(0))))
            .await;
        assert!(matches!(slow, Err(StoreError::Unavailable(_))), "{slow:?}");
    });
}

/// Holds the row of counter `a` in a unit of work until it is released, and then adds one to it.
struct Holder {
    unit: tokio::task::JoinHandle<Result<u64, StoreError>>,
    release: Arc<Notify>,
    runs: Arc<AtomicUsize>,
}

impl Holder {
    async fn start(store: &Store) -> Self {
        let (held, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let runs = Arc::new(AtomicUsize::new(0));
        let of_unit = (Arc::clone(&held), Arc::clone(&release), Arc::clone(&runs));
        let store = store.clone();
        let unit = tokio::spawn(async move {
            store
                .write(of_unit, |tx, (held, release, runs)| {
                    Box::pin(async move {
                        let added = add(tx, "a", 1).await?;
                        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                            held.notify_one();
                            release.notified().await;
                            tx.find("SELECT 1", &[], |row| row.int(0)).await?;
                        }
                        Ok(added)
                    })
                })
                .await
        });
        held.notified().await;
        Self { unit, release, runs }
    }
}

#[test]
fn a_unit_waits_for_a_locked_row_only_as_long_as_it_may() {
    with_options("lock_timeout_ms=200", |store| async move {
        new_counter(&store, "a", 0).await;
        let holder = Holder::start(&store).await;
        let refused: Result<u64, StoreError> = store.write((), |tx, ()| add(tx, "a", 1)).await;
        assert!(matches!(refused, Err(StoreError::Locked(_))), "{refused:?}");
        holder.release.notify_one();
        assert_eq!(holder.unit.await.unwrap(), Ok(1));
        assert_eq!(value_of(&store, "a").await, Some(1));
    });
}

#[test]
fn a_unit_that_is_frozen_in_its_transaction_loses_its_rows_and_runs_again_when_it_thaws() {
    with_options("idle_in_transaction_timeout_ms=200&lock_timeout_ms=60000", |store| async move {
        new_counter(&store, "a", 0).await;
        let frozen = Holder::start(&store).await;
        let other: Result<u64, StoreError> = store.write((), |tx, ()| add(tx, "a", 1)).await;
        assert_eq!(other, Ok(1));
        assert_eq!(value_of(&store, "a").await, Some(1), "the frozen unit kept nothing");
        frozen.release.notify_one();
        assert_eq!(frozen.unit.await.unwrap(), Ok(1));
        assert_eq!((frozen.runs.load(Ordering::SeqCst), value_of(&store, "a").await), (2, Some(2)));
    });
}

#[test]
fn a_unit_that_is_frozen_while_it_receives_a_long_answer_loses_its_rows() {
    behind_proxy(|store, proxy| async move {
        new_counter(&store, "a", 0).await;
        proxy.plan("bound text", ProxyFault::TakeNothing, 1);
        let holds = Arc::new(Notify::new());
        let frozen = (store.clone(), Arc::clone(&holds));
        let frozen = tokio::spawn(async move {
            let (store, holds) = frozen;
            let unit: Result<Option<String>, StoreError> = store
                .write(holds, |tx, holds| {
                    Box::pin(async move {
                        add(tx, "a", 1).await?;
                        holds.notify_one();
                        let long = "SELECT repeat($1, 10000000)";
                        tx.find(long, &params!["bound text"], |row| row.text(0)).await
                    })
                })
                .await;
            unit
        });
        holds.notified().await;
        // Each try waits two seconds for the row; the server gives up on the frozen client after ten.
        let mut tries = 0;
        loop {
            tries += 1;
            let added: Result<u64, StoreError> = store.write((), |tx, ()| add(tx, "a", 1)).await;
            match added {
                Err(StoreError::Locked(_)) => assert!(tries < 12, "the row is held for ever"),
                added => break assert_eq!(added, Ok(1)),
            }
        }
        assert_eq!(value_of(&store, "a").await, Some(1), "the frozen unit kept nothing");
        frozen.abort();
    });
}

#[test]
fn writes_that_wait_leave_connections_for_reads_and_for_workers() {
    with_options("max_connections=4", |store| async move {
        new_counter(&store, "a", 0).await;
        let holder = Holder::start(&store).await;
        let waiting = (0..8).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let waits: Result<u64, StoreError> = store.write((), |tx, ()| add(tx, "a", 1)).await;
                waits
            })
        });
        let waiting: Vec<_> = waiting.collect();
        assert_eq!(value_of(&store, "a").await, Some(0));
        let workers = store.for_workers();
        let worked: Result<u64, StoreError> = workers.write((), |tx, ()| insert(tx, "b", 1)).await;
        assert_eq!((worked, value_of(&workers, "b").await), (Ok(1), Some(1)));
        holder.release.notify_one();
        assert_eq!(holder.unit.await.unwrap(), Ok(1));
        for waits in waiting {
            drop(waits.await.unwrap());
        }
    });
}

async fn setting(store: &Store, name: &'static str) -> String {
    let found: Result<_, StoreError> = store
        .read(name, |tx, name| {
            Box::pin(async move {
                tx.find("SELECT current_setting($1)", &params![*name], |row| row.text(0)).await
            })
        })
        .await;
    found.unwrap().unwrap()
}

#[test]
fn sessions_are_bounded_except_those_of_maintenance() {
    with_options("statement_timeout_ms=9000", |store| async move {
        let bounds = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"];
        for (store, expected) in [
            (store.clone(), ["9s", "2s", "10s"]),
            (store.for_workers(), ["9s", "2s", "10s"]),
            (store.for_maintenance(), ["0", "0", "10s"]),
        ] {
            for (name, expected) in bounds.into_iter().zip(expected) {
                assert_eq!(setting(&store, name).await, expected, "{name}");
            }
            assert_eq!(setting(&store, "tcp_user_timeout").await, "10000");
        }
    });
}
