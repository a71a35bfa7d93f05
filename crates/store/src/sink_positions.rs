//! The events that are still to be published to a stream of a message broker, and how far each user's
//! are.
//!
//! A feed has no order across users, so the position in it is a number for each user.

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, UserId};

use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    /// A user's feed, and how far it is published.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SinkProgress {
        pub user_id: UserId = "f.user_id AS user_id",
        /// The number of the user's last event.
        pub last: u64 = "f.last_seq AS last_seq",
        /// The number of the last published event. `None` before the first one.
        pub published: Option<u64> = "p.seq AS published_seq",
    }
}

impl SinkProgress {
    /// Returns whether events are still to be published.
    pub fn is_behind(&self) -> bool {
        self.published.unwrap_or(0) < self.last
    }
}

record! {
    /// An event to be published.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SinkEvent {
        pub user_id: UserId = "e.user_id AS user_id",
        pub seq: u64 = "e.seq AS seq",
        pub id: EventId = "e.id AS id",
        pub kind: EventKind = "e.kind AS kind",
        pub key_id: Option<KeyId> = "e.key_id AS key_id",
        pub body: String = "e.body AS body",
        pub emitted_at: Timestamp = "e.emitted_at_ms AS emitted_at_ms",
    }
}

/// Lists users who have unpublished events and got one after `since`, at most `limit`, those first
/// whose events were not published for the longest time.
pub async fn list_recent(
    tx: &mut Tx,
    sink: &str,
    since: Timestamp,
    limit: u32,
) -> Result<Vec<SinkProgress>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        SinkProgress::COLUMNS,
        " FROM feeds f LEFT JOIN sink_positions p ON p.sink = $1 AND p.user_id = f.user_id
        WHERE f.user_id IN (SELECT user_id FROM events WHERE emitted_at_ms > $2)
        AND f.last_seq > COALESCE(p.seq, 0)
        ORDER BY COALESCE(p.published_at_ms, 0), f.user_id LIMIT $3"
    );
    tx.list(SQL, &params![sink, since, limit], SinkProgress::from_row).await
}

/// Lists the progress of the next users after `after`, or of the first ones, at most `limit`, in the
/// order of their ids.
pub async fn list_progress(
    tx: &mut Tx,
    sink: &str,
    after: Option<UserId>,
    limit: u32,
) -> Result<Vec<SinkProgress>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        SinkProgress::COLUMNS,
        " FROM feeds f LEFT JOIN sink_positions p ON p.sink = $1 AND p.user_id = f.user_id
        WHERE f.user_id > $2 ORDER BY f.user_id LIMIT $3"
    );
    // Every id is greater than an empty text.
    let after = after.map_or(String::new(), |after| after.to_string());
    tx.list(SQL, &params![sink, after.as_str(), limit], SinkProgress::from_row).await
}

/// Lists the events of each range `(user, after, through)`, in order.
pub async fn list_events(tx: &mut Tx, ranges: &[(UserId, u64, u64)]) -> Result<Vec<SinkEvent>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        SinkEvent::COLUMNS,
        " FROM ROWS($1 TEXT, $2 BIGINT, $3 BIGINT) AS x(user_id, after_seq, through_seq)
        CROSS JOIN events e WHERE e.user_id = x.user_id AND e.seq > x.after_seq AND e.seq <= x.through_seq"
    );
    let mut rows = Vec::with_capacity(ranges.len());
    for (user, after, through) in ranges {
        rows.push(params![*user, SqlValue::try_from(*after)?, SqlValue::try_from(*through)?].to_vec());
    }
    let mut events = tx.list_rows(SQL, rows, SinkEvent::from_row).await?;
    events.sort_by_key(|event| (event.user_id, event.seq));
    Ok(events)
}

/// Returns the number of the user's first stored event after number `after`.
pub async fn find_next(tx: &mut Tx, user_id: UserId, after: u64) -> Result<Option<u64>, StoreError> {
    const SQL: &str = "SELECT seq FROM events WHERE user_id = $1 AND seq > $2 ORDER BY seq LIMIT 1";
    tx.find(SQL, &params![user_id, SqlValue::try_from(after)?], |row| row.only()).await
}

/// Stores the number of the last published event of each of these users.
pub async fn put(
    tx: &mut Tx,
    sink: &str,
    positions: &[(UserId, u64)],
    now: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO sink_positions (sink, user_id, seq, published_at_ms)
        SELECT x.sink, x.user_id, x.seq, x.published_at_ms
        FROM ROWS($1 TEXT, $2 TEXT, $3 BIGINT, $4 BIGINT) AS x(sink, user_id, seq, published_at_ms) WHERE true
        ON CONFLICT (sink, user_id) DO UPDATE SET seq = excluded.seq, published_at_ms = excluded.published_at_ms";
    let mut rows = Vec::with_capacity(positions.len());
    for (user, seq) in positions {
        rows.push(params![sink, *user, SqlValue::try_from(*seq)?, now].to_vec());
    }
    tx.exec_rows(SQL, rows).await.map(drop)
}

/// Forgets all positions in a stream, so that all stored events are published to it.
pub async fn delete_all(tx: &mut Tx, sink: &str) -> Result<u64, StoreError> {
    tx.exec("DELETE FROM sink_positions WHERE sink = $1", &params![sink]).await
}
