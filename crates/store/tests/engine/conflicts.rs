//! Unique violations have the same name on both engines, and no other error is a conflict.

use store::{SqlValue, Store, StoreError, params};

use crate::fixture::prepare;

async fn insert(store: &Store, item: [SqlValue<'static>; 4]) -> Result<u64, StoreError> {
    store
        .write(item, |tx, item| {
            Box::pin(async move {
                tx.exec("INSERT INTO items (id, owner, slot, tag) VALUES ($1, $2, $3, $4)", item).await
            })
        })
        .await
}

store::on_each_engine! {
    async fn a_conflict_has_the_name_of_its_unique_rule(store: Store) {
        prepare(&store).await;
        assert_eq!(insert(&store, params!["1", "ann", 7, "red"]).await, Ok(1));
        for (item, name) in [
            (params!["1", "bob", 8, "blue"], "items_pkey"),
            (params!["2", "ann", 7, "blue"], "items_owner_slot"),
            (params!["2", "bob", 8, "red"], "items_tag_key"),
        ] {
            let refused = insert(&store, item).await.unwrap_err();
            assert!(refused.is_conflict_on(name), "{refused:?}, not {name}");
        }
        assert_eq!(insert(&store, params!["2", "ann", None::<i64>, None::<&str>]).await, Ok(1));
        assert_eq!(insert(&store, params!["3", "ann", None::<i64>, None::<&str>]).await, Ok(1));
    }

    async fn a_missing_value_is_a_driver_error_and_not_a_conflict(store: Store) {
        prepare(&store).await;
        let refused = insert(&store, params!["1", None::<&str>, 1, "red"]).await;
        assert!(matches!(refused, Err(StoreError::Driver(_))), "{refused:?}");
    }

    async fn the_error_of_an_invalid_statement_contains_no_values(store: Store) {
        prepare(&store).await;
        let refused: Result<u64, StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                tx.exec("UPDATE items SET nothing = $1", &params!["secret"]).await
            }))
            .await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused, StoreError::Driver(_)), "{refused:?}");
        assert!(refused.to_string().contains("nothing") && !refused.to_string().contains("secret"), "{refused}");
    }

    async fn the_text_of_a_conflict_contains_no_values(store: Store) {
        prepare(&store).await;
        assert_eq!(insert(&store, params!["secret", "ann", 7, "red"]).await, Ok(1));
        let refused = insert(&store, params!["secret", "ann", 7, "red"]).await.unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("secret"), "{refused:?}");
        assert!(!format!("{:?}", params!["secret"]).contains("secret"));
    }
}
