//! A key's receiver, as its owner is shown it.

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId};

use crate::{Row, StoreError, Tx, params};

/// A receiver and its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What is known of the receiver's health.
    pub breaker: String,
    /// What the queue waits for; none where it is empty.
    pub head: Option<Head>,
    /// The events and replays that wait, the head among them.
    pub waiting: u64,
}

/// What stands at the head of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The event.
    pub event_id: EventId,
    /// What it tells.
    pub kind: EventKind,
    /// Which replay it is; 0 is the event itself.
    pub replay: u32,
    /// How many attempts of it there were.
    pub attempts: u32,
    /// When its attempts began.
    pub began_at: Timestamp,
    /// When it may be attempted next; the past means now.
    pub due_at: Timestamp,
}

/// The receiver of a key, if anything was ever queued for it.
pub async fn find_endpoint(tx: &mut Tx, key_id: KeyId) -> Result<Option<Endpoint>, StoreError> {
    const ENDPOINT: &str =
        "SELECT w.breaker, (SELECT COUNT(*) FROM webhook_queue q WHERE q.key_id = w.key_id)
        FROM webhook_endpoints w WHERE w.key_id = $1";
    const HEAD: &str = "SELECT q.event_id, e.kind, q.replay, q.attempts, q.began_at_ms,
        COALESCE(w.due_at_ms, q.began_at_ms)
        FROM webhook_queue q JOIN webhook_endpoints w ON w.key_id = q.key_id JOIN events e ON e.id = q.event_id
        WHERE q.key_id = $1 ORDER BY q.position LIMIT 1";
    let found: Option<(String, u64)> =
        tx.find(ENDPOINT, &params![key_id], |row| Ok((row.text(0)?, row.number(1)?))).await?;
    let Some((breaker, waiting)) = found else { return Ok(None) };
    let head = tx
        .find(HEAD, &params![key_id], |row: &Row<'_>| {
            Ok(Head {
                event_id: row.parse(0)?,
                kind: row.parse(1)?,
                replay: row.number(2)?,
                attempts: row.number(3)?,
                began_at: row.timestamp(4)?,
                due_at: row.timestamp(5)?,
            })
        })
        .await?;
    Ok(Some(Endpoint { breaker, head, waiting }))
}
