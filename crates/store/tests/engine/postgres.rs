//! Behavior of PostgreSQL only: pooled sessions never keep a transaction, and aborted units run
//! again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::{join_all, poll_fn};
use store::{Store, StoreError, params, testing};
use tokio::sync::Barrier;

use crate::fixture::{add, count, insert, new_counter, prepare, value_of};

/// Runs a test with a fresh database and the fixture, if a test cluster is configured.
fn on_postgres<F: Future<Output = ()>>(test: impl FnOnce(Store) -> F) {
    testing::block_on(async {
        if let Some(store) = testing::postgres().await {
            prepare(&store).await;
            test(store).await;
        }
    });
}

async fn sessions_in_a_transaction(store: &Store) -> i64 {
    let found: Result<Option<i64>, StoreError> = store
        .read((), |tx, ()| {
            Box::pin(tx.find(
                "SELECT COUNT(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL",
                &[],
                |row| row.only::<i64>(),
            ))
        })
        .await;
    found.unwrap().unwrap()
}

/// Waits until all running units are done. A session that kept its transaction would never finish.
async fn assert_no_session_stays_in_a_transaction(store: &Store) {
    for _ in 0..5_000 {
        if sessions_in_a_transaction(store).await == 0 {
            return;
        }
    }
    panic!("a session stays in a transaction");
}

#[test]
fn cancelled_callers_leave_no_open_transaction_or_partial_unit() {
    on_postgres(|store| async move {
        let cut = (0..400_i64).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let write = store.write(n, |tx, n| {
                    Box::pin(async move {
                        insert(tx, &format!("first {n}"), *n).await?;
                        insert(tx, &format!("second {n}"), *n).await
                    })
                });
                let _: Option<Result<u64, StoreError>> = cut_after(write, n as usize % 4).await;
                let read = store.read((), |tx, ()| {
                    Box::pin(tx.list("SELECT name FROM counters", &[], |row| row.only::<String>()))
                });
                let _: Option<Result<Vec<String>, StoreError>> = cut_after(read, n as usize % 5).await;
            })
        });
        for task in join_all(cut).await {
            task.unwrap();
        }
        assert_no_session_stays_in_a_transaction(&store).await;
        // A unit whose future was never polled did not start. Every other one is complete.
        assert_eq!(count(&store).await, 600);
    });
}

#[test]
fn a_panic_leaves_no_open_transaction() {
    on_postgres(|store| async move {
        let units = (0..20_i64).map(|n| {
            store.write(n, |tx, n| {
                Box::pin(async move {
                    insert(tx, &format!("counter {n}"), *n).await?;
                    panic!("planted");
                })
            })
        });
        let answers: Vec<Result<(), StoreError>> = join_all(units).await;
        assert!(answers.iter().all(|answer| matches!(answer, Err(StoreError::Driver(_)))), "{answers:?}");
        assert_no_session_stays_in_a_transaction(&store).await;
        assert_eq!(count(&store).await, 0);
    });
}

/// Polls `future` at most `polls` times, then drops it.
async fn cut_after<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        future.poll_unpin(context).map(Some)
    })
    .await
}

#[test]
fn a_unit_that_loses_a_serialization_race_runs_again() {
    on_postgres(|store| async move {
        new_counter(&store, "a", 0).await;
        let runs = Arc::new(AtomicUsize::new(0));
        let both_have_read = Arc::new(Barrier::new(2));
        let racers = (0..2).map(|_| {
            let (runs, both_have_read) = (Arc::clone(&runs), Arc::clone(&both_have_read));
            store.write((), move |tx, ()| {
                let (runs, both_have_read) = (Arc::clone(&runs), Arc::clone(&both_have_read));
                Box::pin(async move {
                    tx.exec("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", &[]).await?;
                    let found = tx.find("SELECT value FROM counters", &[], |row| row.only::<i64>()).await?;
                    if runs.fetch_add(1, Ordering::SeqCst) < 2 {
                        both_have_read.wait().await;
                    }
                    tx.exec("UPDATE counters SET value = $1", &params![found.unwrap_or(0) + 1]).await
                })
            })
        });
        let answers: Vec<Result<u64, StoreError>> = join_all(racers).await;
        assert_eq!(answers, [Ok(1), Ok(1)]);
        assert_eq!(runs.load(Ordering::SeqCst), 3);
        assert_eq!(value_of(&store, "a").await, Some(2));
    });
}

#[test]
fn a_deadlock_victim_runs_again() {
    on_postgres(|store| async move {
        new_counter(&store, "a", 0).await;
        new_counter(&store, "b", 0).await;
        let runs = Arc::new(AtomicUsize::new(0));
        let both_hold_one = Arc::new(Barrier::new(2));
        let racers = [["a", "b"], ["b", "a"]].into_iter().map(|order| {
            let (runs, both_hold_one) = (Arc::clone(&runs), Arc::clone(&both_hold_one));
            store.write(order, move |tx, [first, second]| {
                let (runs, both_hold_one) = (Arc::clone(&runs), Arc::clone(&both_hold_one));
                Box::pin(async move {
                    add(tx, first, 1).await?;
                    if runs.fetch_add(1, Ordering::SeqCst) < 2 {
                        both_hold_one.wait().await;
                    }
                    add(tx, second, 1).await
                })
            })
        });
        let answers: Vec<Result<u64, StoreError>> = join_all(racers).await;
        assert_eq!(answers, [Ok(1), Ok(1)]);
        // The unit that runs again may collide with the other one once more.
        assert!(runs.load(Ordering::SeqCst) > 2);
        assert_eq!((value_of(&store, "a").await, value_of(&store, "b").await), (Some(2), Some(2)));
    });
}

#[test]
fn a_unit_is_abandoned_after_ten_conflicts() {
    on_postgres(|store| async move {
        let runs = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&runs);
        let given_up: Result<u64, StoreError> = store
            .write((), move |tx, ()| {
                runs.fetch_add(1, Ordering::SeqCst);
                Box::pin(tx.exec("DO 'BEGIN RAISE EXCEPTION ''x'' USING ERRCODE = ''40001''; END'", &[]))
            })
            .await;
        assert!(matches!(given_up, Err(StoreError::Unavailable(_))), "{given_up:?}");
        assert_eq!(seen.load(Ordering::SeqCst), 10);
    });
}

/// Inserts 40 counters concurrently, which opens many sessions of the pool.
async fn insert_side_by_side(store: &Store, round: i64) {
    let units = (0..40_i64).map(|n| {
        store.write((round, n), |tx, (round, n)| {
            Box::pin(async move { insert(tx, &format!("counter {round} {n}"), *n).await })
        })
    });
    let answers: Vec<Result<u64, StoreError>> = join_all(units).await;
    assert!(answers.iter().all(|answer| *answer == Ok(1)), "{answers:?}");
}

#[test]
fn sessions_closed_by_the_server_are_replaced_without_an_error() {
    on_postgres(|store| async move {
        for round in 0..5 {
            insert_side_by_side(&store, round).await;
            let ended: Result<Vec<i64>, StoreError> = store
                .read((), |tx, ()| {
                    Box::pin(tx.list(
                        "SELECT CASE WHEN pg_terminate_backend(pid) THEN 1 ELSE 0 END FROM pg_stat_activity
                         WHERE datname = current_database() AND pid <> pg_backend_pid()",
                        &[],
                        |row| row.only::<i64>(),
                    ))
                })
                .await;
            assert!(!ended.unwrap().is_empty(), "no session was left to end");
        }
        insert_side_by_side(&store, 5).await;
        assert_eq!(count(&store).await, 240);
    });
}

#[test]
fn a_rejected_unit_releases_its_session() {
    testing::block_on(async {
        let Some(database) = testing::TestDatabase::create().await else { return };
        let store = Store::open(&format!("{}?max_connections=3", database.url)).await.unwrap();
        let mut sessions = Vec::new();
        for _ in 0..5 {
            let session = store
                .try_write((), |tx, ()| {
                    Box::pin(async move {
                        let session =
                            tx.find("SELECT pg_backend_pid()", &[], |row| row.only::<i64>()).await?;
                        Err::<(), _>(Session(session))
                    })
                })
                .await;
            sessions.push(session.unwrap_err());
        }
        assert!(
            sessions.iter().all(|session| session.0.is_some() && *session == sessions[0]),
            "{sessions:?}"
        );
    });
}

/// An error that contains the session in which it was created.
#[derive(Debug, PartialEq)]
struct Session(Option<i64>);

impl From<StoreError> for Session {
    fn from(_: StoreError) -> Self {
        Self(None)
    }
}

#[test]
fn the_error_of_a_wrong_address_contains_no_password() {
    testing::block_on(async {
        let refused = Store::open("postgres://user:hunter2@127.0.0.1:1/none").await.unwrap_err();
        assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
        let mistaken = Store::open("postgres://user:hunter2@host:notaport/none").await.unwrap_err();
        assert!(!format!("{refused:?} {mistaken:?}").contains("hunter2"));
    });
}
