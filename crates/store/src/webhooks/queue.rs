//! The queues: one for each key, in the order in which its events were written, replays behind them.

use std::collections::{BTreeMap, BTreeSet};

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, TradeId, UserId};

use super::delivery::{Attempt, DeliveryStatus};
use crate::events::NewEvent;
use crate::{Row, StoreError, Tx, Value, params, usage};

/// Notes each event that keys are sent, and queues it where the key has a URL.
pub(crate) async fn enqueue(tx: &mut Tx, events: &[NewEvent]) -> Result<(), StoreError> {
    const NOTED: &str =
        "INSERT INTO deliveries (event_id, user_id, key_id, kind, trade_id, emitted_at_ms, status,
        attempts, replays) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0)";
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
    let mut noted: Vec<Vec<Value<'_>>> = Vec::with_capacity(sent.len());
    let mut queued = Vec::with_capacity(sent.len());
    for (event, key_id) in &sent {
        let status = if queues.contains(key_id) { DeliveryStatus::Pending } else { DeliveryStatus::None };
        let NewEvent { id, user_id, kind, trade_id, at, .. } = event;
        let row = params![*id, *user_id, *key_id, kind.as_str(), *trade_id, *at, status.as_str()];
        noted.push(row.to_vec());
        if queues.contains(key_id)
            && let Some((left, _)) = counts.get_mut(&(*user_id, *key_id))
        {
            *left -= 1;
            queued.push((*key_id, *left, *id, 0, *at));
        }
    }
    tx.exec_each(NOTED, &noted).await?;
    append(tx, &queued).await
}

/// Makes the keys' queues longer by so many; which of them there are: a key without a URL has none. An empty queue is due
/// from the given time on.
pub(super) async fn lengthen(
    tx: &mut Tx,
    keys: &[(KeyId, u32, Timestamp)],
) -> Result<BTreeSet<KeyId>, StoreError> {
    const SQL: &str = "INSERT INTO webhook_endpoints (key_id, tail, due_at_ms, held_until_ms, epoch, breaker)
        SELECT id, $1, $2, 0, 0, '' FROM keys WHERE id = $3 AND webhook_url IS NOT NULL
        ON CONFLICT (key_id) DO UPDATE SET tail = webhook_endpoints.tail + excluded.tail,
        due_at_ms = COALESCE(webhook_endpoints.due_at_ms, excluded.due_at_ms)";
    let rows: Vec<_> = keys.iter().map(|(key, count, at)| params![*count, *at, *key].to_vec()).collect();
    let lengthened = tx.exec_each(SQL, &rows).await?;
    Ok(keys.iter().zip(lengthened).filter(|(_, rows)| *rows == 1).map(|((key, ..), _)| *key).collect())
}

/// Puts events into queues that were made longer for them: the key, how many of the new places are behind it, the event,
/// which replay of it (0 for none), and when its attempts begin.
pub(super) async fn append(
    tx: &mut Tx,
    queued: &[(KeyId, u32, EventId, u32, Timestamp)],
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO webhook_queue (key_id, position, event_id, replay, attempts, began_at_ms)
        SELECT key_id, tail - $1, $2, $3, 0, $4 FROM webhook_endpoints WHERE key_id = $5";
    let rows: Vec<_> = queued
        .iter()
        .map(|(key, behind, event, replay, at)| params![*behind, *event, *replay, *at, *key].to_vec())
        .collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Whether a queue is due at `now` and held by nobody.
pub async fn has_due(tx: &mut Tx, now: Timestamp) -> Result<bool, StoreError> {
    Ok(find_oldest_due(tx, now).await?.is_some())
}

/// Since when the queue has been due that nobody holds and that has been due for longest.
pub async fn find_oldest_due(tx: &mut Tx, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str = "SELECT due_at_ms FROM webhook_endpoints WHERE due_at_ms <= $1 AND held_until_ms <= $1
        ORDER BY due_at_ms LIMIT 1";
    tx.find(SQL, &params![now], |row| row.timestamp(0)).await
}

/// A sender's hold on a key's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The key.
    pub key_id: KeyId,
    /// The number of this hold.
    pub epoch: u64,
}

/// Takes the queues that are due at `now` and held by nobody, the longest due first, at most `limit`.
pub async fn claim_due(
    tx: &mut Tx,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<Held>, StoreError> {
    const SQL: &str = "UPDATE webhook_endpoints SET held_until_ms = $1, epoch = epoch + 1
        WHERE key_id IN (SELECT key_id FROM webhook_endpoints WHERE due_at_ms <= $2 AND held_until_ms <= $2
            ORDER BY due_at_ms LIMIT $3)
        AND due_at_ms <= $2 AND held_until_ms <= $2 RETURNING key_id, epoch";
    tx.list(SQL, &params![until, now, limit], |row| Ok(Held { key_id: row.parse(0)?, epoch: row.number(1)? }))
        .await
}

/// What stands at the head of a queue, with all that sending it takes.
#[derive(Clone, PartialEq, Eq)]
pub struct Job {
    /// Its place.
    pub position: u64,
    /// The event.
    pub event_id: EventId,
    /// What it tells.
    pub kind: EventKind,
    /// The trade it tells of.
    pub trade_id: Option<TradeId>,
    /// Which replay it is; 0 is the event itself.
    pub replay: u32,
    /// How many attempts of it there were.
    pub attempts: u32,
    /// When its attempts began: when it happened, or was asked for again.
    pub began_at: Timestamp,
    /// Its body.
    pub body: String,
    /// Where it goes; nowhere, when the URL was taken away.
    pub url: Option<String>,
    /// The key's secret, sealed.
    pub secret_sealed: String,
    /// The secret before it, sealed, and until when it signs too.
    pub previous_secret_sealed: Option<(String, Timestamp)>,
    /// What is known of the receiver's health.
    pub breaker: String,
}

/// The URL may hold what its owner would not like to see in a log.
impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Job({} of {}, replay {})", self.position, self.event_id, self.replay)
    }
}

/// The head of a held queue; none where it is empty, or held by another by now.
pub async fn find_job(tx: &mut Tx, held: Held) -> Result<Option<Job>, StoreError> {
    const SQL: &str = "SELECT q.position, q.event_id, e.kind, e.trade_id, q.replay, q.attempts, q.began_at_ms, e.body,
        k.webhook_url, k.webhook_secret_sealed, k.previous_webhook_secret_sealed, k.previous_webhook_secret_until_ms,
        w.breaker
        FROM webhook_endpoints w JOIN webhook_queue q ON q.key_id = w.key_id JOIN events e ON e.id = q.event_id
        JOIN keys k ON k.id = w.key_id
        WHERE w.key_id = $1 AND w.epoch = $2 ORDER BY q.position LIMIT 1";
    let bound = params![held.key_id, Value::try_from(held.epoch)?];
    tx.find(SQL, &bound, |row: &Row<'_>| {
        Ok(Job {
            position: row.number(0)?,
            event_id: row.parse(1)?,
            kind: row.parse(2)?,
            trade_id: row.opt_parse(3)?,
            replay: row.number(4)?,
            attempts: row.number(5)?,
            began_at: row.timestamp(6)?,
            body: row.text(7)?,
            url: row.opt_text(8)?,
            secret_sealed: row.text(9)?,
            previous_secret_sealed: row.opt_text(10)?.zip(row.opt_timestamp(11)?),
            breaker: row.text(12)?,
        })
    })
    .await
}

/// What becomes of the head of a queue after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It was acknowledged.
    Delivered,
    /// It is tried again; it keeps its place, and the ones behind it wait.
    Retry,
    /// It is given up.
    Failed,
}

/// An attempt and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The attempt.
    pub attempt: Attempt,
    /// What becomes of the event.
    pub ending: Ending,
    /// What is known of the receiver's health from now on.
    pub breaker: String,
    /// When the queue is due again, if anything is left in it.
    pub due_at: Timestamp,
    /// Until when it is held.
    pub held_until: Timestamp,
}

/// Writes an attempt and what follows from it: the attempt, the event's record, the queue and the endpoint. False where the
/// queue is held by another by now: nothing was written.
pub async fn finish(tx: &mut Tx, held: Held, job: &Job, finished: &Finished) -> Result<bool, StoreError> {
    const LOCK: &str =
        "UPDATE webhook_endpoints SET breaker = $1, held_until_ms = $2 WHERE key_id = $3 AND epoch = $4";
    const TRIED: &str =
        "UPDATE webhook_queue SET attempts = attempts + 1 WHERE key_id = $1 AND position = $2";
    const DONE: &str = "DELETE FROM webhook_queue WHERE key_id = $1 AND position = $2";
    const DUE: &str = "UPDATE webhook_endpoints SET due_at_ms = CASE WHEN EXISTS
        (SELECT 1 FROM webhook_queue WHERE key_id = $1) THEN CAST($2 AS BIGINT) END WHERE key_id = $1";
    let Finished { attempt, ending, breaker, due_at, held_until } = finished;
    let locked = params![breaker.as_str(), *held_until, held.key_id, Value::try_from(held.epoch)?];
    if tx.exec(LOCK, &locked).await? == 0 {
        return Ok(false);
    }
    let place = params![held.key_id, Value::try_from(job.position)?];
    let gone = tx.exec(if *ending == Ending::Retry { TRIED } else { DONE }, &place).await? == 0;
    if gone {
        return Err(StoreError::missing("webhook_queue"));
    }
    super::delivery::record(tx, job, attempt, *ending).await?;
    usage::add_delivery(tx, held.key_id, attempt.ended_at(), *ending).await?;
    tx.exec(DUE, &params![held.key_id, *due_at]).await?;
    Ok(true)
}

/// Gives a held queue back, so that nobody waits for the hold's end. A queue in which nothing is left is not due.
pub async fn let_go(tx: &mut Tx, held: Held) -> Result<(), StoreError> {
    const LOCK: &str = "UPDATE webhook_endpoints SET held_until_ms = 0 WHERE key_id = $1 AND epoch = $2";
    if tx.exec(LOCK, &params![held.key_id, Value::try_from(held.epoch)?]).await? == 0 {
        return Ok(());
    }
    rest_if_empty(tx, held.key_id).await
}

/// Takes the due time from a queue in which nothing is left. The endpoint's row must be locked by a statement before: only
/// the next one sees what was queued until then.
pub(super) async fn rest_if_empty(tx: &mut Tx, key_id: KeyId) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE webhook_endpoints SET due_at_ms = NULL WHERE key_id = $1
        AND NOT EXISTS (SELECT 1 FROM webhook_queue WHERE key_id = $1)";
    tx.exec(SQL, &params![key_id]).await.map(drop)
}

/// Begins anew with a receiver: nothing is held against it, and what waits for it is due now.
pub async fn begin_anew(tx: &mut Tx, key_id: KeyId, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE webhook_endpoints SET breaker = '', due_at_ms = CASE WHEN due_at_ms IS NOT NULL
        THEN CAST($1 AS BIGINT) END WHERE key_id = $2";
    tx.exec(SQL, &params![now, key_id]).await?;
    tx.wake_senders();
    Ok(())
}

/// Gives a held queue back and lets it rest until `until`, at no attempt's cost.
pub async fn postpone(tx: &mut Tx, held: Held, until: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE webhook_endpoints SET held_until_ms = 0, due_at_ms = $1 WHERE key_id = $2 AND epoch = $3";
    tx.exec(SQL, &params![until, held.key_id, Value::try_from(held.epoch)?]).await.map(drop)
}

/// Ends every hold: for a process that knows that it is the only one on this database.
pub async fn end_holds(tx: &mut Tx) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE webhook_endpoints SET held_until_ms = 0 WHERE held_until_ms > 0";
    tx.exec(SQL, &[]).await.map(drop)
}
