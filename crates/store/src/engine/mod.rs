//! The two database engines behind one [`Database`], and units of work.
//!
//! A unit of work is a closure over a [`Tx`] and its input. It may run more than once, because
//! PostgreSQL asks for a retry after a deadlock. It must therefore have no side effects outside its
//! `Tx` and await nothing else. A write is committed as a whole or not at all, and runs to
//! completion even if its caller is dropped.
//!
//! Code may rely only on the isolation that both engines give. SQLite runs writes one after the
//! other. PostgreSQL runs them concurrently at READ COMMITTED. A unit that decides based on a
//! row must lock it first with an UPDATE, or decide in the WHERE clause of the UPDATE and check the
//! number of affected rows.

pub mod backup;
mod changes;
pub(crate) mod dialect;
mod erased;
mod fault;
mod postgres;
mod row;
mod rows;
mod sqlite;
mod tx;
mod value;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

pub use dialect::placeholders_in_order;
pub(crate) use postgres::IndexStep;
pub use postgres::{RemoteTls, SslMode};
pub use row::{Cell, FromColumn, Row};
pub(crate) use row::{Columns, not_a};
pub(crate) use tx::RowsRead;
pub use tx::Tx;
pub use value::SqlValue;

use crate::StoreError;
pub(crate) use changes::Changes;
use postgres::Postgres;
use sqlite::Sqlite;

/// The database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One file. Works best with one writing process.
    Sqlite,
    /// A PostgreSQL server, or another server with the same protocol.
    Postgres,
}

/// The connections of one pool of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStatus {
    pub name: &'static str,
    pub busy: usize,
    pub idle: usize,
    /// Callers that wait for a connection.
    pub waiting: usize,
    /// The number of connections that callers have got so far.
    pub checkouts: u64,
}

/// The setting with the identity of the database's chain. A replica has the same.
pub const CHAIN_IDENTITY: &str = "chain.identity";

/// The name of the pool of connections to a replica. Nothing depends on it.
pub const REPLICA_POOL: &str = "replica";

/// The kind of work that a handle does. On PostgreSQL each kind has its own connections, so that
/// load of one kind cannot starve another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Requests from clients.
    Requests,
    /// Requests for public data that may be some seconds old. A replica may answer them.
    Public,
    /// Groups of requests from clients, each in one transaction. They wait only shortly for locked
    /// rows.
    Groups,
    /// The service's background workers.
    Workers,
    /// Migrations and administration, whose statements may take long.
    Maintenance,
}

/// An open database of either engine.
pub(crate) enum Database {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Database {
    /// Opens a database; see [`crate::Store::open`]. Durable writes are reported to `changes`.
    pub(crate) async fn open(
        url: &str,
        read_url: Option<&str>,
        remote: RemoteTls,
        changes: Arc<Changes>,
    ) -> Result<Self, StoreError> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            // Also accepts `sqlite:///path`.
            if read_url.is_some() {
                return Err(StoreError::driver("only PostgreSQL has replicas"));
            }
            Ok(Self::Sqlite(Sqlite::open(path.strip_prefix("//").unwrap_or(path), changes)?))
        } else if is_postgres(url) {
            Ok(Self::Postgres(Box::new(Postgres::open(url, read_url, remote, changes).await?)))
        } else {
            Err(StoreError::driver("a database URL must start with sqlite: or postgres://"))
        }
    }

    pub(crate) const fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    pub(crate) fn units_per_user(&self) -> Option<usize> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(postgres) => Some(postgres.units_per_user()),
        }
    }

    pub(crate) fn pools(&self) -> Vec<PoolStatus> {
        match self {
            Self::Sqlite(_) => Vec::new(),
            Self::Postgres(postgres) => postgres.pools(),
        }
    }

    /// See [`crate::Store::try_pool`].
    pub(crate) async fn try_pool(&self, name: &str) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.check_open(),
            Self::Postgres(postgres) => postgres.try_pool(name).await,
        }
    }

    /// See [`crate::Store::connect_outside`].
    pub(crate) async fn connect_outside(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.check_open(),
            Self::Postgres(postgres) => postgres.connect_outside().await,
        }
    }

    pub(crate) fn pool_limits(&self) -> Vec<(&'static str, usize)> {
        match self {
            Self::Sqlite(_) => Vec::new(),
            Self::Postgres(postgres) => postgres.pool_limits(),
        }
    }

    /// Runs `unit` as one transaction.
    pub(crate) async fn write<I, T, E>(
        &self,
        workload: Workload,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(input, unit).await,
            Self::Postgres(postgres) => postgres.write(workload, input, unit).await,
        }
    }

    /// Runs `unit` on a reader.
    pub(crate) async fn read<I, T, E>(
        &self,
        workload: Workload,
        input: &I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    ) -> Result<T, E>
    where
        I: Sync,
        E: From<StoreError>,
    {
        match self {
            Self::Sqlite(sqlite) => sqlite.read(input, unit),
            Self::Postgres(postgres) => postgres.read(workload, input, unit).await,
        }
    }

    /// Builds an index while others write, as a step of a migration. Returns false if the step was
    /// already done.
    pub(crate) async fn build_index(
        &self,
        index: &IndexStep<'_>,
        attempts: usize,
    ) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(_) => Err(StoreError::driver("SQLite builds an index in a transaction")),
            Self::Postgres(postgres) => postgres.build_index(index, attempts).await,
        }
    }

    /// Checks that work is accepted, as far as a read does not show it: on SQLite a read does not
    /// use the writer thread.
    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.check_open(),
            Self::Postgres(_) => Ok(()),
        }
    }

    /// See [`crate::Store::count_blocks_missing_in_replica`].
    pub(crate) async fn count_blocks_missing_in_replica(&self) -> Result<u64, StoreError> {
        match self {
            Self::Sqlite(_) => Err(StoreError::driver("only PostgreSQL has replicas")),
            Self::Postgres(postgres) => postgres.count_blocks_missing_in_replica().await,
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(sqlite) => sqlite.close().await,
            Self::Postgres(postgres) => postgres.close().await,
        }
    }

    /// See [`crate::Store::check_file`].
    pub(crate) async fn check_file(&self, wait: Duration) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.check_file(wait).await,
            Self::Postgres(_) => Ok(()),
        }
    }

    /// See [`crate::Store::damage`].
    pub(crate) fn damage(&self) -> Option<StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.damage(),
            Self::Postgres(_) => None,
        }
    }

    /// The path of a SQLite database.
    pub(crate) fn sqlite_path(&self) -> Option<&std::path::Path> {
        match self {
            Self::Sqlite(sqlite) => Some(sqlite.path()),
            Self::Postgres(_) => None,
        }
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// Returns the protection of the connections to the database at `url`. `None` if it is on this
/// machine.
///
/// # Errors
/// `Driver` if the URL is invalid.
pub fn transport(url: &str, remote: RemoteTls) -> Result<Option<SslMode>, StoreError> {
    if is_postgres(url) { postgres::transport(url, remote) } else { Ok(None) }
}

/// Removes the service's own options from a PostgreSQL URL.
#[cfg(feature = "test-support")]
pub(crate) fn without_options(url: &str) -> Result<String, StoreError> {
    postgres::options::split(url).map(|(url, _)| url)
}
