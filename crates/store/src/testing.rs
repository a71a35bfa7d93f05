//! Fresh databases for tests, and a macro that runs a test on both engines.
//!
//! PostgreSQL tests run only if `FORETELL_TEST_POSTGRES_URL` contains the URL of a cluster whose
//! user may create databases, such as `postgres://postgres@127.0.0.1:5432/postgres`. Otherwise they
//! pass without running.

#![expect(clippy::expect_used, reason = "a test that gets no database fails by panicking")]

mod proxy;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

use domain::Timestamp;
use tokio::runtime;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, Config, NoTls};

use crate::engine::{Engine, backup, without_options};
use crate::{RemoteTls, Store, StoreError, migrate};

pub use proxy::{Link, PostgresProxy, ProxyFault};

/// The environment variable with the test cluster's URL.
pub const POSTGRES_URL: &str = "FORETELL_TEST_POSTGRES_URL";

/// The environment variable with the URL of a pooler in front of the test cluster. If it is set, tests
/// use their databases through it. Its options are those of the tests' stores.
pub const POOLER_URL: &str = "FORETELL_TEST_POOLER_URL";

/// The time at which the migrations of test databases are recorded as applied.
const MIGRATED_AT: Timestamp = Timestamp::from_s(1_700_000_000);

/// The file of a SQLite database in its folder.
const FILE: &str = "test.db";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Returns a SQLite database with all migrations. It is removed when its last handle is dropped.
pub async fn sqlite() -> Store {
    // The content of its file. Writing it takes much less time than the migrations.
    static TEMPLATE: OnceCell<Vec<u8>> = OnceCell::const_new();
    let template = TEMPLATE.get_or_init(migrated_sqlite).await;
    let folder = TestFolder::create();
    fs::write(folder.path().join(FILE), template).expect("a temporary file is written");
    open_in(folder).await
}

async fn migrated_sqlite() -> Vec<u8> {
    let store = empty_sqlite().await;
    store.migrate(MIGRATED_AT).await.expect("the migrations apply");
    let folder = TestFolder::create();
    let copy = folder.path().join(FILE);
    backup::copy_sqlite(store.sqlite_path().expect("it is in a file"), &copy).expect("a file is copied");
    fs::read(copy).expect("a copy is read")
}

async fn open_in(folder: TestFolder) -> Store {
    let url = folder.url();
    Store::open_with(&url, RemoteTls::Preferred, Some(Box::new(folder))).await.expect("a file opens")
}

/// Returns a PostgreSQL database with all migrations, removed when its last handle is dropped.
/// `None` if no test cluster is configured.
pub async fn postgres() -> Option<Store> {
    let database = TestDatabase::migrated().await?;
    // Tests run beside others, so a statement may take longer than in a service.
    let separator = if database.url.contains('?') { '&' } else { '?' };
    let url = format!("{}{separator}statement_timeout_ms=60000", database.url);
    Some(Store::open_with(&url, RemoteTls::Preferred, Some(Box::new(database))).await.expect("a copy opens"))
}

/// Returns a PostgreSQL database with all migrations behind a proxy, with these options in its URL.
/// `None` if no test cluster is configured.
pub async fn proxied_postgres(options: &str) -> Option<(Store, PostgresProxy)> {
    let database = TestDatabase::migrated().await?;
    let proxy = PostgresProxy::start(&database).await;
    let url = format!("{}?{options}", proxy.url);
    let store =
        Store::open_with(&url, RemoteTls::Preferred, Some(Box::new(database))).await.expect("a copy opens");
    Some((store, proxy))
}

/// Returns a SQLite database without a schema.
pub async fn empty_sqlite() -> Store {
    open_in(TestFolder::create()).await
}

/// Makes a SQLite file with the tables of another program, and returns their names.
///
/// # Panics
/// If the file cannot be written.
pub fn foreign_sqlite(path: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(path).expect("a file opens");
    connection.execute_batch("CREATE TABLE albums (title TEXT)").expect("a table is created");
    tables_of(path)
}

/// Returns the names of the tables in a SQLite file.
///
/// # Panics
/// If the file cannot be read.
pub fn tables_of(path: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(path).expect("a file opens");
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    let mut statement = connection.prepare(names).expect("the file is a database");
    let names = statement.query_map([], |row| row.get(0)).expect("the tables are listed");
    names.map(|name| name.expect("a table has a name")).collect()
}

/// Copies a test database. The copy is removed when its last handle is dropped. The original must
/// not be used meanwhile; on PostgreSQL its sessions are terminated.
///
/// # Panics
/// If the database cannot be copied.
pub async fn copy(store: &Store) -> Store {
    match store.sqlite_path() {
        Some(path) => {
            let folder = TestFolder::create();
            backup::copy_sqlite(path, &folder.path().join(FILE)).expect("a file is copied");
            open_in(folder).await
        }
        None => {
            let name = store
                .read((), |tx, ()| {
                    Box::pin(tx.find("SELECT current_database()::text AS name", &[], |row| {
                        row.get::<String>("name")
                    }))
                })
                .await;
            let name = name.expect("the database answers").expect("a database has a name");
            let database = TestDatabase::copy_of(&name).await;
            let url = database.url.clone();
            Store::open_with(&url, RemoteTls::Preferred, Some(Box::new(database)))
                .await
                .expect("a copy opens")
        }
    }
}

/// Returns a PostgreSQL database without a schema. `None` if no test cluster is configured.
pub async fn empty_postgres() -> Option<Store> {
    let database = TestDatabase::create().await?;
    let url = database.url.clone();
    Some(
        Store::open_with(&url, RemoteTls::Preferred, Some(Box::new(database)))
            .await
            .expect("a new database opens"),
    )
}

/// Applies `migrations` instead of the crate's own.
pub async fn migrate_with(
    store: &Store,
    migrations: &[(&'static str, &'static str)],
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    migrate::apply(store, migrations, now).await
}

/// Applies the first `steps` steps of `migrations`, as if the process were then killed.
pub async fn migrate_steps(
    store: &Store,
    migrations: &[(&'static str, &'static str)],
    now: Timestamp,
    steps: usize,
) -> Result<Vec<String>, StoreError> {
    migrate::apply_steps(store, migrations, now, steps).await
}

/// Removes the request limits of all `developer` keys: makes them `enterprise` keys with a
/// developer's spending caps. For load tests that do not test rate limits.
///
/// # Panics
/// If the update fails or there is no such key.
pub async fn lift_request_limits(store: &Store) {
    const SQL: &str = "UPDATE keys SET tier = 'enterprise', requests_per_minute = 1000000000,
        daily_limit_usdc_atomic = 10000000000, per_trade_limit_usdc_atomic = 2500000000 WHERE tier = 'developer'";
    let lifted = store.write((), |tx, ()| Box::pin(tx.exec(SQL, &[]))).await;
    assert!(lifted.expect("the database takes it") > 0, "there is no developer's key");
}

/// Runs a test in a runtime with two threads.
pub fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(test)
}

/// A temporary folder for a SQLite file and its journals, removed when dropped.
#[derive(Debug)]
pub struct TestFolder(PathBuf);

impl TestFolder {
    /// Creates an empty folder.
    pub fn create() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("foretell-test-{}-{number}", process::id()));
        // Left over from a killed test whose process id was reused.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a temporary folder can be made");
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The URL of a database in this folder.
    pub fn url(&self) -> String {
        format!("sqlite:{}", self.0.join(FILE).display())
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A separate PostgreSQL database in the test cluster, dropped when this value is.
#[derive(Debug)]
pub struct TestDatabase {
    cluster: String,
    name: String,
    /// The URL for [`Store::open`].
    pub url: String,
}

impl TestDatabase {
    /// Creates an empty database. `None` if no test cluster is configured.
    pub async fn create() -> Option<Self> {
        Self::create_from("template1").await
    }

    /// Creates a database with all migrations by copying the cluster's template. `None` if no test
    /// cluster is configured.
    pub async fn migrated() -> Option<Self> {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        let cluster = cluster()?;
        let template = TEMPLATE.get_or_init(|| template_in(&cluster)).await;
        let copy = Self::create_from(template).await;
        Some(copy.expect("nothing uses the template"))
    }

    /// Copies this database. Its sessions are terminated.
    ///
    /// # Panics
    /// If the database is in use.
    pub async fn copy(&self) -> Self {
        Self::copy_of(&self.name).await
    }

    /// Copies a database of the test cluster after terminating its sessions.
    async fn copy_of(name: &str) -> Self {
        let cluster = cluster().expect("the database is in the test cluster");
        let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
        command(&cluster, &end).await.expect("sessions are ended");
        // Terminated sessions take a moment to disappear.
        for _ in 0..100 {
            if let Some(copy) = Self::create_from(name).await {
                return copy;
            }
            command(&cluster, "SELECT pg_sleep(0.02)").await.expect("the cluster answers");
        }
        panic!("{name} is in use");
    }

    /// Returns `None` if no test cluster is configured, or if the template is in use.
    async fn create_from(template: &str) -> Option<Self> {
        let cluster = cluster()?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("foretell_test_{}_{number}", process::id());
            match command(&cluster, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await {
                Ok(()) => {
                    let url = with_database(&pooler().unwrap_or_else(|| cluster.clone()), &name);
                    return Some(Self { cluster, name, url });
                }
                // Object in use.
                Err(error)
                    if error.code().is_some_and(|code| code.code() == "55006") && template != "template1" =>
                {
                    return None;
                }
                // Duplicate name: left over from a killed test. Try the next number.
                Err(error) if error.code().is_some_and(|code| code.code() == "42P04") => {}
                Err(error) => panic!("the test cluster makes no database: {error:?}"),
            }
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // The test's runtime may be shutting down, so the removal uses its own runtime on its own
        // thread.
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

/// Returns the URL of the test cluster. `None` if none is configured.
fn cluster() -> Option<String> {
    env::var(POSTGRES_URL).ok().filter(|url| !url.is_empty())
}

/// Returns the URL of the pooler. `None` if none is configured.
pub fn pooler() -> Option<String> {
    env::var(POOLER_URL).ok().filter(|url| !url.is_empty())
}

/// Returns the name of the cluster's database with all migrations, which is created first if it is
/// missing. It stays in the cluster for later runs, because copying it is much faster than the
/// migrations.
async fn template_in(cluster: &str) -> String {
    let template = format!("foretell_template_{}", migrate::fingerprint(Engine::Postgres));
    if has_database(cluster, &template).await {
        return template;
    }
    let name = format!("{template}_{}", process::id());
    // Left over from a killed run whose process id was reused.
    command(cluster, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        .await
        .expect("the cluster answers");
    command(cluster, &format!("CREATE DATABASE {name}")).await.expect("a database can be created");
    let store = Store::open(&with_database(cluster, &name)).await.expect("a new database opens");
    store.migrate(MIGRATED_AT).await.expect("the migrations apply");
    store.close().await;
    // Renamed after the migrations, so that nobody copies an unfinished template.
    match command(cluster, &format!("ALTER DATABASE {name} RENAME TO {template}")).await {
        Ok(()) => {}
        // Duplicate name: another process was first.
        Err(error) if error.code().is_some_and(|code| code.code() == "42P04") => {
            let _ = command(cluster, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        }
        Err(error) => panic!("the template cannot be renamed: {error:?}"),
    }
    template
}

async fn has_database(cluster: &str, name: &str) -> bool {
    let find =
        async |client: Client| client.query("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]).await;
    !connected(cluster, find).await.expect("the cluster answers").is_empty()
}

async fn command(cluster: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    connected(cluster, async |client: Client| client.batch_execute(sql).await).await
}

/// Calls `act` with a connection to the cluster.
async fn connected<T>(
    cluster: &str,
    act: impl AsyncFnOnce(Client) -> Result<T, tokio_postgres::Error>,
) -> Result<T, tokio_postgres::Error> {
    let url = without_options(cluster).unwrap_or_else(|_| cluster.to_owned());
    let config: Config = url.parse()?;
    let (client, connection) = config.connect(NoTls).await?;
    let connection = tokio::spawn(connection);
    let done = act(client).await;
    let _ = connection.await;
    done
}

/// Replaces the database name in `url`.
fn with_database(url: &str, name: &str) -> String {
    let (base, options) = url.split_once('?').map_or((url, ""), |(base, options)| (base, options));
    let host = base.find("://").map_or(0, |at| at + 3);
    let base = base[host..].find('/').map_or(base, |at| &base[..host + at]);
    let mark = if options.is_empty() { "" } else { "?" };
    format!("{base}/{name}{mark}{options}")
}

/// Runs each test on SQLite and, if a test cluster is configured, on PostgreSQL, each time with a
/// fresh database with all migrations. The generated tests are `rule::sqlite` and `rule::postgres`.
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
