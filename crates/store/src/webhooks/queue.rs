//! The webhook queues: one per key, in the order in which its events were written. Replays are
//! appended.

use std::collections::{BTreeMap, BTreeSet};

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, TradeId, UserId};
use domain::key::Tier;

use super::delivery::{Attempt, DeliveryStatus};
use crate::new_event::NewEvent;
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params, usage};

/// Records each event that is sent to webhooks, and queues it if the key has a URL.
pub(crate) async fn enqueue(tx: &mut Tx, events: &[NewEvent]) -> Result<(), StoreError> {
    const NOTED: &str =
        "INSERT INTO deliveries (event_id, user_id, key_id, kind, trade_id, emitted_at_ms, status,
        attempts, replays)
        SELECT x.event_id, x.user_id, x.key_id, x.kind, x.trade_id, x.emitted_at_ms, x.status, 0, 0
        FROM ROWS($1 TEXT, $2 TEXT, $3 TEXT, $4 TEXT, $5 TEXT, $6 BIGINT, $7 TEXT)
        AS x(event_id, user_id, key_id, kind, trade_id, emitted_at_ms, status)";
    let sent: Vec<(&NewEvent, KeyId)> = events
        .iter()
        .filter(|event| event.kind.is_delivered())
        .filter_map(|event| Some((event, event.key_id?)))
        .collect();
    if sent.is_empty() {
        return Ok(());
    }
    let mut counts: BTreeMap<(UserId, KeyId), (u32, Timestamp)> = BTreeMap::new();
    for (event, key_id) in &sent {
        let (count, at) = counts.entry((event.user_id, *key_id)).or_insert((0, event.at));
        *count += 1;
        *at = event.at.min(*at);
    }
    let lengthened: Vec<_> = counts.iter().map(|((_, key), (count, at))| (*key, *count, *at)).collect();
    let queues = lengthen(tx, &lengthened).await?;
    let mut noted: Vec<Vec<SqlValue<'_>>> = Vec::with_capacity(sent.len());
    let mut queued = Vec::with_capacity(sent.len());
    for (event, key_id) in &sent {
        let status = if queues.contains(key_id) { DeliveryStatus::Pending } else { DeliveryStatus::None };
        let NewEvent { id, user_id, kind, trade_id, at, .. } = event;
        let row = params![*id, *user_id, *key_id, kind.as_str(), *trade_id, *at, status.as_str()];
        noted.push(row.to_vec());
        if queues.contains(key_id)
            && let Some((left, _)) = counts.get_mut(&(*user_id, *key_id))
        {
            // The queue is already extended, so positions count back from its tail.
            *left -= 1;
            queued.push((*key_id, *left, *id, 0, *at));
        }
    }
    tx.queue_rows(NOTED, noted).await?;
    append(tx, &queued).await
}

/// Extends the keys' queues by a number of places, and returns the keys that have a queue: those
/// with a URL. An empty queue becomes due at the given time.
pub(super) async fn lengthen(
    tx: &mut Tx,
    keys: &[(KeyId, u32, Timestamp)],
) -> Result<BTreeSet<KeyId>, StoreError> {
    // A queue that is not empty already has a due time, that of its head.
    const SQL: &str = "INSERT INTO webhook_endpoints (key_id, tail, due_at_ms, held_until_ms, epoch, breaker)
        SELECT k.id, x.count, x.due_at_ms, 0, 0, '' FROM ROWS($1 BIGINT, $2 BIGINT, $3 TEXT) AS x(count, due_at_ms, key_id)
        CROSS JOIN keys k WHERE k.id = x.key_id AND k.webhook_url IS NOT NULL
        ON CONFLICT (key_id) DO UPDATE SET tail = webhook_endpoints.tail + excluded.tail,
        due_at_ms = COALESCE(webhook_endpoints.due_at_ms, excluded.due_at_ms) RETURNING key_id";
    let rows: Vec<_> = keys.iter().map(|(key, count, at)| params![*count, *at, *key].to_vec()).collect();
    Ok(tx.list_rows(SQL, rows, |row| row.only()).await?.into_iter().collect())
}

/// Writes events into the places by which queues were extended. Each entry contains the key, the
/// number of new places after this one, the event, the number of the replay (0 for none), and the
/// start of its attempts.
pub(super) async fn append(
    tx: &mut Tx,
    queued: &[(KeyId, u32, EventId, u32, Timestamp)],
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO webhook_queue (key_id, position, event_id, replay, attempts, began_at_ms)
        SELECT w.key_id, w.tail - x.behind, x.event_id, x.replay, 0, x.began_at_ms
        FROM ROWS($1 BIGINT, $2 TEXT, $3 BIGINT, $4 BIGINT, $5 TEXT) AS x(behind, event_id, replay, began_at_ms, key_id)
        CROSS JOIN webhook_endpoints w WHERE w.key_id = x.key_id";
    let rows: Vec<_> = queued
        .iter()
        .map(|(key, behind, event, replay, at)| params![*behind, *event, *replay, *at, *key].to_vec())
        .collect();
    tx.queue_rows(SQL, rows).await
}

/// Reports whether a queue is due at `now` and not held.
pub async fn has_due(tx: &mut Tx, now: Timestamp) -> Result<bool, StoreError> {
    Ok(find_oldest_due(tx, now).await?.is_some())
}

/// Returns the earliest due time of the queues that are due and not held.
pub async fn find_oldest_due(tx: &mut Tx, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str = "SELECT due_at_ms FROM webhook_endpoints WHERE due_at_ms <= $1 AND held_until_ms <= $1
        ORDER BY due_at_ms LIMIT 1";
    tx.find(SQL, &params![now], |row| row.only()).await
}

/// Returns the number of queues that are due and not held.
pub async fn count_due(tx: &mut Tx, now: Timestamp) -> Result<u64, StoreError> {
    const SQL: &str =
        "SELECT COUNT(*) AS count FROM webhook_endpoints WHERE due_at_ms <= $1 AND held_until_ms <= $1";
    Ok(tx.find(SQL, &params![now], |row| row.only()).await?.unwrap_or(0))
}

/// Returns the due time of the queue with this rank among those that are due and not held, latest
/// due time first.
pub async fn find_due_at(tx: &mut Tx, now: Timestamp, rank: u64) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str = "SELECT due_at_ms FROM webhook_endpoints WHERE due_at_ms <= $1 AND held_until_ms <= $1
        ORDER BY due_at_ms DESC LIMIT 1 OFFSET $2";
    tx.find(SQL, &params![now, SqlValue::try_from(rank)?], |row| row.only()).await
}

/// Returns the number of receivers with waiting events whose circuit breaker is open.
pub async fn count_open_breakers(tx: &mut Tx, now: Timestamp) -> Result<u64, StoreError> {
    const SQL: &str =
        "SELECT COUNT(*) AS count FROM webhook_endpoints WHERE due_at_ms > $1 AND breaker LIKE 'open%'";
    Ok(tx.find(SQL, &params![now], |row| row.only()).await?.unwrap_or(0))
}

/// A sender's hold on a key's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueHold {
    pub key_id: KeyId,
    /// Incremented with every hold of this queue.
    pub epoch: u64,
}

/// Acquires the queues that are due at `now` and not held, longest due first, at most `limit`.
pub async fn claim_due(
    tx: &mut Tx,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<QueueHold>, StoreError> {
    // The conditions are checked again after the row lock, so that two senders never hold the same
    // queue.
    const SQL: &str = "UPDATE webhook_endpoints SET held_until_ms = $1, epoch = epoch + 1
        WHERE key_id IN (SELECT key_id FROM webhook_endpoints WHERE due_at_ms <= $2 AND held_until_ms <= $2
            ORDER BY due_at_ms LIMIT $3)
        AND due_at_ms <= $2 AND held_until_ms <= $2 RETURNING key_id, epoch";
    tx.list(SQL, &params![until, now, limit], |row| {
        Ok(QueueHold { key_id: row.get("key_id")?, epoch: row.get("epoch")? })
    })
    .await
}

record! {
    /// The head of a queue, with everything that is needed to send it.
    #[derive(Clone, PartialEq, Eq)]
    pub struct Job {
        /// The position in the queue.
        pub position: u64 = "q.position",
        /// The user of the key.
        pub user_id: UserId = "k.user_id",
        pub tier: Tier = "k.tier",
        pub event_id: EventId = "q.event_id",
        pub kind: EventKind = "e.kind",
        /// The trade that the event reports, if any.
        pub trade_id: Option<TradeId> = "e.trade_id",
        /// The number of the replay. 0 is the original delivery.
        pub replay: u32 = "q.replay",
        /// The number of attempts so far.
        pub attempts: u32 = "q.attempts",
        /// The time of the event, or of the request for the replay.
        pub began_at: Timestamp = "q.began_at_ms",
        pub body: String = "e.body",
        /// The receiver. `None` if the URL was removed after the event was queued.
        pub url: Option<String> = "k.webhook_url",
        /// The key's secret, sealed.
        pub secret_sealed: String = "k.webhook_secret_sealed",
        /// The previous secret, sealed, and the end of its validity.
        pub previous_secret_sealed: Option<(String, Timestamp)> = ..,
        /// The state of the receiver's circuit breaker.
        pub breaker: String = "w.breaker",
    }
}

/// Omits the URL, which may contain secrets.
impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Job({} of {}, replay {})", self.position, self.event_id, self.replay)
    }
}

/// Returns the head of a held queue. `None` if the queue is empty or another sender holds it now.
pub async fn find_job(tx: &mut Tx, held: QueueHold) -> Result<Option<Job>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Job::COLUMNS,
        " FROM webhook_endpoints w JOIN webhook_queue q ON q.key_id = w.key_id JOIN events e ON e.id = q.event_id
        JOIN keys k ON k.id = w.key_id
        WHERE w.key_id = $1 AND w.epoch = $2 ORDER BY q.position LIMIT 1"
    );
    let bound = params![held.key_id, SqlValue::try_from(held.epoch)?];
    tx.find(SQL, &bound, Job::from_row).await
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    /// The receiver acknowledged the event.
    Delivered,
    /// The event will be retried. It stays at the head, and later events wait.
    Retry,
    /// The event failed permanently.
    Failed,
}

impl AttemptResult {
    /// The events of usage. A last failed attempt counts both as a failed attempt and as a failed
    /// delivery.
    const fn counted_as(self) -> &'static [&'static str] {
        match self {
            Self::Delivered => &[usage::DELIVERED],
            Self::Retry => &[usage::ATTEMPT_FAILED],
            Self::Failed => &[usage::ATTEMPT_FAILED, usage::GIVEN_UP],
        }
    }
}

/// An attempt and its effect on the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub attempt: Attempt,
    pub ending: AttemptResult,
    /// The new state of the receiver's circuit breaker.
    pub breaker: String,
    /// The time at which the queue is due again, if it is not empty.
    pub due_at: Timestamp,
    /// The new end of the hold.
    pub held_until: Timestamp,
}

/// The result of storing an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Now,
    /// An earlier commit of the same attempt, whose answer was lost, has stored it.
    Before,
    /// Another sender holds the queue now. Nothing was stored.
    Lost,
}

/// Stores an attempt and its effects on the delivery, the queue and the endpoint.
pub async fn finish(
    tx: &mut Tx,
    held: QueueHold,
    job: &Job,
    finished: &Finished,
) -> Result<Recorded, StoreError> {
    const LOCK: &str =
        "UPDATE webhook_endpoints SET breaker = $1, held_until_ms = $2 WHERE key_id = $3 AND epoch = $4";
    const TRIED: &str = "UPDATE webhook_queue SET attempts = attempts + 1 WHERE key_id = $1 AND position = $2 AND attempts = $3";
    const DONE: &str = "DELETE FROM webhook_queue WHERE key_id = $1 AND position = $2 AND attempts = $3";
    const DUE: &str = "UPDATE webhook_endpoints SET due_at_ms = CASE WHEN EXISTS
        (SELECT 1 FROM webhook_queue WHERE key_id = $1) THEN CAST($2 AS BIGINT) END WHERE key_id = $1";
    let Finished { attempt, ending, breaker, due_at, held_until } = finished;
    let locked = params![breaker.as_str(), *held_until, held.key_id, SqlValue::try_from(held.epoch)?];
    if tx.exec(LOCK, &locked).await? == 0 {
        return Ok(Recorded::Lost);
    }
    let head = params![held.key_id, SqlValue::try_from(job.position)?, job.attempts];
    if tx.exec(if *ending == AttemptResult::Retry { TRIED } else { DONE }, &head).await? == 0 {
        // Under the epoch that was checked above, only this sender changes the head.
        return Ok(Recorded::Before);
    }
    super::delivery::record(tx, job, attempt, *ending).await?;
    usage::add_delivery(tx, held.key_id, attempt.ended_at(), ending.counted_as()).await?;
    tx.exec(DUE, &params![held.key_id, *due_at]).await?;
    Ok(Recorded::Now)
}

/// Releases a held queue, so that other senders do not wait for the hold to expire. An empty queue
/// is no longer due.
pub async fn let_go(tx: &mut Tx, held: QueueHold) -> Result<(), StoreError> {
    const LOCK: &str = "UPDATE webhook_endpoints SET held_until_ms = 0 WHERE key_id = $1 AND epoch = $2";
    if tx.exec(LOCK, &params![held.key_id, SqlValue::try_from(held.epoch)?]).await? == 0 {
        return Ok(());
    }
    rest_if_empty(tx, held.key_id).await
}

/// Clears the due time of an empty queue. An earlier statement of the transaction must have locked
/// the endpoint's row, because only a statement after that sees everything that was queued before.
pub(super) async fn rest_if_empty(tx: &mut Tx, key_id: KeyId) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE webhook_endpoints SET due_at_ms = NULL WHERE key_id = $1
        AND NOT EXISTS (SELECT 1 FROM webhook_queue WHERE key_id = $1)";
    tx.exec(SQL, &params![key_id]).await.map(drop)
}

/// Ends the hold of a key's queue, because its receiver has changed. What an attempt that is running
/// learns from the former receiver is not stored.
pub async fn end_hold(tx: &mut Tx, key_id: KeyId) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE webhook_endpoints SET epoch = epoch + 1, held_until_ms = 0 WHERE key_id = $1";
    tx.exec(SQL, &params![key_id]).await.map(drop)
}

/// Resets a receiver: closes its circuit breaker, and makes waiting events due now.
pub async fn begin_anew(tx: &mut Tx, key_id: KeyId, now: Timestamp) -> Result<(), StoreError> {
    // An empty queue remains without a due time.
    const SQL: &str = "UPDATE webhook_endpoints SET breaker = '', due_at_ms = CASE WHEN due_at_ms IS NOT NULL
        THEN CAST($1 AS BIGINT) END WHERE key_id = $2";
    tx.exec(SQL, &params![now, key_id]).await?;
    tx.wake_senders();
    Ok(())
}

/// Releases a held queue and makes it due at `until`, without counting an attempt.
pub async fn postpone(tx: &mut Tx, held: QueueHold, until: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE webhook_endpoints SET held_until_ms = 0, due_at_ms = $1 WHERE key_id = $2 AND epoch = $3";
    tx.exec(SQL, &params![until, held.key_id, SqlValue::try_from(held.epoch)?]).await.map(drop)
}

/// Ends every hold. Only for a process that is known to be the only one on this database.
pub async fn end_holds(tx: &mut Tx) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE webhook_endpoints SET held_until_ms = 0 WHERE held_until_ms > 0";
    tx.exec(SQL, &[]).await.map(drop)
}
