//! Events: what happened to users, numbered without gaps for each of them.
//!
//! A unit of work leaves its events to be written at its end. The number of an event is taken in the transaction that
//! writes it, under the lock of its user's row, so that a reader who has seen a number has seen all below it that will
//! ever be.

use std::collections::BTreeMap;

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, TradeId, UserId};

use crate::{Row, StoreError, Tx, Value, params, webhooks};

/// An event that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// Whom it is told.
    pub user_id: UserId,
    /// What it tells.
    pub kind: EventKind,
    /// The key whose doing it comes from; such an event may be posted to the key's URL.
    pub key_id: Option<KeyId>,
    /// The trade it tells of.
    pub trade_id: Option<TradeId>,
    /// Its body, as it is sent.
    pub body: String,
    /// When it happened.
    pub at: Timestamp,
}

/// An event as the feed carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number: 1 for the user's first.
    pub seq: u64,
    /// Its id.
    pub id: EventId,
    /// What it tells.
    pub kind: EventKind,
    /// The key whose doing it comes from.
    pub key_id: Option<KeyId>,
    /// Its body.
    pub body: String,
}

/// Where a user's feed begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The generation of the feed.
    pub generation: u64,
    /// The number of the last event that was removed; the feed can be read from there on.
    pub pruned: u64,
    /// The number of the last event.
    pub last: u64,
}

/// Leaves an event to be written when the unit of work is at its end.
pub fn emit(tx: &mut Tx, event: NewEvent) {
    tx.emit(event);
}

/// Numbers and writes events, and queues those that are posted. The users' rows are locked in the users' order.
pub(crate) async fn write(tx: &mut Tx, mut events: Vec<NewEvent>) -> Result<(), StoreError> {
    const NUMBERS: &str = "INSERT INTO feeds (user_id, last_seq) VALUES ($1, $2)
        ON CONFLICT (user_id) DO UPDATE SET last_seq = feeds.last_seq + excluded.last_seq";
    const EVENT: &str = "INSERT INTO events (id, user_id, seq, kind, key_id, trade_id, body, emitted_at_ms)
        SELECT $1, $2, last_seq - $3, $4, $5, $6, $7, $8 FROM feeds WHERE user_id = $2";
    events.sort_by_key(|event| event.user_id);
    let mut counts: BTreeMap<UserId, u32> = BTreeMap::new();
    events.iter().for_each(|event| *counts.entry(event.user_id).or_default() += 1);
    let numbers: Vec<_> = counts.iter().map(|(user, count)| params![*user, *count].to_vec()).collect();
    tx.exec_each(NUMBERS, &numbers).await?;
    let mut rows: Vec<Vec<Value<'_>>> = Vec::with_capacity(events.len());
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
    tx.exec_each(EVENT, &rows).await?;
    webhooks::enqueue(tx, &events).await
}

/// A user's events behind `after` of these kinds, in their order, at most `limit`.
pub async fn list_after(
    tx: &mut Tx,
    user_id: UserId,
    after: u64,
    kinds: &[EventKind],
    limit: u32,
) -> Result<Vec<Event>, StoreError> {
    const SQL: &str = "SELECT seq, id, kind, key_id, body FROM events WHERE user_id = $1 AND seq > $2
        AND $3 LIKE '%,' || kind || ',%' ORDER BY seq LIMIT $4";
    let kinds = format!(",{},", kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(","));
    // No number is greater than what the column holds, so nothing is behind it.
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    tx.list(SQL, &params![user_id, after, kinds, limit], |row: &Row<'_>| {
        Ok(Event {
            seq: row.number(0)?,
            id: row.parse(1)?,
            kind: row.parse(2)?,
            key_id: row.opt_parse(3)?,
            body: row.text(4)?,
        })
    })
    .await
}

/// A part of a user's feed. Every event up to `extent.last` was written when the events were read, and of those behind
/// `extent.pruned` none was gone. If the generation is the reader's, the numbers of the events are those of the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The events, in their order.
    pub events: Vec<Event>,
    /// Its end as it was before they were read, its beginning as it was after.
    pub extent: Extent,
}

/// The same as [`list_after`], with what it is part of.
pub async fn slice_after(
    tx: &mut Tx,
    user_id: UserId,
    after: u64,
    kinds: &[EventKind],
    limit: u32,
) -> Result<Slice, StoreError> {
    let last = extent(tx, user_id).await?.last;
    let events = list_after(tx, user_id, after, kinds, limit).await?;
    let Extent { generation, pruned, .. } = extent(tx, user_id).await?;
    Ok(Slice { events, extent: Extent { generation, pruned, last } })
}

/// How many users [`list_last`] is asked for at once.
pub const LAST_AT_ONCE: usize = 32;

/// The number of each of these users' last event; those who have none are left out.
pub async fn list_last(tx: &mut Tx, users: &[UserId]) -> Result<Vec<(UserId, u64)>, StoreError> {
    const SQL: &str = "SELECT user_id, last_seq FROM feeds WHERE user_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
        $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32)";
    let mut found = Vec::with_capacity(users.len());
    for some in users.chunks(LAST_AT_ONCE) {
        // The places that are left over ask for one of them again.
        let Some(one) = some.first() else { continue };
        let filled = some.iter().chain(std::iter::repeat(one)).take(LAST_AT_ONCE);
        let bound: Vec<Value<'_>> = filled.map(|user| Value::from(*user)).collect();
        found.extend(tx.list(SQL, &bound, |row| Ok((row.parse(0)?, row.number(1)?))).await?);
    }
    Ok(found)
}

/// Where a user's feed begins and ends.
pub async fn extent(tx: &mut Tx, user_id: UserId) -> Result<Extent, StoreError> {
    const SQL: &str = "SELECT generation, COALESCE(pruned_seq, 0), COALESCE(last_seq, 0) FROM feed_generation
        LEFT JOIN feeds ON user_id = $1 WHERE id = 1";
    let found = tx
        .find(SQL, &params![user_id], |row: &Row<'_>| {
            Ok(Extent { generation: row.number(0)?, pruned: row.number(1)?, last: row.number(2)? })
        })
        .await?;
    found.ok_or_else(|| StoreError::missing("feed_generation"))
}

/// Begins a new generation of the feed and returns it. It follows the clock: a copy of the database that is restored twice
/// must not begin the same generation twice.
pub async fn begin_generation(tx: &mut Tx, now: Timestamp) -> Result<u64, StoreError> {
    const SQL: &str = "UPDATE feed_generation
        SET generation = CASE WHEN generation < $1 THEN $1 ELSE generation + 1 END, began_at_ms = $2
        WHERE id = 1 RETURNING generation";
    let begun = tx.find(SQL, &params![Value::try_from(now.s())?, now], |row| row.number(0)).await?;
    begun.ok_or_else(|| StoreError::missing("feed_generation"))
}

/// Removes events that were written before `before` and are never posted from the feeds, at most `limit`; how many. The
/// feeds begin behind them from then on.
pub async fn prune(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    // The kinds as the index has them.
    const GONE: &str =
        "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE emitted_at_ms < $1 AND kind IN
        ('trade.status-changed', 'redemption.completed', 'market.resolved', 'position.claimable')
        ORDER BY emitted_at_ms LIMIT $2) RETURNING user_id, seq";
    const PRUNED: &str = "UPDATE feeds SET pruned_seq = $1 WHERE user_id = $2 AND pruned_seq < $1";
    let gone: Vec<(UserId, u64)> =
        tx.list(GONE, &params![before, limit], |row| Ok((row.parse(0)?, row.number(1)?))).await?;
    let mut last: BTreeMap<UserId, u64> = BTreeMap::new();
    for (user, seq) in &gone {
        let last = last.entry(*user).or_default();
        *last = (*last).max(*seq);
    }
    let mut rows = Vec::with_capacity(last.len());
    for (user, seq) in last {
        rows.push(params![Value::try_from(seq)?, user].to_vec());
    }
    tx.exec_each(PRUNED, &rows).await?;
    Ok(gone.len() as u64)
}
