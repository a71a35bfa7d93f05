//! What keys were used for: hours that every process adds to, and their sums over the windows that end now.
//!
//! Requests are counted in memory and added here every few seconds. Trades are counted where they happen, in the same
//! transaction, so that their numbers are those of the trades themselves; deliveries to webhooks likewise.

use domain::ids::{BatchId, KeyId};
use domain::trade::{State, Status};
use domain::usage::{
    GasCounts, OCTAVES, RequestCounts, STEPS, TradeCounts, WebhookCounts, Windows, hour_of, window_starts,
};
use domain::{ErrorCode, Timestamp, Usdc};

use crate::webhooks::Ending;
use crate::{Row, StoreError, Tx, Value, params};

/// What one process has counted of a key's requests within one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHour {
    /// The key.
    pub key_id: KeyId,
    /// The hour's start.
    pub hour: Timestamp,
    /// When the last of the requests was answered.
    pub last_used_at: Timestamp,
    /// The requests.
    pub counts: RequestCounts,
}

/// What a key was used for in the windows that end now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Used {
    /// Its requests, but for those that processes have not added yet.
    pub requests: Windows<RequestCounts>,
    /// Its trades.
    pub trades: Windows<TradeCounts>,
    /// What the transactions cost that carried its trades.
    pub gas: Windows<GasCounts>,
    /// The deliveries to its webhook.
    pub webhooks: Windows<WebhookCounts>,
    /// When its last request was answered.
    pub last_used_at: Option<Timestamp>,
}

/// Adds what a process has counted.
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
            refusals.push(params![*key_id, *hour, code.as_str(), Value::try_from(refused)?].to_vec());
        }
        for (octave, counts) in counts.latency.octaves() {
            let mut row = params![*key_id, *hour, Value::try_from(octave as u64)?].to_vec();
            for count in counts {
                row.push(Value::try_from(*count)?);
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

/// The events of [`add_delivery`].
const DELIVERED: &str = "delivered";
const ATTEMPT_FAILED: &str = "attempt-failed";
const GIVEN_UP: &str = "failed";

/// The event of [`add_trade`] that is not a status: a trade was accepted.
const CREATED: &str = "created";

/// Counts a trade that was accepted at `at`.
pub(crate) async fn add_created(tx: &mut Tx, key_id: KeyId, at: Timestamp) -> Result<(), StoreError> {
    add_trade(tx, key_id, at, CREATED, Usdc::ZERO).await
}

/// Counts a trade that ended at `at`; a state that is no end is not counted.
pub(crate) async fn add_ended(
    tx: &mut Tx,
    key_id: KeyId,
    at: Timestamp,
    state: &State,
) -> Result<(), StoreError> {
    let volume = if let State::Completed(settlement) = state { settlement.usdc } else { Usdc::ZERO };
    if state.status().is_terminal() {
        add_trade(tx, key_id, at, state.status().as_str(), volume).await
    } else {
        Ok(())
    }
}

/// Counts a trade that had ended at `at` in `state` no longer, because the chain has decided otherwise.
pub(crate) async fn take_back_ended(
    tx: &mut Tx,
    key_id: KeyId,
    at: Timestamp,
    state: &State,
) -> Result<(), StoreError> {
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

async fn add_trade(
    tx: &mut Tx,
    key_id: KeyId,
    at: Timestamp,
    event: &'static str,
    volume: Usdc,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO usage_trades (key_id, hour_ms, event, trades, volume_usdc_atomic)
        VALUES ($1, $2, $3, 1, $4) ON CONFLICT (key_id, hour_ms, event) DO UPDATE SET trades = usage_trades.trades + 1,
        volume_usdc_atomic = usage_trades.volume_usdc_atomic + excluded.volume_usdc_atomic";
    tx.exec(SQL, &params![key_id, hour_of(at), event, volume]).await.map(drop)
}

const WEI_PER_GWEI: u128 = 1_000_000_000;

/// Counts what the transaction cost that carried a batch and that is final at `at`, divided over the keys of its trades. Once for
/// each batch: nothing takes back what is final.
pub async fn add_batch_gas(
    tx: &mut Tx,
    batch_id: BatchId,
    gas_used: u64,
    wei_per_gas: u128,
    at: Timestamp,
) -> Result<(), StoreError> {
    const TRADES: &str =
        "SELECT key_id, COUNT(*) FROM trades WHERE batch_id = $1 GROUP BY key_id ORDER BY key_id";
    const SQL: &str =
        "INSERT INTO usage_gas (key_id, hour_ms, gas, fee_gwei, fee_wei) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (key_id, hour_ms) DO UPDATE SET gas = usage_gas.gas + excluded.gas,
        fee_gwei = usage_gas.fee_gwei + excluded.fee_gwei, fee_wei = usage_gas.fee_wei + excluded.fee_wei";
    let keys: Vec<(KeyId, u64)> =
        tx.list(TRADES, &params![batch_id], |row| Ok((row.parse(0)?, row.number(1)?))).await?;
    let part = GasCounts::part_of(gas_used, wei_per_gas, keys.iter().map(|(_, trades)| trades).sum());
    let mut rows = Vec::with_capacity(keys.len());
    for (key_id, trades) in keys {
        let GasCounts { gas_used, fee_wei } = part.times(trades);
        let gwei = u64::try_from(fee_wei / WEI_PER_GWEI).unwrap_or(u64::MAX);
        let wei = (fee_wei % WEI_PER_GWEI) as u64;
        let row = params![
            key_id,
            hour_of(at),
            Value::try_from(gas_used)?,
            Value::try_from(gwei)?,
            Value::try_from(wei)?
        ];
        rows.push(row.to_vec());
    }
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Counts an attempt to deliver that ended at `at`: what it delivered, or that it failed, and where it was the last that too.
pub(crate) async fn add_delivery(
    tx: &mut Tx,
    key_id: KeyId,
    at: Timestamp,
    ending: Ending,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO usage_webhooks (key_id, hour_ms, event, counted) VALUES ($1, $2, $3, 1)
        ON CONFLICT (key_id, hour_ms, event) DO UPDATE SET counted = usage_webhooks.counted + 1";
    let events: &[&'static str] = match ending {
        Ending::Delivered => &[DELIVERED],
        Ending::Retry => &[ATTEMPT_FAILED],
        Ending::Failed => &[ATTEMPT_FAILED, GIVEN_UP],
    };
    let rows: Vec<_> = events.iter().map(|event| params![key_id, hour_of(at), *event].to_vec()).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// What the key was used for in the windows that end at `now`.
pub async fn sum(tx: &mut Tx, key_id: KeyId, now: Timestamp) -> Result<Used, StoreError> {
    // Hours of one group lie in the same windows, and so the latest of them says in which.
    const REFUSALS: &str = "SELECT MAX(hour_ms), code, CAST(SUM(refused) AS BIGINT) FROM usage_refusals
        WHERE key_id = $1 AND hour_ms > $2 GROUP BY code, hour_ms > $3, hour_ms > $4";
    const LATENCY: &str = "SELECT MAX(hour_ms), octave,
        CAST(SUM(n0) AS BIGINT), CAST(SUM(n1) AS BIGINT), CAST(SUM(n2) AS BIGINT), CAST(SUM(n3) AS BIGINT),
        CAST(SUM(n4) AS BIGINT), CAST(SUM(n5) AS BIGINT), CAST(SUM(n6) AS BIGINT), CAST(SUM(n7) AS BIGINT),
        CAST(SUM(n8) AS BIGINT), CAST(SUM(n9) AS BIGINT), CAST(SUM(n10) AS BIGINT), CAST(SUM(n11) AS BIGINT),
        CAST(SUM(n12) AS BIGINT), CAST(SUM(n13) AS BIGINT), CAST(SUM(n14) AS BIGINT), CAST(SUM(n15) AS BIGINT)
        FROM usage_latency WHERE key_id = $1 AND hour_ms > $2 GROUP BY octave, hour_ms > $3, hour_ms > $4";
    const TRADES: &str =
        "SELECT MAX(hour_ms), event, CAST(SUM(trades) AS BIGINT), CAST(SUM(volume_usdc_atomic) AS BIGINT)
        FROM usage_trades WHERE key_id = $1 AND hour_ms > $2 GROUP BY event, hour_ms > $3, hour_ms > $4";
    const WEBHOOKS: &str = "SELECT MAX(hour_ms), event, CAST(SUM(counted) AS BIGINT) FROM usage_webhooks
        WHERE key_id = $1 AND hour_ms > $2 GROUP BY event, hour_ms > $3, hour_ms > $4";
    const GAS: &str = "SELECT MAX(hour_ms), CAST(SUM(gas) AS BIGINT), CAST(SUM(fee_gwei) AS BIGINT),
        CAST(SUM(fee_wei) AS BIGINT) FROM usage_gas WHERE key_id = $1 AND hour_ms > $2 GROUP BY hour_ms > $3, hour_ms > $4";
    // What waits is not counted as it happens: it is looked for where it waits.
    const WAITING: &str = "SELECT MAX(began_at_ms), COUNT(*) FROM webhook_queue
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
    for (began, pending) in tx.list(WAITING, &bound, |row| Ok((row.timestamp(0)?, row.number(1)?))).await? {
        let counts = WebhookCounts { pending, ..WebhookCounts::default() };
        used.webhooks.holding(began, now).for_each(|window| window.merge(&counts));
    }
    used.last_used_at = tx.find(LAST_USED, &params![key_id], |row| row.timestamp(0)).await?;
    Ok(used)
}

fn refusals_of(row: &Row<'_>) -> Result<(Timestamp, ErrorCode, u64), StoreError> {
    Ok((row.timestamp(0)?, row.parse(1)?, row.number(2)?))
}

fn latencies_of(row: &Row<'_>) -> Result<(Timestamp, usize, [u64; STEPS]), StoreError> {
    let octave: usize = row.number(1)?;
    if octave >= OCTAVES {
        return Err(row.corrupt(1, "not a doubling of the histogram"));
    }
    let mut counts = [0; STEPS];
    for (column, count) in (2..).zip(&mut counts) {
        *count = row.number(column)?;
    }
    Ok((row.timestamp(0)?, octave, counts))
}

fn trades_of(row: &Row<'_>) -> Result<(Timestamp, TradeCounts), StoreError> {
    let trades = row.number(2)?;
    let mut counts = TradeCounts::default();
    match row.str(1)? {
        CREATED => counts.created = trades,
        event => match event.parse() {
            Ok(Status::Completed) => counts.completed = trades,
            Ok(Status::Failed) => counts.failed = trades,
            Ok(Status::Rejected) => counts.rejected = trades,
            _ => return Err(row.corrupt(1, "not an event of a trade")),
        },
    }
    counts.volume_usdc = row.usdc(3)?;
    Ok((row.timestamp(0)?, counts))
}

fn gas_of(row: &Row<'_>) -> Result<(Timestamp, GasCounts), StoreError> {
    let (gwei, wei): (u64, u64) = (row.number(2)?, row.number(3)?);
    let fee_wei = u128::from(gwei) * WEI_PER_GWEI + u128::from(wei);
    Ok((row.timestamp(0)?, GasCounts { gas_used: row.number(1)?, fee_wei }))
}

fn webhooks_of(row: &Row<'_>) -> Result<(Timestamp, WebhookCounts), StoreError> {
    let counted = row.number(2)?;
    let mut counts = WebhookCounts::default();
    match row.str(1)? {
        DELIVERED => counts.delivered = counted,
        ATTEMPT_FAILED => counts.failed_attempts = counted,
        GIVEN_UP => counts.failed = counted,
        _ => return Err(row.corrupt(1, "not an event of a delivery")),
    }
    Ok((row.timestamp(0)?, counts))
}

/// Forgets the hours that began before `before`, at most `limit` rows of each kind; how many of the kind that had most.
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
