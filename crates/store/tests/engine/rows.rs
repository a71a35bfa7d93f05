//! Statements over many rows, and statements that are sent later: the same result on both engines
//! and for any number of rows.

use futures::future::join_all;
use store::testing::{self, ProxyFault};
use store::{SqlValue, Store, StoreError, params};

use crate::fixture::{add, count, new_counter, prepare, value_of};

const INSERT: &str = "INSERT INTO counters (name, value, note, raw)
    SELECT x.name, x.value, x.note, x.raw
    FROM ROWS($1 TEXT, $2 BIGINT, $3 TEXT, $4 BYTES) AS x(name, value, note, raw)";
const ADD: &str = "UPDATE counters SET value = counters.value + x.step
    FROM ROWS($1 TEXT, $2 BIGINT) AS x(of, step) WHERE counters.name = x.of";
const READ: &str = "SELECT c.name, c.value, c.note, c.raw FROM ROWS($1 TEXT) AS x(of)
    CROSS JOIN counters c WHERE c.name = x.of ORDER BY c.name FOR UPDATE OF c";

/// The numbers of rows that the drivers handle in different ways.
const SIZES: [i64; 4] = [1, 2, 3, 300];

type Counter = (String, i64, Option<String>, Option<Vec<u8>>);

fn counter(n: i64) -> Counter {
    let note = (n % 2 == 0).then(|| format!("it's \"{n}\" {{}} \\ \u{1F980}"));
    (format!("counter {n:03}"), i64::MAX - n, note, (n % 3 == 0).then(|| vec![0, 255, 39]))
}

fn names(size: i64) -> Vec<Vec<SqlValue<'static>>> {
    (0..size).map(|n| vec![SqlValue::from(counter(n).0)]).collect()
}

fn steps(size: i64) -> Vec<Vec<SqlValue<'static>>> {
    (0..size).map(|n| params![counter(n).0, n + 1].to_vec()).collect()
}

store::on_each_engine! {
    async fn any_number_of_rows_is_written_and_read_back(store: Store) {
        prepare(&store).await;
        for size in SIZES {
            let read: Result<(u64, Vec<Counter>), StoreError> = store
                .write(size, |tx, size| Box::pin(async move {
                    tx.exec("DELETE FROM counters", &[]).await?;
                    let rows = (0..*size).map(counter);
                    let rows = rows.map(|(name, value, note, raw)| params![name, value, note, raw].to_vec());
                    let written = tx.exec_rows(INSERT, rows.collect()).await?;
                    let read = tx.list_rows(READ, names(*size), |row| {
                        Ok((row.get("name")?, row.get("value")?, row.get("note")?, row.get("raw")?))
                    });
                    Ok((written, read.await?))
                }))
                .await;
            let (written, mut read) = read.unwrap();
            read.sort();
            assert_eq!((written, read), (size as u64, (0..size).map(counter).collect()), "{size}");
        }
    }

    async fn no_rows_run_nothing(store: Store) {
        prepare(&store).await;
        let done: Result<(u64, Vec<String>), StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                tx.queue_rows(INSERT, Vec::new()).await?;
                tx.queue_each("DELETE FROM counters WHERE name = $1", Vec::new()).await?;
                Ok((tx.exec_rows(INSERT, Vec::new()).await?, tx.list_rows(READ, Vec::new(), |row| row.get("name")).await?))
            }))
            .await;
        assert_eq!(done, Ok((0, Vec::new())));
    }

    async fn only_changed_rows_are_counted(store: Store) {
        prepare(&store).await;
        for n in [0, 1] {
            let name: &'static str = counter(n).0.leak();
            new_counter(&store, name, 10 * n).await;
        }
        for size in SIZES {
            let added: Result<u64, StoreError> =
                store.write(size, |tx, size| Box::pin(async move { tx.exec_rows(ADD, steps(*size)).await })).await;
            assert_eq!(added, Ok(size.min(2) as u64), "{size}");
        }
        assert_eq!(value_of(&store, "counter 000").await, Some(4));
        assert_eq!(value_of(&store, "counter 001").await, Some(16));
    }

    async fn a_conflict_has_its_name_for_any_number_of_rows(store: Store) {
        prepare(&store).await;
        new_counter(&store, "counter 000", 0).await;
        for size in SIZES {
            for queued in [false, true] {
                let refused: Result<(), StoreError> = store
                    .write((size, queued), |tx, (size, queued)| Box::pin(async move {
                        let rows = steps(*size).into_iter().map(|mut row| {
                            row.extend([SqlValue::Null, SqlValue::Null]);
                            row
                        });
                        // With and without another statement, so that BEGIN is sent in both ways.
                        if size % 2 == 0 {
                            add(tx, "counter 000", 1).await?;
                        }
                        if *queued {
                            tx.queue_rows(INSERT, rows.collect()).await
                        } else {
                            tx.exec_rows(INSERT, rows.collect()).await.map(drop)
                        }
                    }))
                    .await;
                let conflict = StoreError::Conflict { constraint: "counters_pkey".to_owned() };
                assert_eq!(refused, Err(conflict), "{size} {queued}");
                assert_eq!((count(&store).await, value_of(&store, "counter 000").await), (1, Some(0)));
            }
        }
    }

    async fn queued_statements_run_in_order_and_before_the_next_one(store: Store) {
        prepare(&store).await;
        let seen: Result<Option<i64>, StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                const SET: &str = "UPDATE counters SET value = $1 WHERE name = $2";
                tx.queue_each("INSERT INTO counters (name, value) VALUES ($1, $2)", vec![params!["a", 1].to_vec()]).await?;
                tx.queue_each(SET, (2..=600).map(|value| params![value, "a"].to_vec()).collect()).await?;
                let seen = tx.find("SELECT value FROM counters", &[], |row| row.only()).await?;
                tx.queue_each(SET, vec![params![7, "a"].to_vec()]).await?;
                Ok(seen)
            }))
            .await;
        assert_eq!((seen, value_of(&store, "a").await), (Ok(Some(600)), Some(7)));
    }

    async fn a_unit_that_fails_stores_nothing_of_what_it_queued(store: Store) {
        prepare(&store).await;
        let refused: Result<(), StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                tx.queue_each("INSERT INTO counters (name, value) VALUES ($1, $2)", vec![params!["a", 1].to_vec()]).await?;
                Err(StoreError::Unavailable("planted".to_owned()))
            }))
            .await;
        assert_eq!((refused.is_err(), count(&store).await), (true, 0));
        new_counter(&store, "b", 1).await;
    }

    async fn rows_that_do_not_fit_are_rejected_before_anything_is_stored(store: Store) {
        prepare(&store).await;
        for rows in [
            vec![params!["a", 1].to_vec(), params!["b", "1"].to_vec()],
            vec![params!["a"].to_vec()],
            vec![params!["a\0", 1].to_vec()],
        ] {
            let refused: Result<u64, StoreError> = store
                .write(rows, |tx, rows| Box::pin(async move {
                    tx.queue_each("INSERT INTO counters (name, value) VALUES ($1, $2)", vec![params!["b", 1].to_vec()]).await?;
                    tx.exec_rows(ADD, rows.clone()).await
                }))
                .await;
            assert!(matches!(refused, Err(StoreError::Driver(_) | StoreError::Nul)), "{refused:?}");
            assert_eq!(count(&store).await, 0);
        }
        let mixed: Result<(), StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                let rows = vec![params![1, "a"].to_vec(), params!["x", "b"].to_vec()];
                tx.queue_each("UPDATE counters SET value = $1 WHERE name = $2", rows).await
            }))
            .await;
        assert_eq!(mixed.is_err(), store.engine() == store::Engine::Postgres, "{mixed:?}");
    }

    async fn concurrent_groups_count_every_row(store: Store) {
        prepare(&store).await;
        let zeros = (0..20).map(|n| params![counter(n).0, 0, SqlValue::Null, SqlValue::Null].to_vec());
        let zeros: Vec<_> = zeros.collect();
        let made: Result<u64, StoreError> =
            store.write(zeros, |tx, zeros| Box::pin(async move { tx.exec_rows(INSERT, zeros.clone()).await })).await;
        assert_eq!(made, Ok(20));
        let units = (0..16).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let added: Result<(), StoreError> = store
                    .write((), |tx, ()| Box::pin(async move {
                        tx.list_rows(READ, names(20), |row| row.get::<String>("name")).await?;
                        tx.queue_rows(ADD, (0..20).map(|n| params![counter(n).0, 1].to_vec()).collect()).await
                    }))
                    .await;
                added
            })
        });
        assert!(join_all(units).await.into_iter().all(|added| added.unwrap() == Ok(())));
        for n in 0..20 {
            let name: &'static str = counter(n).0.leak();
            assert_eq!(value_of(&store, name).await, Some(16));
        }
    }
}

/// Queues one row, so that it is sent together with the COMMIT.
async fn queue_one(store: &Store, name: &'static str) -> Result<(), StoreError> {
    store
        .write(name, |tx, name| {
            Box::pin(async move {
                tx.exists("SELECT 1", &[]).await?;
                tx.queue_each(
                    "INSERT INTO counters (name, value) VALUES ($1, $2)",
                    vec![params![*name, 1].to_vec()],
                )
                .await
            })
        })
        .await
}

#[test]
fn an_unanswered_commit_with_queued_statements_is_unknown() {
    testing::block_on(async {
        let Some((store, proxy)) = testing::proxied_postgres("").await else { return };
        prepare(&store).await;
        // After `PanicAfter`, the error answers the first statement, although all were executed.
        for (fault, stored) in
            [(ProxyFault::CutBefore, 0), (ProxyFault::Panic, 0), (ProxyFault::PanicAfter, 1)]
        {
            proxy.plan("COMMIT\0", fault, 1);
            let unknown = queue_one(&store, "a").await;
            assert!(matches!(unknown, Err(StoreError::CommitUnknown(_))), "{unknown:?}");
            // The server may still be committing what it has received.
            while count(&store).await != stored {
                tokio::task::yield_now().await;
            }
        }
        let taken = queue_one(&store, "a").await;
        assert!(taken.is_err_and(|error| error.is_conflict_on("counters_pkey")));
        proxy.plan("COMMIT\0", ProxyFault::CutAfter, 1);
        let unknown = queue_one(&store, "b").await;
        assert!(matches!(unknown, Err(StoreError::CommitUnknown(_))), "{unknown:?}");
        assert_eq!(queue_one(&store, "c").await, Ok(()));
        assert_eq!(count(&store).await, 3);
    });
}

/// The ways in which a unit can send its first statement.
#[derive(Debug, Clone, Copy)]
enum First {
    Insert,
    InsertReturning,
    Queued,
    Query,
}

async fn insert_first(store: &Store, first: First) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO counters (name, value) VALUES ($1, $2)";
    store
        .write(first, |tx, first| {
            Box::pin(async move {
                let row = params!["a", 1].to_vec();
                match first {
                    First::Insert => tx.exec(SQL, &row).await.map(drop),
                    First::InsertReturning => {
                        const RETURNING: &str = "INSERT INTO counters (name, value)
                            SELECT x.name, x.value FROM ROWS($1 TEXT, $2 BIGINT) AS x(name, value) RETURNING name";
                        tx.list_rows(RETURNING, vec![row], |row| row.only::<String>()).await.map(drop)
                    }
                    First::Queued => tx.queue_each(SQL, vec![row]).await,
                    First::Query => {
                        tx.list_rows(READ, names(5), |row| row.get::<String>("name")).await?;
                        tx.queue_each(SQL, vec![row]).await
                    }
                }
            })
        })
        .await
}

/// A pooler may answer a BEGIN with an error, and run the next statements in another session.
#[test]
fn nothing_is_stored_if_the_begin_is_rejected() {
    for options in ["statements=named", "statements=unnamed"] {
        testing::block_on(async {
            let Some((store, proxy)) = testing::proxied_postgres(options).await else { return };
            prepare(&store).await;
            for first in [First::Insert, First::InsertReturning, First::Queued, First::Query] {
                proxy.plan("BEGIN ISOLATION", ProxyFault::Misspell, 1);
                let refused = insert_first(&store, first).await;
                assert!(matches!(refused, Err(StoreError::Driver(_))), "{first:?}: {refused:?}");
                assert_eq!(count(&store).await, 0, "{first:?}");
                assert_eq!(insert_first(&store, first).await, Ok(()));
                let deleted: Result<u64, StoreError> =
                    store.write((), |tx, ()| Box::pin(tx.exec("DELETE FROM counters", &[]))).await;
                assert_eq!(deleted, Ok(1));
            }
        });
    }
}

#[test]
fn a_unit_runs_again_if_its_connection_was_closed_while_idle() {
    testing::block_on(async {
        let Some(store) = testing::postgres().await else { return };
        prepare(&store).await;
        let insert: &str = "INSERT INTO counters (name, value) VALUES ($1, $2)";
        for n in 0..3 {
            assert_eq!(queue_one(&store, format!("warm {n}").leak()).await, Ok(()));
            let ended: Result<i64, StoreError> = store
                .for_maintenance()
                .read((), |tx, ()| {
                    Box::pin(async move {
                        const SQL: &str =
                            "SELECT COUNT(pg_terminate_backend(pid, 5000)) AS ended FROM pg_stat_activity
                            WHERE datname = current_database() AND pid <> pg_backend_pid()";
                        Ok(tx.find(SQL, &[], |row| row.only()).await?.unwrap_or(0))
                    })
                })
                .await;
            assert!(ended.unwrap() > 0);
            // Everything is sent at once: BEGIN, the statement, and then the COMMIT.
            let queued: Result<(), StoreError> = store
                .write(format!("only queued {n}"), move |tx, name| {
                    Box::pin(tx.queue_each(insert, vec![params![name.as_str(), 1].to_vec()]))
                })
                .await;
            assert_eq!(queued, Ok(()));
        }
        assert_eq!(count(&store).await, 6);
    });
}
