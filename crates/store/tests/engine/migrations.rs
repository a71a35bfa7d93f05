//! Migrations are applied once, in order and completely, even if several processes start at once.

use futures::future::join_all;
use store::{Engine, Schema, Store, StoreError, testing};

use crate::fixture::NOW;

const FIRST: (&str, &str) = ("t001_first", "CREATE TABLE one (id TEXT NOT NULL PRIMARY KEY, raw BYTES)");
const SECOND: (&str, &str) =
    ("t002_second", "ALTER TABLE one ADD COLUMN note TEXT; CREATE TABLE two (id TEXT)");

async fn tables(store: &Store) -> Vec<String> {
    let sql = match store.engine() {
        Engine::Sqlite => "SELECT name FROM sqlite_schema WHERE name IN ('one', 'two') ORDER BY name",
        Engine::Postgres => "SELECT relname FROM pg_class WHERE relname IN ('one', 'two') ORDER BY relname",
    };
    let names: Result<_, StoreError> =
        store.read((), move |tx, ()| Box::pin(tx.list(sql, &[], |row| row.only::<String>()))).await;
    names.unwrap()
}

store::on_each_engine! {
    async fn a_second_start_applies_nothing(store: Store) {
        assert_eq!(store.migrate(NOW).await, Ok(vec![]));
        let applied = testing::migrate_with(&store, &[FIRST], NOW).await;
        assert_eq!(applied, Ok(vec!["t001_first".to_owned()]));
        let applied = testing::migrate_with(&store, &[FIRST, SECOND], NOW).await;
        assert_eq!(applied, Ok(vec!["t002_second".to_owned()]));
        assert_eq!(testing::migrate_with(&store, &[FIRST, SECOND], NOW).await, Ok(vec![]));
        assert_eq!(tables(&store).await, ["one", "two"]);
    }

    async fn a_migration_with_changed_text_is_rejected(store: Store) {
        testing::migrate_with(&store, &[FIRST], NOW).await.unwrap();
        let changed = ("t001_first", "CREATE TABLE one (id BIGINT)");
        let refused = testing::migrate_with(&store, &[changed, SECOND], NOW).await.unwrap_err();
        assert!(refused.to_string().contains("t001_first"), "{refused}");
        assert_eq!(tables(&store).await, ["one"]);
    }

    async fn a_failed_migration_changes_nothing_and_can_be_fixed(store: Store) {
        let broken = ("t002_second", "CREATE TABLE two (id TEXT); CREATE TABLE one (id TEXT)");
        let refused = testing::migrate_with(&store, &[FIRST, broken], NOW).await;
        assert!(matches!(refused, Err(StoreError::Driver(_))), "{refused:?}");
        assert_eq!(tables(&store).await, ["one"]);
        let applied = testing::migrate_with(&store, &[FIRST, SECOND], NOW).await;
        assert_eq!(applied, Ok(vec!["t002_second".to_owned()]));
    }
}

store::on_each_engine! {
    async fn a_schema_newer_than_the_program_is_rejected_by_name(store: Store) {
        assert_eq!(store.schema().await, Ok(Schema::Current));
        let future = ("9999_future", "CREATE TABLE future (id TEXT)");
        testing::migrate_with(&store, &[future], NOW).await.unwrap();
        let refused = store.migrate(NOW).await.unwrap_err();
        let StoreError::SchemaTooNew { database, program } = &refused else { panic!("{refused}") };
        assert_eq!(database, "9999_future");
        assert!(refused.to_string().contains(program.as_str()), "{refused}");
        assert_eq!(store.schema().await, Ok(Schema::Newer { database: database.clone(), program: program.clone() }));
    }
}

#[test]
fn a_database_without_a_schema_is_older_than_the_program() {
    testing::block_on(async {
        let mut stores = vec![testing::empty_sqlite().await];
        stores.extend(testing::empty_postgres().await);
        for store in stores {
            assert_eq!(store.schema().await, Ok(Schema::Older));
            testing::migrate_with(&store, &[FIRST], NOW).await.unwrap();
            assert_eq!(store.schema().await, Ok(Schema::Older));
        }
    });
}

/// Simulates processes that share only the database.
async fn start_together(url: &str) {
    let starts = (0..8).map(|_| {
        let url = url.to_owned();
        tokio::spawn(async move {
            let store = Store::open(&url).await.unwrap();
            let applied = testing::migrate_with(&store, &[FIRST, SECOND], NOW).await.unwrap();
            store.close().await;
            applied
        })
    });
    let mut applied: Vec<String> = join_all(starts).await.into_iter().flat_map(Result::unwrap).collect();
    // Each migration may be applied by a different process.
    applied.sort();
    assert_eq!(applied, ["t001_first", "t002_second"]);
}

#[test]
fn concurrent_sqlite_starts_apply_each_migration_once() {
    testing::block_on(async {
        for _ in 0..10 {
            let folder = testing::TestFolder::create();
            start_together(&folder.url()).await;
        }
    });
}

#[test]
fn concurrent_postgres_starts_apply_each_migration_once() {
    testing::block_on(async {
        for _ in 0..5 {
            let Some(database) = testing::TestDatabase::create().await else { return };
            start_together(&format!("{}?max_connections=3", database.url)).await;
        }
    });
}
