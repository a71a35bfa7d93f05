//! The handle to the database.

use std::any::Any;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::ids::{KeyId, MarketId, UserId};
use domain::{Clock, Timestamp};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Notify;

use crate::act::Actor;
use crate::audit_log::{self, AuditContext};
use crate::engine::{Changes, Database, IndexStep, Workload};
use crate::observer::module_of;
use crate::user_log::{self, UserContext};
use crate::{Engine, PoolStatus, REPLICA_POOL, RemoteTls, StoreError, StoreObserver, Tx, events};

/// A handle to the database. Clones share the connections.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// The actor whose actions are logged, if any.
    acting: Option<Acting>,
    /// The kind of connections that units of work use.
    workload: Workload,
}

/// The log that the actions of a store's units of work are written to.
#[derive(Clone)]
enum Acting {
    Operator(Arc<AuditContext>),
    User(Arc<UserContext>),
}

struct Inner {
    database: Database,
    changes: Arc<Changes>,
    /// Resources of a test database. Declared last, so that it is dropped after the database.
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

impl Store {
    /// Opens a database and returns a handle for client requests. See also [`Store::for_workers`]
    /// and [`Store::for_maintenance`].
    ///
    /// The URL has one of these forms:
    ///
    /// - `sqlite:/path/to/file.db`: the file is created if it is missing.
    /// - `postgres://user:password@host/database?max_connections=24`: the host may be a socket
    ///   directory (`%2Fvar%2Frun%2Fpostgresql`). Further options are `statement_timeout_ms`,
    ///   `lock_timeout_ms`, `idle_in_transaction_timeout_ms`, and libpq's `sslmode`, `sslrootcert`,
    ///   `sslcert` and `sslkey`.
    ///
    /// This does not create the schema; see [`Store::migrate`].
    ///
    /// # Errors
    /// `Unavailable` if the database cannot be reached or opened. `Driver` if the URL is invalid.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_over(url, RemoteTls::Preferred).await
    }

    /// Like [`Self::open`], with the default protection of connections to other machines.
    ///
    /// # Errors
    /// The same as [`Self::open`].
    pub async fn open_over(url: &str, remote: RemoteTls) -> Result<Self, StoreError> {
        Self::open_replicated(url, None, remote).await
    }

    /// Like [`Self::open_over`], with a replica of the database at `read_url` for the handles of
    /// [`Self::for_public`]. Nothing depends on the replica: they read from the primary if it does not
    /// answer, if it is not a replica of this database, or if it lacks a block that the primary has
    /// had for more than 5 seconds (`max_lag_ms`).
    ///
    /// # Errors
    /// The same as [`Self::open`].
    pub async fn open_replicated(
        url: &str,
        read_url: Option<&str>,
        remote: RemoteTls,
    ) -> Result<Self, StoreError> {
        let changes = Arc::new(Changes::default());
        let database = Database::open(url, read_url, remote, Arc::clone(&changes)).await?;
        Ok(Self::over(database, changes, None))
    }

    /// Opens a test database, whose resources are released with the last handle.
    #[cfg(feature = "test-support")]
    pub(crate) async fn open_with(
        url: &str,
        remote: RemoteTls,
        guard: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<Self, StoreError> {
        let changes = Arc::new(Changes::default());
        let database = Database::open(url, None, remote, Arc::clone(&changes)).await?;
        Ok(Self::over(database, changes, guard))
    }

    fn over(database: Database, changes: Arc<Changes>, guard: Option<Box<dyn Any + Send + Sync>>) -> Self {
        let inner = Arc::new(Inner { database, changes, _guard: guard });
        Self { inner, acting: None, workload: Workload::Requests }
    }

    /// Returns a handle that writes the actions of `actor` to the audit log, with timestamps from
    /// `clock`.
    #[must_use]
    pub fn acting_as(&self, actor: Actor, clock: Arc<dyn Clock>) -> Self {
        let acting = Acting::Operator(Arc::new(AuditContext { actor, clock }));
        Self { acting: Some(acting), ..self.clone() }
    }

    /// Returns a handle that writes the actions of a user, or of their API key, to the user's log. Of
    /// one action it keeps `max_per_action` entries within 24 hours, and counts further ones.
    #[must_use]
    pub fn acting_as_user(
        &self,
        user_id: UserId,
        ip: IpAddr,
        key_id: Option<KeyId>,
        max_per_action: u64,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let acting = Acting::User(Arc::new(UserContext { user_id, ip, key_id, max_per_action, clock }));
        Self { acting: Some(acting), ..self.clone() }
    }

    /// Reports whether actions are logged.
    pub const fn is_acting(&self) -> bool {
        self.acting.is_some()
    }

    /// Returns a handle for background workers, with connections that client requests cannot use
    /// up.
    #[must_use]
    pub fn for_workers(&self) -> Self {
        Self { workload: Workload::Workers, ..self.clone() }
    }

    /// Returns a handle for public data that may be some seconds old. Its reads may be answered by a
    /// replica, its writes never.
    #[must_use]
    pub fn for_public(&self) -> Self {
        Self { workload: Workload::Public, ..self.clone() }
    }

    /// Returns a handle for long-running work, without statement and lock timeouts.
    #[must_use]
    pub fn for_maintenance(&self) -> Self {
        Self { workload: Workload::Maintenance, ..self.clone() }
    }

    /// Returns a handle for groups of client requests that share a transaction. They wait only
    /// shortly for locked rows, because all members of a group wait.
    #[must_use]
    pub fn for_groups(&self) -> Self {
        Self { workload: Workload::Groups, ..self.clone() }
    }

    /// Reports whether requests should share a transaction. SQLite's writer thread already puts
    /// many units into one commit.
    pub fn profits_from_groups(&self) -> bool {
        self.engine() == Engine::Postgres
    }

    /// The maximum number of concurrent writes of one user, if the engine needs a limit. Each write
    /// holds a connection, and writes of the same user wait for the same rows. SQLite runs one
    /// write at a time anyway.
    pub fn units_per_user(&self) -> Option<usize> {
        self.inner.database.units_per_user()
    }

    /// Runs `unit` with `input` as one transaction, and returns after it is durable. On an `Err` or
    /// a panic everything is rolled back; a panic is reported as `Driver`. Once the unit is queued
    /// or running, it runs to completion even if this future is dropped.
    ///
    /// ```text
    /// store.write(input, |tx, input| Box::pin(async move {
    ///     tx.exec("UPDATE counters SET value = value + $1", &params![input.step]).await
    /// })).await?;
    /// ```
    ///
    /// # Errors
    /// Only after `CommitUnknown` the unit may have been committed. A unit cannot be committed after
    /// one of its statements failed, on either engine: if it returns `Ok` nevertheless, the result
    /// is `Driver`.
    pub async fn write<I, T>(
        &self,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, StoreError>> + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.try_write(input, unit).await
    }

    /// Like [`Self::write`], for a unit that may also fail with an error of its own.
    ///
    /// # Errors
    /// The unit's own error, or a [`StoreError`] converted to `E`.
    pub async fn try_write<I, T, E>(
        &self,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.try_write_as(module_of(&unit), input, unit).await
    }

    /// Like [`Self::try_write`], for a unit inside of another closure: `name` is the module that the
    /// observer sees.
    ///
    /// # Errors
    /// The unit's own error, or a [`StoreError`] converted to `E`.
    pub async fn try_write_as<I, T, E>(
        &self,
        name: &'static str,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let began = Instant::now();
        let unit = completed(erase(input, unit), self.acting.clone());
        let outcome = self.write_erased(unit).await;
        self.observe_unit(name, began);
        restore(outcome)
    }

    /// Runs units of any types with the same code: it is long, and would otherwise be compiled again
    /// for every unit, in the crate of its caller.
    fn write_erased(&self, unit: ErasedUnit) -> BoxFuture<'_, Result<AnyValue, UnitError>> {
        self.inner.database.write(self.workload, (), move |tx, ()| unit(tx)).boxed()
    }

    /// Like [`Self::write_erased`], for a read.
    fn read_erased(&self, unit: ErasedUnit) -> BoxFuture<'_, Result<AnyValue, UnitError>> {
        self.inner.database.read(self.workload, &(), move |tx, ()| unit(tx)).boxed()
    }

    /// Runs `unit` on a reader without a transaction: each statement sees what was committed when
    /// it began. On SQLite the statements run on the caller's thread, so they must be short.
    ///
    /// # Errors
    /// `Driver` if a statement writes.
    pub async fn read<I, T>(
        &self,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, StoreError>> + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.try_read(input, unit).await
    }

    /// Like [`Self::read`], for a unit that may also fail with an error of its own.
    ///
    /// # Errors
    /// The unit's own error, or a [`StoreError`] converted to `E`.
    pub async fn try_read<I, T, E>(
        &self,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (name, began) = (module_of(&unit), Instant::now());
        let outcome = self.read_erased(erase(input, unit)).await;
        self.observe_unit(name, began);
        restore(outcome)
    }

    fn observe_unit(&self, name: &'static str, began: Instant) {
        if let Some(observer) = self.inner.changes.observer() {
            observer.unit(name, began.elapsed());
        }
    }

    /// Reports the store's work to `observer`, unless it has one already.
    pub fn observe(&self, observer: Arc<dyn StoreObserver>) {
        self.inner.changes.observe(observer);
    }

    /// See [`crate::engine::Database::build_index`].
    pub(crate) async fn build_index(
        &self,
        index: &IndexStep<'_>,
        attempts: usize,
    ) -> Result<bool, StoreError> {
        self.inner.database.build_index(index, attempts).await
    }

    /// The version of all visible market data, incremented before any local write that changes such
    /// data is acknowledged. Data that was read at an older version may be stale. Writes of other
    /// processes do not change it.
    pub fn markets_version(&self) -> u64 {
        self.inner.changes.markets_version()
    }

    /// Notified after every local write of events, once it is durable.
    pub fn events_written(&self) -> &Notify {
        self.inner.changes.events_written()
    }

    /// The version of the last local change of one market's visible data.
    pub fn market_version(&self, id: MarketId) -> u64 {
        self.inner.changes.market_version(id)
    }

    pub fn engine(&self) -> Engine {
        self.inner.database.engine()
    }

    /// Returns the state of this process's connection pools. SQLite has none.
    pub fn pools(&self) -> Vec<PoolStatus> {
        self.inner.database.pools()
    }

    /// Gets a connection of one of [`Self::pools`], like a request does, and waits for an answer on it.
    ///
    /// # Errors
    /// `Unavailable` if no connection becomes free or the database does not answer.
    pub async fn try_pool(&self, name: &str) -> Result<(), StoreError> {
        self.inner.database.try_pool(name).await
    }

    /// Connects to the database outside of the pools and waits for an answer.
    ///
    /// # Errors
    /// `Unavailable` if the database accepts no connection or does not answer.
    pub async fn connect_outside(&self) -> Result<(), StoreError> {
        self.inner.database.connect_outside().await
    }

    /// Returns how many connections each pool may have. SQLite has none.
    pub fn pool_limits(&self) -> Vec<(&'static str, usize)> {
        self.inner.database.pool_limits()
    }

    /// Returns whether public reads may go to a replica.
    pub fn has_replica(&self) -> bool {
        self.pools().iter().any(|pool| pool.name == REPLICA_POOL)
    }

    /// Returns the time of the database server's clock. A SQLite database is on this machine, so it has
    /// no clock of its own.
    ///
    /// # Errors
    /// `Unavailable` if the server does not answer.
    pub async fn server_time(&self) -> Result<Option<Timestamp>, StoreError> {
        const SQL: &str = "SELECT CAST(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000 AS BIGINT)";
        match self.engine() {
            Engine::Sqlite => Ok(None),
            Engine::Postgres => self.read((), |tx, ()| Box::pin(tx.find(SQL, &[], |row| row.only()))).await,
        }
    }

    /// Compares the replica with the database, and returns how many blocks it lacks.
    ///
    /// # Errors
    /// `Unavailable` if one of them does not answer. `Driver` if it is not a replica of this database,
    /// or if there is none.
    pub async fn count_blocks_missing_in_replica(&self) -> Result<u64, StoreError> {
        self.inner.database.count_blocks_missing_in_replica().await
    }

    /// Checks that the file of a SQLite database is one of this service and is not damaged. If this
    /// takes longer than `wait`, the check goes on in the background; see [`Self::damage`].
    ///
    /// # Errors
    /// `Damaged` or `Foreign`, or `Unavailable` if the file cannot be read.
    pub async fn check_file(&self, wait: Duration) -> Result<(), StoreError> {
        self.inner.database.check_file(wait).await
    }

    /// Returns the damage that was found in the file of a SQLite database since it was opened.
    pub fn damage(&self) -> Option<StoreError> {
        self.inner.database.damage()
    }

    /// The path of a SQLite database.
    pub fn sqlite_path(&self) -> Option<&std::path::Path> {
        self.inner.database.sqlite_path()
    }

    /// Checks that the database answers and accepts work.
    ///
    /// # Errors
    /// `Unavailable` if it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.inner.database.check_open()?;
        let answered: bool = self.read((), |tx, ()| Box::pin(tx.exists("SELECT 1", &[]))).await?;
        if answered { Ok(()) } else { Err(StoreError::unavailable("a ping found no answer")) }
    }

    /// Rejects new work, waits for accepted work to finish, and closes the connections.
    pub async fn close(&self) {
        self.inner.database.close().await;
    }
}

/// A unit of work with its input, whose types only its caller knows.
type ErasedUnit = Arc<dyn for<'a> Fn(&'a mut Tx) -> BoxFuture<'a, Result<AnyValue, UnitError>> + Send + Sync>;

type AnyValue = Box<dyn Any + Send>;

/// The error of an [`ErasedUnit`].
enum UnitError {
    Store(StoreError),
    Own(AnyValue),
}

impl From<StoreError> for UnitError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn erase<I, T, E>(
    input: I,
    unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
) -> ErasedUnit
where
    I: Send + Sync + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    // An attempt may outlive its caller's future, and there may be several.
    let shared = Arc::new((unit, input));
    Arc::new(move |tx| {
        let shared = Arc::clone(&shared);
        Box::pin(async move {
            let (unit, input) = &*shared;
            match unit(tx, input).await {
                Ok(value) => Ok(Box::new(value) as AnyValue),
                Err(error) => Err(UnitError::Own(Box::new(error))),
            }
        })
    })
}

/// Returns the types of an erased unit's outcome.
fn restore<T, E>(outcome: Result<AnyValue, UnitError>) -> Result<T, E>
where
    T: 'static,
    E: From<StoreError> + 'static,
{
    fn typed<T: 'static>(value: AnyValue) -> T {
        match value.downcast() {
            Ok(value) => *value,
            Err(_) => unreachable!("the value has the type that its unit returned"),
        }
    }
    match outcome {
        Ok(value) => Ok(typed(value)),
        Err(UnitError::Own(error)) => Err(typed(error)),
        Err(UnitError::Store(error)) => Err(E::from(error)),
    }
}

/// Wraps `unit` so that it ends with the entries of its actions, if it has an actor, and with its
/// events. Events are written last because that step locks rows of several users.
fn completed(unit: ErasedUnit, acting: Option<Acting>) -> ErasedUnit {
    Arc::new(move |tx| {
        let (unit, acting) = (Arc::clone(&unit), acting.clone());
        Box::pin(async move {
            let value = unit(tx).await?;
            match acting {
                Some(Acting::Operator(acting)) => audit_log::write_noted(tx, &acting).await?,
                Some(Acting::User(acting)) => user_log::write_noted(tx, &acting).await?,
                None => {}
            }
            events::write_emitted(tx).await?;
            Ok(value)
        })
    })
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.engine()).finish()
    }
}
