//! The windows over which trending markets are ranked. They start at multiples of five minutes and
//! end now.
//!
//! A trade is added to every window that contains its five-minute bucket. When a window moves on,
//! it loses the sums of the buckets that it leaves. An account leaves it when its last trade in the
//! market does.

use std::collections::{BTreeMap, BTreeSet};

use domain::ids::MarketId;
use domain::time::{DAY_MS, HOUR_MS};
use domain::trending::score_e4;
use domain::{Timestamp, Usdc};

use super::deeds::Figures;
use super::{leaderboard, lock};
use crate::{SqlValue, StoreError, Tx, params};

/// The granularity of the windows' starts, in milliseconds.
pub const BUCKET_MS: i64 = 300_000;

/// The time window of a ranking. It ends now and begins at a multiple of five minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RankingWindow {
    OneHour,
    #[default]
    OneDay,
    SevenDays,
}

impl RankingWindow {
    /// All windows, shortest first.
    pub const ALL: [Self; 3] = [Self::OneHour, Self::OneDay, Self::SevenDays];

    /// The length in milliseconds.
    pub const fn ms(self) -> i64 {
        match self {
            Self::OneHour => HOUR_MS,
            Self::OneDay => DAY_MS,
            Self::SevenDays => 7 * DAY_MS,
        }
    }
}

/// Each window's length and start, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edges(pub Vec<(i64, i64)>);

impl Edges {
    /// The start of a window.
    pub fn of(&self, window: RankingWindow) -> i64 {
        self.0.iter().find(|(window_ms, _)| *window_ms == window.ms()).map_or(0, |(_, start)| *start)
    }
}

/// A change of a market's figures in a window.
#[derive(Debug, Clone, Copy, Default)]
pub struct InWindow {
    pub trades: i64,
    /// USDC traded, in atomic units.
    pub volume: i64,
    /// Accounts whose last trade is within the window.
    pub unique_traders: i64,
}

/// The start of the five-minute bucket of an instant.
pub const fn bucket_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(BUCKET_MS) * BUCKET_MS
}

/// Adds to buckets that are still part of a window.
pub async fn add_buckets(
    tx: &mut Tx,
    buckets: &BTreeMap<(i64, MarketId), Figures>,
    edges: &Edges,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO market_buckets (start_ms, market_id, trade_count, volume_usdc_atomic)
        VALUES ($1, $2, $3, $4) ON CONFLICT (start_ms, market_id) DO UPDATE SET
        trade_count = market_buckets.trade_count + excluded.trade_count,
        volume_usdc_atomic = market_buckets.volume_usdc_atomic + excluded.volume_usdc_atomic";
    const FORGET: &str =
        "DELETE FROM market_buckets WHERE start_ms = $1 AND market_id = $2 AND trade_count = 0";
    let oldest = edges.of(RankingWindow::SevenDays);
    let kept = || buckets.iter().filter(|((start, _), figures)| *start >= oldest && !figures.is_none());
    let rows: Vec<Vec<SqlValue<'_>>> =
        kept().map(|((start, id), f)| params![*start, *id, f.trades, f.volume].to_vec()).collect();
    tx.exec_each(SQL, &rows).await?;
    let less = kept().filter(|(_, figures)| figures.trades < 0);
    let rows: Vec<Vec<SqlValue<'_>>> = less.map(|((start, id), _)| params![*start, *id].to_vec()).collect();
    tx.exec_each(FORGET, &rows).await.map(drop)
}

/// Adds to markets' figures in windows and updates their scores.
pub async fn add(tx: &mut Tx, changes: &BTreeMap<(i64, MarketId), InWindow>) -> Result<(), StoreError> {
    const FIND: &str = "SELECT trade_count, volume_usdc_atomic, unique_traders FROM trending_markets
        WHERE window_ms = $1 AND market_id = $2";
    const PUT: &str = "INSERT INTO trending_markets (window_ms, market_id, trade_count, volume_usdc_atomic,
        unique_traders, score_e4) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (window_ms, market_id) DO UPDATE SET
        trade_count = excluded.trade_count, volume_usdc_atomic = excluded.volume_usdc_atomic,
        unique_traders = excluded.unique_traders, score_e4 = excluded.score_e4";
    const FORGET: &str = "DELETE FROM trending_markets WHERE window_ms = $1 AND market_id = $2";
    let (mut rows, mut gone): (Vec<Vec<SqlValue<'_>>>, Vec<Vec<SqlValue<'_>>>) = (Vec::new(), Vec::new());
    for ((window_ms, id), change) in changes {
        if change.trades == 0 && change.volume == 0 && change.unique_traders == 0 {
            continue;
        }
        let place = params![*window_ms, *id];
        let found = tx.find(FIND, &place, |row| {
            Ok((row.get("trade_count")?, row.get("volume_usdc_atomic")?, row.get("unique_traders")?))
        });
        let (trades, volume, unique_traders): (i64, i64, i64) = found.await?.unwrap_or_default();
        let trades = trades + change.trades;
        let (volume, unique_traders) = (volume + change.volume, unique_traders + change.unique_traders);
        // A market without trades in the window is not ranked.
        if trades <= 0 {
            gone.push(params![*window_ms, *id].to_vec());
            continue;
        }
        let natural = |n: i64| u64::try_from(n).unwrap_or_default();
        let score = score_e4(natural(unique_traders), natural(trades), Usdc::from_atomic(natural(volume)));
        rows.push(params![*window_ms, *id, trades, volume, unique_traders, score].to_vec());
    }
    tx.exec_each(PUT, &rows).await?;
    tx.exec_each(FORGET, &gone).await.map(drop)
}

/// Moves the windows to `now` and deletes buckets and spans that are no longer read.
pub async fn advance(tx: &mut Tx, now: Timestamp) -> Result<(), StoreError> {
    const MOVE: &str = "UPDATE trending_windows SET start_ms = $1 WHERE window_ms = $2";
    const FORGET: &str = "DELETE FROM market_buckets WHERE start_ms < $1";
    let mut edges = lock(tx).await?;
    for (window_ms, start) in &mut edges.0 {
        let next = bucket_of(now.ms() - *window_ms);
        // Windows never move back, even if the clock does.
        if next <= *start {
            continue;
        }
        leave(tx, *window_ms, *start, next).await?;
        tx.exec(MOVE, &params![next, *window_ms]).await?;
        *start = next;
    }
    // Only after every window has subtracted the buckets that it leaves.
    tx.exec(FORGET, &params![edges.of(RankingWindow::SevenDays)]).await?;
    leaderboard::forget(tx, &edges).await
}

/// Subtracts what a window loses between its old and its new start.
async fn leave(tx: &mut Tx, window_ms: i64, start: i64, next: i64) -> Result<(), StoreError> {
    const TRADES: &str =
        "SELECT market_id, CAST(SUM(trade_count) AS BIGINT) AS trades, CAST(SUM(volume_usdc_atomic) AS BIGINT) AS volume
        FROM market_buckets WHERE start_ms >= $1 AND start_ms < $2 GROUP BY market_id";
    const TRADERS: &str =
        "SELECT market_id, COUNT(*) AS traders FROM traders WHERE last_trade_ms >= $1 AND last_trade_ms < $2
        AND trade_count > 0 GROUP BY market_id";
    let mut changes: BTreeMap<(i64, MarketId), InWindow> = BTreeMap::new();
    for (id, trades, volume) in tx
        .list(TRADES, &params![start, next], |row| {
            Ok((row.get("market_id")?, row.get::<i64>("trades")?, row.get::<i64>("volume")?))
        })
        .await?
    {
        let change = changes.entry((window_ms, id)).or_default();
        (change.trades, change.volume) = (-trades, -volume);
    }
    let known: BTreeSet<(i64, MarketId)> = changes.keys().copied().collect();
    for (id, traders) in tx
        .list(TRADERS, &params![start, next], |row| Ok((row.get("market_id")?, row.get::<i64>("traders")?)))
        .await?
    {
        if known.contains(&(window_ms, id)) {
            changes.entry((window_ms, id)).or_default().unique_traders = -traders;
        }
    }
    add(tx, &changes).await
}
