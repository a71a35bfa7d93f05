//! The archive of events whose delivery failed permanently long ago. They leave the API and remain
//! in a table for the operator.

use domain::Timestamp;
use domain::ids::{EventId, UserId};

use crate::{SqlValue, StoreError, Tx, params};

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
            SELECT event_id FROM deliveries WHERE terminal_failure_at_ms < $1 ORDER BY terminal_failure_at_ms LIMIT $2)
        AND terminal_failure_at_ms < $1 AND NOT EXISTS (
            SELECT 1 FROM webhook_queue q WHERE q.event_id = deliveries.event_id)
        RETURNING user_id, event_id";
    const PRUNED: &str = "UPDATE feeds SET pruned_seq = (SELECT seq FROM events WHERE id = $1)
        WHERE user_id = $2 AND pruned_seq < (SELECT seq FROM events WHERE id = $1)";
    const ARCHIVED: &str = "INSERT INTO archived_events (id, user_id, key_id, kind, trade_id, body, emitted_at_ms,
        attempts, replays, last_status_code, last_failure_code, terminal_failure_at_ms, archived_at_ms)
        SELECT d.event_id, d.user_id, d.key_id, d.kind, d.trade_id, e.body, d.emitted_at_ms, d.attempts, d.replays,
        d.last_status_code, d.last_failure_code, d.terminal_failure_at_ms, $1
        FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.event_id = $2";
    const FORGOTTEN: [&str; 3] = [
        "DELETE FROM delivery_attempts WHERE event_id = $1",
        "DELETE FROM deliveries WHERE event_id = $1",
        "DELETE FROM events WHERE id = $1",
    ];
    let mut moved: Vec<(UserId, EventId)> = tx
        .list(GIVEN_UP, &params![before, limit], |row| Ok((row.get("user_id")?, row.get("event_id")?)))
        .await?;
    if moved.is_empty() {
        return Ok(0);
    }
    // Feeds are locked in the order of user ids, as by writers of events, to avoid deadlocks.
    moved.sort_unstable();
    let of = |row: fn(Timestamp, UserId, EventId) -> Vec<SqlValue<'static>>| -> Vec<Vec<SqlValue<'static>>> {
        moved.iter().map(|(user, event)| row(now, *user, *event)).collect()
    };
    tx.exec_each(PRUNED, &of(|_, user, event| params![event, user].to_vec())).await?;
    tx.exec_each(ARCHIVED, &of(|now, _, event| params![now, event].to_vec())).await?;
    for sql in FORGOTTEN {
        tx.exec_each(sql, &of(|_, _, event| params![event].to_vec())).await?;
    }
    Ok(moved.len() as u64)
}
