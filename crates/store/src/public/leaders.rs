//! Who has gained and traded most.

use domain::ids::MarketId;
use domain::time::DAY_MS;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};

use crate::{Row, StoreError, Tx, params};

/// What a leaderboard speaks of. The last 24 hours begin at a whole hour, the last days at a whole day, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Timeframe {
    /// 24 hours.
    OneDay,
    /// Seven days.
    SevenDays,
    /// Thirty days.
    ThirtyDays,
    /// Everything.
    #[default]
    All,
}

impl Timeframe {
    /// The span of the rows that are summed, and where the first of them begins.
    pub(crate) fn spans(self, now: Timestamp) -> Option<(i64, i64)> {
        const HOUR_MS: i64 = DAY_MS / 24;
        let days = |days: i64| (now.ms() - days * DAY_MS).div_euclid(DAY_MS) * DAY_MS;
        match self {
            Self::OneDay => Some((HOUR_MS, (now.ms() - DAY_MS).div_euclid(HOUR_MS) * HOUR_MS)),
            Self::SevenDays => Some((DAY_MS, days(7))),
            Self::ThirtyDays => Some((DAY_MS, days(30))),
            Self::All => None,
        }
    }
}

/// What a leaderboard is ranked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LeaderSort {
    /// Realised profit of the timeframe and unrealised profit.
    #[default]
    Total,
    /// Realised profit.
    Realized,
    /// USDC traded.
    Volume,
}

/// An account's figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// Whose, lower-case hex.
    pub account: String,
    /// Trades made.
    pub trade_count: u64,
    /// USDC traded.
    pub volume: Usdc,
    /// Profit of what was sold or redeemed.
    pub realized_pnl: UsdcDelta,
}

fn from_row(row: &Row<'_>) -> Result<Leader, StoreError> {
    Ok(Leader {
        account: row.text(0)?,
        trade_count: row.number(1)?,
        volume: row.usdc(2)?,
        realized_pnl: UsdcDelta(row.int(3)?),
    })
}

/// The accounts that have done something in the timeframe, the greatest first; ties by the account, the last first. At most `limit`.
/// What was done in the last days is summed for it.
pub async fn list_leaders(
    tx: &mut Tx,
    timeframe: Timeframe,
    sort: LeaderSort,
    limit: u32,
    now: Timestamp,
) -> Result<Vec<Leader>, StoreError> {
    const ALL: &str =
        "SELECT account, trade_count, volume_usdc_atomic, realized_pnl_usdc_atomic FROM leaderboard";
    const SUM: &str = "SELECT account, CAST(SUM(trade_count) AS BIGINT) AS trade_count,
        CAST(SUM(volume_usdc_atomic) AS BIGINT) AS volume_usdc_atomic,
        CAST(SUM(realized_pnl_usdc_atomic) AS BIGINT) AS realized_pnl_usdc_atomic
        FROM leaderboard_spans WHERE span_ms = $1 AND start_ms >= $2 GROUP BY account";
    let key = match sort {
        // What positions are worth is not in the tables.
        LeaderSort::Total | LeaderSort::Realized => "realized_pnl_usdc_atomic",
        LeaderSort::Volume => "volume_usdc_atomic",
    };
    let (from, mut bound) = match timeframe.spans(now) {
        None => (ALL.to_owned(), Vec::new()),
        Some((span, start)) => (format!("SELECT * FROM ({SUM}) sums"), params![span, start].to_vec()),
    };
    bound.extend(params![limit]);
    let sql = format!("{from} ORDER BY {key} DESC, account DESC LIMIT ${}", bound.len());
    tx.list_shaped(&sql, &bound, from_row).await
}

/// An open position with its market's state, from which its worth follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPosition {
    /// The market.
    pub market_id: MarketId,
    /// The outcome.
    pub outcome_index: u8,
    /// Tokens held.
    pub tokens: Wad,
    /// What they cost.
    pub cost_basis: Usdc,
    /// The outcome's quantity.
    pub quantity: Wad,
    /// The market maker's cost.
    pub cost: Wad,
    /// The market maker's `b`.
    pub liquidity: Usdc,
    /// What each outcome of a settled market pays.
    pub payouts: Option<Vec<Wad>>,
    /// The part of its cost that a cancelled market refunds.
    pub refund_scale: Option<Wad>,
}

/// An account's open positions behind the one of this market and outcome, in their order, at most `limit`.
pub async fn list_open_positions(
    tx: &mut Tx,
    account: &str,
    after: (&str, i64),
    limit: u32,
) -> Result<Vec<OpenPosition>, StoreError> {
    const SQL: &str = "SELECT p.market_id, p.outcome_index, p.tokens_wad, p.cost_basis_usdc_atomic, o.quantity_wad,
        m.cost_wad, m.liquidity_usdc_atomic, m.payouts, m.refund_scale_wad FROM positions p
        CROSS JOIN markets m CROSS JOIN outcomes o WHERE p.account = $1 AND (p.market_id, p.outcome_index) > ($2, $3)
        AND p.tokens_wad <> '0' AND m.id = p.market_id AND o.market_id = p.market_id AND o.outcome_index = p.outcome_index
        ORDER BY p.market_id, p.outcome_index LIMIT $4";
    tx.list(SQL, &params![account, after.0, after.1, limit], open_position).await
}

/// The open positions of all accounts behind this one, in the order of account, market and outcome, at most `limit`.
pub async fn list_all_open_positions(
    tx: &mut Tx,
    after: (&str, &str, i64),
    limit: u32,
) -> Result<Vec<(String, OpenPosition)>, StoreError> {
    const SQL: &str = "SELECT p.market_id, p.outcome_index, p.tokens_wad, p.cost_basis_usdc_atomic, o.quantity_wad,
        m.cost_wad, m.liquidity_usdc_atomic, m.payouts, m.refund_scale_wad, p.account FROM positions p
        CROSS JOIN markets m CROSS JOIN outcomes o WHERE (p.account, p.market_id, p.outcome_index) > ($1, $2, $3)
        AND p.tokens_wad <> '0' AND m.id = p.market_id AND o.market_id = p.market_id AND o.outcome_index = p.outcome_index
        ORDER BY p.account, p.market_id, p.outcome_index LIMIT $4";
    tx.list(SQL, &params![after.0, after.1, after.2, limit], |row| Ok((row.text(9)?, open_position(row)?)))
        .await
}

fn open_position(row: &Row<'_>) -> Result<OpenPosition, StoreError> {
    let payouts = row.opt_str(7)?.map(|_| row.texts(7)).transpose()?;
    let payouts = payouts.map(|texts| texts.iter().map(|text| text.parse()).collect::<Result<Vec<Wad>, _>>());
    Ok(OpenPosition {
        market_id: row.parse(0)?,
        outcome_index: row.number(1)?,
        tokens: row.parse(2)?,
        cost_basis: row.usdc(3)?,
        quantity: row.parse(4)?,
        cost: row.parse(5)?,
        liquidity: row.usdc(6)?,
        payouts: payouts.transpose().map_err(|_| row.corrupt(7, "not a list of WAD"))?,
        refund_scale: row.opt_parse(8)?,
    })
}
