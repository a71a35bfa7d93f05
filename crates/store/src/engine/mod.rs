//! The two database engines behind one [`Store`], and the unit of work.
//!
//! A unit of work is a closure over a [`Tx`] and its input. It may run more than once (PostgreSQL asks for a retry
//! after a deadlock), so it must have no effect but on its `Tx`, and it must await nothing but its `Tx`. A write is
//! kept whole or not at all and runs to its end even when its caller is dropped.
//!
//! Isolation is what both engines give. SQLite runs writes one after the other. PostgreSQL runs them side by side
//! at READ COMMITTED: a unit that reads and then decides must first take the row with an UPDATE, or decide inside
//! the UPDATE by its WHERE clause and look at the affected rows.

pub mod backup;
mod changes;
mod dialect;
mod fault;
mod postgres;
mod row;
mod sqlite;
#[cfg(feature = "test-support")]
pub mod testing;
mod tx;
mod value;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use domain::Clock;
use domain::ids::MarketId;
use futures::future::BoxFuture;
use tokio::sync::Notify;

pub(crate) use dialect::for_engine;
pub use dialect::placeholders_in_order;
pub use row::Row;
pub use tx::Tx;
pub use value::Value;

use crate::StoreError;
use crate::audit_log::{Acting, Actor};
use changes::Changes;
use postgres::Postgres;
use sqlite::Sqlite;

/// Which database holds the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One file, one writing process at its best.
    Sqlite,
    /// A PostgreSQL server, or a relative that speaks its protocol.
    Postgres,
}

/// Whose work a handle does. On PostgreSQL each kind has connections of its own, so that no load takes those that
/// another kind needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Requests of clients.
    Requests,
    /// The service's own workers.
    Workers,
    /// Migrations and administration, whose statements may take long.
    Maintenance,
}

/// A handle to the database. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// The actor for whom this handle writes, if the audit log is to know of it.
    acting: Option<Arc<Acting>>,
    /// Whose connections its units of work use.
    workload: Workload,
}

struct Inner {
    driver: Driver,
    changes: Arc<Changes>,
    /// Dropped after the driver: what a test's database needs to be removed.
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

enum Driver {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Store {
    /// Opens the database named by `url`, `sqlite:/path/to/file.db` (created if missing) or
    /// `postgres://user:password@host/database?max_connections=24`. The host may be a socket's directory
    /// (`%2Fvar%2Frun%2Fpostgresql`). Further options are `statement_timeout_ms`, `lock_timeout_ms` and
    /// `idle_in_transaction_timeout_ms`. The schema is brought about by [`Store::migrate`].
    ///
    /// The handle does the work of requests; see [`Store::for_workers`] and [`Store::for_maintenance`].
    ///
    /// # Errors
    /// `Unavailable` when the database cannot be reached or opened, `Driver` when the URL is not understood.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_with(url, None).await
    }

    async fn open_with(url: &str, guard: Option<Box<dyn Any + Send + Sync>>) -> Result<Self, StoreError> {
        let changes = Arc::new(Changes::default());
        let driver = if let Some(path) = url.strip_prefix("sqlite:") {
            Driver::Sqlite(Sqlite::open(path.strip_prefix("//").unwrap_or(path), Arc::clone(&changes))?)
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Driver::Postgres(Postgres::open(url, Arc::clone(&changes)).await?)
        } else {
            return Err(StoreError::driver("a store's URL starts with sqlite: or postgres://"));
        };
        let inner = Arc::new(Inner { driver, changes, _guard: guard });
        Ok(Self { inner, acting: None, workload: Workload::Requests })
    }

    /// The same database for `actor`: acts that units of work note are written to the audit log, dated by `clock`.
    #[must_use]
    pub fn acting_as(&self, actor: Actor, clock: Arc<dyn Clock>) -> Self {
        Self { acting: Some(Arc::new(Acting { actor, clock })), ..self.clone() }
    }

    /// Whether acts are written to the audit log.
    pub const fn is_acting(&self) -> bool {
        self.acting.is_some()
    }

    /// The same database for the service's own workers, whose connections no load of requests takes.
    #[must_use]
    pub fn for_workers(&self) -> Self {
        Self { workload: Workload::Workers, ..self.clone() }
    }

    /// The same database for work whose statements may take long: neither they nor their waits for locks are limited.
    #[must_use]
    pub fn for_maintenance(&self) -> Self {
        Self { workload: Workload::Maintenance, ..self.clone() }
    }

    /// How many writes of one user may run at once, if the engine needs a bound: each holds a connection, and they wait
    /// for each other's rows. SQLite runs one write after the other in any case.
    pub fn units_per_user(&self) -> Option<usize> {
        match &self.inner.driver {
            Driver::Sqlite(_) => None,
            Driver::Postgres(postgres) => Some(postgres.units_per_user()),
        }
    }

    /// Runs `unit` with `input` as one transaction and answers after it is durable. An `Err` keeps nothing, and so
    /// does a panic, which is answered as `Driver`. Once this future was polled and the unit is on its way, it runs
    /// to its end even if the future is dropped.
    ///
    /// ```text
    /// store.write(input, |tx, input| Box::pin(async move {
    ///     tx.exec("UPDATE counters SET value = value + $1", &params![input.step]).await
    /// })).await?;
    /// ```
    ///
    /// # Errors
    /// What the unit answers, or a [`StoreError`] as an `E`; only after `CommitUnknown` the unit may have been kept.
    /// After a statement failed the unit cannot be kept on either engine: an `Ok` that hides it is answered as
    /// `Driver`.
    pub async fn write<I, T, E>(
        &self,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let unit = acting(self.acting.clone(), unit);
        match &self.inner.driver {
            Driver::Sqlite(sqlite) => sqlite.write(input, unit).await,
            Driver::Postgres(postgres) => postgres.write(self.workload, input, unit).await,
        }
    }

    /// Runs `unit` on a reader. Each statement sees what was committed when it began; there is no transaction
    /// around them. On SQLite the statements run on the caller's thread, so they must be bounded.
    ///
    /// # Errors
    /// What the unit answers, or a [`StoreError`] as an `E`; `Driver` for a statement that writes.
    pub async fn read<I, T, E>(
        &self,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match &self.inner.driver {
            Driver::Sqlite(sqlite) => sqlite.read(&input, unit),
            Driver::Postgres(postgres) => postgres.read(self.workload, &input, unit).await,
        }
    }

    /// Grows before any write of this process that changes what is shown of markets is answered. What was read of them
    /// at an older version may be old; other processes' writes do not show in it.
    pub fn markets_version(&self) -> u64 {
        self.inner.changes.markets_version()
    }

    /// Signals every write of this process that has written events, once it is durable.
    pub fn events_written(&self) -> &Notify {
        self.inner.changes.events_written()
    }

    /// The version of the markets at which this process last changed what is shown of this one.
    pub fn market_version(&self, id: MarketId) -> u64 {
        self.inner.changes.market_version(id)
    }

    /// Which database holds the data.
    pub fn engine(&self) -> Engine {
        match self.inner.driver {
            Driver::Sqlite(_) => Engine::Sqlite,
            Driver::Postgres(_) => Engine::Postgres,
        }
    }

    /// Whether the database answers and takes work.
    ///
    /// # Errors
    /// `Unavailable` when it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        if let Driver::Sqlite(sqlite) = &self.inner.driver {
            sqlite.check_open()?;
        }
        let found = self.read((), |tx, ()| Box::pin(tx.find("SELECT 1", &[], |row| row.int(0)))).await?;
        found.map(|_| ()).ok_or_else(|| StoreError::unavailable("a ping found no answer"))
    }

    /// Refuses new work, waits until the work that was taken on is done, and closes the connections.
    pub async fn close(&self) {
        match &self.inner.driver {
            Driver::Sqlite(sqlite) => sqlite.close().await,
            Driver::Postgres(postgres) => postgres.close().await,
        }
    }
}

/// `unit`, run for an actor.
fn acting<I, T, E>(
    acting: Option<Arc<Acting>>,
    unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
) -> impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static {
    move |tx, input| {
        tx.act_for(acting.clone());
        unit(tx, input)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.engine()).finish()
    }
}
