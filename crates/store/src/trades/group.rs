//! Creation of trades in groups: everything that decides is loaded and locked at once, and what was
//! decided is written at once.
//!
//! All statements run once for the whole group. Rows are locked in the order of the steps below,
//! within a step in the order of their ids. Other units use the same order, so that they cannot
//! deadlock with a group.
//!
//! 1. the idempotency keys
//! 2. the API keys, so that none of them is paused or revoked meanwhile
//! 3. their spending
//! 4. the accounts
//! 5. usage, and then the feeds (at the end of every unit)

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use domain::ids::{KeyId, TradeId, UserId};
use domain::trade::{Status, TraceEvent};
use domain::{Timestamp, Usdc, limits};

use super::queue::NOT_QUEUED;
use super::row::Trade;
use super::spend::KeySpend;
use super::trace;
use crate::bind::add_usdc;
use crate::engine::RowsRead;
use crate::engine::dialect::locks_rows;
use crate::keys::{StopTimes, TradingStop};
use crate::{Row, SqlValue, StoreError, Tx, params, sync, usage};

/// A trade to create.
#[derive(Debug)]
pub struct Creation {
    pub trade: Trade,
    /// The idempotency key of the request, if it has one.
    pub idempotency: Option<Idempotency>,
    /// The settled block that the account's funds were read at. It must still be the last one.
    pub settled: Option<u64>,
}

/// The idempotency key of a request.
#[derive(Debug)]
pub struct Idempotency {
    pub route: &'static str,
    pub key: String,
    /// The time for which it is stored.
    pub lifetime_ms: i64,
}

/// The rows that decide about a group of trades.
#[derive(Debug, Default)]
pub struct Group {
    /// The trades whose idempotency key this unit has taken.
    taken_keys: HashSet<TradeId>,
    stops: HashMap<KeyId, StopTimes>,
    spend: BTreeMap<KeyId, KeySpend>,
    reserved: BTreeMap<UserId, Reserved>,
    settled: Option<u64>,
    /// The `clientRequestId`s that are in use.
    client_requests: HashSet<(UserId, String)>,
    queues: HashMap<(UserId, u16), QueueEnds>,
}

#[derive(Debug)]
struct Reserved {
    before: Usdc,
    added: Usdc,
}

/// The ranks between which a user's next trade joins a lane's queue.
#[derive(Debug)]
struct QueueEnds {
    /// The rank of the user's last waiting trade.
    last: Option<i64>,
    /// The rank of the lane's head.
    head: Option<i64>,
}

impl Group {
    /// Returns whether this unit has taken the request's idempotency key. False if another request
    /// holds it.
    pub fn has_key(&self, creation: &Creation) -> bool {
        creation.idempotency.is_none() || self.taken_keys.contains(&creation.trade.id)
    }

    /// Returns the key's spending in the 24 hours that end when the trade is created.
    pub fn spent(&self, trade: &Trade) -> Result<Usdc, StoreError> {
        let spend = self.spend.get(&trade.key_id).ok_or_else(|| StoreError::missing("key_spend"))?;
        spend.at(trade.created_at)
    }

    /// Returns the USDC that the account has reserved.
    pub fn reserved(&self, trade: &Trade) -> Result<Usdc, StoreError> {
        let reserved = self.reserved.get(&trade.user_id).ok_or_else(|| StoreError::missing("accounts"))?;
        add_usdc(reserved.before, reserved.added)
    }

    /// Returns the last settled block. The accounts are locked, and a settlement needs these locks to
    /// release their reservations, so it stays valid for them.
    pub const fn settled(&self) -> Option<u64> {
        self.settled
    }

    /// Returns the reason why the trade's key cannot trade, if any.
    pub fn stop(&self, trade: &Trade) -> Option<TradingStop> {
        self.stops.get(&trade.key_id).and_then(|times| times.stop_at(trade.created_at))
    }

    /// Returns whether the user already has a trade with this `clientRequestId`.
    pub fn is_taken(&self, trade: &Trade) -> bool {
        let id = trade.client_request_id.clone();
        id.is_some_and(|id| self.client_requests.contains(&(trade.user_id, id)))
    }

    /// Counts a trade that was accepted for the checks of the trades after it.
    pub fn accept(&mut self, trade: &Trade) -> Result<(), StoreError> {
        if let Some(id) = &trade.client_request_id {
            self.client_requests.insert((trade.user_id, id.clone()));
        }
        if trade.reserved == Usdc::ZERO {
            return Ok(());
        }
        if let Some(spend) = self.spend.get_mut(&trade.key_id) {
            spend.add(trade.reserved)?;
        }
        if let Some(reserved) = self.reserved.get_mut(&trade.user_id) {
            reserved.added = add_usdc(reserved.added, trade.reserved)?;
        }
        Ok(())
    }

    /// Returns the rank of a pending trade in its lane's queue: one above the rank of its user's last
    /// waiting trade, and at least the rank of the queue's head.
    fn next_rank(&mut self, trade: &Trade) -> i64 {
        if trade.state.status() != Status::Pending {
            // A held trade gets a rank only when it is confirmed.
            return NOT_QUEUED;
        }
        let Some(ends) = self.queues.get_mut(&(trade.user_id, trade.lane)) else { return 0 };
        let rank = ends.last.map_or(0, |last| last + 1).max(ends.head.unwrap_or(0));
        ends.last = Some(rank);
        rank
    }
}

/// Takes the idempotency keys of these trades: see [`load`]. On its own it shows whether it was one
/// of these keys that stayed locked.
///
/// # Errors
/// `Locked` if another unit holds one of the keys.
pub async fn take_keys(tx: &mut Tx, creations: &[&Creation]) -> Result<HashSet<TradeId>, StoreError> {
    let mut taken = HashSet::new();
    let reads = keys_taken(creations, &mut taken);
    tx.read_rows(reads.into_iter().collect()).await?;
    Ok(taken)
}

/// Takes the idempotency keys of a group, locks the rows that decide about its trades, and loads
/// them. No two trades may have the same idempotency key. `taken` are the trades whose keys
/// [`take_keys`] has already taken.
pub async fn load(
    tx: &mut Tx,
    creations: &[&Creation],
    taken: Option<HashSet<TradeId>>,
) -> Result<Group, StoreError> {
    let locks = locks_rows(tx.engine());
    let is_taken = taken.is_some();
    let mut group = Group { taken_keys: taken.unwrap_or_default(), ..Group::default() };
    let windows = windows_of(creations);
    let mut leaving = Vec::new();
    let Group { taken_keys, stops, spend, reserved, settled, client_requests, queues } = &mut group;
    let mut reads = Vec::with_capacity(9);
    if !is_taken {
        reads.extend(keys_taken(creations, taken_keys));
    }
    reads.push(stops_read(creations, stops));
    if !windows.is_empty() {
        if locks {
            reads.push(spend_locked(&windows));
        }
        // A statement of its own, because it must see what was committed before the lock was taken.
        reads.push(spend_read(&windows, spend));
        reads.extend(leaving_read(&windows, &mut leaving));
        reads.push(accounts_read(creations, reserved));
    }
    reads.extend(settled_read(creations, settled));
    reads.extend(client_requests_read(creations, client_requests));
    reads.extend(queues_read(creations, queues));
    tx.read_rows(reads).await?;
    for (key_id, at, amount) in leaving {
        if let Some(spend) = group.spend.get_mut(&key_id) {
            spend.add_leaving(at, amount);
        }
    }
    Ok(group)
}

fn keys_taken<'a>(creations: &[&'a Creation], taken: &'a mut HashSet<TradeId>) -> Option<RowsRead<'a>> {
    // The UPDATE replaces only an expired key. A live key leaves its row out of the result.
    const SQL: &str = "INSERT INTO idempotency (user_id, route, idempotency_key, request_hash, trade_id, expires_at_ms)
        SELECT x.user_id, x.route, x.idempotency_key, x.request_hash, x.trade_id, x.expires_at_ms
        FROM ROWS($1 TEXT, $2 TEXT, $3 TEXT, $4 TEXT, $5 TEXT, $6 BIGINT)
        AS x(user_id, route, idempotency_key, request_hash, trade_id, expires_at_ms) WHERE true
        ON CONFLICT (user_id, route, idempotency_key) DO UPDATE
        SET request_hash = excluded.request_hash, trade_id = excluded.trade_id, expires_at_ms = excluded.expires_at_ms
        WHERE idempotency.expires_at_ms <= excluded.expires_at_ms - $7 RETURNING trade_id";
    let mut keyed: Vec<(&Trade, &Idempotency)> =
        creations.iter().filter_map(|new| Some((&new.trade, new.idempotency.as_ref()?))).collect();
    let (_, first) = keyed.first()?;
    let lifetime_ms = first.lifetime_ms;
    keyed.sort_by_key(|(trade, key)| (trade.user_id, key.route, &key.key));
    let row = |(trade, key): (&'a Trade, &'a Idempotency)| {
        let until = trade.created_at.plus_ms(lifetime_ms);
        params![trade.user_id, key.route, &key.key, &trade.request_hash, trade.id, until].to_vec()
    };
    let rows = keyed.into_iter().map(row).collect();
    let take = |row: &Row<'_>| {
        taken.insert(row.only()?);
        Ok(())
    };
    Some(RowsRead::new(SQL, rows, take).shared(vec![lifetime_ms.into()]))
}

fn stops_read<'a>(creations: &[&Creation], stops: &'a mut HashMap<KeyId, StopTimes>) -> RowsRead<'a> {
    const SQL: &str = const_format::concatcp!(
        "SELECT k.id, ",
        StopTimes::SELECTED,
        " FROM ROWS($1 TEXT) AS x(id) CROSS JOIN keys k WHERE k.id = x.id ORDER BY k.id FOR SHARE OF k"
    );
    let keys: BTreeSet<KeyId> = creations.iter().map(|new| new.trade.key_id).collect();
    RowsRead::new(SQL, one_column(keys), |row| {
        stops.insert(row.get("id")?, StopTimes::of(row)?);
        Ok(())
    })
}

/// The first and the last begin of the windows of each key's buys.
type KeyWindows = BTreeMap<KeyId, (Timestamp, Timestamp)>;

fn windows_of(creations: &[&Creation]) -> KeyWindows {
    let mut windows = KeyWindows::new();
    for Creation { trade, .. } in creations {
        if trade.reserved > Usdc::ZERO {
            let start = limits::window_start(trade.created_at);
            let (first, last) = windows.entry(trade.key_id).or_insert((start, start));
            (*first, *last) = (start.min(*first), start.max(*last));
        }
    }
    windows
}

fn spend_locked(windows: &KeyWindows) -> RowsRead<'static> {
    const SQL: &str = "SELECT s.key_id FROM ROWS($1 TEXT) AS x(key_id) CROSS JOIN key_spend s
        WHERE s.key_id = x.key_id ORDER BY s.key_id FOR UPDATE OF s";
    RowsRead::new(SQL, one_column(windows.keys().copied()), |_| Ok(()))
}

/// Reads the spending in the window that begins first. The sum is stored with the begin of its own
/// window: see [`crate::keys::lock_spent`].
fn spend_read<'a>(windows: &'a KeyWindows, spend: &'a mut BTreeMap<KeyId, KeySpend>) -> RowsRead<'a> {
    const SQL: &str = "SELECT s.key_id, CAST(s.spent_usdc_atomic
        - COALESCE((SELECT SUM(t.reserved_usdc_atomic) FROM trades t WHERE t.key_id = s.key_id
            AND t.created_at_ms > s.since_ms AND t.created_at_ms <= x.start_ms AND t.reserved_usdc_atomic > 0), 0)
        + COALESCE((SELECT SUM(t.reserved_usdc_atomic) FROM trades t WHERE t.key_id = s.key_id
            AND t.created_at_ms > x.start_ms AND t.created_at_ms <= s.since_ms AND t.reserved_usdc_atomic > 0), 0)
        AS BIGINT) AS spent_usdc_atomic
        FROM ROWS($1 TEXT, $2 BIGINT) AS x(key_id, start_ms) CROSS JOIN key_spend s WHERE s.key_id = x.key_id";
    let rows = windows.iter().map(|(key, (first, _))| params![*key, *first].to_vec()).collect();
    RowsRead::new(SQL, rows, |row| {
        let key_id: KeyId = row.get("key_id")?;
        let (_, last) = windows.get(&key_id).ok_or_else(|| StoreError::missing("key_spend"))?;
        spend.insert(key_id, KeySpend::new(row.get("spent_usdc_atomic")?, *last));
        Ok(())
    })
}

fn leaving_read<'a>(
    windows: &KeyWindows,
    leaving: &'a mut Vec<(KeyId, Timestamp, Usdc)>,
) -> Option<RowsRead<'a>> {
    // Without the limit, PostgreSQL would turn the subquery into a join and read all trades.
    const SQL: &str = "SELECT t.key_id, t.created_at_ms, t.reserved_usdc_atomic
        FROM ROWS($1 TEXT, $2 BIGINT, $3 BIGINT) AS x(key_id, first_ms, last_ms) CROSS JOIN LATERAL (
            SELECT key_id, created_at_ms, reserved_usdc_atomic FROM trades
            WHERE key_id = x.key_id AND created_at_ms > x.first_ms AND created_at_ms <= x.last_ms
            AND reserved_usdc_atomic > 0 LIMIT 1000000000) AS t";
    let several = windows.iter().filter(|(_, (first, last))| first < last);
    let rows: Vec<_> = several.map(|(key, (first, last))| params![*key, *first, *last].to_vec()).collect();
    let take = |row: &Row<'_>| {
        leaving.push((row.get("key_id")?, row.get("created_at_ms")?, row.get("reserved_usdc_atomic")?));
        Ok(())
    };
    (!rows.is_empty()).then(|| RowsRead::new(SQL, rows, take))
}

fn accounts_read<'a>(creations: &[&Creation], reserved: &'a mut BTreeMap<UserId, Reserved>) -> RowsRead<'a> {
    const SQL: &str = "SELECT a.user_id, a.reserved_usdc_atomic FROM ROWS($1 TEXT) AS x(user_id)
        CROSS JOIN accounts a WHERE a.user_id = x.user_id ORDER BY a.user_id FOR UPDATE OF a";
    let buys = creations.iter().filter(|new| new.trade.reserved > Usdc::ZERO);
    let users: BTreeSet<UserId> = buys.map(|new| new.trade.user_id).collect();
    RowsRead::new(SQL, one_column(users), |row| {
        let before = row.get("reserved_usdc_atomic")?;
        reserved.insert(row.get("user_id")?, Reserved { before, added: Usdc::ZERO });
        Ok(())
    })
}

fn settled_read<'a>(creations: &[&Creation], settled: &'a mut Option<u64>) -> Option<RowsRead<'a>> {
    const SQL: &str =
        "SELECT value FROM ROWS($1 TEXT) AS x(name) CROSS JOIN settings s WHERE s.name = x.name";
    if creations.iter().all(|new| new.settled.is_none()) {
        return None;
    }
    Some(RowsRead::new(SQL, one_column([sync::SETTLED]), |row| {
        *settled = row.only::<String>()?.parse().ok();
        Ok(())
    }))
}

fn client_requests_read<'a>(
    creations: &[&'a Creation],
    found: &'a mut HashSet<(UserId, String)>,
) -> Option<RowsRead<'a>> {
    const SQL: &str =
        "SELECT t.user_id, t.client_request_id FROM ROWS($1 TEXT, $2 TEXT) AS x(user_id, client_request_id)
        CROSS JOIN trades t WHERE t.user_id = x.user_id AND t.client_request_id = x.client_request_id";
    let named: BTreeSet<(UserId, &str)> = creations
        .iter()
        .filter_map(|new| Some((new.trade.user_id, new.trade.client_request_id.as_deref()?)))
        .collect();
    let rows: Vec<_> = named.into_iter().map(|(user, id)| params![user, id].to_vec()).collect();
    let take = |row: &Row<'_>| {
        found.insert((row.get("user_id")?, row.get("client_request_id")?));
        Ok(())
    };
    (!rows.is_empty()).then(|| RowsRead::new(SQL, rows, take))
}

fn queues_read<'a>(
    creations: &[&Creation],
    queues: &'a mut HashMap<(UserId, u16), QueueEnds>,
) -> Option<RowsRead<'a>> {
    const SQL: &str = "SELECT x.user_id AS user_id, x.lane AS lane, (SELECT queue_rank FROM trades WHERE user_id = x.user_id
            AND COALESCE(nonce, ended_at_ms) IS NULL ORDER BY queue_rank DESC LIMIT 1) AS last_rank,
        (SELECT queue_rank FROM trades WHERE lane = x.lane
            AND status = 'pending' AND ended_at_ms IS NULL ORDER BY queue_rank LIMIT 1) AS head_rank
        FROM ROWS($1 TEXT, $2 BIGINT) AS x(user_id, lane)";
    let pending = creations.iter().filter(|new| new.trade.state.status() == Status::Pending);
    let places: BTreeSet<(UserId, u16)> = pending.map(|new| (new.trade.user_id, new.trade.lane)).collect();
    let rows: Vec<_> = places.into_iter().map(|(user, lane)| params![user, lane].to_vec()).collect();
    let take = |row: &Row<'_>| {
        let ends = QueueEnds { last: row.get("last_rank")?, head: row.get("head_rank")? };
        queues.insert((row.get("user_id")?, row.get("lane")?), ends);
        Ok(())
    };
    (!rows.is_empty()).then(|| RowsRead::new(SQL, rows, take))
}

fn one_column<'a, T: Into<SqlValue<'a>>>(values: impl IntoIterator<Item = T>) -> Vec<Vec<SqlValue<'a>>> {
    values.into_iter().map(|value| vec![value.into()]).collect()
}

/// Writes the accepted trades of a group, in order, with the first events of their traces, and
/// releases the idempotency keys of the rejected ones. Every trade must have been counted with
/// [`Group::accept`].
///
/// # Errors
/// `Conflict` on `trades_client_request`, at the latest when the unit is committed, if another unit
/// has created a trade with the same `clientRequestId` since the group was loaded.
pub async fn write(
    tx: &mut Tx,
    mut group: Group,
    accepted: &[(&Trade, TraceEvent)],
    rejected: &[&Creation],
) -> Result<(), StoreError> {
    write_spend(tx, &group).await?;
    let mut rows = Vec::with_capacity(accepted.len());
    for (trade, _) in accepted {
        rows.push(super::create::values(trade, group.next_rank(trade))?);
    }
    tx.queue_rows(super::create::INSERT, rows).await?;
    let reservations: Vec<Option<TraceEvent>> =
        accepted.iter().map(|(trade, _)| reservation(trade)).collect();
    let begun = accepted.iter().zip(&reservations).flat_map(|((trade, created), reserved)| {
        (1u32..).zip(std::iter::once(created).chain(reserved)).map(|(seq, event)| (trade.id, seq, event))
    });
    let begun: Vec<(TradeId, u32, &TraceEvent)> = begun.collect();
    trace::begin(tx, &begun).await?;
    let created: Vec<_> = accepted.iter().map(|(trade, _)| (trade.key_id, trade.created_at)).collect();
    usage::add_created(tx, &created).await?;
    for (trade, _) in accepted {
        tx.emit(trade.event(&trade.state, trade.created_at)?);
        tx.note_trade(trade.moved_to(&trade.state, trade.created_at));
    }
    release_keys(tx, &group, rejected).await
}

fn reservation(trade: &Trade) -> Option<TraceEvent> {
    (trade.reserved > Usdc::ZERO)
        .then(|| TraceEvent::funds_reserved(trade.reserved, trade.state.status(), trade.created_at))
}

async fn write_spend(tx: &mut Tx, group: &Group) -> Result<(), StoreError> {
    const SPEND: &str = "UPDATE key_spend SET spent_usdc_atomic = x.spent_usdc_atomic, since_ms = x.since_ms
        FROM ROWS($1 TEXT, $2 BIGINT, $3 BIGINT) AS x(key_id, spent_usdc_atomic, since_ms)
        WHERE key_spend.key_id = x.key_id";
    const ACCOUNTS: &str = "UPDATE accounts SET reserved_usdc_atomic = x.reserved_usdc_atomic
        FROM ROWS($1 TEXT, $2 BIGINT) AS x(user_id, reserved_usdc_atomic) WHERE accounts.user_id = x.user_id";
    let mut spend = Vec::with_capacity(group.spend.len());
    for (key_id, grown) in group.spend.iter().filter(|(_, spend)| spend.has_grown()) {
        let (spent, since) = grown.stored()?;
        spend.push(params![*key_id, spent, since].to_vec());
    }
    tx.queue_rows(SPEND, spend).await?;
    let mut accounts = Vec::with_capacity(group.reserved.len());
    for (user, Reserved { before, added }) in &group.reserved {
        if *added > Usdc::ZERO {
            accounts.push(params![*user, add_usdc(*before, *added)?].to_vec());
        }
    }
    tx.queue_rows(ACCOUNTS, accounts).await
}

async fn release_keys(tx: &mut Tx, group: &Group, rejected: &[&Creation]) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM idempotency WHERE (user_id, route, idempotency_key) IN
        (SELECT x.user_id, x.route, x.idempotency_key FROM ROWS($1 TEXT, $2 TEXT, $3 TEXT)
        AS x(user_id, route, idempotency_key))";
    let taken = rejected.iter().filter(|new| group.taken_keys.contains(&new.trade.id));
    let rows = taken
        .filter_map(|new| {
            let key = new.idempotency.as_ref()?;
            Some(params![new.trade.user_id, key.route, &key.key].to_vec())
        })
        .collect();
    tx.queue_rows(SQL, rows).await
}
