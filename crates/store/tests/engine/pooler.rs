//! Statements that are not where a session prepared them: a pooler gives each transaction another
//! session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use store::testing::{self, TestDatabase};
use store::{Store, StoreError};

use crate::fixture::{count, insert, new_counter, prepare, value_of};

/// Runs a test with a fresh database and the fixture, with these options, if a test cluster is
/// configured.
fn with_options<F: Future<Output = ()>>(options: &str, test: impl FnOnce(Store) -> F) {
    testing::block_on(async {
        let Some(database) = TestDatabase::create().await else { return };
        let (base, _) = database.url.split_once('?').unwrap_or((&database.url, ""));
        let store = Store::open(&format!("{base}?{options}")).await.unwrap();
        prepare(&store).await;
        test(store).await;
    });
}

#[test]
fn a_unit_whose_prepared_statements_are_lost_runs_again() {
    with_options("max_connections=3", |store| async move {
        new_counter(&store, "a", 0).await;
        let runs = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&runs);
        let inserted: Result<u64, StoreError> = store
            .write((), move |tx, ()| {
                let runs = Arc::clone(&runs);
                Box::pin(async move {
                    if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                        tx.exec("DEALLOCATE ALL", &[]).await?;
                    }
                    insert(tx, "b", 1).await
                })
            })
            .await;
        assert_eq!((inserted, seen.load(Ordering::SeqCst)), (Ok(1), 2));
        assert_eq!(count(&store).await, 2);
    });
}

#[test]
fn a_unit_that_never_finds_its_statements_is_unavailable_and_says_why() {
    with_options("max_connections=3", |store| async move {
        for code in ["26000", "42P05"] {
            let sql: &'static str =
                format!("DO 'BEGIN RAISE EXCEPTION ''x'' USING ERRCODE = ''{code}''; END'").leak();
            let refused: Result<u64, StoreError> =
                store.write(sql, |tx, sql| Box::pin(async move { tx.exec(sql, &[]).await })).await;
            let Err(refused @ StoreError::Unavailable(_)) = refused else { panic!("{code}: {refused:?}") };
            assert!(refused.to_string().contains("statements=unnamed"), "{refused}");
        }
    });
}

#[test]
fn unnamed_statements_leave_nothing_in_the_session() {
    with_options("statements=unnamed&max_connections=3&lock_timeout_ms=1234", |store| async move {
        new_counter(&store, "a", 7).await;
        assert_eq!(value_of(&store, "a").await, Some(7));
        let found: Result<_, StoreError> = store
            .write((), |tx, ()| {
                Box::pin(async move {
                    let prepared = "SELECT COUNT(*) AS count FROM pg_prepared_statements";
                    let prepared = tx.find(prepared, &[], |row| row.only::<i64>()).await?;
                    let limit = "SELECT current_setting('lock_timeout') AS value";
                    let limit = tx.find(limit, &[], |row| row.only::<String>()).await?;
                    Ok((prepared, limit))
                })
            })
            .await;
        assert_eq!(found, Ok((Some(0), Some("1234ms".to_owned()))));
        // A read has no transaction, so it sees what the session has.
        let found: Result<_, StoreError> = store
            .read((), |tx, ()| {
                let limit = "SELECT current_setting('lock_timeout') AS value";
                Box::pin(tx.find(limit, &[], |row| row.only::<String>()))
            })
            .await;
        assert_eq!(found, Ok(Some("0".to_owned())));
    });
}

/// A pooler may use another session before the transaction begins.
#[test]
fn statements_are_prepared_in_the_transaction_that_runs_them() {
    with_options("max_connections=3", |store| async move {
        // A query can be the first statement of a unit, and a statement that writes.
        const QUERY: &str = "SELECT SUM(CASE WHEN prepare_time < now() THEN 1 ELSE 0 END) AS early
            FROM pg_prepared_statements WHERE statement LIKE '%of the query%'";
        const WRITES: &str = "INSERT INTO counters (name, value) SELECT 'of the insert', SUM(CASE WHEN prepare_time < now()
            THEN 1 ELSE 0 END) FROM pg_prepared_statements WHERE statement LIKE '%of the insert%' RETURNING value";
        for sql in [QUERY, WRITES] {
            let early: Result<_, StoreError> =
                store.write(sql, |tx, sql| Box::pin(tx.find(sql, &[], |row| row.only::<i64>()))).await;
            assert_eq!(early, Ok(Some(0)), "{sql}");
        }
    });
}

/// Named statements through a pooler may fail, but only as a database that is not there. Units of work
/// run again with new statements.
#[test]
fn named_statements_through_a_pooler_fail_only_as_unavailable() {
    if testing::pooler().is_none() {
        return;
    }
    with_options("statements=named&max_connections=16", |store| async move {
        let units = (0..200_i64).map(|n| {
            let store = &store;
            async move {
                let written: Result<u64, StoreError> = store
                    .write(n, |tx, n| Box::pin(async move { insert(tx, &format!("counter {n}"), *n).await }))
                    .await;
                let read: Result<_, StoreError> = store
                    .read((), |tx, ()| {
                        Box::pin(tx.list("SELECT name FROM counters", &[], |row| row.only::<String>()))
                    })
                    .await;
                assert_eq!(written, Ok(1));
                if let Err(error) = read {
                    assert!(error.is_unavailable(), "{error}");
                }
            }
        });
        join_all(units).await;
    });
}
