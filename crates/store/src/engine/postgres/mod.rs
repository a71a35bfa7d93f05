//! PostgreSQL: a connection pool, with one unit of work per connection.
//!
//! A write runs in its own task, so that it completes even if its caller is dropped. Its connection
//! returns to the pool only after a COMMIT or ROLLBACK was acknowledged. After anything else (an
//! error, a panic, the end of the runtime) it is closed and the server rolls back.
//!
//! A unit is retried at once after a serialization failure, a deadlock, the loss of a prepared
//! statement in a pooler, or a connection loss before its COMMIT. If the connection is lost during
//! the COMMIT, the caller gets `CommitUnknown`.
//!
//! The server limits the time of statements, of lock waits and of idle transactions, so that a
//! process that is frozen in the middle of a unit releases its row locks within seconds.

mod connect_fault;
mod connection;
mod fault;
mod index;
pub(super) mod options;
mod pools;
mod replica;
mod statement;
mod tls;
mod verifier;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

pub(super) use connection::PooledConnection;
pub(crate) use index::IndexStep;
pub use tls::{RemoteTls, SslMode};

use connection::Uncommitted;

use super::changes::Changes;
use super::erased::Erased;
use super::fault::{After, EngineFault};
use super::tx::Conn;
use super::{REPLICA_POOL, Tx, Workload};
use crate::{PoolStatus, RetryReason, StoreError};
use pools::{PoolAccess, Pools, Sessions};
use replica::Replica;

/// Attempts at running a unit before giving up.
const ATTEMPTS: usize = 10;

pub(crate) struct Postgres {
    pools: Pools,
    replica: Option<Arc<Replica>>,
    /// The running writes.
    units: TaskTracker,
    closed: AtomicBool,
    changes: Arc<Changes>,
}

impl Postgres {
    pub(super) async fn open(
        url: &str,
        read_url: Option<&str>,
        remote: RemoteTls,
        changes: Arc<Changes>,
    ) -> Result<Self, StoreError> {
        let replica = read_url.map(|url| replica_of(url, remote)).transpose()?;
        let (url, options) = options::split(url)?;
        let mut config = pools::driver_config(&url)?;
        let tls = options.tls.clone().resolve(&config, remote)?.apply(&mut config)?;
        let pools = Pools::new(&config, &tls, &options)?;
        // Connect once now, so that a wrong address fails at startup and not at the first request.
        drop(PooledConnection::get(pools.of(Workload::Requests, PoolAccess::Read)).await?);
        Ok(Self { pools, replica, units: TaskTracker::new(), closed: AtomicBool::new(false), changes })
    }

    pub(super) fn pools(&self) -> Vec<PoolStatus> {
        let of_replica = self.replica.as_ref().map(|replica| replica.sessions.status(REPLICA_POOL));
        self.pools.status().into_iter().chain(of_replica).collect()
    }

    /// Gets a connection of the pool of this name and waits for an answer on it.
    pub(super) async fn try_pool(&self, name: &str) -> Result<(), StoreError> {
        let no_such_pool = || StoreError::driver(format!("there is no pool {name}"));
        let sessions = self.pools.find(name).ok_or_else(no_such_pool)?;
        let mut conn = PooledConnection::get(sessions).await?;
        match conn.batch("SELECT 1").await {
            Ok(()) => Ok(()),
            Err(fault) => {
                conn.discard();
                Err(fault.error)
            }
        }
    }

    pub(super) async fn connect_outside(&self) -> Result<(), StoreError> {
        self.pools.connect_outside().await
    }

    pub(super) fn pool_limits(&self) -> Vec<(&'static str, usize)> {
        let of_replica = |replica: &Arc<Replica>| (REPLICA_POOL, replica.sessions.pool.status().max_size);
        self.pools.limits().into_iter().chain(self.replica.as_ref().map(of_replica)).collect()
    }

    pub(super) fn units_per_user(&self) -> usize {
        self.pools.units_per_user()
    }

    pub(super) async fn write<I, T, E, F>(&self, workload: Workload, input: I, unit: F) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    {
        if self.closed.load(Ordering::Acquire) {
            return Err(E::from(closed()));
        }
        let sessions = self.pools.of(workload, PoolAccess::Write).clone();
        let begin = match workload {
            Workload::Groups => Arc::clone(&sessions.begin_group),
            _ => Arc::clone(&sessions.begin),
        };
        let sessions = (sessions, begin);
        let task = self.units.spawn(run(sessions, Arc::clone(&self.changes), input, unit).in_current_span());
        // A panic rolls back. A task that was cancelled at the runtime's end may have sent its
        // COMMIT.
        match task.await {
            Ok(outcome) => outcome,
            Err(e) if e.is_panic() => Err(E::from(StoreError::driver("the unit of work panicked"))),
            Err(_) => Err(E::from(StoreError::commit_unknown("the runtime has ended"))),
        }
    }

    pub(super) async fn read<I, T, E, F>(&self, workload: Workload, input: &I, unit: F) -> Result<T, E>
    where
        E: From<StoreError>,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>>,
    {
        let sessions = self.pools.of(workload, PoolAccess::Read);
        if workload == Workload::Public
            && let Some(replica) = &self.replica
            && replica.is_usable(self.pools.of(Workload::Workers, PoolAccess::Read))
            && let Some(outcome) = read_on(replica, input, &unit).await
        {
            return outcome;
        }
        let mut attempt = 1;
        loop {
            let mut tx = Tx::reader(Conn::Postgres(Erased::new(PooledConnection::get(sessions).await?)));
            let outcome = tx.run(input, &unit).await;
            // A read has no effects, so it is safe to repeat it on another connection.
            match tx.failed() {
                Some(after @ (After::Again | After::Unprepared | After::Lost)) if attempt < ATTEMPTS => {
                    retried(&self.changes, after);
                    attempt += 1;
                }
                _ => return outcome,
            }
        }
    }

    pub(super) async fn count_blocks_missing_in_replica(&self) -> Result<u64, StoreError> {
        let replica = self.replica.as_ref().ok_or_else(|| StoreError::driver("there is no replica"))?;
        replica.count_missing_blocks(self.pools.of(Workload::Workers, PoolAccess::Read)).await
    }

    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        // Wait for running writes before the pools are closed under them.
        self.units.close();
        self.units.wait().await;
        self.pools.close();
        if let Some(replica) = &self.replica {
            replica.sessions.pool.close();
        }
    }
}

fn replica_of(url: &str, remote: RemoteTls) -> Result<Arc<Replica>, StoreError> {
    let (url, options) = options::split(url)?;
    let mut config = pools::driver_config(&url)?;
    let tls = options.tls.clone().resolve(&config, remote)?.apply(&mut config)?;
    Ok(Arc::new(Replica::new(pools::of_replica(&config, &tls, &options)?, options.max_lag)))
}

/// Runs a read on the replica. Returns `None` if the replica failed, so that the primary must do it.
async fn read_on<I, T, E, F>(replica: &Replica, input: &I, unit: &F) -> Option<Result<T, E>>
where
    E: From<StoreError>,
    F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>>,
{
    let conn = match replica.connect().await {
        Ok(conn) => conn,
        Err(error) => {
            tracing::warn!(%error, "the replica gave no connection: the primary answers the read");
            replica.suspend();
            return None;
        }
    };
    let mut tx = Tx::reader(Conn::Postgres(Erased::new(conn)));
    let outcome = tx.run(input, unit).await;
    let Some(after) = tx.failed() else { return Some(outcome) };
    tracing::warn!(?after, "a read failed on the replica: the primary answers it");
    // A statement that fails says nothing about other reads: a replica aborts those that would delay
    // it. Only a broken connection does.
    if matches!(after, After::Lost | After::Hung) {
        replica.suspend();
    }
    None
}

/// Runs `unit` until it is committed or has failed.
async fn run<I, T, E, F>(
    (sessions, begin): (Sessions, Arc<str>),
    changes: Arc<Changes>,
    input: I,
    unit: F,
) -> Result<T, E>
where
    E: From<StoreError>,
    F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>>,
{
    let mut attempt = 1;
    // Every pooled connection may be broken after a restart of the server. Try each of them once
    // before giving up.
    let mut may_be_broken = sessions.pool.status().max_size;
    let mut are_statements_lost = false;
    loop {
        let conn = PooledConnection::begin(&sessions, Arc::clone(&begin)).await?;
        if are_statements_lost {
            // Those of the other connections may be lost too.
            conn.forget_statements();
        }
        let mut tx = Tx::writer(Conn::Postgres(Erased::new(conn)));
        let outcome = tx.run(&input, &unit).await;
        match finish(tx, &changes, outcome).await {
            End::Settled(outcome) => return outcome,
            End::Broken if may_be_broken > 0 => may_be_broken -= 1,
            End::Broken => {
                return Err(E::from(StoreError::unavailable("the database closes every connection")));
            }
            End::Again(after) if attempt < ATTEMPTS => {
                retried(&changes, after);
                are_statements_lost |= after == After::Unprepared;
                attempt += 1;
            }
            End::Again(after) => {
                let why = format!("a unit of work was aborted {attempt} times: {}", reason(after));
                return Err(E::from(StoreError::unavailable(why)));
            }
        }
    }
}

/// Returns the protection of the connections to the servers of `url`. `None` if they are all on this
/// machine.
pub(super) fn transport(url: &str, remote: RemoteTls) -> Result<Option<SslMode>, StoreError> {
    let (url, options) = options::split(url)?;
    let config = pools::driver_config(&url)?;
    let tls = options.tls.resolve(&config, remote)?;
    Ok((!tls::is_local(&config)).then_some(tls.mode))
}

enum End<T, E> {
    Settled(Result<T, E>),
    /// The unit was rolled back for this reason, and may run again.
    Again(After),
    /// The connection was closed before the transaction began.
    Broken,
}

async fn finish<T, E: From<StoreError>>(mut tx: Tx, changes: &Changes, outcome: Result<T, E>) -> End<T, E> {
    let (failed, mut touched) = (tx.failed(), tx.take_touched());
    let Conn::Postgres(conn) = tx.conn else { unreachable!("the unit was given a PostgreSQL connection") };
    let mut conn = conn.into_inner();
    let value = match (outcome, failed) {
        // No rollback is needed: dropping the connection closes it.
        (_, Some(After::Lost)) if conn.is_unused() => return End::Broken,
        (_, Some(After::Lost)) => return End::Again(After::Lost),
        // No retry: each attempt could hang just as long.
        (outcome, Some(After::Hung)) => return End::Settled(outcome),
        (_, Some(After::Again)) => {
            conn.rollback().await;
            return End::Again(After::Again);
        }
        (_, Some(After::Unprepared)) => {
            conn.rollback().await;
            return End::Again(After::Unprepared);
        }
        (Err(error), _) => {
            conn.rollback().await;
            return End::Settled(Err(error));
        }
        (Ok(value), _) => value,
    };
    let committed = conn.commit().await;
    if committed.is_err() {
        touched.trades.clear();
    }
    // Also after a failed COMMIT, which may have taken effect.
    changes.tell(touched);
    let error = match committed {
        Ok(()) => return End::Settled(Ok(value)),
        // No retry: the COMMIT may have taken effect before the connection was lost.
        Err(Uncommitted::During(EngineFault { after: After::Lost | After::Hung, error })) => {
            StoreError::commit_unknown(error.to_string())
        }
        Err(Uncommitted::Before(EngineFault { after: After::Lost, .. })) if conn.is_unused() => {
            return End::Broken;
        }
        Err(Uncommitted::Before(EngineFault { after: After::Lost, .. })) => return End::Again(After::Lost),
        Err(Uncommitted::Before(fault) | Uncommitted::During(fault)) => {
            conn.rollback().await;
            if matches!(fault.after, After::Again | After::Unprepared) {
                return End::Again(fault.after);
            }
            fault.error
        }
    };
    End::Settled(Err(E::from(error)))
}

/// Returns why a unit was rolled back.
const fn reason(after: After) -> &'static str {
    match after {
        After::Lost => "the connection was lost",
        After::Unprepared => fault::LOST_STATEMENT,
        _ => "it conflicted with another one",
    }
}

fn retried(changes: &Changes, after: After) {
    let why = match after {
        After::Lost => RetryReason::ConnectionLost,
        After::Unprepared => RetryReason::StatementLost,
        _ => RetryReason::Conflict,
    };
    if let Some(observer) = changes.observer() {
        observer.retried(why);
    }
}

fn closed() -> StoreError {
    StoreError::unavailable("the store is closed")
}
