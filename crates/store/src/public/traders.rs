//! The public state of single accounts: the holders of a market, and an account's own figures.

use alloy_primitives::Address;
use domain::ids::{MarketId, ThreadId};
use domain::position::Position;
use domain::{Usdc, Wad};

use super::leaders::Leader;
use crate::movements::Movement;
use crate::record::{Record, record};
use crate::{StoreError, Tx, params};

record! {
    /// An account that holds tokens of a market.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Holder {
        pub account: Address,
        pub outcome_index: u8,
        /// Tokens held.
        pub tokens: Wad = "tokens_wad",
        /// The cost of the tokens.
        pub cost_basis: Usdc = "cost_basis_usdc_atomic",
    }
}

/// Lists the largest open positions of a market, largest first, at most `limit`. Only outcomes that
/// pay something have any after the market's result.
pub async fn list_holders(tx: &mut Tx, id: MarketId, limit: u32) -> Result<Vec<Holder>, StoreError> {
    // Of a position of at most 12 digits (less than a millionth of a token) nobody can get anything.
    // `paying` has one digit per outcome.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Holder::COLUMNS,
        " FROM positions WHERE market_id = $1 AND LENGTH(tokens_wad) > 12
        AND ($2 = '' OR SUBSTR($2, CAST(outcome_index + 1 AS INTEGER), 1) = '1')
        ORDER BY LENGTH(tokens_wad) DESC, tokens_wad DESC LIMIT $3"
    );
    let payouts = crate::markets::find(tx, id).await?.and_then(|market| market.payouts).unwrap_or_default();
    let digit = |payout: &Wad| if *payout > Wad::ZERO { '1' } else { '0' };
    let paying: String = payouts.iter().map(digit).collect();
    let holders = tx.list(SQL, &params![id, paying, limit], Holder::from_row).await?;
    let is_open = |holder: &Holder| {
        let payout = payouts.get(usize::from(holder.outcome_index)).copied();
        Position { tokens: holder.tokens, ..Position::default() }.is_open(payout)
    };
    Ok(holders.into_iter().filter(is_open).collect())
}

/// Returns an account's figures of all time. `None` if it has never traded.
pub async fn find_leader(tx: &mut Tx, account: Address) -> Result<Option<Leader>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", Leader::COLUMNS, " FROM leaderboard WHERE account = $1");
    tx.find(SQL, &params![account], Leader::from_row).await
}

/// Lists an account's movements, newest first, at most `limit`.
pub async fn list_movements(tx: &mut Tx, account: Address, limit: u32) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE account = $1 ORDER BY id DESC LIMIT $2"
    );
    tx.list(SQL, &params![account, limit], Movement::from_row).await
}

/// A thread and category in which an account has traded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traded {
    pub thread_id: Option<ThreadId>,
    pub category: Option<String>,
    /// The number of trades.
    pub trades: u64,
}

/// Lists the threads and categories of an account's newest 500 trades.
pub async fn list_traded(tx: &mut Tx, account: Address) -> Result<Vec<Traded>, StoreError> {
    const SQL: &str = "SELECT thread_id, category, COUNT(*) AS trades FROM
        (SELECT market_id FROM movements WHERE account = $1 AND kind IN ('buy', 'sell') ORDER BY id DESC LIMIT 500) traded
        JOIN markets ON markets.id = traded.market_id GROUP BY thread_id, category";
    tx.list(SQL, &params![account], |row| {
        Ok(Traded {
            thread_id: row.get("thread_id")?,
            category: row.get("category")?,
            trades: row.get("trades")?,
        })
    })
    .await
}
