//! Migrations are applied once, in order and completely, even if several processes start at once.

use std::sync::Arc;

use futures::future::join_all;
use store::{Engine, Schema, Store, StoreError, testing};

use tokio::sync::Notify;

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

/// A migration of four steps on PostgreSQL. On SQLite it is one.
const STEPPED: (&str, &str) = (
    "t003_stepped",
    "CREATE TABLE three (id BIGINT NOT NULL, note TEXT);
     INSERT INTO three (id, note) VALUES (1, 'a');
     CREATE INDEX CONCURRENTLY three_note ON three (note);
     CREATE UNIQUE INDEX CONCURRENTLY three_id ON three (id);
     INSERT INTO three (id, note) VALUES (2, 'b');",
);
/// A migration that begins with an index.
const INDEXED: (&str, &str) = ("t004_indexed", "CREATE INDEX CONCURRENTLY three_both ON three (id, note)");

async fn ids(store: &Store) -> Result<Vec<i64>, StoreError> {
    let all = "SELECT id FROM three ORDER BY id";
    store.read((), move |tx, ()| Box::pin(tx.list(all, &[], |row| row.only::<i64>()))).await
}

async fn execute(store: &Store, sql: &'static str) -> Result<u64, StoreError> {
    store.write((), move |tx, ()| Box::pin(tx.exec(sql, &[]))).await
}

/// Returns the usable indexes of the table `three`.
async fn usable_indexes(store: &Store) -> Vec<String> {
    let sql = match store.engine() {
        Engine::Sqlite => {
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'three' ORDER BY name"
        }
        Engine::Postgres => {
            "SELECT CAST(class.relname AS TEXT) AS name FROM pg_class class
             JOIN pg_index found ON found.indexrelid = class.oid
             WHERE class.relname LIKE 'three_%' AND found.indisvalid ORDER BY name"
        }
    };
    let names: Result<_, StoreError> =
        store.read((), move |tx, ()| Box::pin(tx.list(sql, &[], |row| row.only::<String>()))).await;
    names.unwrap()
}

const INDEXES: [&str; 3] = ["three_both", "three_id", "three_note"];

store::on_each_engine! {
    async fn a_migration_killed_between_any_two_steps_is_resumed(store: Store) {
        let migrations = [STEPPED, INDEXED];
        let steps = if store.engine() == Engine::Postgres { 5 } else { 2 };
        let mut applied = Vec::new();
        for step in 1..=steps {
            let name = testing::migrate_steps(&store, &migrations, NOW, 1).await.unwrap();
            assert!(name.is_empty() || step == steps || step == steps - 1, "{step}: {name:?}");
            applied.extend(name);
        }
        assert_eq!(applied, ["t003_stepped", "t004_indexed"]);
        assert_eq!(testing::migrate_with(&store, &migrations, NOW).await, Ok(vec![]));
        assert_eq!((ids(&store).await, usable_indexes(&store).await), (Ok(vec![1, 2]), INDEXES.map(str::to_owned).to_vec()));
    }

    async fn a_begun_migration_must_keep_its_text(store: Store) {
        testing::migrate_steps(&store, &[STEPPED], NOW, 1).await.unwrap();
        let changed = (STEPPED.0, "CREATE TABLE three (id TEXT)");
        let refused = testing::migrate_with(&store, &[changed], NOW).await.unwrap_err();
        assert!(refused.to_string().contains("another text"), "{refused}");
    }
}

#[test]
fn a_schema_with_a_begun_migration_is_not_current() {
    testing::block_on(async {
        let Some(store) = testing::postgres().await else { return };
        assert_eq!(store.schema().await, Ok(Schema::Current));
        let newest = "UPDATE schema_migrations SET state = 'applying'
            WHERE name = (SELECT MAX(name) FROM schema_migrations)";
        execute(&store, newest).await.unwrap();
        assert_eq!(store.schema().await, Ok(Schema::Older));
    });
}

#[test]
fn an_index_that_could_not_be_built_is_removed_and_built_by_the_next_run() {
    testing::block_on(async {
        let Some(store) = testing::empty_postgres().await else { return };
        // The third step fails, because an id is there twice.
        testing::migrate_steps(&store, &[STEPPED], NOW, 2).await.unwrap();
        execute(&store, "INSERT INTO three (id, note) VALUES (1, 'c')").await.unwrap();
        let refused = testing::migrate_with(&store, &[STEPPED], NOW).await.unwrap_err();
        assert!(refused.is_conflict_on("three_id"), "{refused}");
        assert_eq!(usable_indexes(&store).await, ["three_note"]);
        execute(&store, "DELETE FROM three WHERE note = 'c'").await.unwrap();
        let applied = testing::migrate_with(&store, &[STEPPED, INDEXED], NOW).await.unwrap();
        assert_eq!((applied.len(), usable_indexes(&store).await), (2, INDEXES.map(str::to_owned).to_vec()));
    });
}

#[test]
fn a_step_waits_for_a_table_in_short_attempts() {
    testing::block_on(async {
        let Some(store) = testing::empty_postgres().await else { return };
        testing::migrate_steps(&store, &[STEPPED], NOW, 1).await.unwrap();
        let (holds, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let of_unit = (Arc::clone(&holds), Arc::clone(&release));
        let workers = store.for_workers();
        let held = tokio::spawn(async move {
            let unit: Result<u64, StoreError> = workers
                .write(of_unit, |tx, (holds, release)| {
                    Box::pin(async move {
                        let written = tx.exec("UPDATE three SET note = 'z' WHERE id = 1", &[]).await?;
                        holds.notify_one();
                        release.notified().await;
                        Ok(written)
                    })
                })
                .await;
            unit
        });
        holds.notified().await;
        let migrating = {
            let store = store.clone();
            tokio::spawn(async move { testing::migrate_with(&store, &[STEPPED, INDEXED], NOW).await })
        };
        // The builder gives up at its lock timeout, and leaves an index that is not usable.
        let invalid = "SELECT COUNT(*) AS count FROM pg_index WHERE NOT indisvalid";
        loop {
            let found: Result<_, StoreError> =
                store.read((), move |tx, ()| Box::pin(tx.find(invalid, &[], |row| row.only::<i64>()))).await;
            if found == Ok(Some(1)) {
                break;
            }
        }
        // Others can write meanwhile.
        assert_eq!(execute(&store, "INSERT INTO three (id, note) VALUES (3, 'd')").await, Ok(1));
        release.notify_one();
        assert_eq!(held.await.unwrap(), Ok(1));
        assert_eq!(migrating.await.unwrap().unwrap().len(), 2);
        assert_eq!(usable_indexes(&store).await, INDEXES);
    });
}

/// Applies the migrations with eight processes, of which all but the last are killed at random
/// points.
#[test]
fn processes_killed_while_they_migrate_leave_a_migration_that_completes() {
    testing::block_on(async {
        for round in 0..4_u64 {
            let Some(database) = testing::TestDatabase::create().await else { return };
            let url = format!("{}?max_connections=3", database.url);
            for process in 0..4 {
                let store = Store::open(&url).await.unwrap();
                let migrating = testing::migrate_with(&store, &[FIRST, STEPPED, INDEXED], NOW);
                let until = std::time::Duration::from_millis(3 + 7 * (round + 2 * process));
                drop(tokio::time::timeout(until, migrating).await);
            }
            let store = Store::open(&url).await.unwrap();
            testing::migrate_with(&store, &[FIRST, STEPPED, INDEXED], NOW).await.unwrap();
            assert_eq!(
                (ids(&store).await, usable_indexes(&store).await),
                (Ok(vec![1, 2]), INDEXES.map(str::to_owned).to_vec())
            );
        }
    });
}

#[test]
fn a_table_of_migrations_from_before_steps_is_extended() {
    testing::block_on(async {
        let mut stores = vec![testing::empty_sqlite().await];
        stores.extend(testing::empty_postgres().await);
        for store in stores {
            let old = "CREATE TABLE schema_migrations (
                name TEXT NOT NULL PRIMARY KEY, checksum TEXT NOT NULL, applied_at_ms BIGINT NOT NULL)";
            execute(&store, old).await.unwrap();
            execute(&store, "INSERT INTO schema_migrations VALUES ('t000_old', 'x', 1)").await.unwrap();
            assert_eq!(store.schema().await, Ok(Schema::Older));
            let applied = testing::migrate_with(&store, &[FIRST], NOW).await;
            assert_eq!(applied, Ok(vec!["t001_first".to_owned()]));
            let states = "SELECT name || ' ' || state AS value FROM schema_migrations ORDER BY name";
            let states: Result<Vec<String>, StoreError> = store
                .read((), move |tx, ()| Box::pin(tx.list(states, &[], |row| row.only::<String>())))
                .await;
            assert_eq!(states.unwrap(), ["t000_old applied", "t001_first applied"]);
        }
    });
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
