//! Events for users, numbered per user without gaps.
//!
//! A unit of work collects its events and writes them at its end. An event gets its number in the
//! transaction that writes it, while its user's row is locked. When a reader sees a number, all
//! events with lower numbers have therefore been written.

use std::collections::BTreeMap;

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, UserId};

pub use crate::new_event::NewEvent;
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params, webhooks};

record! {
    /// An event of a feed.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct FeedEvent {
        /// The number, from 1 for the user's first event.
        pub seq: u64,
        pub id: EventId,
        pub kind: EventKind,
        /// The key whose action caused it.
        pub key_id: Option<KeyId>,
        pub body: String,
    }
}

record! {
    /// The range of a user's feed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FeedRange {
        pub generation: u64,
        /// The number of the last removed event. The feed can be read from the next one on.
        pub pruned: u64 = "COALESCE(pruned_seq, 0) AS pruned_seq",
        /// The number of the last event.
        pub last: u64 = "COALESCE(last_seq, 0) AS last_seq",
    }
}

/// Adds an event to be written at the end of the unit of work.
pub fn emit(tx: &mut Tx, event: NewEvent) {
    tx.emit(event);
}

/// Writes the events that the unit of work emitted.
pub(crate) async fn write_emitted(tx: &mut Tx) -> Result<(), StoreError> {
    match tx.take_events() {
        events if events.is_empty() => Ok(()),
        events => {
            // Wakes local readers of the feed, once the unit is committed.
            tx.wake_senders();
            write(tx, events).await
        }
    }
}

/// Numbers and writes events, and queues those for webhooks. The users' rows are locked in the
/// order of user ids, so that two units cannot deadlock.
async fn write(tx: &mut Tx, mut events: Vec<NewEvent>) -> Result<(), StoreError> {
    const NUMBERS: &str = "INSERT INTO feeds (user_id, last_seq)
        SELECT x.user_id, x.last_seq FROM ROWS($1 TEXT, $2 BIGINT) AS x(user_id, last_seq) WHERE true
        ON CONFLICT (user_id) DO UPDATE SET last_seq = feeds.last_seq + excluded.last_seq";
    // `last_seq` is already the user's last number in this unit, so each event counts back from it.
    const EVENT: &str = "INSERT INTO events (id, user_id, seq, kind, key_id, trade_id, body, emitted_at_ms)
        SELECT x.id, x.user_id, f.last_seq - x.behind, x.kind, x.key_id, x.trade_id, x.body, x.emitted_at_ms
        FROM ROWS($1 TEXT, $2 TEXT, $3 BIGINT, $4 TEXT, $5 TEXT, $6 TEXT, $7 TEXT, $8 BIGINT)
        AS x(id, user_id, behind, kind, key_id, trade_id, body, emitted_at_ms)
        CROSS JOIN feeds f WHERE f.user_id = x.user_id";
    events.sort_by_key(|event| event.user_id);
    let mut counts: BTreeMap<UserId, u32> = BTreeMap::new();
    events.iter().for_each(|event| *counts.entry(event.user_id).or_default() += 1);
    let numbers: Vec<_> = counts.iter().map(|(user, count)| params![*user, *count].to_vec()).collect();
    tx.queue_rows(NUMBERS, numbers).await?;
    let mut rows: Vec<Vec<SqlValue<'_>>> = Vec::with_capacity(events.len());
    for event in &events {
        let behind = counts.get_mut(&event.user_id).map_or(0, |left| {
            *left -= 1;
            *left
        });
        let NewEvent { id, user_id, kind, key_id, trade_id, body, at } = event;
        rows.push(
            params![*id, *user_id, behind, kind.as_str(), *key_id, *trade_id, body.as_str(), *at].to_vec(),
        );
    }
    tx.queue_rows(EVENT, rows).await?;
    webhooks::enqueue(tx, &events).await
}

/// Lists a user's events after number `after`, of these kinds, in order, at most `limit`.
pub async fn list_after(
    tx: &mut Tx,
    user_id: UserId,
    after: u64,
    kinds: &[EventKind],
    limit: u32,
) -> Result<Vec<FeedEvent>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        FeedEvent::COLUMNS,
        " FROM events WHERE user_id = $1 AND seq > $2 AND $3 LIKE '%,' || kind || ',%' ORDER BY seq LIMIT $4"
    );
    // No stored number is above `i64::MAX`, so a greater `after` finds nothing either way.
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    tx.list(SQL, &params![user_id, after, words_of(kinds), limit], FeedEvent::from_row).await
}

/// Lists a user's events of these kinds with numbers below `before`, newest first, at most `limit`.
pub async fn list_newest(
    tx: &mut Tx,
    user_id: UserId,
    before: u64,
    kinds: &[EventKind],
    limit: u32,
) -> Result<Vec<FeedEvent>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        FeedEvent::COLUMNS,
        " FROM events WHERE user_id = $1 AND seq < $2 AND $3 LIKE '%,' || kind || ',%' ORDER BY seq DESC LIMIT $4"
    );
    let before = i64::try_from(before).unwrap_or(i64::MAX);
    tx.list(SQL, &params![user_id, before, words_of(kinds), limit], FeedEvent::from_row).await
}

/// Returns kinds as the statements compare them.
fn words_of(kinds: &[EventKind]) -> String {
    format!(",{},", kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(","))
}

/// A part of a user's feed, consistent with concurrent writes and removals. All events up to
/// `extent.last` were already written when the events were read, and none after `extent.pruned` was
/// removed by then. The numbers are valid for readers of the same generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    pub events: Vec<FeedEvent>,
    /// The range: its end as read before the events, its beginning as read after them.
    pub extent: FeedRange,
}

/// Like [`list_after`], with the range of the feed.
pub async fn slice_after(
    tx: &mut Tx,
    user_id: UserId,
    after: u64,
    kinds: &[EventKind],
    limit: u32,
) -> Result<Slice, StoreError> {
    // Reads have no common transaction. Reading the end first and the beginning last makes the
    // range safe.
    let last = extent(tx, user_id).await?.last;
    let events = list_after(tx, user_id, after, kinds, limit).await?;
    let FeedRange { generation, pruned, .. } = extent(tx, user_id).await?;
    Ok(Slice { events, extent: FeedRange { generation, pruned, last } })
}

/// The number of users in each query of [`list_last`].
pub const LAST_AT_ONCE: usize = 32;

/// Returns the number of each user's last event. Users without events are omitted.
pub async fn list_last(tx: &mut Tx, users: &[UserId]) -> Result<Vec<(UserId, u64)>, StoreError> {
    const SQL: &str = "SELECT user_id, last_seq FROM feeds WHERE user_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
        $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32)";
    let mut found = Vec::with_capacity(users.len());
    for some in users.chunks(LAST_AT_ONCE) {
        // The statement has a fixed number of placeholders. Unused ones repeat the first user.
        let Some(one) = some.first() else { continue };
        let filled = some.iter().chain(std::iter::repeat(one)).take(LAST_AT_ONCE);
        let bound: Vec<SqlValue<'_>> = filled.map(|user| SqlValue::from(*user)).collect();
        found.extend(tx.list(SQL, &bound, |row| Ok((row.get("user_id")?, row.get("last_seq")?))).await?);
    }
    Ok(found)
}

/// Returns the range of a user's feed.
pub async fn extent(tx: &mut Tx, user_id: UserId) -> Result<FeedRange, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        FeedRange::COLUMNS,
        " FROM feed_generation LEFT JOIN feeds ON user_id = $1 WHERE id = 1"
    );
    let found = tx.find(SQL, &params![user_id], FeedRange::from_row).await?;
    found.ok_or_else(|| StoreError::missing("feed_generation"))
}

/// Returns the generation of the feed.
pub async fn get_generation(tx: &mut Tx) -> Result<u64, StoreError> {
    let found = tx.find("SELECT generation FROM feed_generation WHERE id = 1", &[], |row| row.only()).await?;
    found.ok_or_else(|| StoreError::missing("feed_generation"))
}

/// Starts a new generation of the feed and returns it. Generations are based on the clock, so that
/// a backup that is restored twice does not start the same generation twice.
pub async fn begin_generation(tx: &mut Tx, now: Timestamp) -> Result<u64, StoreError> {
    const SQL: &str = "UPDATE feed_generation
        SET generation = CASE WHEN generation < $1 THEN $1 ELSE generation + 1 END, began_at_ms = $2
        WHERE id = 1 RETURNING generation";
    let begun = tx.find(SQL, &params![SqlValue::try_from(now.s())?, now], |row| row.only()).await?;
    begun.ok_or_else(|| StoreError::missing("feed_generation"))
}

/// Deletes at most `limit` events from before `before` of kinds that are never posted, and returns
/// their number. The feeds then begin after them.
pub async fn prune(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    // The same kinds as in the partial index, so that the index is used.
    const GONE: &str =
        "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE emitted_at_ms < $1 AND kind IN
        ('trade.status-changed', 'redemption.completed', 'market.resolved', 'position.claimable')
        ORDER BY emitted_at_ms LIMIT $2) RETURNING user_id, seq";
    // The range never moves back, even if an older event is deleted later.
    const PRUNED: &str = "UPDATE feeds SET pruned_seq = $1 WHERE user_id = $2 AND pruned_seq < $1";
    let gone: Vec<(UserId, u64)> =
        tx.list(GONE, &params![before, limit], |row| Ok((row.get("user_id")?, row.get("seq")?))).await?;
    let mut last: BTreeMap<UserId, u64> = BTreeMap::new();
    for (user, seq) in &gone {
        let last = last.entry(*user).or_default();
        *last = (*last).max(*seq);
    }
    let mut rows = Vec::with_capacity(last.len());
    for (user, seq) in last {
        rows.push(params![SqlValue::try_from(seq)?, user].to_vec());
    }
    tx.exec_each(PRUNED, &rows).await?;
    Ok(gone.len() as u64)
}
