//! Effects of a single chain transaction on positions and markets.

use alloy_primitives::B256;
use axum::extract::State;
use axum::response::Response;
use domain::Cents;
use domain::ids::MarketId;
use http_kit::{NoParameters, PathId, Problem, PublicCode, Query, Shared};
use presentation::numbers;
use serde::Serialize;
use store::StoreError;
use store::movements::Movement;
use store::public::TransactionRows;
use utoipa::ToSchema;

use super::answer::Meta;
use crate::openapi::formats::{Address, TxHash};

/// One transaction.
#[derive(Debug, Serialize, ToSchema)]
pub struct TransactionAnswer {
    transaction: TransactionRecord,
}

/// A transaction that changed a market of this service.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Transaction)]
#[serde(rename_all = "camelCase")]
struct TransactionRecord {
    #[schema(value_type = TxHash)]
    hash: B256,
    chain_id: u64,
    /// The block of the transaction. Only set if the transaction moved a position.
    #[serde(skip_serializing_if = "Option::is_none")]
    block_number: Option<u64>,
    /// The time of the block in milliseconds since the Unix epoch. Only set if the transaction
    /// moved a position.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
    /// The movements in the order of the chain, at most 1,000.
    movements: Vec<MovementRecord>,
    /// The markets that the transaction settled.
    settled_market_ids: Vec<MarketId>,
}

/// A movement of a position.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Movement)]
#[serde(rename_all = "camelCase")]
struct MovementRecord {
    /// `buy`, `sell`, `redeem` or `transfer`. Others may be added.
    kind: &'static str,
    market_id: MarketId,
    outcome_index: u8,
    /// The account that holds the position.
    #[schema(value_type = Address)]
    account: alloy_primitives::Address,
    /// The recipient of a transfer.
    #[schema(value_type = Option<Address>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<alloy_primitives::Address>,
    /// USDC paid by a buy with the fee, or received from a sale after it.
    volume: Cents,
    /// Whole tokens as a decimal string.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,18})?$")]
    tokens: String,
}

/// `GET /api/transactions/{hash}`.
#[utoipa::path(
    get, path = "/api/transactions/{hash}", operation_id = "getTransaction", tag = "Community",
    summary = "Read a transaction", description = "The positions that the transaction moved and \
        the markets that it settled, from the chain's events.",
    params(("hash" = TxHash, Path, description = "The transaction's hash, in upper or lower case.")),
    responses((status = 200, description = "The transaction.", body = TransactionAnswer)),
    extensions(("x-error-codes" = json!(["TRANSACTION_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    PathId(hash): PathId,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let not_found = || Problem::from(PublicCode::TransactionNotFound);
    let hash = hash.to_ascii_lowercase();
    // The parser would also accept a hash without its prefix, or with two.
    let digits = hash.strip_prefix("0x").filter(|digits| digits.len() == 64);
    let hash: B256 = digits.and_then(|digits| digits.parse().ok()).ok_or_else(not_found)?;
    let read: Result<_, StoreError> = app
        .ctx
        .store
        .for_public()
        .read(hash, |tx, hash| Box::pin(store::public::find_transaction(tx, *hash)))
        .await;
    let rows = read?.ok_or_else(not_found)?;
    let transaction = TransactionRecord::new(hash, app.ctx.chain.chain_id(), rows);
    meta.answer(&TransactionAnswer { transaction })
}

impl TransactionRecord {
    fn new(hash: B256, chain_id: u64, rows: TransactionRows) -> Self {
        let TransactionRows { movements, settled } = rows;
        let first = movements.first();
        Self {
            hash,
            chain_id,
            block_number: first.map(|first| first.block_number),
            timestamp: first.map(|first| first.created_at.ms()),
            movements: movements.into_iter().map(MovementRecord::new).collect(),
            settled_market_ids: settled,
        }
    }
}

impl MovementRecord {
    fn new(movement: Movement) -> Self {
        Self {
            kind: movement.kind.as_str(),
            market_id: movement.market_id,
            outcome_index: movement.outcome_index,
            volume: movement.usdc.to_cents_floor(),
            tokens: numbers::decimal(&movement.tokens.0, 18),
            account: movement.account,
            to: movement.counterparty,
        }
    }
}
