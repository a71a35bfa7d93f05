//! Public reads use a replica of the database while it is fresh.
//!
//! In most tests the replica is a second database that the test writes to. One test needs a replica of
//! the test cluster, as `scripts/postgres replica` starts one.

use std::time::{Duration, Instant};

use alloy_primitives::B256;
use domain::Timestamp;
use store::sync::{CHAIN_IDENTITY, SyncBlock};
use store::testing::{self, PostgresProxy, ProxyFault, TestDatabase};
use store::{REPLICA_POOL, RemoteTls, Store, StoreError};

/// The environment variable with the URL of a replica of the test cluster.
const REPLICA_URL: &str = "FORETELL_TEST_REPLICA_URL";
const MAX_LAG: Duration = Duration::from_millis(500);
const OPTIONS: &str = "max_connections=3&max_lag_ms=500";

/// A database and the one that it is told to use as its replica.
struct Pair {
    databases: [TestDatabase; 2],
    primary: Store,
    replica: Store,
}

impl Pair {
    async fn create() -> Option<Self> {
        let databases = [TestDatabase::migrated().await?, TestDatabase::migrated().await?];
        let [primary, replica] = &databases;
        let (primary, replica) = (Store::open(&primary.url).await, Store::open(&replica.url).await);
        Some(Self { primary: primary.unwrap(), replica: replica.unwrap(), databases })
    }

    /// Opens the database with its replica.
    async fn open(&self) -> Store {
        self.open_at(&self.databases[1].url, "").await
    }

    async fn open_at(&self, replica: &str, options: &str) -> Store {
        replicated(&self.databases[0].url, &format!("{replica}?{OPTIONS}{options}")).await
    }

    async fn add_block_to_both(&self, number: u64) {
        add_block(&self.primary, number, 1).await;
        add_block(&self.replica, number, 1).await;
    }

    /// Reports whether the replica answers the reads of this handle.
    async fn is_on_replica(&self, store: &Store) -> bool {
        let name = text(store, "SELECT current_database()::text AS value").await.unwrap();
        let [primary, replica] = &self.databases;
        assert!([primary, replica].into_iter().any(|it| name == name_of(it)), "{name}");
        name == name_of(replica)
    }

    async fn until_public_reads_are_on_replica(&self, store: &Store, wanted: bool) {
        until(async || self.is_on_replica(&store.for_public()).await == wanted).await;
    }

    /// Checks that the primary answers every public read, until the replica was compared some times.
    async fn assert_never_on_replica(&self, store: &Store) {
        let until = comparisons(store) + 4;
        while comparisons(store) < until {
            assert!(!self.is_on_replica(&store.for_public()).await);
        }
    }
}

/// Repeats a check until it succeeds.
///
/// # Panics
/// After a minute.
async fn until(check: impl AsyncFn() -> bool) {
    let checked = async { while !check().await {} };
    let checked = tokio::time::timeout(Duration::from_secs(60), checked).await;
    assert!(checked.is_ok(), "the check fails for a minute");
}

fn name_of(database: &TestDatabase) -> &str {
    database.url.rsplit_once('/').unwrap().1
}

async fn replicated(url: &str, read_url: &str) -> Store {
    Store::open_replicated(url, Some(read_url), RemoteTls::Preferred).await.unwrap()
}

/// The number of connections to the replica that were used. Only comparisons use them, unless reads do.
fn comparisons(store: &Store) -> u64 {
    let pools = store.pools();
    pools.iter().find(|pool| pool.name == REPLICA_POOL).unwrap().checkouts
}

async fn text(store: &Store, sql: &'static str) -> Result<String, StoreError> {
    let found = store.read((), move |tx, ()| Box::pin(tx.find(sql, &[], |row| row.only::<String>()))).await;
    found.map(|found| found.unwrap())
}

async fn execute(store: &Store, sql: &'static str) -> u64 {
    store.write((), move |tx, ()| Box::pin(tx.exec(sql, &[]))).await.unwrap()
}

async fn add_block(store: &Store, number: u64, hash: u8) {
    let (hash, at) = (B256::repeat_byte(hash), Timestamp::from_s(1_700_000_000));
    let block = SyncBlock { number, hash, at, logs_digest: None };
    let put = store.write([block], |tx, blocks| Box::pin(store::sync::put(tx, blocks, 0)));
    put.await.unwrap();
}

#[test]
fn only_public_reads_use_the_replica() {
    testing::block_on(async {
        let Some(pair) = Pair::create().await else { return };
        pair.add_block_to_both(1).await;
        let store = pair.open().await;
        pair.until_public_reads_are_on_replica(&store, true).await;
        for handle in [store.clone(), store.for_workers(), store.for_maintenance()] {
            assert!(!pair.is_on_replica(&handle).await);
        }
        // The table does not exist in the replica.
        execute(&store.for_public(), "CREATE TABLE only_here (value TEXT NOT NULL)").await;
        let written = text(&pair.primary, "SELECT COUNT(*)::text AS value FROM only_here").await;
        assert_eq!(written.as_deref(), Ok("0"));
    });
}

#[test]
fn a_replica_is_not_used_once_it_lacks_a_block_for_longer_than_its_limit() {
    testing::block_on(async {
        let Some(pair) = Pair::create().await else { return };
        pair.add_block_to_both(1).await;
        let store = pair.open().await;
        pair.until_public_reads_are_on_replica(&store, true).await;
        let began = Instant::now();
        add_block(&pair.primary, 2, 1).await;
        loop {
            let lag = began.elapsed();
            let is_used = pair.is_on_replica(&store.for_public()).await;
            // The block was stored a moment after `began`.
            let may_be_used = lag <= MAX_LAG + Duration::from_millis(100);
            assert!(!is_used || may_be_used, "the replica lacked a block for {lag:?}");
            // Before the limit it may also be left out because it answered late, and be used again.
            if !may_be_used {
                break;
            }
        }
        pair.assert_never_on_replica(&store).await;
        add_block(&pair.replica, 2, 1).await;
        pair.until_public_reads_are_on_replica(&store, true).await;
    });
}

#[test]
fn a_replica_that_is_behind_at_the_start_is_not_used_until_it_has_caught_up() {
    testing::block_on(async {
        let Some(pair) = Pair::create().await else { return };
        pair.add_block_to_both(1).await;
        add_block(&pair.primary, 2, 1).await;
        let store = pair.open().await;
        pair.assert_never_on_replica(&store).await;
        assert_eq!(store.count_blocks_missing_in_replica().await, Ok(1));
        add_block(&pair.replica, 2, 1).await;
        pair.until_public_reads_are_on_replica(&store, true).await;
        assert_eq!(store.count_blocks_missing_in_replica().await, Ok(0));
    });
}

#[test]
fn a_database_with_other_migrations_is_not_used_as_a_replica() {
    testing::block_on(async {
        let Some(pair) = Pair::create().await else { return };
        pair.add_block_to_both(1).await;
        // As if the replica were another database of the same version.
        execute(&pair.replica, "UPDATE schema_migrations SET applied_at_ms = applied_at_ms + 1").await;
        let store = pair.open().await;
        pair.assert_never_on_replica(&store).await;
        let compared = store.count_blocks_missing_in_replica().await;
        assert!(compared.is_err_and(|error| error.to_string().contains("it has other migrations")));
        execute(&pair.replica, "UPDATE schema_migrations SET applied_at_ms = applied_at_ms - 1").await;
        pair.until_public_reads_are_on_replica(&store, true).await;
        // As if the replica lacked the last step of a migration.
        execute(&pair.primary, "UPDATE schema_migrations SET steps_done = steps_done + 1").await;
        pair.until_public_reads_are_on_replica(&store, false).await;
        pair.assert_never_on_replica(&store).await;
    });
}

#[test]
fn a_database_without_our_tables_is_not_used_as_a_replica() {
    testing::block_on(async {
        let Some(pair) = Pair::create().await else { return };
        let empty = TestDatabase::create().await.unwrap();
        let store = pair.open_at(&empty.url, "").await;
        pair.assert_never_on_replica(&store).await;
    });
}

#[test]
fn a_database_of_another_chain_is_not_used_as_a_replica() {
    testing::block_on(async {
        let Some(pair) = Pair::create().await else { return };
        pair.add_block_to_both(1).await;
        add_block(&pair.primary, 2, 1).await;
        add_block(&pair.replica, 2, 2).await;
        let store = pair.open().await;
        pair.assert_never_on_replica(&store).await;
        add_block(&pair.replica, 2, 1).await;
        pair.until_public_reads_are_on_replica(&store, true).await;
        let renamed = pair
            .replica
            .write("another", |tx, chain| Box::pin(store::sync::put_setting(tx, CHAIN_IDENTITY, chain)));
        renamed.await.unwrap();
        pair.until_public_reads_are_on_replica(&store, false).await;
        pair.assert_never_on_replica(&store).await;
    });
}

#[test]
fn a_read_that_fails_on_the_replica_is_answered_by_the_primary() {
    testing::block_on(async {
        let Some(pair) = Pair::create().await else { return };
        let store = pair.open().await;
        pair.until_public_reads_are_on_replica(&store, true).await;
        execute(&pair.primary, "CREATE TABLE only_here (value TEXT NOT NULL)").await;
        for _ in 0..3 {
            let found = text(&store.for_public(), "SELECT COUNT(*)::text AS value FROM only_here").await;
            assert_eq!(found.as_deref(), Ok("0"));
        }
        pair.until_public_reads_are_on_replica(&store, true).await;
    });
}

#[test]
fn a_replica_that_does_not_answer_delays_a_read_only_shortly() {
    testing::block_on(async {
        let Some(pair) = Pair::create().await else { return };
        let proxy = PostgresProxy::start(&pair.databases[1]).await;
        let store = pair.open_at(&proxy.url, "&statement_timeout_ms=100").await;
        pair.until_public_reads_are_on_replica(&store, true).await;
        proxy.plan("SELECT 'lost'", ProxyFault::TakeNothing, 1);
        let began = Instant::now();
        assert_eq!(text(&store.for_public(), "SELECT 'lost' AS value").await.as_deref(), Ok("lost"));
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
        pair.until_public_reads_are_on_replica(&store, true).await;
    });
}

#[test]
fn a_replica_that_cannot_be_reached_delays_nothing() {
    testing::block_on(async {
        let Some(pair) = Pair::create().await else { return };
        let nowhere = "postgres://postgres@127.0.0.1:1/none";
        let store = replicated(&pair.databases[0].url, nowhere).await;
        for _ in 0..20 {
            assert!(!pair.is_on_replica(&store.for_public()).await);
        }
    });
}

#[test]
fn sqlite_has_no_replica() {
    testing::block_on(async {
        let folder = testing::TestFolder::create();
        let opened =
            Store::open_replicated(&folder.url(), Some("postgres://h/d"), RemoteTls::Preferred).await;
        assert!(opened.is_err_and(|error| error.to_string().contains("only PostgreSQL has replicas")));
    });
}

const IN_RECOVERY: &str = "SELECT pg_is_in_recovery()::text AS value";
const PAUSE: &str = "SELECT pg_wal_replay_pause()::text AS value";
const RESUME: &str = "SELECT pg_wal_replay_resume()::text AS value";
const LAST_BLOCK: &str = "SELECT MAX(number)::text AS value FROM sync_blocks";

#[test]
fn a_streaming_replica_is_used_while_it_replays() {
    testing::block_on(async {
        let Some(replica) = std::env::var(REPLICA_URL).ok().filter(|url| !url.is_empty()) else { return };
        let Some(database) = TestDatabase::migrated().await else { return };
        let name = name_of(&database);
        let read_url = format!("{}/{name}?{OPTIONS}", replica.rsplit_once('/').unwrap().0);
        let store = replicated(&database.url, &read_url).await;
        let public = store.for_public();
        let until_recovery_is = async |wanted: &str| {
            until(async || text(&public, IN_RECOVERY).await.as_deref() == Ok(wanted)).await
        };
        add_block(&store, 1, 1).await;
        until_recovery_is("true").await;
        assert_eq!(text(&store, IN_RECOVERY).await.as_deref(), Ok("false"));
        let copy = Store::open(&read_url).await.unwrap();
        text(&copy, PAUSE).await.unwrap();
        add_block(&store, 2, 1).await;
        until_recovery_is("false").await;
        assert_eq!(text(&public, LAST_BLOCK).await.as_deref(), Ok("2"));
        text(&copy, RESUME).await.unwrap();
        until_recovery_is("true").await;
        assert_eq!(text(&public, LAST_BLOCK).await.as_deref(), Ok("2"));
    });
}
