//! Units of work: complete or rolled back, visible once acknowledged, and independent of failures
//! of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::ids::MarketId;
use futures::FutureExt;
use futures::future::join_all;
use store::{Store, StoreError, params};

use crate::fixture::{Refusal, add, count, insert, new_counter, prepare, value_of};

store::on_each_engine! {
    async fn an_acknowledged_write_is_visible_to_every_reader(store: Store) {
        prepare(&store).await;
        new_counter(&store, "a", 0).await;
        for n in 1..=50 {
            let added: Result<u64, StoreError> = store.write((), |tx, ()| add(tx, "a", 1)).await;
            assert_eq!(added, Ok(1));
            assert_eq!(value_of(&store, "a").await, Some(n));
        }
    }

    async fn a_rejected_unit_stores_nothing(store: Store) {
        prepare(&store).await;
        let refused: Result<(), Refusal> = store
            .try_write((), |tx, ()| Box::pin(async move {
                insert(tx, "a", 1).await?;
                insert(tx, "b", 1).await?;
                Err(Refusal::Rule)
            }))
            .await;
        assert_eq!(refused, Err(Refusal::Rule));
        assert_eq!(count(&store).await, 0);
    }

    async fn a_panicking_unit_stores_nothing_and_the_store_continues(store: Store) {
        prepare(&store).await;
        let panicked: Result<(), StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                insert(tx, "a", 1).await?;
                panic!("planted");
            }))
            .await;
        assert!(matches!(panicked, Err(StoreError::Driver(_))), "{panicked:?}");
        assert_eq!(count(&store).await, 0);
        new_counter(&store, "a", 1).await;
    }

    async fn concurrent_units_succeed_and_fail_independently(store: Store) {
        prepare(&store).await;
        let units = (0..300_i64).map(|n| store.try_write(n, |tx, n| Box::pin(async move {
            insert(tx, &format!("counter {n}"), *n).await?;
            match n % 5 {
                0 => Err(Refusal::Rule),
                1 => panic!("planted"),
                2 => insert(tx, &format!("counter {n}"), 0).await.map_err(Refusal::from),
                _ => Ok(1),
            }
        })));
        for (n, answer) in join_all(units).await.into_iter().enumerate() {
            match n % 5 {
                0 => assert_eq!(answer, Err(Refusal::Rule)),
                1 => assert!(matches!(answer, Err(Refusal::Store(StoreError::Driver(_)))), "{answer:?}"),
                2 => assert!(matches!(answer, Err(Refusal::Store(StoreError::Conflict { .. }))), "{answer:?}"),
                _ => assert_eq!(answer, Ok(1)),
            }
        }
        assert_eq!(count(&store).await, 120);
    }

    async fn a_unit_reads_its_own_writes(store: Store) {
        prepare(&store).await;
        let seen: Result<Option<i64>, StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                insert(tx, "a", 20).await?;
                add(tx, "a", 22).await?;
                tx.find("SELECT value FROM counters WHERE name = $1", &params!["a"], |row| row.only::<i64>()).await
            }))
            .await;
        assert_eq!(seen, Ok(Some(42)));
    }

    async fn a_unit_that_hides_a_failed_statement_is_rolled_back(store: Store) {
        prepare(&store).await;
        new_counter(&store, "taken", 1).await;
        let hidden: Result<(), StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                insert(tx, "a", 1).await?;
                assert!(insert(tx, "taken", 2).await.is_err_and(|error| error.is_conflict()));
                assert!(matches!(insert(tx, "b", 3).await, Err(StoreError::Driver(_))));
                Ok(())
            }))
            .await;
        assert!(matches!(hidden, Err(StoreError::Driver(_))), "{hidden:?}");
        assert_eq!(count(&store).await, 1);
    }

    async fn concurrent_increments_are_all_counted(store: Store) {
        prepare(&store).await;
        new_counter(&store, "a", 0).await;
        let tasks = (0..32).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..25 {
                    let added: Result<u64, StoreError> = store.write((), |tx, ()| add(tx, "a", 1)).await;
                    assert_eq!(added, Ok(1));
                }
            })
        });
        for task in join_all(tasks).await {
            task.unwrap();
        }
        assert_eq!(value_of(&store, "a").await, Some(800));
    }

    async fn a_compare_and_set_succeeds_once(store: Store) {
        prepare(&store).await;
        new_counter(&store, "a", 0).await;
        let units = (1..=40_i64).map(|n| store.write(n, |tx, n| Box::pin(async move {
            tx.exec("UPDATE counters SET value = $1 WHERE name = $2 AND value = 0", &params![*n, "a"]).await
        })));
        let moved: Vec<Result<u64, StoreError>> = join_all(units).await;
        assert_eq!(moved.iter().filter(|moved| **moved == Ok(1)).count(), 1);
        assert_eq!(moved.iter().filter(|moved| **moved == Ok(0)).count(), 39);
    }

    async fn the_unit_of_a_dropped_caller_is_stored_whole(store: Store) {
        prepare(&store).await;
        let ran = Arc::new(AtomicUsize::new(0));
        for n in 0..100_i64 {
            let ran = Arc::clone(&ran);
            let write = store.write(n, move |tx, n| {
                let ran = Arc::clone(&ran);
                Box::pin(async move {
                    insert(tx, &format!("first {n}"), *n).await?;
                    insert(tx, &format!("second {n}"), *n).await?;
                    ran.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, StoreError>(())
                })
            });
            // Polled once, so that the unit is queued, and then dropped like the handler of a
            // client that disconnected.
            let _ = write.now_or_never();
        }
        store.close().await;
        assert_eq!(ran.load(Ordering::SeqCst), 100);
    }

    async fn the_markets_version_grows_before_a_change_is_acknowledged(store: Store) {
        prepare(&store).await;
        let before = store.markets_version();
        new_counter(&store, "a", 1).await;
        assert_eq!(store.markets_version(), before, "another table's write changes no market");
        let changed = store.write((), |tx, ()| Box::pin(async move {
            tx.mark_markets_changed();
            insert(tx, "b", 1).await
        }));
        assert_eq!(changed.await, Ok::<_, StoreError>(1));
        assert!(store.markets_version() > before);
        let after = store.markets_version();
        new_counter(&store, "c", 1).await;
        assert_eq!(store.markets_version(), after, "the mark belongs to one unit");
    }

    async fn a_market_version_grows_with_its_own_and_unnamed_changes(store: Store) {
        prepare(&store).await;
        let [one, other] = [1, 2].map(|n| format!("00000000-0000-7000-8000-00000000000{n}").parse::<MarketId>().unwrap());
        let versions = || [one, other].map(|id| store.market_version(id));
        let changed = store.write(one, |tx, one| Box::pin(async move {
            tx.mark_market_changed(*one);
            insert(tx, "a", 1).await
        }));
        assert_eq!(changed.await, Ok::<_, StoreError>(1));
        let after = store.markets_version();
        assert_eq!(versions(), [after, 0]);
        let changed = store.write(other, |tx, other| Box::pin(async move {
            tx.mark_markets_changed();
            tx.mark_market_changed(*other);
            insert(tx, "b", 1).await
        }));
        assert_eq!(changed.await, Ok::<_, StoreError>(1));
        assert!(store.markets_version() > after);
        assert_eq!(versions(), [store.markets_version(); 2]);
        new_counter(&store, "c", 1).await;
        assert_eq!(versions(), [store.markets_version(); 2]);
    }

    async fn a_reader_cannot_write(store: Store) {
        prepare(&store).await;
        let written: Result<u64, StoreError> = store.read((), |tx, ()| insert(tx, "a", 1)).await;
        assert!(matches!(written, Err(StoreError::Driver(_))), "{written:?}");
        assert_eq!(count(&store).await, 0);
    }

    async fn a_closed_store_finishes_its_work_and_rejects_more(store: Store) {
        prepare(&store).await;
        assert_eq!(store.ping().await, Ok(()));
        let (kept, ()) = tokio::join!(store.write((), |tx, ()| insert(tx, "a", 1)), store.close());
        assert_eq!(kept, Ok::<_, StoreError>(1));
        let refused: Result<u64, StoreError> = store.write((), |tx, ()| insert(tx, "b", 1)).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        assert!(matches!(store.ping().await, Err(StoreError::Unavailable(_))));
        store.close().await;
    }
}
