//! Movements of positions according to the chain's events, and the resulting positions.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, B256};
use domain::ids::{MarketId, TradeId};
use domain::page::Page;
use domain::position::Position;
use domain::trade::Side;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};

use crate::bind::{column_from_text, position_or_end, word_to_column};
use crate::record::{Insert, Record, all_values, record};
use crate::{SqlValue, StoreError, Tx, params};

/// The kind of a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovementKind {
    Buy,
    Sell,
    /// The payout of a settled market.
    Redeem,
    /// A transfer from `account` to `counterparty`.
    Transfer,
    /// USDC converted to one token of every outcome. Each outcome has its own movement.
    Split,
    /// Tokens of every outcome converted to USDC. Each outcome has its own movement.
    Merge,
}

impl MovementKind {
    /// The kind as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
            Self::Redeem => "redeem",
            Self::Transfer => "transfer",
            Self::Split => "split",
            Self::Merge => "merge",
        }
    }
}

impl MovementKind {
    pub const fn is_trade(self) -> bool {
        matches!(self, Self::Buy | Self::Sell)
    }

    pub const fn moves_sets(self) -> bool {
        matches!(self, Self::Split | Self::Merge)
    }
}

impl fmt::Display for MovementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not a kind of movement.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("not a kind of movement")]
pub struct UnknownMovementKind;

column_from_text!(MovementKind);
word_to_column!(MovementKind);

impl FromStr for MovementKind {
    type Err = UnknownMovementKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Buy, Self::Sell, Self::Redeem, Self::Transfer, Self::Split, Self::Merge]
            .into_iter()
            .find(|k| k.as_str() == text)
            .ok_or(UnknownMovementKind)
    }
}

record! {
    /// A movement of a position, caused by an event of the chain.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Movement: Insert {
        /// The block and log number, padded so that ids sort in chain order.
        pub id: String,
        pub block_number: u64,
        /// The log's index in the block.
        pub log_index: u32,
        /// The transaction.
        pub tx_hash: B256,
        pub kind: MovementKind,
        pub market_id: MarketId,
        pub outcome_index: u8,
        pub account: Address,
        /// The recipient of a transfer.
        pub counterparty: Option<Address>,
        /// USDC moved.
        pub usdc: Usdc = "usdc_atomic",
        /// Tokens moved.
        pub tokens: Wad = "tokens_wad",
        /// The fee of a trade.
        pub fee: Usdc = "fee_atomic",
        /// The market maker's cost after a trade, split or merge.
        pub cost: Option<Wad> = "cost_wad",
        /// The outcome's quantity after a trade, split or merge.
        pub quantity: Option<Wad> = "quantity_wad",
        /// The trade of this service that caused the movement, if any.
        pub trade_id: Option<TradeId>,
        /// The block's time.
        pub created_at: Timestamp = "created_at_ms",
        /// The profit of a sale or redemption over the cost of its tokens.
        pub realized_pnl: UsdcDelta = "realized_pnl_usdc_atomic",
    }
}

impl Movement {
    /// The id of the event at this position of the chain.
    pub fn id_at(block_number: u64, log_index: u32) -> String {
        format!("{block_number:012}-{log_index:06}")
    }

    /// The id of one outcome's movement, for an event that moves every outcome. The first outcome
    /// has the event's own id.
    pub fn id_of_part(event_id: &str, outcome_index: u8) -> String {
        if outcome_index == 0 { event_id.to_owned() } else { format!("{event_id}-{outcome_index:03}") }
    }

    /// Reports whether this is not the first movement of an event that moves every outcome.
    pub fn is_further_part(&self) -> bool {
        self.kind.moves_sets() && self.outcome_index != 0
    }
}

pub async fn insert(tx: &mut Tx, movements: &[Movement]) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO movements (",
        Movement::COLUMNS,
        ") VALUES (",
        Movement::PLACEHOLDERS,
        ")"
    );
    tx.exec_each(SQL, &all_values(movements)?).await.map(drop)
}

/// A filter for a market's trades.
#[derive(Debug, Clone, Default)]
pub struct TradeFilter {
    pub outcome_index: Option<u8>,
    pub side: Option<Side>,
}

/// Lists a market's trades on chain, newest first. Returns up to `limit + 1` rows: the extra row
/// shows that there is a next page.
pub async fn list_trades(
    tx: &mut Tx,
    market_id: MarketId,
    filter: &TradeFilter,
    page: &Page,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE market_id = $1 AND kind IN ('buy', 'sell')
        AND ($2 = '' OR kind = $2) AND ($3 < 0 OR outcome_index = $3) AND (created_at_ms, id) < ($4, $5)
        ORDER BY created_at_ms DESC, id DESC LIMIT $6"
    );
    let side = filter.side.map_or("", Side::as_str);
    let outcome = filter.outcome_index.map_or(-1, i64::from);
    let (created_at, id) = position_or_end(page.after.as_ref());
    tx.list(SQL, &params![market_id, side, outcome, created_at, id, page.limit + 1], Movement::from_row).await
}

/// Lists movements that were caused by the service's trades in the blocks `from..=to`, in chain
/// order.
pub async fn list_settled(tx: &mut Tx, from: u64, to: u64) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE block_number >= $1 AND block_number <= $2 AND trade_id IS NOT NULL
        ORDER BY id"
    );
    tx.list(SQL, &[SqlValue::try_from(from)?, SqlValue::try_from(to)?], Movement::from_row).await
}

/// Lists movements of the service's still executing trades in a market, in the blocks `from..=to`,
/// in chain order.
pub async fn list_unsettled(
    tx: &mut Tx,
    market_id: MarketId,
    from: u64,
    to: u64,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE market_id = $1 AND id >= $2 AND block_number <= $3 AND trade_id IN
        (SELECT id FROM trades WHERE status = 'executing' AND ended_at_ms IS NULL) ORDER BY id"
    );
    let first = Movement::id_at(from, 0);
    tx.list(SQL, &params![market_id, first, SqlValue::try_from(to)?], Movement::from_row).await
}

/// Lists a market's movements after the id `after` (empty for all), in chain order.
pub async fn list_of_market(
    tx: &mut Tx,
    market_id: MarketId,
    after: &str,
    limit: u32,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE market_id = $1 AND id > $2 ORDER BY id LIMIT $3"
    );
    tx.list(SQL, &params![market_id, after, limit], Movement::from_row).await
}

/// Lists a market's trades after the id `after`, in blocks up to `to`, in chain order.
pub async fn list_trades_after(
    tx: &mut Tx,
    market_id: MarketId,
    after: &str,
    to: u64,
    limit: u32,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE market_id = $1 AND id > $2 AND block_number <= $3 AND kind IN ('buy', 'sell')
        ORDER BY id LIMIT $4"
    );
    tx.list(SQL, &params![market_id, after, SqlValue::try_from(to)?, limit], Movement::from_row).await
}

/// Lists a transaction's movements in chain order, at most 1,000.
pub async fn list_of_transaction(tx: &mut Tx, hash: B256) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE tx_hash = $1 ORDER BY id LIMIT 1000"
    );
    tx.list(SQL, &params![hash], Movement::from_row).await
}

/// Lists movements in blocks after `fork` and after the id `after` (empty for all), in chain order.
pub async fn list_after(
    tx: &mut Tx,
    fork: u64,
    after: &str,
    limit: u32,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE block_number > $1 AND id > $2 ORDER BY id LIMIT $3"
    );
    // Ids begin with the block, so the range can start within the primary key.
    let floor = Movement::id_at(fork, u32::MAX);
    let after = after.max(floor.as_str());
    tx.list(SQL, &params![SqlValue::try_from(fork)?, after, limit], Movement::from_row).await
}

/// Lists the movements of an account's positions at or after `from`, newest first, at most `limit`.
/// Those with another account also belong to the receiver.
pub async fn list_of_account_since(
    tx: &mut Tx,
    account: Address,
    from: Timestamp,
    limit: u32,
) -> Result<Vec<Movement>, StoreError> {
    // Two ordered walks, each on its own index.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM (SELECT * FROM (SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE account = $1 AND created_at_ms >= $2 ORDER BY id DESC LIMIT $3) own
        UNION SELECT * FROM (SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE counterparty = $1 AND created_at_ms >= $2 ORDER BY id DESC LIMIT $3) received) moved
        ORDER BY id DESC LIMIT $3"
    );
    tx.list(SQL, &params![account, from, limit], Movement::from_row).await
}

/// Lists all movements after the id `after` (empty for all), in chain order.
pub async fn list_all(tx: &mut Tx, after: &str, limit: u32) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Movement::COLUMNS,
        " FROM movements WHERE id > $1 ORDER BY id LIMIT $2"
    );
    tx.list(SQL, &params![after, limit], Movement::from_row).await
}

/// Lists the ids, transactions and markets of the events with movements in the blocks `from..=to`.
pub async fn list_places(
    tx: &mut Tx,
    from: u64,
    to: u64,
) -> Result<Vec<(String, B256, MarketId)>, StoreError> {
    // Of a split or merge, only the first outcome's movement has the event's id.
    const SQL: &str =
        "SELECT id, tx_hash, market_id FROM movements WHERE block_number >= $1 AND block_number <= $2
        AND (kind NOT IN ('split', 'merge') OR outcome_index = 0)";
    let bound = [SqlValue::try_from(from)?, SqlValue::try_from(to)?];
    tx.list(SQL, &bound, |row| Ok((row.get("id")?, row.get("tx_hash")?, row.get("market_id")?))).await
}

/// Stores the realized profit of movements.
pub async fn put_realized(tx: &mut Tx, movements: &[Movement]) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE movements SET realized_pnl_usdc_atomic = $1 WHERE id = $2";
    let rows: Vec<Vec<SqlValue<'_>>> =
        movements.iter().map(|m| params![m.realized_pnl, &m.id].to_vec()).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Deletes movements and intent failures in blocks after `fork`.
pub async fn delete_after(tx: &mut Tx, fork: u64) -> Result<(), StoreError> {
    const DELETE: &str = "DELETE FROM movements WHERE block_number > $1";
    const FAILURES: &str = "DELETE FROM intent_failures WHERE block_number > $1";
    let fork = [SqlValue::try_from(fork)?];
    tx.exec(DELETE, &fork).await?;
    tx.exec(FAILURES, &fork).await.map(drop)
}

/// Deletes a market's movements in blocks after `block`.
pub async fn delete_of_market_after(tx: &mut Tx, market_id: MarketId, block: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM movements WHERE market_id = $1 AND id > $2";
    // No block has this many logs, so this id is after all of its events.
    tx.exec(SQL, &params![market_id, Movement::id_at(block, u32::MAX)]).await.map(drop)
}

record! {
    /// An intent that ended on chain without a trade.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct IntentFailure: Insert {
        pub trade_id: TradeId,
        pub block_number: u64,
        /// The log's index in the block.
        pub log_index: u32,
        pub tx_hash: B256,
        /// The intent's nonce. `None` in rows that were stored before this column existed.
        pub nonce: Option<u32>,
        /// The stable name of the contract's reason.
        pub reason: String,
        /// The block's time.
        pub at: Timestamp = "at_ms",
    }
}

pub async fn insert_failures(tx: &mut Tx, failures: &[IntentFailure]) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO intent_failures (",
        IntentFailure::COLUMNS,
        ") VALUES (",
        IntentFailure::PLACEHOLDERS,
        ")"
    );
    tx.exec_each(SQL, &all_values(failures)?).await.map(drop)
}

/// Deletes the failures in the blocks `from..=to`.
pub async fn delete_failures(tx: &mut Tx, from: u64, to: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM intent_failures WHERE block_number >= $1 AND block_number <= $2";
    tx.exec(SQL, &[SqlValue::try_from(from)?, SqlValue::try_from(to)?]).await.map(drop)
}

/// Lists the failures in the blocks `from..=to`, in chain order.
pub async fn list_failures(tx: &mut Tx, from: u64, to: u64) -> Result<Vec<IntentFailure>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        IntentFailure::COLUMNS,
        " FROM intent_failures WHERE block_number >= $1 AND block_number <= $2 ORDER BY block_number, log_index"
    );
    tx.list(SQL, &[SqlValue::try_from(from)?, SqlValue::try_from(to)?], IntentFailure::from_row).await
}

record! {
    /// A position of an account in an outcome.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Held: Insert {
        pub account: Address,
        pub market_id: MarketId,
        pub outcome_index: u8,
        pub position: Position = ..,
        /// The time of the last movement.
        pub updated_at: Timestamp = "updated_at_ms",
    }
}

record!(impl Position: Insert {
    tokens: Wad = "tokens_wad",
    cost_basis: Usdc = "cost_basis_usdc_atomic",
    realized_pnl: UsdcDelta = "realized_pnl_usdc_atomic",
    fees_paid: Usdc = "fees_paid_usdc_atomic",
});

/// Returns the position of an account in an outcome.
pub async fn find_position(
    tx: &mut Tx,
    account: Address,
    market_id: MarketId,
    outcome_index: u8,
) -> Result<Option<Held>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Held::COLUMNS,
        " FROM positions WHERE account = $1 AND market_id = $2 AND outcome_index = $3"
    );
    tx.find(SQL, &params![account, market_id, outcome_index], Held::from_row).await
}

/// Lists an account's positions, including closed ones, at most 10,000; only those of `market_id`
/// if given.
pub async fn list_positions(
    tx: &mut Tx,
    account: Address,
    market_id: Option<MarketId>,
) -> Result<Vec<Held>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Held::COLUMNS,
        " FROM positions WHERE account = $1 AND ($2 = '' OR market_id = $2)
        ORDER BY market_id, outcome_index LIMIT 10000"
    );
    let market_id = market_id.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![account, market_id], Held::from_row).await
}

/// Lists a market's positions, including closed ones.
pub async fn list_of_market_positions(tx: &mut Tx, market_id: MarketId) -> Result<Vec<Held>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Held::COLUMNS,
        " FROM positions WHERE market_id = $1 ORDER BY account, outcome_index"
    );
    tx.list(SQL, &params![market_id], Held::from_row).await
}

/// The account and outcome of the last position that was read. `None` before the first one.
pub type LastPosition = Option<(Address, u8)>;

/// The account and outcome to compare with positions, so that those after `last` are greater.
pub(crate) fn position_values(last: LastPosition) -> [SqlValue<'static>; 2] {
    match last {
        Some((account, outcome_index)) => params![account, outcome_index],
        None => params!["", -1],
    }
}

/// Lists the tokens that accounts hold in a market, starting after the position `after`.
pub async fn list_holdings(
    tx: &mut Tx,
    market_id: MarketId,
    after: LastPosition,
    limit: u32,
) -> Result<Vec<(Address, u8, Wad)>, StoreError> {
    const SQL: &str = "SELECT account, outcome_index, tokens_wad FROM positions
        WHERE market_id = $1 AND (account, outcome_index) > ($2, $3) ORDER BY account, outcome_index LIMIT $4";
    let [account, outcome_index] = position_values(after);
    let bound = params![market_id, account, outcome_index, limit];
    tx.list(SQL, &bound, |row| Ok((row.get("account")?, row.get("outcome_index")?, row.get("tokens_wad")?)))
        .await
}

/// Inserts or replaces positions.
pub async fn put_positions(tx: &mut Tx, held: &[Held]) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO positions (",
        Held::COLUMNS,
        ") VALUES (",
        Held::PLACEHOLDERS,
        ") ON CONFLICT (account, market_id, outcome_index) DO UPDATE SET tokens_wad = excluded.tokens_wad,
        cost_basis_usdc_atomic = excluded.cost_basis_usdc_atomic,
        realized_pnl_usdc_atomic = excluded.realized_pnl_usdc_atomic,
        fees_paid_usdc_atomic = excluded.fees_paid_usdc_atomic, updated_at_ms = excluded.updated_at_ms"
    );
    tx.exec_each(SQL, &all_values(held)?).await.map(drop)
}

/// Deletes a market's positions before they are recomputed.
pub async fn delete_positions(tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM positions WHERE market_id = $1";
    tx.exec(SQL, &params![market_id]).await.map(drop)
}
