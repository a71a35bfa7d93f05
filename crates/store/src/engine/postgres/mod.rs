//! PostgreSQL: a pool of connections, one unit of work on one of them at a time.
//!
//! A write runs in a task of its own, so that it reaches its end when its caller is dropped, and its connection goes
//! back to the pool only after a COMMIT or ROLLBACK was answered; in every other case, an error, a panic, the
//! runtime's end, the connection is closed and the server rolls back. A unit that the server gave up on for others'
//! sake (a serialization failure, a deadlock), or whose connection broke before its COMMIT, is run again at once.

mod connection;
mod fault;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use futures::future::BoxFuture;
use tokio_postgres::{Config, NoTls};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

pub(super) use connection::Connection;

use super::Tx;
use super::changes::Changes;
use super::fault::{After, Fault};
use super::tx::Conn;
use crate::StoreError;

/// Connections in the pool unless the URL says otherwise.
const MAX_CONNECTIONS: usize = 16;

/// How often a unit is run at most.
const ATTEMPTS: usize = 10;

/// How long to wait for a free connection.
const WAIT: Duration = Duration::from_secs(10);

/// How long to wait for the server to take a new connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How long the server may leave sent bytes unacknowledged before the connection counts as broken.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// A PostgreSQL database.
pub(super) struct Postgres {
    pool: Pool,
    /// The writes that are running.
    units: TaskTracker,
    closed: AtomicBool,
    changes: Arc<Changes>,
}

impl Postgres {
    pub(super) async fn open(url: &str, changes: Arc<Changes>) -> Result<Self, StoreError> {
        let (url, max_connections) = split_max_connections(url)?;
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
        let manager =
            Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let pool = Pool::builder(manager)
            .max_size(max_connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(CONNECT))
            .recycle_timeout(Some(CONNECT))
            .build()
            .map_err(|e| StoreError::driver(e.to_string()))?;
        // Asked once here, so that a wrong address is an error of the start and not of the first request.
        drop(Connection::get(&pool).await?);
        Ok(Self { pool, units: TaskTracker::new(), closed: AtomicBool::new(false), changes })
    }

    pub(super) async fn write<I, T, E, F>(&self, input: I, unit: F) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    {
        if self.closed.load(Ordering::Acquire) {
            return Err(E::from(closed()));
        }
        let task = self
            .units
            .spawn(run(self.pool.clone(), Arc::clone(&self.changes), input, unit).in_current_span());
        match task.await {
            Ok(outcome) => outcome,
            Err(e) if e.is_panic() => Err(E::from(StoreError::driver("the unit of work panicked"))),
            Err(_) => Err(E::from(StoreError::unavailable("the runtime has ended"))),
        }
    }

    pub(super) async fn read<I, T, E, F>(&self, input: &I, unit: F) -> Result<T, E>
    where
        E: From<StoreError>,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>>,
    {
        let mut attempt = 1;
        loop {
            let mut tx = Tx::reader(Conn::Postgres(Connection::get(&self.pool).await?));
            let outcome = tx.run(input, &unit).await;
            match tx.failed() {
                Some(After::Again | After::Lost) if attempt < ATTEMPTS => attempt += 1,
                _ => return outcome,
            }
        }
    }

    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.units.close();
        self.units.wait().await;
        self.pool.close();
    }
}

/// Runs `unit` until it is committed or refused.
async fn run<I, T, E, F>(pool: Pool, changes: Arc<Changes>, input: I, unit: F) -> Result<T, E>
where
    E: From<StoreError>,
    F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>>,
{
    let mut attempt = 1;
    loop {
        let mut tx = Tx::writer(Conn::Postgres(Connection::begin(&pool).await?));
        let outcome = tx.run(&input, &unit).await;
        match finish(tx, &changes, outcome).await {
            End::Settled(outcome) => return outcome,
            End::Again if attempt < ATTEMPTS => attempt += 1,
            End::Again => {
                tracing::warn!(attempts = attempt, "a unit of work was given up");
                let why = format!("the database gave up on a unit of work {attempt} times");
                return Err(E::from(StoreError::unavailable(why)));
            }
        }
    }
}

enum End<T, E> {
    Settled(Result<T, E>),
    Again,
}

async fn finish<T, E: From<StoreError>>(mut tx: Tx, changes: &Changes, outcome: Result<T, E>) -> End<T, E> {
    let (failed, touched) = (tx.failed(), tx.take_touched());
    let Conn::Postgres(mut conn) = tx.conn else {
        unreachable!("the unit was given a PostgreSQL connection")
    };
    let value = match (outcome, failed) {
        (_, Some(After::Lost)) => return End::Again,
        (_, Some(After::Again)) => {
            conn.rollback().await;
            return End::Again;
        }
        (Err(error), _) => {
            conn.rollback().await;
            return End::Settled(Err(error));
        }
        (Ok(value), _) => value,
    };
    let committed = conn.commit().await;
    // Also after an error: the COMMIT may have been done.
    changes.tell(touched);
    match committed {
        Ok(()) => End::Settled(Ok(value)),
        Err(Fault { after: After::Again, .. }) => {
            conn.rollback().await;
            End::Again
        }
        // Not run again where the connection broke: the COMMIT may have been done.
        Err(fault) => End::Settled(Err(E::from(fault.error))),
    }
}

/// Takes our own option out of the URL, since the driver refuses options it does not know.
pub(super) fn split_max_connections(url: &str) -> Result<(String, usize), StoreError> {
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), MAX_CONNECTIONS)) };
    let mut max_connections = MAX_CONNECTIONS;
    let mut rest = Vec::new();
    for option in query.split('&') {
        match option.strip_prefix("max_connections=") {
            Some(number) => {
                max_connections = number
                    .parse()
                    .ok()
                    .filter(|number| *number > 0)
                    .ok_or_else(|| StoreError::driver("max_connections is a number from 1"))?;
            }
            None => rest.push(option),
        }
    }
    let rest = rest.join("&");
    Ok((if rest.is_empty() { base.to_owned() } else { format!("{base}?{rest}") }, max_connections))
}

fn closed() -> StoreError {
    StoreError::unavailable("the store is closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_connections_is_taken_out_of_the_url() {
        for (url, rest, number) in [
            ("postgres://h/d", "postgres://h/d", 16),
            ("postgres://h/d?max_connections=3", "postgres://h/d", 3),
            ("postgres://h/d?a=b&max_connections=4&c=d", "postgres://h/d?a=b&c=d", 4),
        ] {
            assert_eq!(split_max_connections(url), Ok((rest.to_owned(), number)));
        }
        assert!(split_max_connections("postgres://h/d?max_connections=0").is_err());
        assert!(split_max_connections("postgres://h/d?max_connections=many").is_err());
    }
}
