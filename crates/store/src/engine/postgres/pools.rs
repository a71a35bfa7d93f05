//! The connection pools. Request writes, request reads and workers have one each, so that load of
//! one kind cannot starve another. Migrations and administration have a small pool without
//! statement timeouts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::Workload;
use super::connect_fault::describe_connect;
use super::options::{Options, Statements, Timeouts};
use crate::{PoolStatus, StoreError};

/// The maximum wait of a request for a free connection, short enough to answer before the request's
/// deadline.
const REQUEST_WAIT: Duration = Duration::from_secs(3);
/// The maximum wait for a free connection to a replica. After it, the primary answers.
pub(super) const REPLICA_WAIT: Duration = Duration::from_secs(1);
/// The maximum time of a statement on a replica, short enough for the primary to answer the request
/// after it.
const REPLICA_STATEMENT: Duration = Duration::from_secs(2);
/// The time beyond that after which a replica is considered hung.
const REPLICA_MARGIN: Duration = Duration::from_millis(500);
/// The maximum wait of workers and administration for a free connection.
const WORKER_WAIT: Duration = Duration::from_secs(10);
/// The timeout for a new connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The time for which either side may leave sent bytes unacknowledged before the connection is
/// closed.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// The time after which an idle connection is probed, and the interval between probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// The number of unanswered probes after which the connection is closed.
const KEEPALIVE_RETRIES: u32 = 3;
/// The time beyond the server's own statement timeout after which the server is considered hung.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);
/// The maximum wait of a group for a locked row, because all its members wait. They then run alone,
/// with the timeout of the session.
const GROUP_LOCK: Duration = Duration::from_millis(250);
/// Connections for migrations and administration.
const MAINTENANCE: usize = 2;

/// A pool of connections with the same session settings.
#[derive(Clone)]
pub(super) struct Sessions {
    pub(super) pool: Pool,
    /// The number of connections that callers have got so far.
    pub(super) checkouts: Arc<AtomicU64>,
    /// The maximum time to wait for a statement's answer. A longer wait means that the server or
    /// the network hangs.
    pub(super) answer_timeout: Option<Duration>,
    pub(super) statements: Statements,
    /// The SQL that begins a transaction.
    pub(super) begin: Arc<str>,
    /// The SQL that begins the transaction of a group.
    pub(super) begin_group: Arc<str>,
}

impl Sessions {
    pub(super) fn status(&self, name: &'static str) -> PoolStatus {
        let status = self.pool.status();
        PoolStatus {
            name,
            busy: status.size.saturating_sub(status.available),
            idle: status.available,
            waiting: status.waiting,
            checkouts: self.checkouts.load(Ordering::Relaxed),
        }
    }
}

/// All pools of this process.
pub(super) struct Pools {
    reads: Sessions,
    writes: Sessions,
    workers: Sessions,
    maintenance: Sessions,
    /// The way to the database without a pool.
    outside: (Config, MakeRustlsConnect),
}

/// The access that a unit of work needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PoolAccess {
    Read,
    Write,
}

impl Pools {
    pub(super) fn new(
        config: &Config,
        tls: &MakeRustlsConnect,
        options: &Options,
    ) -> Result<Self, StoreError> {
        let Options { max_connections, timeouts, statements, .. } = *options;
        // Writes wait for locks and for the disk, so they get half of the connections.
        let quarter = (max_connections / 4).max(1);
        let writes = max_connections - 2 * quarter;
        let unlimited = Timeouts { statement: Duration::ZERO, lock: Duration::ZERO, ..timeouts };
        let sessions = |size, timeouts, wait| {
            let pool = pool(config, tls, size, session_settings(timeouts, statements), wait)?;
            Ok::<_, StoreError>(sessions(pool, timeouts, statements))
        };
        Ok(Self {
            reads: sessions(quarter, timeouts, REQUEST_WAIT)?,
            writes: sessions(writes, timeouts, REQUEST_WAIT)?,
            workers: sessions(quarter, timeouts, WORKER_WAIT)?,
            maintenance: sessions(MAINTENANCE, unlimited, WORKER_WAIT)?,
            outside: (config.clone(), tls.clone()),
        })
    }

    /// Returns the pool for a unit of work.
    pub(super) const fn of(&self, workload: Workload, access: PoolAccess) -> &Sessions {
        match (workload, access) {
            (Workload::Requests | Workload::Public | Workload::Groups, PoolAccess::Read) => &self.reads,
            (Workload::Requests | Workload::Public | Workload::Groups, PoolAccess::Write) => &self.writes,
            (Workload::Workers, _) => &self.workers,
            (Workload::Maintenance, _) => &self.maintenance,
        }
    }

    /// The maximum number of concurrent writes of one user: a quarter of the connections for
    /// request writes.
    pub(super) fn units_per_user(&self) -> usize {
        (self.writes.pool.status().max_size / 4).max(1)
    }

    pub(super) fn status(&self) -> Vec<PoolStatus> {
        self.named().into_iter().map(|(name, sessions)| sessions.status(name)).collect()
    }

    /// Returns the pool of this name in [`Self::status`].
    pub(super) fn find(&self, name: &str) -> Option<&Sessions> {
        self.named().into_iter().find(|(of, _)| *of == name).map(|(_, sessions)| sessions)
    }

    fn named(&self) -> [(&'static str, &Sessions); 3] {
        [("reads", &self.reads), ("writes", &self.writes), ("workers", &self.workers)]
    }

    /// Connects to the database outside of the pools, and waits for an answer.
    pub(super) async fn connect_outside(&self) -> Result<(), StoreError> {
        let (config, tls) = &self.outside;
        let refused = |error| StoreError::unavailable(describe_connect(&error));
        let (client, connection) = config.connect(tls.clone()).await.map_err(refused)?;
        // The driver's half of the connection. It ends when the client is dropped.
        tokio::spawn(connection);
        client.simple_query("SELECT 1").await.map_err(refused)?;
        Ok(())
    }

    /// Returns how many connections each pool may have.
    pub(super) fn limits(&self) -> Vec<(&'static str, usize)> {
        let named = [
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("workers", &self.workers),
            ("maintenance", &self.maintenance),
        ];
        named.into_iter().map(|(name, sessions)| (name, sessions.pool.status().max_size)).collect()
    }

    pub(super) fn close(&self) {
        for sessions in [&self.reads, &self.writes, &self.workers, &self.maintenance] {
            sessions.pool.close();
        }
    }
}

/// The driver's configuration for a URL, with defaults for settings that the URL does not contain.
pub(super) fn driver_config(url: &str) -> Result<Config, StoreError> {
    // The parser's message may quote the URL, including the password.
    let mut config: Config = url.parse().map_err(|_| StoreError::driver("the PostgreSQL URL is invalid"))?;
    if config.get_application_name().is_none() {
        config.application_name("foretell");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED);
    }
    // The driver has a default for this setting and cannot report whether the URL contained it.
    if !url.contains("keepalives_idle=") {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
    Ok(config)
}

/// Returns the pool of a replica, which serves only reads of requests.
pub(super) fn of_replica(
    config: &Config,
    tls: &MakeRustlsConnect,
    options: &Options,
) -> Result<Sessions, StoreError> {
    let Options { max_connections, timeouts, statements, .. } = *options;
    let statement = if timeouts.statement.is_zero() { REPLICA_STATEMENT } else { timeouts.statement };
    let timeouts = Timeouts { statement: statement.min(REPLICA_STATEMENT), ..timeouts };
    let settings = session_settings(timeouts, statements);
    let pool = pool(config, tls, max_connections, settings, REPLICA_WAIT)?;
    let sessions = sessions(pool, timeouts, statements);
    Ok(Sessions { answer_timeout: Some(timeouts.statement + REPLICA_MARGIN), ..sessions })
}

fn sessions(pool: Pool, timeouts: Timeouts, statements: Statements) -> Sessions {
    let answer_timeout = (!timeouts.statement.is_zero()).then(|| timeouts.statement + ANSWER_MARGIN);
    let begin = begin(timeouts, statements);
    let begin_group = match timeouts.lock {
        lock if lock.is_zero() || lock > GROUP_LOCK => {
            format!("{begin}; SET LOCAL lock_timeout = {}", GROUP_LOCK.as_millis())
        }
        _ => begin.clone(),
    };
    Sessions {
        pool,
        checkouts: Arc::default(),
        answer_timeout,
        statements,
        begin: begin.into(),
        begin_group: begin_group.into(),
    }
}

fn pool(
    config: &Config,
    tls: &MakeRustlsConnect,
    max_size: usize,
    settings: String,
    wait: Duration,
) -> Result<Pool, StoreError> {
    // `Fast` skips a health check on every checkout. A unit whose connection
    // turns out to be broken runs on another one instead.
    let recycling_method = RecyclingMethod::Fast;
    let manager = Manager::from_config(config.clone(), tls.clone(), ManagerConfig { recycling_method });
    // Settings belong to the session, so they are sent once for each new connection.
    let set = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let settings = settings.clone();
        Box::pin(async move { client.batch_execute(&settings).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(max_size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(wait))
        .create_timeout(Some(CONNECT))
        .recycle_timeout(Some(CONNECT))
        .post_create(set)
        .build()
        .map_err(|e| StoreError::driver(e.to_string()))
}

/// Returns the SQL that begins a transaction. Behind a pooler the limits hold for this transaction,
/// because the next one may get another session, and others may get this one.
fn begin(timeouts: Timeouts, statements: Statements) -> String {
    let begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
    match statements {
        Statements::Named => begin.to_owned(),
        Statements::Unnamed => format!("{begin}; {}", limits("SET LOCAL", timeouts)),
    }
}

/// Returns the statements that limit the time of a session or of a transaction.
fn limits(set: &str, timeouts: Timeouts) -> String {
    let Timeouts { statement, lock, idle_in_transaction } = timeouts;
    let (statement, lock) = (statement.as_millis(), lock.as_millis());
    let idle = idle_in_transaction.as_millis();
    format!(
        "{set} statement_timeout = {statement}; {set} lock_timeout = {lock};
         {set} idle_in_transaction_session_timeout = {idle}"
    )
}

/// The statements that configure a new session.
///
/// The server-side TCP timeout matters if this process is frozen while it receives a large result.
/// Nothing else ends such a transaction, because the server is busy sending. Settings that a server
/// does not support are skipped.
fn session_settings(timeouts: Timeouts, statements: Statements) -> String {
    if statements == Statements::Unnamed {
        // The session belongs to the pooler.
        return String::new();
    }
    let (unacknowledged, probe) = (UNACKNOWLEDGED.as_millis(), KEEPALIVE_IDLE.as_secs());
    let (interval, retries) = (KEEPALIVE_INTERVAL.as_secs(), KEEPALIVE_RETRIES);
    let limits = limits("SET", timeouts);
    format!(
        "{limits};
         SELECT set_config(wanted.name, wanted.value, false) FROM pg_settings known JOIN (VALUES
            ('tcp_user_timeout', '{unacknowledged}'), ('tcp_keepalives_idle', '{probe}'),
            ('tcp_keepalives_interval', '{interval}'), ('tcp_keepalives_count', '{retries}'))
            AS wanted (name, value) ON wanted.name = known.name AND known.context = 'user'"
    )
}
