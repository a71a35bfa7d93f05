//! Units of work during PostgreSQL failures: which are committed, which are not, and how long a
//! hung one blocks others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use store::testing::{PostgresProxy, ProxyFault, TestDatabase};
use store::{RetryReason, Store, StoreError, StoreObserver, TradeMove, params, testing};
use tokio::sync::Notify;

use crate::fixture::{add, count, insert, new_counter, prepare, value_of};

/// Runs a test with a fresh database and the fixture behind a proxy, if a test cluster is
/// configured.
fn behind_proxy<F: Future<Output = ()>>(test: impl FnOnce(Store, PostgresProxy) -> F) {
    testing::block_on(async {
        if let Some((store, proxy)) = testing::proxied_postgres("").await {
            prepare(&store).await;
            test(store, proxy).await;
        }
    });
}

/// Runs a test with a fresh database and the fixture, with these session options, if a test cluster
/// is configured.
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
fn an_unanswered_commit_is_unknown_and_not_run_again() {
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

/// Counts units that run again because of a lost connection.
#[derive(Default)]
struct Lost(AtomicUsize);

impl StoreObserver for Lost {
    fn unit(&self, _: &'static str, _: Duration) {}

    fn retried(&self, why: RetryReason) {
        assert_eq!(why, RetryReason::ConnectionLost);
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn trade(&self, _: &TradeMove) {}
}

#[test]
fn only_a_unit_whose_transaction_has_begun_has_failed_if_its_connection_breaks() {
    behind_proxy(|store, proxy| async move {
        let lost = Arc::new(Lost::default());
        store.observe(Arc::<Lost>::clone(&lost));
        // The connections were broken while they were idle.
        proxy.plan("BEGIN", ProxyFault::CutBefore, 3);
        assert_eq!(insert_one(&store).await, Ok(1));
        assert_eq!(lost.0.load(Ordering::SeqCst), 0);
        proxy.plan("UPDATE counters", ProxyFault::CutBefore, 3);
        let added: Result<u64, StoreError> = store.write((), |tx, ()| add(tx, "a", 1)).await;
        assert_eq!((added, lost.0.load(Ordering::SeqCst)), (Ok(1), 3));
    });
}

#[test]
fn a_panicking_server_is_unavailable_and_stores_nothing() {
    behind_proxy(|store, proxy| async move {
        proxy.plan("INSERT INTO counters", ProxyFault::Panic, usize::MAX);
        let refused = insert_one(&store).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        let read: Result<_, StoreError> = store
            .read((), |tx, ()| {
                Box::pin(tx.find("SELECT 'INSERT INTO counters'", &[], |row| row.only::<String>()))
            })
            .await;
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
        assert_eq!(count(&store).await, 0);
    });
}

#[test]
fn a_panic_during_a_commit_leaves_the_outcome_unknown() {
    behind_proxy(|store, proxy| async move {
        proxy.plan("COMMIT\0", ProxyFault::Panic, 1);
        let unknown = insert_one(&store).await;
        assert!(matches!(unknown, Err(StoreError::CommitUnknown(_))), "{unknown:?}");
    });
}

#[test]
fn every_database_failure_is_reported_as_unavailable() {
    with_options("statement_timeout_ms=200", |store| async move {
        for code in ["53100", "53300", "57014", "58030", "XX000", "XX001", "08006"] {
            let sql: &'static str =
                format!("DO 'BEGIN RAISE EXCEPTION ''x'' USING ERRCODE = ''{code}''; END'").leak();
            let refused: Result<u64, StoreError> =
                store.write(sql, |tx, sql| Box::pin(async move { tx.exec(sql, &[]).await })).await;
            assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{code}: {refused:?}");
        }
        let slow: Result<_, StoreError> = store
            .read((), |tx, ()| Box::pin(tx.find("SELECT 1 FROM pg_sleep(60)", &[], |row| row.only::<i64>())))
            .await;
        assert!(matches!(slow, Err(StoreError::Unavailable(_))), "{slow:?}");
    });
}

/// A unit of work that locks the row of counter `a` until it is released, and then adds one to it.
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
                            tx.find("SELECT 1", &[], |row| row.only::<i64>()).await?;
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
fn a_unit_waits_for_a_locked_row_only_until_its_timeout() {
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
fn a_frozen_unit_loses_its_locks_and_runs_again_later() {
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
fn a_unit_frozen_during_a_long_answer_loses_its_locks() {
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
                        tx.find(long, &params!["bound text"], |row| row.only::<String>()).await
                    })
                })
                .await;
            unit
        });
        holds.notified().await;
        // Each attempt waits two seconds for the row. The server terminates the frozen client after
        // ten.
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
fn waiting_writes_leave_connections_for_reads_and_workers() {
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
                tx.find("SELECT current_setting($1)", &params![*name], |row| row.only::<String>()).await
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
