//! What becomes of old events that were posted. Those whose delivery failed permanently leave the API
//! and remain in a table for the operator, the archive. Test events are deleted, whatever became of
//! them, because they cost nobody anything. Others stay, as the trades that they report.

use domain::Timestamp;
use domain::ids::{EventId, UserId};

use crate::{StoreError, Tx, params};

/// Moves at most `limit` events that failed permanently before `before` to the archive, deletes
/// their attempts, and returns their number. The users' feeds then begin after them.
///
/// The first statement locks the deliveries, so that an event whose redelivery is requested at the
/// same time is either archived or redelivered.
pub async fn archive_given_up(
    tx: &mut Tx,
    before: Timestamp,
    now: Timestamp,
    limit: u32,
) -> Result<u64, StoreError> {
    const GIVEN_UP: &str = "UPDATE deliveries SET status = status WHERE event_id IN (
            SELECT event_id FROM deliveries WHERE terminal_failure_at_ms < $1 AND kind <> 'webhook.test'
            ORDER BY terminal_failure_at_ms LIMIT $2)
        AND terminal_failure_at_ms < $1 AND NOT EXISTS (
            SELECT 1 FROM webhook_queue q WHERE q.event_id = deliveries.event_id)
        RETURNING user_id, event_id";
    const ARCHIVED: &str = "INSERT INTO archived_events (id, user_id, key_id, kind, trade_id, body, emitted_at_ms,
        attempts, replays, last_status_code, last_failure_code, terminal_failure_at_ms, archived_at_ms)
        SELECT d.event_id, d.user_id, d.key_id, d.kind, d.trade_id, e.body, d.emitted_at_ms, d.attempts, d.replays,
        d.last_status_code, d.last_failure_code, d.terminal_failure_at_ms, $1
        FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.event_id = $2";
    let moved = lock(tx, GIVEN_UP, before, limit).await?;
    if moved.is_empty() {
        return Ok(0);
    }
    let archived: Vec<_> = moved.iter().map(|(_, event)| params![now, *event].to_vec()).collect();
    tx.exec_each(ARCHIVED, &archived).await?;
    forget(tx, moved).await
}

/// Deletes at most `limit` test events from before `before` that wait for no delivery, with their
/// deliveries and attempts, and returns their number. The users' feeds then begin after them.
pub async fn delete_tests(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    // The status is checked again after the row lock: a redelivery that is requested at the same time
    // changes it.
    const OLD: &str = "UPDATE deliveries SET status = status WHERE event_id IN (
            SELECT event_id FROM deliveries WHERE kind = 'webhook.test' AND emitted_at_ms < $1 AND NOT EXISTS (
                SELECT 1 FROM webhook_queue q WHERE q.event_id = deliveries.event_id)
            ORDER BY emitted_at_ms LIMIT $2)
        AND status IN ('delivered', 'failed', 'none') RETURNING user_id, event_id";
    let old = lock(tx, OLD, before, limit).await?;
    forget(tx, old).await
}

/// Runs a statement that locks the deliveries to remove. Returns their users and events.
async fn lock(
    tx: &mut Tx,
    sql: &'static str,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<(UserId, EventId)>, StoreError> {
    tx.list(sql, &params![before, limit], |row| Ok((row.get("user_id")?, row.get("event_id")?))).await
}

/// Deletes events with their deliveries and attempts. Returns their number.
async fn forget(tx: &mut Tx, mut gone: Vec<(UserId, EventId)>) -> Result<u64, StoreError> {
    const PRUNED: &str = "UPDATE feeds SET pruned_seq = (SELECT seq FROM events WHERE id = $1)
        WHERE user_id = $2 AND pruned_seq < (SELECT seq FROM events WHERE id = $1)";
    const FORGOTTEN: [&str; 3] = [
        "DELETE FROM delivery_attempts WHERE event_id = $1",
        "DELETE FROM deliveries WHERE event_id = $1",
        "DELETE FROM events WHERE id = $1",
    ];
    if gone.is_empty() {
        return Ok(0);
    }
    // Feeds are locked in the order of user ids, as by writers of events, to avoid deadlocks.
    gone.sort_unstable();
    let pruned: Vec<_> = gone.iter().map(|(user, event)| params![*event, *user].to_vec()).collect();
    tx.exec_each(PRUNED, &pruned).await?;
    let events: Vec<_> = gone.iter().map(|(_, event)| params![*event].to_vec()).collect();
    for sql in FORGOTTEN {
        tx.exec_each(sql, &events).await?;
    }
    Ok(gone.len() as u64)
}
