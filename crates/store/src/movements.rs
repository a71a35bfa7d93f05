//! What the chain's events moved, and the positions that follow from it.

use std::fmt;
use std::str::FromStr;

use domain::ids::{MarketId, TradeId};
use domain::page::Page;
use domain::position::Position;
use domain::trade::Side;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};

use crate::bind::position_or_end;
use crate::{Row, StoreError, Tx, Value, params};

/// What kind of event moved a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A buy.
    Buy,
    /// A sale.
    Sell,
    /// A payout of a settled market.
    Redeem,
    /// From `account` to `counterparty`.
    Transfer,
}

impl Kind {
    /// The word of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
            Self::Redeem => "redeem",
            Self::Transfer => "transfer",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no kind of movement.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("not a kind of movement")]
pub struct UnknownKind;

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Buy, Self::Sell, Self::Redeem, Self::Transfer]
            .into_iter()
            .find(|k| k.as_str() == text)
            .ok_or(UnknownKind)
    }
}

/// One event of the chain that moved a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Movement {
    /// Block and log, so that ids sort as the chain does.
    pub id: String,
    /// The block.
    pub block_number: u64,
    /// The log's place in the block.
    pub log_index: u32,
    /// The transaction, lower-case hex.
    pub tx_hash: String,
    /// What happened.
    pub kind: Kind,
    /// The market.
    pub market_id: MarketId,
    /// The outcome.
    pub outcome_index: u8,
    /// Whose position, lower-case hex.
    pub account: String,
    /// Who received a transfer.
    pub counterparty: Option<String>,
    /// USDC moved.
    pub usdc: Usdc,
    /// Tokens moved.
    pub tokens: Wad,
    /// The fee of a trade.
    pub fee: Usdc,
    /// The market maker's cost after a trade.
    pub cost: Option<Wad>,
    /// The outcome's quantity after a trade.
    pub quantity: Option<Wad>,
    /// The service's trade, where it was one.
    pub trade_id: Option<TradeId>,
    /// The block's time.
    pub created_at: Timestamp,
    /// What a sale or a redemption gained over what its tokens had cost.
    pub realized_pnl: UsdcDelta,
}

impl Movement {
    /// The id of the event at this place of the chain.
    pub fn id_at(block_number: u64, log_index: u32) -> String {
        format!("{block_number:012}-{log_index:06}")
    }
}

const COLUMNS: &str =
    "id, block_number, log_index, tx_hash, kind, market_id, outcome_index, account, counterparty,
    usdc_atomic, tokens_wad, fee_atomic, cost_wad, quantity_wad, trade_id, created_at_ms, realized_pnl_usdc_atomic";

fn from_row(row: &Row<'_>) -> Result<Movement, StoreError> {
    Ok(Movement {
        id: row.text(0)?,
        block_number: row.number(1)?,
        log_index: row.number(2)?,
        tx_hash: row.text(3)?,
        kind: row.parse(4)?,
        market_id: row.parse(5)?,
        outcome_index: row.number(6)?,
        account: row.text(7)?,
        counterparty: row.opt_text(8)?,
        usdc: row.usdc(9)?,
        tokens: row.parse(10)?,
        fee: row.usdc(11)?,
        cost: row.opt_parse(12)?,
        quantity: row.opt_parse(13)?,
        trade_id: row.opt_parse(14)?,
        created_at: row.timestamp(15)?,
        realized_pnl: UsdcDelta(row.int(16)?),
    })
}

/// Adds events.
pub async fn insert(tx: &mut Tx, movements: &[Movement]) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO movements (id, block_number, log_index, tx_hash, kind, market_id, outcome_index, account,
        counterparty, usdc_atomic, tokens_wad, fee_atomic, cost_wad, quantity_wad, trade_id, created_at_ms,
        realized_pnl_usdc_atomic)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
    let rows: Result<Vec<Vec<Value<'_>>>, StoreError> = movements
        .iter()
        .map(|m| {
            Ok(params![
                &m.id,
                Value::try_from(m.block_number)?,
                m.log_index,
                &m.tx_hash,
                m.kind.as_str(),
                m.market_id,
                m.outcome_index,
                &m.account,
                m.counterparty.as_deref(),
                m.usdc,
                m.tokens,
                m.fee,
                m.cost,
                m.quantity,
                m.trade_id,
                m.created_at,
                m.realized_pnl
            ]
            .to_vec())
        })
        .collect();
    tx.exec_each(SQL, &rows?).await.map(drop)
}

/// What a market's list of trades is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct TradeFilter {
    /// Trades of this outcome.
    pub outcome_index: Option<u8>,
    /// Trades of this side.
    pub side: Option<Side>,
}

/// One row more than the page's limit of a market's trades on chain, newest first.
pub async fn list_trades(
    tx: &mut Tx,
    market_id: MarketId,
    filter: &TradeFilter,
    page: &Page,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM movements WHERE market_id = $1 AND kind IN ('buy', 'sell')
        AND ($2 = '' OR kind = $2) AND ($3 < 0 OR outcome_index = $3) AND (created_at_ms, id) < ($4, $5)
        ORDER BY created_at_ms DESC, id DESC LIMIT $6"
    );
    let side = filter.side.map_or("", Side::as_str);
    let outcome = filter.outcome_index.map_or(-1, i64::from);
    let (created_at, id) = position_or_end(page.after.as_ref());
    tx.list(SQL, &params![market_id, side, outcome, created_at, id, page.limit + 1], from_row).await
}

/// The trades of the service in the blocks `from..=to`, in the chain's order.
pub async fn list_settled(tx: &mut Tx, from: u64, to: u64) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM movements WHERE block_number >= $1 AND block_number <= $2 AND trade_id IS NOT NULL
        ORDER BY id"
    );
    tx.list(SQL, &[Value::try_from(from)?, Value::try_from(to)?], from_row).await
}

/// The trades of the service in a market in the blocks `from..=to` that are still executing, in the chain's order.
pub async fn list_unsettled(
    tx: &mut Tx,
    market_id: MarketId,
    from: u64,
    to: u64,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM movements WHERE market_id = $1 AND id >= $2 AND block_number <= $3 AND trade_id IN
        (SELECT id FROM trades WHERE status = 'executing' AND ended_at_ms IS NULL) ORDER BY id"
    );
    let first = Movement::id_at(from, 0);
    tx.list(SQL, &params![market_id, first, Value::try_from(to)?], from_row).await
}

/// A market's movements after the one with this id (from the first for an empty text), in the chain's order.
pub async fn list_of_market(
    tx: &mut Tx,
    market_id: MarketId,
    after: &str,
    limit: u32,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM movements WHERE market_id = $1 AND id > $2 ORDER BY id LIMIT $3"
    );
    tx.list(SQL, &params![market_id, after, limit], from_row).await
}

/// A market's trades behind the movement `after` in blocks up to `to`, in the chain's order.
pub async fn list_trades_after(
    tx: &mut Tx,
    market_id: MarketId,
    after: &str,
    to: u64,
    limit: u32,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM movements WHERE market_id = $1 AND id > $2 AND block_number <= $3 AND kind IN ('buy', 'sell')
        ORDER BY id LIMIT $4"
    );
    tx.list(SQL, &params![market_id, after, Value::try_from(to)?, limit], from_row).await
}

/// What a transaction moved, in the chain's order. At most 1,000.
pub async fn list_of_transaction(tx: &mut Tx, hash: &str) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM movements WHERE tx_hash = $1 ORDER BY id LIMIT 1000"
    );
    tx.list(SQL, &params![hash], from_row).await
}

/// Movements of blocks after `fork` behind the one with this id (from the first for an empty text), in the chain's order.
pub async fn list_after(
    tx: &mut Tx,
    fork: u64,
    after: &str,
    limit: u32,
) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM movements WHERE block_number > $1 AND id > $2 ORDER BY id LIMIT $3"
    );
    // Ids begin with the block.
    let floor = Movement::id_at(fork, u32::MAX);
    let after = after.max(floor.as_str());
    tx.list(SQL, &params![Value::try_from(fork)?, after, limit], from_row).await
}

/// Movements behind the one with this id (from the first for an empty text), in the chain's order.
pub async fn list_all(tx: &mut Tx, after: &str, limit: u32) -> Result<Vec<Movement>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", COLUMNS, " FROM movements WHERE id > $1 ORDER BY id LIMIT $2");
    tx.list(SQL, &params![after, limit], from_row).await
}

/// The ids, transactions and markets of the movements in the blocks `from..=to`.
pub async fn list_places(
    tx: &mut Tx,
    from: u64,
    to: u64,
) -> Result<Vec<(String, String, MarketId)>, StoreError> {
    const SQL: &str =
        "SELECT id, tx_hash, market_id FROM movements WHERE block_number >= $1 AND block_number <= $2";
    let bound = [Value::try_from(from)?, Value::try_from(to)?];
    tx.list(SQL, &bound, |row| Ok((row.text(0)?, row.text(1)?, row.parse(2)?))).await
}

/// Writes what movements realised.
pub async fn put_realized(tx: &mut Tx, movements: &[Movement]) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE movements SET realized_pnl_usdc_atomic = $1 WHERE id = $2";
    let rows: Vec<Vec<Value<'_>>> =
        movements.iter().map(|m| params![m.realized_pnl, &m.id].to_vec()).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Takes back everything read from blocks after `fork`.
pub async fn delete_after(tx: &mut Tx, fork: u64) -> Result<(), StoreError> {
    const DELETE: &str = "DELETE FROM movements WHERE block_number > $1";
    const FAILURES: &str = "DELETE FROM intent_failures WHERE block_number > $1";
    let fork = [Value::try_from(fork)?];
    tx.exec(DELETE, &fork).await?;
    tx.exec(FAILURES, &fork).await.map(drop)
}

/// Deletes a market's movements in blocks after `block`.
pub async fn delete_of_market_after(tx: &mut Tx, market_id: MarketId, block: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM movements WHERE market_id = $1 AND id > $2";
    tx.exec(SQL, &params![market_id, Movement::id_at(block, u32::MAX)]).await.map(drop)
}

/// An intent that ended on chain without a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentFailure {
    /// The trade.
    pub trade_id: TradeId,
    /// The block.
    pub block_number: u64,
    /// The log's place in the block.
    pub log_index: u32,
    /// The transaction.
    pub tx_hash: String,
    /// The nonce of the intent; `None` in rows from before it was stored.
    pub nonce: Option<u32>,
    /// The chain's reason, by its stable name.
    pub reason: String,
    /// The block's time.
    pub at: Timestamp,
}

/// Adds failures.
pub async fn insert_failures(tx: &mut Tx, failures: &[IntentFailure]) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO intent_failures (trade_id, block_number, log_index, tx_hash, reason, at_ms, nonce)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let rows: Result<Vec<Vec<Value<'_>>>, StoreError> = failures
        .iter()
        .map(|f| {
            let block = Value::try_from(f.block_number)?;
            Ok(params![f.trade_id, block, f.log_index, &f.tx_hash, &f.reason, f.at, f.nonce].to_vec())
        })
        .collect();
    tx.exec_each(SQL, &rows?).await.map(drop)
}

/// Deletes the failures in the blocks `from..=to`.
pub async fn delete_failures(tx: &mut Tx, from: u64, to: u64) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM intent_failures WHERE block_number >= $1 AND block_number <= $2";
    tx.exec(SQL, &[Value::try_from(from)?, Value::try_from(to)?]).await.map(drop)
}

/// The failures in the blocks `from..=to`, in the chain's order.
pub async fn list_failures(tx: &mut Tx, from: u64, to: u64) -> Result<Vec<IntentFailure>, StoreError> {
    const SQL: &str =
        "SELECT trade_id, block_number, log_index, tx_hash, reason, at_ms, nonce FROM intent_failures
        WHERE block_number >= $1 AND block_number <= $2 ORDER BY block_number, log_index";
    tx.list(SQL, &[Value::try_from(from)?, Value::try_from(to)?], |row| {
        Ok(IntentFailure {
            trade_id: row.parse(0)?,
            block_number: row.number(1)?,
            log_index: row.number(2)?,
            tx_hash: row.text(3)?,
            reason: row.text(4)?,
            at: row.timestamp(5)?,
            nonce: row.opt_number(6)?,
        })
    })
    .await
}

/// A position with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Whose, lower-case hex.
    pub account: String,
    /// The market.
    pub market_id: MarketId,
    /// The outcome.
    pub outcome_index: u8,
    /// What is held.
    pub position: Position,
    /// When it last moved.
    pub updated_at: Timestamp,
}

const HELD: &str =
    "account, market_id, outcome_index, tokens_wad, cost_basis_usdc_atomic, realized_pnl_usdc_atomic,
    fees_paid_usdc_atomic, updated_at_ms";

fn held_from_row(row: &Row<'_>) -> Result<Held, StoreError> {
    Ok(Held {
        account: row.text(0)?,
        market_id: row.parse(1)?,
        outcome_index: row.number(2)?,
        position: Position {
            tokens: row.parse(3)?,
            cost_basis: row.usdc(4)?,
            realized_pnl: UsdcDelta(row.int(5)?),
            fees_paid: row.usdc(6)?,
        },
        updated_at: row.timestamp(7)?,
    })
}

/// The position of one account in one outcome.
pub async fn find_position(
    tx: &mut Tx,
    account: &str,
    market_id: MarketId,
    outcome_index: u8,
) -> Result<Option<Held>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        HELD,
        " FROM positions WHERE account = $1 AND market_id = $2 AND outcome_index = $3"
    );
    tx.find(SQL, &params![account, market_id, outcome_index], held_from_row).await
}

/// An account's positions, those that were closed too; of one market where `market_id` is given. At most 10,000.
pub async fn list_positions(
    tx: &mut Tx,
    account: &str,
    market_id: Option<MarketId>,
) -> Result<Vec<Held>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        HELD,
        " FROM positions WHERE account = $1 AND ($2 = '' OR market_id = $2)
        ORDER BY market_id, outcome_index LIMIT 10000"
    );
    let market_id = market_id.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![account, market_id], held_from_row).await
}

/// A market's positions, those that were closed too.
pub async fn list_of_market_positions(tx: &mut Tx, market_id: MarketId) -> Result<Vec<Held>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        HELD,
        " FROM positions WHERE market_id = $1 ORDER BY account, outcome_index"
    );
    tx.list(SQL, &params![market_id], held_from_row).await
}

/// The tokens that accounts hold in a market, behind the place `after` (an account and an outcome).
pub async fn list_holdings(
    tx: &mut Tx,
    market_id: MarketId,
    after: &(String, i64),
    limit: u32,
) -> Result<Vec<(String, u8, Wad)>, StoreError> {
    const SQL: &str = "SELECT account, outcome_index, tokens_wad FROM positions
        WHERE market_id = $1 AND (account, outcome_index) > ($2, $3) ORDER BY account, outcome_index LIMIT $4";
    let bound = params![market_id, &after.0, after.1, limit];
    tx.list(SQL, &bound, |row| Ok((row.text(0)?, row.number(1)?, row.parse(2)?))).await
}

/// Writes positions as they are now.
pub async fn put_positions(tx: &mut Tx, held: &[Held]) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO positions (account, market_id, outcome_index, tokens_wad, cost_basis_usdc_atomic,
        realized_pnl_usdc_atomic, fees_paid_usdc_atomic, updated_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (account, market_id, outcome_index) DO UPDATE SET tokens_wad = excluded.tokens_wad,
        cost_basis_usdc_atomic = excluded.cost_basis_usdc_atomic,
        realized_pnl_usdc_atomic = excluded.realized_pnl_usdc_atomic,
        fees_paid_usdc_atomic = excluded.fees_paid_usdc_atomic, updated_at_ms = excluded.updated_at_ms";
    let rows: Vec<Vec<Value<'_>>> = held
        .iter()
        .map(|h| {
            let p = &h.position;
            params![
                &h.account,
                h.market_id,
                h.outcome_index,
                p.tokens,
                p.cost_basis,
                p.realized_pnl,
                p.fees_paid,
                h.updated_at
            ]
            .to_vec()
        })
        .collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Forgets a market's positions, before they are computed again.
pub async fn delete_positions(tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM positions WHERE market_id = $1";
    tx.exec(SQL, &params![market_id]).await.map(drop)
}
