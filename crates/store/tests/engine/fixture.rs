//! A small schema, and the few operations that the tests use.

use domain::Timestamp;
use store::{BoxFuture, Store, StoreError, Tx, params, testing};

pub const NOW: Timestamp = Timestamp::from_s(1_777_000_000);

const SCHEMA: &[(&str, &str)] = &[(
    "t000_fixture",
    "CREATE TABLE counters (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL, note TEXT, raw BYTES);
     CREATE TABLE items (id TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, slot BIGINT, tag TEXT UNIQUE);
     CREATE UNIQUE INDEX items_owner_slot ON items (owner, slot) WHERE slot IS NOT NULL;",
)];

/// The error of a use case: a rejection of its own, or a store error.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    Rule,
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

pub async fn prepare(store: &Store) {
    testing::migrate_with(store, SCHEMA, NOW).await.unwrap();
}

pub fn insert<'a>(tx: &'a mut Tx, name: &'a str, value: i64) -> BoxFuture<'a, Result<u64, StoreError>> {
    Box::pin(async move {
        tx.exec("INSERT INTO counters (name, value) VALUES ($1, $2)", &params![name, value]).await
    })
}

pub fn add<'a>(tx: &'a mut Tx, name: &'a str, step: i64) -> BoxFuture<'a, Result<u64, StoreError>> {
    Box::pin(async move {
        tx.exec("UPDATE counters SET value = value + $1 WHERE name = $2", &params![step, name]).await
    })
}

pub async fn new_counter(store: &Store, name: &'static str, value: i64) {
    let inserted: Result<u64, StoreError> =
        store.write((), move |tx, ()| Box::pin(async move { insert(tx, name, value).await })).await;
    assert_eq!(inserted, Ok(1));
}

pub async fn value_of(store: &Store, name: &'static str) -> Option<i64> {
    let found: Result<Option<i64>, StoreError> = store
        .read((), move |tx, ()| {
            Box::pin(async move {
                tx.find("SELECT value FROM counters WHERE name = $1", &params![name], |row| row.only::<i64>())
                    .await
            })
        })
        .await;
    found.unwrap()
}

pub async fn count(store: &Store) -> i64 {
    let found: Result<Option<i64>, StoreError> = store
        .read((), |tx, ()| Box::pin(tx.find("SELECT COUNT(*) FROM counters", &[], |row| row.only::<i64>())))
        .await;
    found.unwrap().unwrap()
}
