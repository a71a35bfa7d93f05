//! Fresh databases for tests, and a way to write a test once for both engines.
//!
//! PostgreSQL tests run where `FORETELL_TEST_POSTGRES_URL` names a cluster whose user may create databases, such as
//! `postgres://postgres@127.0.0.1:5432/postgres`; elsewhere they pass without having run.

#![expect(clippy::expect_used, reason = "a test that gets no database fails by panicking")]

mod proxy;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

use domain::Timestamp;
use tokio::runtime;
use tokio_postgres::{Config, NoTls};

use super::{Store, postgres};
use crate::{StoreError, migrate};

pub use proxy::{PostgresProxy, ProxyFault};

/// The variable that names the test cluster.
pub const POSTGRES_URL: &str = "FORETELL_TEST_POSTGRES_URL";

/// When the migrations of test databases were applied.
const MIGRATED_AT: Timestamp = Timestamp::from_s(1_700_000_000);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A SQLite database with all migrations, removed when the last handle to it is dropped.
pub async fn sqlite() -> Store {
    let store = empty_sqlite().await;
    store.migrate(MIGRATED_AT).await.expect("the migrations apply");
    store
}

/// A PostgreSQL database with all migrations, removed when the last handle to it is dropped. `None` where no test
/// cluster is named.
pub async fn postgres() -> Option<Store> {
    let store = empty_postgres().await?;
    store.migrate(MIGRATED_AT).await.expect("the migrations apply");
    Some(store)
}

/// A PostgreSQL database with all migrations behind a proxy, with these options in its URL. `None` where no test cluster
/// is named.
pub async fn proxied_postgres(options: &str) -> Option<(Store, PostgresProxy)> {
    let database = TestDatabase::create().await?;
    let proxy = PostgresProxy::start(&database).await;
    let url = format!("{}?{options}", proxy.url);
    let store = Store::open_with(&url, Some(Box::new(database))).await.expect("a new database opens");
    store.migrate(MIGRATED_AT).await.expect("the migrations apply");
    Some((store, proxy))
}

/// A SQLite database without a schema.
pub async fn empty_sqlite() -> Store {
    let folder = TestFolder::create();
    let url = folder.url();
    Store::open_with(&url, Some(Box::new(folder))).await.expect("a new file opens")
}

/// A copy of a test database as it is now, removed when the last handle to it is dropped. Nothing else may use the
/// database meanwhile; on PostgreSQL its sessions are ended.
///
/// # Panics
/// Where the database cannot be copied.
pub async fn copy(store: &Store) -> Store {
    match &store.inner.driver {
        super::Driver::Sqlite(sqlite) => {
            let folder = TestFolder::create();
            super::backup::copy_sqlite(sqlite.path(), &folder.path().join("test.db"))
                .expect("a file is copied");
            let url = folder.url();
            Store::open_with(&url, Some(Box::new(folder))).await.expect("a copy opens")
        }
        super::Driver::Postgres(_) => {
            let name: Result<Option<String>, StoreError> = store
                .read((), |tx, ()| {
                    Box::pin(tx.find("SELECT current_database()::text", &[], |row| row.text(0)))
                })
                .await;
            let name = name.expect("the database answers").expect("a database has a name");
            let database = TestDatabase::copy_of(&name).await;
            let url = database.url.clone();
            Store::open_with(&url, Some(Box::new(database))).await.expect("a copy opens")
        }
    }
}

/// A PostgreSQL database without a schema.
pub async fn empty_postgres() -> Option<Store> {
    let database = TestDatabase::create().await?;
    let url = database.url.clone();
    Some(Store::open_with(&url, Some(Box::new(database))).await.expect("a new database opens"))
}

/// Applies `migrations` instead of the crate's own.
///
/// # Errors
/// As [`Store::migrate`].
pub async fn migrate_with(
    store: &Store,
    migrations: &[(&'static str, &'static str)],
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    migrate::apply(store, migrations, now).await
}

/// Lets every `developer` key send as many requests as it can, by making it an `enterprise` key that keeps a developer's
/// caps: for services under load, whose load is not what they are tested for.
///
/// # Panics
/// Where the database refuses.
pub async fn lift_request_limits(store: &Store) {
    const SQL: &str = "UPDATE keys SET tier = 'enterprise', requests_per_minute = 1000000000,
        daily_limit_usdc_atomic = 10000000000, per_trade_limit_usdc_atomic = 2500000000 WHERE tier = 'developer'";
    let lifted: Result<u64, StoreError> = store.write((), |tx, ()| Box::pin(tx.exec(SQL, &[]))).await;
    assert!(lifted.expect("the database takes it") > 0, "there is no developer's key");
}

/// Runs a test in a runtime with two threads.
pub fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(test)
}

/// A folder for a SQLite file and its journals.
#[derive(Debug)]
pub struct TestFolder(PathBuf);

impl TestFolder {
    /// A new, empty folder.
    pub fn create() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("foretell-test-{}-{number}", process::id()));
        // Left over from a killed test whose process id came around again.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a temporary folder can be made");
        Self(folder)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The URL of a database in it.
    pub fn url(&self) -> String {
        format!("sqlite:{}", self.0.join("test.db").display())
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A PostgreSQL database of its own in the test cluster.
#[derive(Debug)]
pub struct TestDatabase {
    cluster: String,
    name: String,
    /// Its URL, as [`Store::open`] takes it.
    pub url: String,
}

impl TestDatabase {
    /// A new, empty database; `None` where no test cluster is named.
    pub async fn create() -> Option<Self> {
        Self::create_from("template1").await
    }

    /// A copy of a database of the test cluster, whose sessions are ended for it.
    async fn copy_of(name: &str) -> Self {
        let cluster = env::var(POSTGRES_URL).expect("the database is in the test cluster");
        let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
        command(&cluster, &end).await.expect("sessions are ended");
        // Ended sessions take a moment to leave.
        for _ in 0..100 {
            if let Some(copy) = Self::create_from(name).await {
                return copy;
            }
            command(&cluster, "SELECT pg_sleep(0.02)").await.expect("the cluster answers");
        }
        panic!("{name} is in use");
    }

    /// `None` where no test cluster is named, or the template is in use.
    async fn create_from(template: &str) -> Option<Self> {
        let cluster = env::var(POSTGRES_URL).ok().filter(|url| !url.is_empty())?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("foretell_test_{}_{number}", process::id());
            match command(&cluster, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await {
                Ok(()) => {
                    let url = with_database(&cluster, &name);
                    return Some(Self { cluster, name, url });
                }
                Err(error)
                    if error.code().is_some_and(|code| code.code() == "55006") && template != "template1" =>
                {
                    return None;
                }
                // Left over from a killed test.
                Err(error) if error.code().is_some_and(|code| code.code() == "42P04") => {}
                Err(error) => panic!("the test cluster makes no database: {error:?}"),
            }
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // A test's runtime may be ending, so the removal has one of its own.
        thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = runtime::Builder::new_current_thread().enable_all().build();
                let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
                if let Ok(runtime) = runtime {
                    let _ = runtime.block_on(command(&self.cluster, &drop));
                }
            });
        });
    }
}

async fn command(cluster: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let url = postgres::options::split(cluster).map_or(cluster.to_owned(), |(url, _)| url);
    let config: Config = url.parse()?;
    let (client, connection) = config.connect(NoTls).await?;
    let connection = tokio::spawn(connection);
    let done = client.batch_execute(sql).await;
    drop(client);
    let _ = connection.await;
    done
}

/// `url` with another database's name.
fn with_database(url: &str, name: &str) -> String {
    let (base, options) = url.split_once('?').map_or((url, ""), |(base, options)| (base, options));
    let host = base.find("://").map_or(0, |at| at + 3);
    let base = base[host..].find('/').map_or(base, |at| &base[..host + at]);
    let mark = if options.is_empty() { "" } else { "?" };
    format!("{base}/{name}{mark}{options}")
}

/// Writes each test once and runs it on SQLite and, where a test cluster is named, on PostgreSQL, each time on a
/// fresh database with all migrations: `rule::sqlite` and `rule::postgres`.
///
/// ```text
/// store::on_each_engine! {
///     async fn a_rule_as_a_sentence(store: Store) { .. }
/// }
/// ```
#[macro_export]
macro_rules! on_each_engine {
    ($($(#[$meta:meta])* async fn $name:ident($store:ident: $type:ty) $body:block)*) => {$(
        $(#[$meta])*
        async fn $name($store: $type) $body

        mod $name {
            #[test]
            fn sqlite() {
                $crate::testing::block_on(async { super::$name($crate::testing::sqlite().await).await });
            }

            #[test]
            fn postgres() {
                $crate::testing::block_on(async {
                    if let Some(store) = $crate::testing::postgres().await {
                        super::$name(store).await;
                    }
                });
            }
        }
    )*};
}
