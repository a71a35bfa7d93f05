//! Candles as they are stored, and the markets whose candles are still to be made.

use std::collections::BTreeMap;

use domain::candle::{Bucket, Candle, Course, Interval};
use domain::ids::MarketId;
use domain::{Timestamp, Usdc, Wad};

use crate::{Row, StoreError, Tx, Value, params};

const COLUMNS: &str =
    "interval_ms, start_ms, at_ms, block_number, trade_count, open_cost_wad, high_cost_wad, low_cost_wad,
    cost_wad, quantities, traded";

/// What is stored of an outcome that was traded.
type Traded = (u8, [String; 4], u64, String, u64);

fn from_row(row: &Row<'_>) -> Result<Bucket, StoreError> {
    let interval = row.int(0)?;
    let interval = Interval::ALL.into_iter().find(|known| known.ms() == interval);
    let quantities: Option<Vec<Wad>> = row.texts(9)?.iter().map(|text| text.parse().ok()).collect();
    let traded: Option<Vec<Traded>> = serde_json::from_str(row.str(10)?).ok();
    let traded: Option<BTreeMap<u8, Candle>> =
        traded.and_then(|traded| traded.into_iter().map(candle).collect());
    Ok(Bucket {
        interval: interval.ok_or_else(|| row.corrupt(0, "not an interval"))?,
        start: row.timestamp(1)?,
        at: row.timestamp(2)?,
        block: row.number(3)?,
        market_trades: row.number(4)?,
        cost: Course { open: row.parse(5)?, high: row.parse(6)?, low: row.parse(7)?, close: row.parse(8)? },
        quantities: quantities.ok_or_else(|| row.corrupt(9, "not a list of WAD"))?,
        traded: traded.ok_or_else(|| row.corrupt(10, "not a list of traded outcomes"))?,
    })
}

fn candle((index, course, usdc_atomic, tokens, trades): Traded) -> Option<(u8, Candle)> {
    let [open, high, low, close] = course.map(|text| text.parse::<Wad>().ok());
    let distance = Course { open: open?, high: high?, low: low?, close: close? };
    let volume = Usdc::from_atomic(usdc_atomic);
    Some((index, Candle { distance, volume, tokens: tokens.parse().ok()?, trades }))
}

fn traded((index, candle): (&u8, &Candle)) -> Traded {
    let Course { open, high, low, close } = candle.distance;
    let course = [open, high, low, close].map(|wad| wad.to_string());
    (*index, course, candle.volume.atomic(), candle.tokens.to_string(), candle.trades)
}

/// Writes buckets as they are now.
pub async fn put(tx: &mut Tx, market_id: MarketId, buckets: &[Bucket]) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO candles (market_id, interval_ms, start_ms, at_ms, block_number, trade_count,
        open_cost_wad, high_cost_wad, low_cost_wad, cost_wad, quantities, traded)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT (market_id, interval_ms, start_ms) DO UPDATE SET at_ms = excluded.at_ms,
        block_number = excluded.block_number, trade_count = excluded.trade_count,
        open_cost_wad = excluded.open_cost_wad, high_cost_wad = excluded.high_cost_wad,
        low_cost_wad = excluded.low_cost_wad, cost_wad = excluded.cost_wad, quantities = excluded.quantities,
        traded = excluded.traded";
    let rows: Result<Vec<Vec<Value<'_>>>, StoreError> = buckets
        .iter()
        .map(|bucket| {
            let unwritable = |error: serde_json::Error| StoreError::unwritable(&error);
            let outcomes: Vec<Traded> = bucket.traded.iter().map(traded).collect();
            Ok(params![
                market_id,
                bucket.interval.ms(),
                bucket.start,
                bucket.at,
                Value::try_from(bucket.block)?,
                Value::try_from(bucket.market_trades)?,
                bucket.cost.open,
                bucket.cost.high,
                bucket.cost.low,
                bucket.cost.close,
                serde_json::to_string(&bucket.quantities).map_err(unwritable)?,
                serde_json::to_string(&outcomes).map_err(unwritable)?
            ]
            .to_vec())
        })
        .collect();
    tx.exec_each(SQL, &rows?).await.map(drop)
}

/// A market's buckets of a stored interval that start from `from` (inclusive) to `to` (exclusive), and the last one before
/// them, in their order. One statement, so all of one state.
pub async fn list(
    tx: &mut Tx,
    market_id: MarketId,
    interval: Interval,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Bucket>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM candles WHERE market_id = $1 AND interval_ms = $2 AND start_ms < $3 AND start_ms >= COALESCE(
        (SELECT MAX(start_ms) FROM candles WHERE market_id = $1 AND interval_ms = $2 AND start_ms < $4), $4)
        ORDER BY start_ms"
    );
    tx.list(SQL, &params![market_id, interval.ms(), to, from], from_row).await
}

/// A market's last bucket of each stored interval.
pub async fn list_last(tx: &mut Tx, market_id: MarketId) -> Result<Vec<Bucket>, StoreError> {
    const LAST: &str =
        "(SELECT MAX(start_ms) FROM candles WHERE market_id = $1 AND interval_ms = i.interval_ms)";
    const SQL: &str = const_format::concatcp!(
        "SELECT c.interval_ms, start_ms, at_ms, block_number, trade_count, open_cost_wad, high_cost_wad, low_cost_wad,
        cost_wad, quantities, traded FROM (SELECT ",
        Interval::OneMinute.ms(),
        " AS interval_ms UNION ALL SELECT ",
        Interval::FiveMinutes.ms(),
        " UNION ALL SELECT ",
        Interval::OneHour.ms(),
        " UNION ALL SELECT ",
        Interval::OneDay.ms(),
        ") i JOIN candles c ON c.market_id = $1 AND c.interval_ms = i.interval_ms AND c.start_ms = ",
        LAST
    );
    tx.list(SQL, &params![market_id], from_row).await
}

/// Forgets a market's buckets that end after `at`.
pub async fn delete_after(tx: &mut Tx, market_id: MarketId, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM candles WHERE market_id = $1 AND interval_ms = $2 AND start_ms >= $3";
    let rows: Vec<_> = Interval::STORED
        .into_iter()
        .map(|interval| params![market_id, interval.ms(), interval.floor(at)].to_vec())
        .collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// A market whose candles are still to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The market.
    pub market_id: MarketId,
    /// The last movement that its candles hold; empty for none.
    pub after_movement_id: String,
}

/// A market whose candles are still to be made, if there is one.
pub async fn find_behind(tx: &mut Tx) -> Result<Option<Behind>, StoreError> {
    const SQL: &str = "SELECT market_id, after_movement_id FROM candle_backlog ORDER BY market_id LIMIT 1";
    tx.find(SQL, &[], |row| Ok(Behind { market_id: row.parse(0)?, after_movement_id: row.text(1)? })).await
}

/// Whether this market's candles are still to be made.
pub async fn is_behind(tx: &mut Tx, market_id: MarketId) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM candle_backlog WHERE market_id = $1";
    Ok(tx.find(SQL, &params![market_id], |row| row.int(0)).await?.is_some())
}

/// Notes how far a market's candles are made.
pub async fn advance(tx: &mut Tx, market_id: MarketId, after_movement_id: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE candle_backlog SET after_movement_id = $1 WHERE market_id = $2";
    tx.exec(SQL, &params![after_movement_id, market_id]).await.map(drop)
}

/// Notes that a market's candles hold all its movements.
pub async fn finish(tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM candle_backlog WHERE market_id = $1";
    tx.exec(SQL, &params![market_id]).await.map(drop)
}

/// Forgets a market's candles and notes that all of them are to be made again.
pub async fn restart(tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
    const CANDLES: &str = "DELETE FROM candles WHERE market_id = $1";
    const BACKLOG: &str = "INSERT INTO candle_backlog (market_id, after_movement_id) VALUES ($1, '')
        ON CONFLICT (market_id) DO UPDATE SET after_movement_id = excluded.after_movement_id";
    tx.exec(CANDLES, &params![market_id]).await?;
    tx.exec(BACKLOG, &params![market_id]).await.map(drop)
}
