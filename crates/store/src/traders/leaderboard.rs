//! Leaderboards: accounts' trades and profit, in total and for recent spans.

use std::collections::BTreeMap;

use alloy_primitives::Address;
use domain::time::{DAY_MS, HOUR_MS};

use super::deeds::Figures;
use super::windows::{Edges, RankingWindow};
use crate::{SqlValue, StoreError, Tx, params};

/// The lengths of stored spans: hours for the last day, days for the last month.
pub const SPANS_MS: [i64; 2] = [HOUR_MS, DAY_MS];

/// The start of the oldest span that a current leaderboard may read, in milliseconds.
pub fn oldest(span_ms: i64, edges: &Edges) -> i64 {
    let a_day_ago = edges.of(RankingWindow::OneDay);
    // 29 days before the one-day window, so 30 days in total.
    let from = if span_ms == DAY_MS { a_day_ago - 29 * DAY_MS } else { a_day_ago };
    from.div_euclid(span_ms) * span_ms
}

/// Adds to accounts' all-time figures.
pub async fn add(tx: &mut Tx, accounts: &BTreeMap<Address, Figures>) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO leaderboard (account, trade_count, volume_usdc_atomic, realized_pnl_usdc_atomic)
        VALUES ($1, $2, $3, $4) ON CONFLICT (account) DO UPDATE SET
        trade_count = leaderboard.trade_count + excluded.trade_count,
        volume_usdc_atomic = leaderboard.volume_usdc_atomic + excluded.volume_usdc_atomic,
        realized_pnl_usdc_atomic = leaderboard.realized_pnl_usdc_atomic + excluded.realized_pnl_usdc_atomic";
    const FORGET: &str =
        "DELETE FROM leaderboard WHERE account = $1 AND trade_count = 0 AND volume_usdc_atomic = 0
        AND realized_pnl_usdc_atomic = 0";
    let changed = || accounts.iter().filter(|(_, figures)| !figures.is_none());
    let rows: Vec<Vec<SqlValue<'_>>> =
        changed().map(|(account, f)| params![*account, f.trades, f.volume, f.realized].to_vec()).collect();
    tx.exec_each(SQL, &rows).await?;
    // Only such changes can reduce a row to zero. Rows that are zero are deleted.
    let less = changed().filter(|(_, f)| f.trades < 0 || (f.trades == 0 && f.realized != 0));
    let rows: Vec<Vec<SqlValue<'_>>> = less.map(|(account, _)| params![*account].to_vec()).collect();
    tx.exec_each(FORGET, &rows).await.map(drop)
}

/// Adds to accounts' figures in recent hours and days. Ignores spans that are no longer read.
pub async fn add_spans(
    tx: &mut Tx,
    spans: &BTreeMap<(i64, i64, Address), Figures>,
    edges: &Edges,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO leaderboard_spans (span_ms, start_ms, account, trade_count, volume_usdc_atomic,
        realized_pnl_usdc_atomic) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (span_ms, start_ms, account) DO UPDATE SET
        trade_count = leaderboard_spans.trade_count + excluded.trade_count,
        volume_usdc_atomic = leaderboard_spans.volume_usdc_atomic + excluded.volume_usdc_atomic,
        realized_pnl_usdc_atomic = leaderboard_spans.realized_pnl_usdc_atomic + excluded.realized_pnl_usdc_atomic";
    const FORGET: &str = "DELETE FROM leaderboard_spans WHERE span_ms = $1 AND start_ms = $2 AND account = $3
        AND trade_count = 0 AND volume_usdc_atomic = 0 AND realized_pnl_usdc_atomic = 0";
    let kept = || spans.iter().filter(|((span, start, _), f)| !f.is_none() && *start >= oldest(*span, edges));
    let rows: Vec<Vec<SqlValue<'_>>> = kept()
        .map(|((span, start, account), f)| {
            params![*span, *start, *account, f.trades, f.volume, f.realized].to_vec()
        })
        .collect();
    tx.exec_each(SQL, &rows).await?;
    let less = kept().filter(|(_, f)| f.trades < 0 || (f.trades == 0 && f.realized != 0));
    let rows: Vec<Vec<SqlValue<'_>>> =
        less.map(|((span, start, account), _)| params![*span, *start, *account].to_vec()).collect();
    tx.exec_each(FORGET, &rows).await.map(drop)
}

/// Deletes spans that are no longer read.
pub async fn forget(tx: &mut Tx, edges: &Edges) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM leaderboard_spans WHERE span_ms = $1 AND start_ms < $2";
    let rows: Vec<_> = SPANS_MS.into_iter().map(|span| params![span, oldest(span, edges)].to_vec()).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}
