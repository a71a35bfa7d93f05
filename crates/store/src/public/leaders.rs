//! Leaderboards: accounts with the highest profit or volume.

use alloy_primitives::Address;
use domain::ids::MarketId;
use domain::position::Position;
use domain::time::{DAY_MS, HOUR_MS};
use domain::{Timestamp, Usdc, UsdcDelta, Wad};

use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

/// The time span of a leaderboard. `OneDay` begins at a full hour, the others at midnight UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Timeframe {
    OneDay,
    SevenDays,
    ThirtyDays,
    /// All time.
    #[default]
    All,
}

impl Timeframe {
    /// The span of the rows to sum and the start of the first one, both in milliseconds. `None` for
    /// all time.
    pub(crate) fn spans(self, now: Timestamp) -> Option<(i64, i64)> {
        let days = |days: i64| (now.ms() - days * DAY_MS).div_euclid(DAY_MS) * DAY_MS;
        match self {
            Self::OneDay => Some((HOUR_MS, (now.ms() - DAY_MS).div_euclid(HOUR_MS) * HOUR_MS)),
            Self::SevenDays => Some((DAY_MS, days(7))),
            Self::ThirtyDays => Some((DAY_MS, days(30))),
            Self::All => None,
        }
    }
}

/// The key of a leaderboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LeaderSort {
    /// Realized profit within the timeframe, plus unrealized profit.
    #[default]
    Total,
    /// Realized profit.
    Realized,
    /// USDC traded.
    Volume,
}

record! {
    /// An account's figures on a leaderboard.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Leader {
        pub account: Address,
        pub trade_count: u64,
        /// USDC traded.
        pub volume: Usdc = "volume_usdc_atomic",
        /// The profit of tokens that were sold or redeemed.
        pub realized_pnl: UsdcDelta = "realized_pnl_usdc_atomic",
    }
}

/// Lists the accounts that were active within the timeframe, highest figure first, at most `limit`.
/// Ties are sorted by account, descending. Timeframes other than `All` are summed by this query.
pub async fn list_leaders(
    tx: &mut Tx,
    timeframe: Timeframe,
    sort: LeaderSort,
    limit: u32,
    now: Timestamp,
) -> Result<Vec<Leader>, StoreError> {
    const ALL: &str = const_format::concatcp!("SELECT ", Leader::COLUMNS, " FROM leaderboard");
    const SUM: &str = "SELECT account, CAST(SUM(trade_count) AS BIGINT) AS trade_count,
        CAST(SUM(volume_usdc_atomic) AS BIGINT) AS volume_usdc_atomic,
        CAST(SUM(realized_pnl_usdc_atomic) AS BIGINT) AS realized_pnl_usdc_atomic
        FROM leaderboard_spans WHERE span_ms = $1 AND start_ms >= $2 GROUP BY account";
    let key = match sort {
        // Unrealized profit is not stored, so the caller ranks by it. This query only selects
        // candidates by realized profit.
        LeaderSort::Total | LeaderSort::Realized => "realized_pnl_usdc_atomic",
        LeaderSort::Volume => "volume_usdc_atomic",
    };
    let (from, mut bound) = match timeframe.spans(now) {
        None => (ALL.to_owned(), Vec::new()),
        Some((span, start)) => {
            (format!("SELECT {} FROM ({SUM}) sums", Leader::COLUMNS), params![span, start].to_vec())
        }
    };
    bound.extend(params![limit]);
    let sql = format!("{from} ORDER BY {key} DESC, account DESC LIMIT ${}", bound.len());
    tx.list_shaped(&sql, &bound, Leader::from_row).await
}

record! {
    /// A position with tokens, and its market's state, from which its current value is computed. Lost
    /// ones count with their loss.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct OpenPosition {
        pub market_id: MarketId = "p.market_id",
        pub outcome_index: u8 = "p.outcome_index",
        /// Tokens held.
        pub tokens: Wad = "p.tokens_wad",
        /// The cost of the tokens.
        pub cost_basis: Usdc = "p.cost_basis_usdc_atomic",
        /// The outcome's quantity in the market maker.
        pub quantity: Wad = "o.quantity_wad",
        /// The market maker's cost.
        pub cost: Wad = "m.cost_wad",
        /// The market maker's `b`.
        pub liquidity: Usdc = "m.liquidity_usdc_atomic",
        /// The payout of each outcome, if the market is settled.
        pub payouts: Option<Vec<Wad>> = "m.payouts",
    }
}

impl OpenPosition {
    /// Reports whether the position can still be sold or paid.
    pub fn is_open(&self) -> bool {
        let payout = self.payouts.as_ref().and_then(|all| all.get(usize::from(self.outcome_index)).copied());
        Position { tokens: self.tokens, ..Position::default() }.is_open(payout)
    }
}

/// Lists an account's positions with tokens after `after` (market and outcome), in order, at most `limit`.
pub async fn list_open_positions(
    tx: &mut Tx,
    account: Address,
    after: Option<(MarketId, u8)>,
    limit: u32,
) -> Result<Vec<OpenPosition>, StoreError> {
    // SQLite never reorders a CROSS JOIN, so the positions stay the outer loop.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        OpenPosition::COLUMNS,
        " FROM positions p
        CROSS JOIN markets m CROSS JOIN outcomes o WHERE p.account = $1 AND (p.market_id, p.outcome_index) > ($2, $3)
        AND p.tokens_wad <> '0' AND m.id = p.market_id AND o.market_id = p.market_id AND o.outcome_index = p.outcome_index
        ORDER BY p.market_id, p.outcome_index LIMIT $4"
    );
    let (market_id, outcome_index) = match after {
        Some((market_id, outcome_index)) => (SqlValue::from(market_id), outcome_index),
        None => (SqlValue::from(""), 0),
    };
    tx.list(SQL, &params![account, market_id, outcome_index, limit], OpenPosition::from_row).await
}

/// Lists open positions of all accounts after `after` (account, market and outcome), in order, at
/// most `limit`.
pub async fn list_all_open_positions(
    tx: &mut Tx,
    after: Option<(Address, MarketId, u8)>,
    limit: u32,
) -> Result<Vec<(Address, OpenPosition)>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        OpenPosition::COLUMNS,
        ", p.account FROM positions p
        CROSS JOIN markets m CROSS JOIN outcomes o WHERE (p.account, p.market_id, p.outcome_index) > ($1, $2, $3)
        AND p.tokens_wad <> '0' AND m.id = p.market_id AND o.market_id = p.market_id AND o.outcome_index = p.outcome_index
        ORDER BY p.account, p.market_id, p.outcome_index LIMIT $4"
    );
    let bound = match after {
        Some((account, market_id, outcome_index)) => params![account, market_id, outcome_index, limit],
        None => params!["", "", 0, limit],
    };
    tx.list(SQL, &bound, |row| Ok((row.get("account")?, OpenPosition::from_row(row)?))).await
}
