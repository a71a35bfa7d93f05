//! A replica: a copy of the database that follows it, for reads whose data may be some seconds old.
//!
//! The replica is compared with the primary while there are reads for it. It must belong to the same
//! database, and it must have every block that the primary had stored `max_lag` ago. In all other
//! cases the primary answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use const_format::concatcp;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;

use super::super::{CHAIN_IDENTITY, SqlValue};
use super::connection::PooledConnection;
use super::pools::{REPLICA_WAIT, Sessions};
use crate::StoreError;

/// The longest time between two comparisons while there are reads.
const COMPARED_EVERY: Duration = Duration::from_secs(1);

/// The columns that are equal in a database and in its replica. Two databases differ at least in the
/// time of their migrations.
const IDENTITY: &str = concatcp!(
    "(SELECT STRING_AGG(CONCAT_WS(' ', name, checksum, state, steps_done, applied_at_ms), ',' ORDER BY name)
        FROM schema_migrations) AS schema,
     (SELECT value FROM settings WHERE name = '",
    CHAIN_IDENTITY,
    "') AS chain"
);
/// The replica's last block.
const OF_REPLICA: &str = concatcp!(
    "SELECT (SELECT MAX(number) FROM sync_blocks) AS last,
     (SELECT hash FROM sync_blocks ORDER BY number DESC LIMIT 1) AS hash, ",
    IDENTITY
);
/// The primary's last block, and its hash of the block with this number.
const OF_PRIMARY: &str = concatcp!(
    "SELECT (SELECT MAX(number) FROM sync_blocks) AS last,
     (SELECT hash FROM sync_blocks WHERE number = $1) AS hash, ",
    IDENTITY
);

pub(super) struct Replica {
    pub(super) sessions: Sessions,
    max_lag: Duration,
    /// The time after which the replica is compared again.
    compared_every: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The time just before the last finished comparison.
    compared_at: Option<Instant>,
    is_comparing: bool,
    /// A connection has failed since the last comparison.
    is_suspended: bool,
    verdict: Verdict,
    ahead: Ahead,
    /// The time of the first comparison.
    began_at: Option<Instant>,
    /// What the log says about the use of the replica.
    is_used: Option<bool>,
}

/// The result of a comparison.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum Verdict {
    /// The replica may lack blocks of an unknown age.
    #[default]
    Unknown,
    /// The replica lacks no block that is older than this.
    Behind(Duration),
    /// The replica is not one of this database.
    Wrong(&'static str),
    Away(StoreError),
}

/// What a comparison reads on each side.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Position {
    last: Option<i64>,
    /// The hash of the replica's last block.
    hash: Option<String>,
    schema: Option<String>,
    chain: Option<String>,
}

/// The blocks that the primary has and the replica lacks: the last ones of earlier comparisons, each
/// with a time before which the primary did not have it.
#[derive(Debug, Default)]
struct Ahead {
    missing: VecDeque<(i64, Option<Instant>)>,
    compared_at: Option<Instant>,
}

impl Ahead {
    /// Compares the last blocks of both, and returns how far the replica is behind at most. `None` if
    /// it lacks blocks from before the first comparison.
    fn compare(&mut self, primary: i64, replica: i64, now: Instant) -> Option<Duration> {
        // A reorganization may take blocks back.
        self.missing.retain(|(number, _)| (replica + 1..=primary).contains(number));
        if primary > replica && self.missing.back().is_none_or(|(number, _)| *number < primary) {
            // The last comparison did not see this block, so it is newer.
            self.missing.push_back((primary, self.compared_at));
        }
        self.compared_at = Some(now);
        match self.missing.front() {
            None => Some(Duration::ZERO),
            Some((_, since)) => since.map(|since| now.saturating_duration_since(since)),
        }
    }
}

impl Replica {
    pub(super) fn new(sessions: Sessions, max_lag: Duration) -> Self {
        let compared_every = COMPARED_EVERY.min(max_lag / 5);
        Self { sessions, max_lag, compared_every, state: Mutex::default() }
    }

    /// Reports whether the replica can be used now, and starts a comparison if the last one is old.
    /// Nothing waits for it.
    pub(super) fn is_usable(self: &Arc<Self>, primary: &Sessions) -> bool {
        let mut state = self.state.lock();
        let age = state.compared_at.map(|at| at.elapsed());
        if !state.is_comparing && age.is_none_or(|age| age >= self.compared_every) {
            state.is_comparing = true;
            tokio::spawn(Arc::clone(self).compare(primary.clone()));
        }
        let Verdict::Behind(lag) = state.verdict else { return false };
        // The replica may have received nothing since the comparison.
        age.is_some_and(|age| age <= 3 * self.compared_every && lag + age <= self.max_lag)
            && !state.is_suspended
    }

    /// Uses the primary until the next comparison.
    pub(super) fn suspend(&self) {
        self.state.lock().is_suspended = true;
    }

    /// Returns a connection to the replica. Waits only shortly, because the primary can answer.
    pub(super) async fn connect(&self) -> Result<PooledConnection, StoreError> {
        let conn = timeout(REPLICA_WAIT, PooledConnection::get(&self.sessions)).await;
        conn.unwrap_or_else(|_| Err(StoreError::unavailable("the replica accepts no connection in time")))
    }

    /// Compares once. Returns an error if it is not a replica of this database.
    pub(super) async fn count_missing_blocks(&self, primary: &Sessions) -> Result<u64, StoreError> {
        let replica = self.position().await?;
        let primary = position(primary, replica.last).await?;
        if let Some(why) = difference(&primary, &replica) {
            return Err(StoreError::driver(format!("not a replica of this database: {why}")));
        }
        let missing = primary.last.unwrap_or(-1).saturating_sub(replica.last.unwrap_or(-1));
        Ok(u64::try_from(missing).unwrap_or(0))
    }

    async fn compare(self: Arc<Self>, primary: Sessions) {
        let now = Instant::now();
        // The replica first: then the primary has everything that the replica has.
        let positions = match self.position().await {
            Ok(replica) => Ok((position(&primary, replica.last).await, replica)),
            Err(error) => Err(error),
        };
        if self.sessions.pool.is_closed() {
            return;
        }
        let mut state = self.state.lock();
        let verdict = match positions {
            Ok((Ok(primary), replica)) => verdict(&mut state.ahead, &primary, &replica, now),
            // The primary's failure is reported by everything else.
            Ok((Err(_), _)) => Verdict::Unknown,
            Err(error) => Verdict::Away(error),
        };
        state.compared_at = Some(now);
        state.is_comparing = false;
        state.is_suspended = false;
        let began_at = *state.began_at.get_or_insert(now);
        self.report(&mut state, &verdict, now - began_at);
        state.verdict = verdict;
    }

    /// Logs a change of the use of the replica.
    fn report(&self, state: &mut State, verdict: &Verdict, after: Duration) {
        let is_used = matches!(verdict, Verdict::Behind(lag) if *lag <= self.max_lag);
        match verdict {
            _ if is_used && state.is_used != Some(true) => tracing::info!("public reads use the replica"),
            Verdict::Wrong(why) if state.verdict != *verdict => {
                tracing::warn!(why, "not a replica of this database: public reads use the primary");
            }
            Verdict::Away(error) if state.verdict != *verdict => {
                tracing::warn!(%error, "the replica does not answer: public reads use the primary");
            }
            Verdict::Unknown | Verdict::Behind(_) if !is_used && state.is_used != Some(false) => {
                // A new process cannot know yet.
                if state.is_used.is_none() && after <= self.max_lag {
                    return;
                }
                tracing::warn!("the replica is behind: public reads use the primary");
            }
            _ => {}
        }
        state.is_used = Some(is_used);
    }

    async fn position(&self) -> Result<Position, StoreError> {
        let mut conn = self.connect().await?;
        let rows = conn.rows(OF_REPLICA, &[]).await.map_err(|fault| fault.error)?;
        Position::read(rows.first())
    }
}

async fn position(primary: &Sessions, of_block: Option<i64>) -> Result<Position, StoreError> {
    let mut conn = PooledConnection::get(primary).await?;
    let of_block = SqlValue::Int(of_block.unwrap_or(-1));
    let rows = conn.rows(OF_PRIMARY, &[of_block]).await.map_err(|fault| fault.error)?;
    Position::read(rows.first())
}

impl Position {
    fn read(row: Option<&Row>) -> Result<Self, StoreError> {
        let read = |row: &Row| {
            Ok(Self {
                last: row.try_get("last")?,
                hash: row.try_get("hash")?,
                schema: row.try_get("schema")?,
                chain: row.try_get("chain")?,
            })
        };
        let position = row.map(read).and_then(Result::<_, tokio_postgres::Error>::ok);
        position.ok_or_else(|| StoreError::driver("the last block cannot be read"))
    }
}

/// Returns why the replica is not one of this database.
fn difference(primary: &Position, replica: &Position) -> Option<&'static str> {
    if replica.schema != primary.schema {
        Some("it has other migrations")
    } else if replica.chain != primary.chain || replica.hash != primary.hash {
        Some("it has blocks of another chain")
    } else {
        None
    }
}

fn verdict(ahead: &mut Ahead, primary: &Position, replica: &Position, now: Instant) -> Verdict {
    if let Some(why) = difference(primary, replica) {
        return Verdict::Wrong(why);
    }
    match ahead.compare(primary.last.unwrap_or(-1), replica.last.unwrap_or(-1), now) {
        Some(lag) => Verdict::Behind(lag),
        None => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_at_least_the_age_of_the_first_block_that_is_missing() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut ahead = Ahead::default();
        for (now, primary, replica, lag) in [
            // The age of block 10 is unknown.
            (0, 10, 9, None),
            (50, 12, 9, None),
            (99, 12, 10, Some(99)),
            (100, 12, 12, Some(0)),
            (101, 13, 12, Some(1)),
            (103, 15, 12, Some(3)),
            (104, 15, 13, Some(3)),
            (110, 15, 14, Some(9)),
            (111, 16, 16, Some(0)),
            // Without a comparison for an hour, a new block may be an hour old.
            (3711, 18, 16, Some(3600)),
            // The primary took two blocks back.
            (3712, 16, 16, Some(0)),
            (3713, 17, 16, Some(1)),
            (3714, 17, 18, Some(0)),
        ] {
            let expected = lag.map(Duration::from_secs);
            assert_eq!(ahead.compare(primary, replica, at(now)), expected, "at {now}");
        }
    }
}
