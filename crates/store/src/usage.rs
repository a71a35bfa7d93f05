//! Usage of keys: hourly counts that all processes add to, and their sums over the windows that end
//! now.
//!
//! Requests are counted in memory and added here every few seconds. Trades and webhook deliveries
//! are counted in the transaction in which they happen, so that the counts always match the rows.

use std::collections::BTreeMap;

use domain::ids::{BatchId, KeyId, UserId};
use domain::trade::{State, Status};
use domain::usage::{
    GasCounts, OCTAVES, RequestCounts, STEPS, TradeCounts, UsagePoint, WebhookCounts, Windows, hour_of,
    window_starts,
};
use domain::{ErrorCode, Timestamp, Usdc};

use crate::bind::add_usdc;
use crate::{Row, SqlValue, StoreError, Tx, params};

/// Requests of a key within one hour, as counted by one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHour {
    pub key_id: KeyId,
    /// The start of the hour.
    pub hour: Timestamp,
    /// The time at which the last request was answered.
    pub last_used_at: Timestamp,
    pub counts: RequestCounts,
}

/// A key's usage in the windows that end now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Used {
    /// Requests, except those that processes have not added yet.
    pub requests: Windows<RequestCounts>,
    pub trades: Windows<TradeCounts>,
    /// The cost of the transactions that executed its trades.
    pub gas: Windows<GasCounts>,
    /// Deliveries to its webhook.
    pub webhooks: Windows<WebhookCounts>,
    /// The time at which the last request was answered.
    pub last_used_at: Option<Timestamp>,
}

/// Adds the counts of a process.
pub async fn add(tx: &mut Tx, hours: &[KeyHour]) -> Result<(), StoreError> {
    const REFUSALS: &str = "INSERT INTO usage_refusals (key_id, hour_ms, code, refused) VALUES ($1, $2, $3, $4)
        ON CONFLICT (key_id, hour_ms, code) DO UPDATE SET refused = usage_refusals.refused + excluded.refused";
    const LATENCY: &str = "INSERT INTO usage_latency (key_id, hour_ms, octave,
        n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
        ON CONFLICT (key_id, hour_ms, octave) DO UPDATE SET
        n0 = usage_latency.n0 + excluded.n0, n1 = usage_latency.n1 + excluded.n1,
        n2 = usage_latency.n2 + excluded.n2, n3 = usage_latency.n3 + excluded.n3,
        n4 = usage_latency.n4 + excluded.n4, n5 = usage_latency.n5 + excluded.n5,
        n6 = usage_latency.n6 + excluded.n6, n7 = usage_latency.n7 + excluded.n7,
        n8 = usage_latency.n8 + excluded.n8, n9 = usage_latency.n9 + excluded.n9,
        n10 = usage_latency.n10 + excluded.n10, n11 = usage_latency.n11 + excluded.n11,
        n12 = usage_latency.n12 + excluded.n12, n13 = usage_latency.n13 + excluded.n13,
        n14 = usage_latency.n14 + excluded.n14, n15 = usage_latency.n15 + excluded.n15";
    const LAST_USED: &str = "INSERT INTO usage_keys (key_id, last_used_at_ms) VALUES ($1, $2)
        ON CONFLICT (key_id) DO UPDATE SET last_used_at_ms = excluded.last_used_at_ms
        WHERE usage_keys.last_used_at_ms < excluded.last_used_at_ms";
    let (mut refusals, mut latencies, mut last_used) = (Vec::new(), Vec::new(), Vec::new());
    for KeyHour { key_id, hour, last_used_at, counts } in hours {
        for (code, refused) in counts.refusals() {
            refusals.push(params![*key_id, *hour, code.as_str(), SqlValue::try_from(refused)?].to_vec());
        }
        for (octave, counts) in counts.latency.octaves() {
            let mut row = params![*key_id, *hour, SqlValue::try_from(octave as u64)?].to_vec();
            for count in counts {
                row.push(SqlValue::try_from(*count)?);
            }
            latencies.push(row);
        }
        last_used.push(params![*key_id, *last_used_at].to_vec());
    }
    for (sql, rows) in [(REFUSALS, refusals), (LATENCY, latencies), (LAST_USED, last_used)] {
        if !rows.is_empty() {
            tx.exec_each(sql, &rows).await?;
        }
    }
    Ok(())
}

/// The events that [`add_delivery`] counts.
pub(crate) const DELIVERED: &str = "delivered";
pub(crate) const ATTEMPT_FAILED: &str = "attempt-failed";
pub(crate) const GIVEN_UP: &str = "failed";

/// The event of [`add_trade`] for an accepted trade. Its other events are statuses.
const CREATED: &str = "created";

/// Counts trades that were accepted at these times.
pub(crate) async fn add_created(tx: &mut Tx, created: &[(KeyId, Timestamp)]) -> Result<(), StoreError> {
    let created = created.iter().map(|(key_id, at)| (*key_id, *at, CREATED, Usdc::ZERO));
    add_trades(tx, created.collect()).await
}

/// Counts trades that ended at these times. Ignores states that are not terminal.
pub(crate) async fn add_ended(tx: &mut Tx, ended: &[(KeyId, Timestamp, &State)]) -> Result<(), StoreError> {
    let ended = ended.iter().filter(|(_, _, state)| state.status().is_terminal());
    let ended = ended.map(|(key_id, at, state)| {
        let volume = if let State::Completed(settlement) = state { settlement.usdc } else { Usdc::ZERO };
        (*key_id, *at, state.status().as_str(), volume)
    });
    add_trades(tx, ended.collect()).await
}

/// Removes a trade that ended at `at` in `state` from the counts, because the chain has decided
/// differently.
pub(crate) async fn take_back_ended(
    tx: &mut Tx,
    key_id: KeyId,
    at: Timestamp,
    state: &State,
) -> Result<(), StoreError> {
    // The volume is not reduced: only trades that did not complete are taken back, and they have
    // none.
    const SQL: &str = "UPDATE usage_trades SET trades = trades - 1
        WHERE key_id = $1 AND hour_ms = $2 AND event = $3 AND trades > 1";
    const LAST: &str =
        "DELETE FROM usage_trades WHERE key_id = $1 AND hour_ms = $2 AND event = $3 AND trades <= 1";
    let bound = params![key_id, hour_of(at), state.status().as_str()];
    if tx.exec(SQL, &bound).await? == 0 {
        tx.exec(LAST, &bound).await?;
    }
    Ok(())
}

async fn add_trades(
    tx: &mut Tx,
    trades: Vec<(KeyId, Timestamp, &'static str, Usdc)>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO usage_trades (key_id, hour_ms, event, trades, volume_usdc_atomic)
        SELECT x.key_id, x.hour_ms, x.event, x.trades, x.volume_usdc_atomic
        FROM ROWS($1 TEXT, $2 BIGINT, $3 TEXT, $4 BIGINT, $5 BIGINT)
        AS x(key_id, hour_ms, event, trades, volume_usdc_atomic) WHERE true
        ON CONFLICT (key_id, hour_ms, event) DO UPDATE SET trades = usage_trades.trades + excluded.trades,
        volume_usdc_atomic = usage_trades.volume_usdc_atomic + excluded.volume_usdc_atomic";
    // Sorted, so that all units lock the rows in the same order.
    let mut counts: BTreeMap<(KeyId, Timestamp, &str), (u32, Usdc)> = BTreeMap::new();
    for (key_id, at, event, volume) in trades {
        let (count, sum) = counts.entry((key_id, hour_of(at), event)).or_default();
        *count += 1;
        *sum = add_usdc(*sum, volume)?;
    }
    let row = |((key_id, hour, event), (count, volume))| params![key_id, hour, event, count, volume].to_vec();
    tx.queue_rows(SQL, counts.into_iter().map(row).collect()).await
}

const WEI_PER_GWEI: u128 = 1_000_000_000;

/// Adds the cost of a batch's transaction, which is final at `at`, to the keys of its trades. Must
/// be called once per batch: final costs are never taken back.
pub async fn add_batch_gas(
    tx: &mut Tx,
    batch_id: BatchId,
    gas_used: u64,
    wei_per_gas: u128,
    at: Timestamp,
) -> Result<(), StoreError> {
    // Sorted by key, so that concurrent batches lock the rows below in the same order.
    const TRADES: &str =
        "SELECT key_id, COUNT(*) AS trades FROM trades WHERE batch_id = $1 GROUP BY key_id ORDER BY key_id";
    const SQL: &str =
        "INSERT INTO usage_gas (key_id, hour_ms, gas, fee_gwei, fee_wei) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (key_id, hour_ms) DO UPDATE SET gas = usage_gas.gas + excluded.gas,
        fee_gwei = usage_gas.fee_gwei + excluded.fee_gwei, fee_wei = usage_gas.fee_wei + excluded.fee_wei";
    let keys: Vec<(KeyId, u64)> =
        tx.list(TRADES, &params![batch_id], |row| Ok((row.get("key_id")?, row.get("trades")?))).await?;
    let part = GasCounts::part_of(gas_used, wei_per_gas, keys.iter().map(|(_, trades)| trades).sum());
    let mut rows = Vec::with_capacity(keys.len());
    for (key_id, trades) in keys {
        let GasCounts { gas_used, fee_wei } = part.times(trades);
        // Fees are stored as two columns, because a sum of wei could exceed 64 bits.
        let gwei = u64::try_from(fee_wei / WEI_PER_GWEI).unwrap_or(u64::MAX);
        let wei = (fee_wei % WEI_PER_GWEI) as u64;
        let row = params![
            key_id,
            hour_of(at),
            SqlValue::try_from(gas_used)?,
            SqlValue::try_from(gwei)?,
            SqlValue::try_from(wei)?
        ];
        rows.push(row.to_vec());
    }
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Counts the events of an attempt at a delivery that ended at `at`.
pub(crate) async fn add_delivery(
    tx: &mut Tx,
    key_id: KeyId,
    at: Timestamp,
    events: &[&'static str],
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO usage_webhooks (key_id, hour_ms, event, counted) VALUES ($1, $2, $3, 1)
        ON CONFLICT (key_id, hour_ms, event) DO UPDATE SET counted = usage_webhooks.counted + 1";
    let rows: Vec<_> = events.iter().map(|event| params![key_id, hour_of(at), *event].to_vec()).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Returns the key's usage in the windows that end at `now`.
pub async fn sum(tx: &mut Tx, key_id: KeyId, now: Timestamp) -> Result<Used, StoreError> {
    // All hours of a group are in the same windows, so its latest hour identifies them.
    const REFUSALS: &str =
        "SELECT MAX(hour_ms) AS hour_ms, code, CAST(SUM(refused) AS BIGINT) AS refused FROM usage_refusals
        WHERE key_id = $1 AND hour_ms > $2 GROUP BY code, hour_ms > $3, hour_ms > $4";
    const LATENCY: &str = "SELECT MAX(hour_ms) AS hour_ms, octave,
        CAST(SUM(n0) AS BIGINT) AS n0, CAST(SUM(n1) AS BIGINT) AS n1, CAST(SUM(n2) AS BIGINT) AS n2, CAST(SUM(n3) AS BIGINT) AS n3,
        CAST(SUM(n4) AS BIGINT) AS n4, CAST(SUM(n5) AS BIGINT) AS n5, CAST(SUM(n6) AS BIGINT) AS n6, CAST(SUM(n7) AS BIGINT) AS n7,
        CAST(SUM(n8) AS BIGINT) AS n8, CAST(SUM(n9) AS BIGINT) AS n9, CAST(SUM(n10) AS BIGINT) AS n10, CAST(SUM(n11) AS BIGINT) AS n11,
        CAST(SUM(n12) AS BIGINT) AS n12, CAST(SUM(n13) AS BIGINT) AS n13, CAST(SUM(n14) AS BIGINT) AS n14, CAST(SUM(n15) AS BIGINT) AS n15
        FROM usage_latency WHERE key_id = $1 AND hour_ms > $2 GROUP BY octave, hour_ms > $3, hour_ms > $4";
    const TRADES: &str = "SELECT MAX(hour_ms) AS hour_ms, event, CAST(SUM(trades) AS BIGINT) AS trades,
        CAST(SUM(volume_usdc_atomic) AS BIGINT) AS volume_usdc_atomic
        FROM usage_trades WHERE key_id = $1 AND hour_ms > $2 GROUP BY event, hour_ms > $3, hour_ms > $4";
    const WEBHOOKS: &str =
        "SELECT MAX(hour_ms) AS hour_ms, event, CAST(SUM(counted) AS BIGINT) AS counted FROM usage_webhooks
        WHERE key_id = $1 AND hour_ms > $2 GROUP BY event, hour_ms > $3, hour_ms > $4";
    const GAS: &str = "SELECT MAX(hour_ms) AS hour_ms, CAST(SUM(gas) AS BIGINT) AS gas,
        CAST(SUM(fee_gwei) AS BIGINT) AS fee_gwei, CAST(SUM(fee_wei) AS BIGINT) AS fee_wei FROM usage_gas WHERE key_id = $1 AND hour_ms > $2 GROUP BY hour_ms > $3, hour_ms > $4";
    // Pending deliveries are not counted as events happen. They are read from the queue.
    const WAITING: &str = "SELECT MAX(began_at_ms) AS began_at_ms, COUNT(*) AS pending FROM webhook_queue
        WHERE key_id = $1 AND began_at_ms > $2 GROUP BY began_at_ms > $3, began_at_ms > $4";
    const LAST_USED: &str = "SELECT last_used_at_ms FROM usage_keys WHERE key_id = $1";
    let starts = window_starts(now);
    let bound = params![key_id, starts.month, starts.week, starts.day];
    let mut used = Used::default();
    for (hour, code, refused) in tx.list(REFUSALS, &bound, refusals_of).await? {
        used.requests.holding(hour, now).for_each(|window| window.add_refusals(code, refused));
    }
    for (hour, octave, counts) in tx.list(LATENCY, &bound, latencies_of).await? {
        used.requests.holding(hour, now).for_each(|window| window.latency.add(octave, &counts));
    }
    for (hour, counts) in tx.list(TRADES, &bound, trades_of).await? {
        used.trades.holding(hour, now).for_each(|window| window.merge(&counts));
    }
    for (hour, counts) in tx.list(GAS, &bound, gas_of).await? {
        used.gas.holding(hour, now).for_each(|window| window.merge(&counts));
    }
    for (hour, counts) in tx.list(WEBHOOKS, &bound, webhooks_of).await? {
        used.webhooks.holding(hour, now).for_each(|window| window.merge(&counts));
    }
    for (began, pending) in
        tx.list(WAITING, &bound, |row| Ok((row.get("began_at_ms")?, row.get("pending")?))).await?
    {
        let counts = WebhookCounts { pending, ..WebhookCounts::default() };
        used.webhooks.holding(began, now).for_each(|window| window.merge(&counts));
    }
    used.last_used_at = tx.find(LAST_USED, &params![key_id], |row| row.only()).await?;
    Ok(used)
}

/// Lists the usage of all API keys of a user by hours that began at or after `since`, oldest first,
/// except for requests that processes have not added yet.
pub async fn list_hours(
    tx: &mut Tx,
    user_id: UserId,
    since: Timestamp,
) -> Result<Vec<UsagePoint>, StoreError> {
    const REQUESTS: &str = "SELECT hour_ms, CAST(SUM(n0 + n1 + n2 + n3 + n4 + n5 + n6 + n7 + n8 + n9 + n10
        + n11 + n12 + n13 + n14 + n15) AS BIGINT) AS requests FROM usage_latency
        JOIN keys ON keys.id = key_id WHERE user_id = $1 AND kind = 'api' AND hour_ms >= $2 GROUP BY hour_ms";
    const REJECTED: &str = "SELECT hour_ms, CAST(SUM(refused) AS BIGINT) AS rejected FROM usage_refusals
        JOIN keys ON keys.id = key_id WHERE user_id = $1 AND kind = 'api' AND hour_ms >= $2 GROUP BY hour_ms";
    const TRADES: &str = "SELECT hour_ms, CAST(SUM(trades) AS BIGINT) AS trades,
        CAST(SUM(volume_usdc_atomic) AS BIGINT) AS volume_usdc_atomic FROM usage_trades
        JOIN keys ON keys.id = key_id WHERE user_id = $1 AND kind = 'api' AND hour_ms >= $2
        AND event = 'completed' GROUP BY hour_ms";
    let bound = params![user_id, since];
    let at = |row: &Row<'_>| Ok::<_, StoreError>(UsagePoint::at(row.get("hour_ms")?));
    let mut points = tx
        .list(REQUESTS, &bound, |row| Ok(UsagePoint { requests: row.get("requests")?, ..at(row)? }))
        .await?;
    points.extend(
        tx.list(REJECTED, &bound, |row| Ok(UsagePoint { rejected: row.get("rejected")?, ..at(row)? }))
            .await?,
    );
    let traded = tx.list(TRADES, &bound, |row| {
        let (trades, volume) = (row.get("trades")?, row.get("volume_usdc_atomic")?);
        Ok(UsagePoint { trades, volume, ..at(row)? })
    });
    points.extend(traded.await?);
    let mut hours = BTreeMap::new();
    for point in points {
        hours.entry(point.start).or_insert_with(|| UsagePoint::at(point.start)).merge(&point);
    }
    Ok(hours.into_values().collect())
}

fn refusals_of(row: &Row<'_>) -> Result<(Timestamp, ErrorCode, u64), StoreError> {
    Ok((row.get("hour_ms")?, row.get("code")?, row.get("refused")?))
}

fn latencies_of(row: &Row<'_>) -> Result<(Timestamp, usize, [u64; STEPS]), StoreError> {
    const COUNTS: [&str; STEPS] = [
        "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "n13", "n14", "n15",
    ];
    let mut columns = row.columns();
    let (hour, octave) = (columns.next("hour_ms")?, columns.next("octave")?);
    if octave >= OCTAVES {
        return Err(row.corrupt("octave", "not a doubling of the histogram"));
    }
    let mut counts = [0; STEPS];
    for (column, count) in COUNTS.into_iter().zip(&mut counts) {
        *count = columns.next(column)?;
    }
    Ok((hour, octave, counts))
}

fn trades_of(row: &Row<'_>) -> Result<(Timestamp, TradeCounts), StoreError> {
    let trades = row.get("trades")?;
    let mut counts = TradeCounts::default();
    match row.get::<String>("event")?.as_str() {
        CREATED => counts.created = trades,
        event => match event.parse() {
            Ok(Status::Completed) => counts.completed = trades,
            Ok(Status::Failed) => counts.failed = trades,
            Ok(Status::Rejected) => counts.rejected = trades,
            _ => return Err(row.corrupt("event", "not an event of a trade")),
        },
    }
    counts.volume_usdc = row.get("volume_usdc_atomic")?;
    Ok((row.get("hour_ms")?, counts))
}

fn gas_of(row: &Row<'_>) -> Result<(Timestamp, GasCounts), StoreError> {
    let (gwei, wei): (u64, u64) = (row.get("fee_gwei")?, row.get("fee_wei")?);
    let fee_wei = u128::from(gwei) * WEI_PER_GWEI + u128::from(wei);
    Ok((row.get("hour_ms")?, GasCounts { gas_used: row.get("gas")?, fee_wei }))
}

fn webhooks_of(row: &Row<'_>) -> Result<(Timestamp, WebhookCounts), StoreError> {
    let counted = row.get("counted")?;
    let mut counts = WebhookCounts::default();
    match row.get::<String>("event")?.as_str() {
        DELIVERED => counts.delivered = counted,
        ATTEMPT_FAILED => counts.failed_attempts = counted,
        GIVEN_UP => counts.failed = counted,
        _ => return Err(row.corrupt("event", "not an event of a delivery")),
    }
    Ok((row.get("hour_ms")?, counts))
}

/// Deletes hours that began before `before`, at most `limit` rows per table. Returns the largest
/// number of rows deleted from one table, so that the caller knows whether to continue.
pub async fn delete_before(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const SQL: [&str; 5] = [
        "DELETE FROM usage_gas WHERE (key_id, hour_ms) IN (
            SELECT key_id, hour_ms FROM usage_gas WHERE hour_ms < $1 LIMIT $2)",
        "DELETE FROM usage_refusals WHERE (key_id, hour_ms, code) IN (
            SELECT key_id, hour_ms, code FROM usage_refusals WHERE hour_ms < $1 LIMIT $2)",
        "DELETE FROM usage_latency WHERE (key_id, hour_ms, octave) IN (
            SELECT key_id, hour_ms, octave FROM usage_latency WHERE hour_ms < $1 LIMIT $2)",
        "DELETE FROM usage_trades WHERE (key_id, hour_ms, event) IN (
            SELECT key_id, hour_ms, event FROM usage_trades WHERE hour_ms < $1 LIMIT $2)",
        "DELETE FROM usage_webhooks WHERE (key_id, hour_ms, event) IN (
            SELECT key_id, hour_ms, event FROM usage_webhooks WHERE hour_ms < $1 LIMIT $2)",
    ];
    let mut most = 0;
    for sql in SQL {
        most = most.max(tx.exec(sql, &params![before, limit]).await?);
    }
    Ok(most)
}
