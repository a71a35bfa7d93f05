//! Stored candles, and the backlog of markets whose candles must be rebuilt.

use std::borrow::Cow;
use std::collections::BTreeMap;

use domain::candle::{Bucket, Candle, Course, Interval};
use domain::ids::MarketId;
use domain::{Timestamp, Usdc, Wad};

use crate::bind::{from_json, to_json};
use crate::record::{Insert, Record, ToColumn, record};
use crate::{Cell, FromColumn, SqlValue, StoreError, Tx, params};

/// A traded outcome as stored: index, open/high/low/close, atomic USDC, tokens, number of trades.
type Traded = (u8, [String; 4], u64, String, u64);

record!(impl Bucket: Insert {
    interval: Interval = "interval_ms",
    start: Timestamp = "start_ms",
    at: Timestamp = "at_ms",
    block: u64 = "block_number",
    market_trades: u64 = "trade_count",
    cost: Course = ..,
    quantities: Vec<Wad>,
    traded: BTreeMap<u8, Candle>,
});

record!(impl Course: Insert {
    open: Wad = "open_cost_wad",
    high: Wad = "high_cost_wad",
    low: Wad = "low_cost_wad",
    close: Wad = "cost_wad",
});

impl FromColumn for Interval {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        let ms = cell.int()?;
        let interval = Self::ALL.into_iter().find(|interval| interval.ms() == ms);
        interval.ok_or(Cow::Borrowed("not an interval"))
    }
}

impl ToColumn for Interval {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        Ok(SqlValue::from(self.ms()))
    }
}

impl ToColumn for BTreeMap<u8, Candle> {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        to_json(&self.iter().map(traded).collect::<Vec<Traded>>())
    }
}

impl FromColumn for BTreeMap<u8, Candle> {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        const EXPECTED: &str = "not a list of traded outcomes";
        let traded: Vec<Traded> = from_json(cell, EXPECTED)?;
        let candles: Option<Self> = traded.into_iter().map(candle).collect();
        candles.ok_or(Cow::Borrowed(EXPECTED))
    }
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

/// Inserts or replaces buckets.
pub async fn put(tx: &mut Tx, market_id: MarketId, buckets: &[Bucket]) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO candles (",
        Bucket::COLUMNS,
        ", market_id) VALUES (",
        Bucket::PLACEHOLDERS,
        ", $12)
        ON CONFLICT (market_id, interval_ms, start_ms) DO UPDATE SET at_ms = excluded.at_ms,
        block_number = excluded.block_number, trade_count = excluded.trade_count,
        open_cost_wad = excluded.open_cost_wad, high_cost_wad = excluded.high_cost_wad,
        low_cost_wad = excluded.low_cost_wad, cost_wad = excluded.cost_wad, quantities = excluded.quantities,
        traded = excluded.traded"
    );
    let rows: Result<Vec<Vec<SqlValue<'_>>>, StoreError> = buckets
        .iter()
        .map(|bucket| {
            let mut values = bucket.values()?;
            values.push(market_id.into());
            Ok(values)
        })
        .collect();
    tx.exec_each(SQL, &rows?).await.map(drop)
}

/// Lists a market's buckets of a stored interval that start within `from..to`, and the last one
/// before them, in order. A single statement, so that all of them are from the same state.
pub async fn list(
    tx: &mut Tx,
    market_id: MarketId,
    interval: Interval,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Bucket>, StoreError> {
    // The last bucket before the range gives the price at its start.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Bucket::COLUMNS,
        " FROM candles WHERE market_id = $1 AND interval_ms = $2 AND start_ms < $3 AND start_ms >= COALESCE(
        (SELECT MAX(start_ms) FROM candles WHERE market_id = $1 AND interval_ms = $2 AND start_ms < $4), $4)
        ORDER BY start_ms"
    );
    tx.list(SQL, &params![market_id, interval.ms(), to, from], Bucket::from_row).await
}

/// Returns a market's last bucket of each stored interval.
pub async fn list_last(tx: &mut Tx, market_id: MarketId) -> Result<Vec<Bucket>, StoreError> {
    const LAST: &str = "(SELECT MAX(start_ms) FROM candles WHERE market_id = $1 AND interval_ms = i.span_ms)";
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Bucket::COLUMNS,
        " FROM (SELECT ",
        Interval::OneMinute.ms(),
        " AS span_ms UNION ALL SELECT ",
        Interval::FiveMinutes.ms(),
        " UNION ALL SELECT ",
        Interval::OneHour.ms(),
        " UNION ALL SELECT ",
        Interval::OneDay.ms(),
        ") i JOIN candles c ON c.market_id = $1 AND c.interval_ms = i.span_ms AND c.start_ms = ",
        LAST
    );
    tx.list(SQL, &params![market_id], Bucket::from_row).await
}

/// Deletes a market's buckets that end after `at`.
pub async fn delete_after(tx: &mut Tx, market_id: MarketId, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM candles WHERE market_id = $1 AND interval_ms = $2 AND start_ms >= $3";
    let rows: Vec<_> = Interval::STORED
        .into_iter()
        // The bucket that contains `at` ends after it.
        .map(|interval| params![market_id, interval.ms(), interval.floor(at)].to_vec())
        .collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

record! {
    /// A market in the backlog.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CandleBacklogEntry {
        pub market_id: MarketId,
        /// The last movement that its candles include. Empty if none.
        pub after_movement_id: String,
    }
}

/// Returns a market from the backlog, if there is one.
pub async fn find_behind(tx: &mut Tx) -> Result<Option<CandleBacklogEntry>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        CandleBacklogEntry::COLUMNS,
        " FROM candle_backlog ORDER BY market_id LIMIT 1"
    );
    tx.find(SQL, &[], CandleBacklogEntry::from_row).await
}

/// Reports whether a market is in the backlog.
pub async fn is_behind(tx: &mut Tx, market_id: MarketId) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM candle_backlog WHERE market_id = $1";
    tx.exists(SQL, &params![market_id]).await
}

/// Stores the progress of a market's rebuild.
pub async fn advance(tx: &mut Tx, market_id: MarketId, after_movement_id: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE candle_backlog SET after_movement_id = $1 WHERE market_id = $2";
    tx.exec(SQL, &params![after_movement_id, market_id]).await.map(drop)
}

/// Removes a market from the backlog, because its candles include all movements.
pub async fn finish(tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM candle_backlog WHERE market_id = $1";
    tx.exec(SQL, &params![market_id]).await.map(drop)
}

/// Deletes a market's candles and puts it into the backlog.
pub async fn restart(tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
    const CANDLES: &str = "DELETE FROM candles WHERE market_id = $1";
    const BACKLOG: &str = "INSERT INTO candle_backlog (market_id, after_movement_id) VALUES ($1, '')
        ON CONFLICT (market_id) DO UPDATE SET after_movement_id = excluded.after_movement_id";
    tx.exec(CANDLES, &params![market_id]).await?;
    tx.exec(BACKLOG, &params![market_id]).await.map(drop)
}
