//! The pools of connections. Request writes, request reads and workers have one each, so that no kind of load takes the
//! connections that another needs; migrations and administration use a few more without limits on statements.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::{Config, NoTls};

use super::super::Workload;
use super::options::{Options, Timeouts};
use crate::StoreError;

/// How long a request waits for a free connection: short enough to answer before its deadline.
const REQUEST_WAIT: Duration = Duration::from_secs(3);
/// How long everything else waits for one.
const WORKER_WAIT: Duration = Duration::from_secs(10);
/// How long to wait for the server to take a new connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the peer, on either side, may leave sent bytes unacknowledged before the connection counts as broken.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// A silent connection is probed after this time, and then this often.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// This many unanswered probes break the connection.
const KEEPALIVE_RETRIES: u32 = 3;
/// What a statement may take beyond the server's own limit before the server counts as hung.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);
/// Connections for migrations and administration.
const MAINTENANCE: usize = 2;

/// Connections with one kind of session.
#[derive(Clone)]
pub(super) struct Sessions {
    pub(super) pool: Pool,
    /// The longest that the answer to a statement may take; longer means that the server or the network hangs.
    pub(super) answer_timeout: Option<Duration>,
}

/// All pools of a process.
pub(super) struct Pools {
    reads: Sessions,
    writes: Sessions,
    workers: Sessions,
    maintenance: Sessions,
}

/// What a unit of work does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Pools {
    pub(super) fn new(config: &Config, options: Options) -> Result<Self, StoreError> {
        let Options { max_connections, timeouts } = options;
        // Writes wait for locks and for the disk, so they get half of all.
        let quarter = (max_connections / 4).max(1);
        let writes = max_connections - 2 * quarter;
        let unlimited = Timeouts { statement: Duration::ZERO, lock: Duration::ZERO, ..timeouts };
        Ok(Self {
            reads: sessions(config, quarter, timeouts, REQUEST_WAIT)?,
            writes: sessions(config, writes, timeouts, REQUEST_WAIT)?,
            workers: sessions(config, quarter, timeouts, WORKER_WAIT)?,
            maintenance: sessions(config, MAINTENANCE, unlimited, WORKER_WAIT)?,
        })
    }

    /// The connections for a unit of work.
    pub(super) const fn of(&self, workload: Workload, access: Access) -> &Sessions {
        match (workload, access) {
            (Workload::Requests, Access::Read) => &self.reads,
            (Workload::Requests, Access::Write) => &self.writes,
            (Workload::Workers, _) => &self.workers,
            (Workload::Maintenance, _) => &self.maintenance,
        }
    }

    /// How many units of one user may run at once: a quarter of the connections for request writes.
    pub(super) fn units_per_user(&self) -> usize {
        (self.writes.pool.status().max_size / 4).max(1)
    }

    pub(super) fn close(&self) {
        for sessions in [&self.reads, &self.writes, &self.workers, &self.maintenance] {
            sessions.pool.close();
        }
    }
}

/// The driver's configuration for a URL, with our defaults for what it leaves open.
pub(super) fn driver_config(url: &str) -> Result<Config, StoreError> {
    // The parser's own message may quote the URL, and with it the password.
    let mut config: Config =
        url.parse().map_err(|_| StoreError::driver("the PostgreSQL URL is not understood"))?;
    if config.get_application_name().is_none() {
        config.application_name("foretell");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED);
    }
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

fn sessions(
    config: &Config,
    max_size: usize,
    timeouts: Timeouts,
    wait: Duration,
) -> Result<Sessions, StoreError> {
    let recycling_method = RecyclingMethod::Fast;
    let manager = Manager::from_config(config.clone(), NoTls, ManagerConfig { recycling_method });
    let settings = session_settings(timeouts);
    let set = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let settings = settings.clone();
        Box::pin(async move { client.batch_execute(&settings).await.map_err(HookError::Backend) })
    });
    let pool = Pool::builder(manager)
        .max_size(max_size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(wait))
        .create_timeout(Some(CONNECT))
        .recycle_timeout(Some(CONNECT))
        .post_create(set)
        .build()
        .map_err(|e| StoreError::driver(e.to_string()))?;
    let answer_timeout = (!timeouts.statement.is_zero()).then(|| timeouts.statement + ANSWER_MARGIN);
    Ok(Sessions { pool, answer_timeout })
}

/// The statements that prepare a new session.
///
/// The server's own TCP timeout matters for a process that is frozen while it receives a long answer: only this ends a
/// transaction whose next bytes nobody takes. Servers that do not know a TCP setting are left as they are.
fn session_settings(timeouts: Timeouts) -> String {
    let Timeouts { statement, lock, idle_in_transaction } = timeouts;
    let (statement, lock) = (statement.as_millis(), lock.as_millis());
    let idle = idle_in_transaction.as_millis();
    let (unacknowledged, probe) = (UNACKNOWLEDGED.as_millis(), KEEPALIVE_IDLE.as_secs());
    let (interval, retries) = (KEEPALIVE_INTERVAL.as_secs(), KEEPALIVE_RETRIES);
    format!(
        "SET statement_timeout = {statement};
         SET lock_timeout = {lock};
         SET idle_in_transaction_session_timeout = {idle};
         SELECT set_config(wanted.name, wanted.value, false) FROM pg_settings known JOIN (VALUES
            ('tcp_user_timeout', '{unacknowledged}'), ('tcp_keepalives_idle', '{probe}'),
            ('tcp_keepalives_interval', '{interval}'), ('tcp_keepalives_count', '{retries}'))
            AS wanted (name, value) ON wanted.name = known.name AND known.context = 'user'"
    )
}
