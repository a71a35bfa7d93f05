//! Behavior of SQLite only.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use futures::future::{join, join_all};
use futures::poll;
use store::{Store, StoreError, params, testing};

use crate::fixture::{Refusal, count, insert, new_counter, prepare, value_of};

async fn fresh() -> Store {
    let store = testing::sqlite().await;
    prepare(&store).await;
    store
}

#[test]
fn a_unit_that_awaits_anything_else_is_rolled_back() {
    testing::block_on(async {
        let store = fresh().await;
        let pended: Result<(), StoreError> = store
            .write((), |tx, ()| {
                Box::pin(async move {
                    insert(tx, "a", 1).await?;
                    tokio::task::yield_now().await;
                    Ok(())
                })
            })
            .await;
        assert!(matches!(pended, Err(StoreError::Driver(_))), "{pended:?}");
        assert_eq!(count(&store).await, 0);
    });
}

#[test]
fn a_unit_joins_the_group_that_runs_when_it_arrives() {
    testing::block_on(async {
        let store = fresh().await;
        let (runs, running) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(2)));
        let input = (Arc::clone(&runs), Arc::clone(&running));
        let mut first = Box::pin(store.try_write(input, |tx, (runs, running)| {
            Box::pin(async move {
                if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                    running.wait();
                }
                insert(tx, "a", 1).await.map_err(Refusal::from)
            })
        }));
        let mut second = Box::pin(store.try_write((), |tx, ()| {
            Box::pin(async move {
                insert(tx, "b", 1).await?;
                Err::<(), _>(Refusal::Rule)
            })
        }));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        running.wait();
        assert_eq!(join(first, second).await, (Ok(1), Err(Refusal::Rule)));
        // The failure of the second unit rolled back the first one, which then ran again.
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        assert_eq!(count(&store).await, 1);
    });
}

#[test]
fn a_full_disk_fails_exactly_the_units_that_are_not_stored() {
    testing::block_on(async {
        let store = fresh().await;
        let bounded: Result<_, StoreError> = store
            .write((), |tx, ()| {
                Box::pin(async move {
                    let pages =
                        tx.find("PRAGMA page_count", &[], |row| row.only::<i64>()).await?.unwrap_or(0);
                    let bound: &str = format!("PRAGMA max_page_count = {}", pages + 50).leak();
                    Ok((pages, tx.find(bound, &[], |row| row.only::<i64>()).await?))
                })
            })
            .await;
        let (pages, bound) = bounded.unwrap();
        assert_eq!(bound, Some(pages + 50));
        let units = (0..120_i64).map(|n| {
            store.write(n, |tx, n| {
                Box::pin(async move {
                    let sql = "INSERT INTO counters (name, value, raw) VALUES ($1, $2, $3)";
                    tx.exec(sql, &params![format!("counter {n}"), *n, vec![7; 3_000]]).await
                })
            })
        });
        let answers: Vec<Result<u64, StoreError>> = join_all(units).await;
        let kept = answers.iter().filter(|answer| **answer == Ok(1)).count();
        let full = answers.iter().filter(|answer| matches!(answer, Err(StoreError::Unavailable(_)))).count();
        assert!(kept > 0 && full > 0 && kept + full == 120, "{answers:?}");
        assert_eq!(count(&store).await, kept as i64);
        let why = answers.iter().filter_map(|answer| answer.as_ref().err()).next().unwrap().to_string();
        assert!(why.contains("rolled the transaction back"), "{why}");
    });
}

#[test]
fn two_stores_on_one_file_read_each_others_writes() {
    testing::block_on(async {
        let folder = testing::TestFolder::create();
        let store = Store::open(&folder.url()).await.unwrap();
        prepare(&store).await;
        new_counter(&store, "a", 1).await;
        let other = Store::open(&folder.url()).await.unwrap();
        assert_eq!(value_of(&other, "a").await, Some(1));
        new_counter(&other, "b", 2).await;
        assert_eq!(value_of(&store, "b").await, Some(2));
    });
}

#[test]
fn a_reader_cannot_change_rows_with_returning() {
    testing::block_on(async {
        let store = fresh().await;
        new_counter(&store, "a", 1).await;
        let written: Result<_, StoreError> = store
            .read((), |tx, ()| {
                Box::pin(async move {
                    tx.find("UPDATE counters SET value = $1 RETURNING value", &params![9], |row| {
                        row.only::<i64>()
                    })
                    .await
                })
            })
            .await;
        assert!(matches!(written, Err(StoreError::Driver(_))), "{written:?}");
        assert_eq!(value_of(&store, "a").await, Some(1));
    });
}

#[test]
fn a_url_without_a_file_is_rejected() {
    testing::block_on(async {
        for url in ["sqlite:", "sqlite::memory:", "sqlite:/srv/x.db?mode=ro", "mysql://h/d", "/srv/x.db"] {
            assert!(matches!(Store::open(url).await, Err(StoreError::Driver(_))), "{url}");
        }
        assert!(matches!(Store::open("sqlite:/no/such/folder/x.db").await, Err(StoreError::Unavailable(_))));
        assert!(matches!(Store::open("sqlite:/").await, Err(StoreError::Unavailable(_))));
    });
}
