//! A key's webhook receiver, as shown to its owner.

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId};

use crate::record::{Record, record};
use crate::{StoreError, Tx, params};

/// A receiver and its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookEndpoint {
    /// The state of the receiver's circuit breaker.
    pub breaker: String,
    /// The head of the queue. `None` if the queue is empty.
    pub head: Option<Head>,
    /// The number of queued events and replays, including the head.
    pub waiting: u64,
}

record! {
    /// The head of a queue.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Head {
        pub event_id: EventId = "q.event_id",
        pub kind: EventKind = "e.kind",
        /// The number of the replay. 0 is the original delivery.
        pub replay: u32 = "q.replay",
        /// The number of attempts so far.
        pub attempts: u32 = "q.attempts",
        /// The time from which it is attempted.
        pub began_at: Timestamp = "q.began_at_ms",
        /// The time of the next attempt. A time in the past means now.
        pub due_at: Timestamp = "COALESCE(w.due_at_ms, q.began_at_ms) AS due_at_ms",
    }
}

/// Returns a key's receiver. `None` if nothing was ever queued for it.
pub async fn find_endpoint(tx: &mut Tx, key_id: KeyId) -> Result<Option<WebhookEndpoint>, StoreError> {
    const ENDPOINT: &str =
        "SELECT w.breaker, (SELECT COUNT(*) FROM webhook_queue q WHERE q.key_id = w.key_id) AS waiting
        FROM webhook_endpoints w WHERE w.key_id = $1";
    const HEAD: &str = const_format::concatcp!(
        "SELECT ",
        Head::COLUMNS,
        " FROM webhook_queue q JOIN webhook_endpoints w ON w.key_id = q.key_id JOIN events e ON e.id = q.event_id
        WHERE q.key_id = $1 ORDER BY q.position LIMIT 1"
    );
    let found: Option<(String, u64)> =
        tx.find(ENDPOINT, &params![key_id], |row| Ok((row.get("breaker")?, row.get("waiting")?))).await?;
    let Some((breaker, waiting)) = found else { return Ok(None) };
    let head = tx.find(HEAD, &params![key_id], Head::from_row).await?;
    Ok(Some(WebhookEndpoint { breaker, head, waiting }))
}
