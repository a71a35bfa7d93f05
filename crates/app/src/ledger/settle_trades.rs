//! Ends trades from the contracts' final events.
//!
//! Events carry the trade's id. It does not matter which transaction carried the intent, or whether
//! this process knows it.

use chain::Revert;
use domain::ErrorCode;
use domain::ids::MarketId;
use domain::trade::{Failure, Settlement, Status, Transition};
use store::movements::{IntentFailure, Movement};
use store::trades::{Moved, Trade};
use store::{StoreError, Tx};

use crate::AppError;
use crate::error::revert;

/// Ends the trades that final blocks have decided. Returns how many.
///
/// The caller notes the settled block in the same transaction, so that each event is used once.
pub async fn settle(
    tx: &mut Tx,
    from_block: u64,
    to_block: u64,
    now: domain::Timestamp,
) -> Result<usize, AppError> {
    let mut ended = 0;
    for movement in store::movements::list_settled(tx, from_block, to_block).await? {
        ended += usize::from(complete(tx, &movement, now).await?);
    }
    for failure in store::movements::list_failures(tx, from_block, to_block).await? {
        ended += usize::from(fail(tx, &failure, now).await?);
    }
    Ok(ended)
}

/// Ends the trades of one market that an earlier settlement missed, for example while the market
/// was quarantined.
pub async fn settle_market(
    tx: &mut Tx,
    market_id: MarketId,
    from_block: u64,
    to_block: u64,
    now: domain::Timestamp,
) -> Result<usize, AppError> {
    let mut ended = 0;
    for movement in store::movements::list_unsettled(tx, market_id, from_block, to_block).await? {
        ended += usize::from(complete(tx, &movement, now).await?);
    }
    Ok(ended)
}

async fn complete(tx: &mut Tx, movement: &Movement, now: domain::Timestamp) -> Result<bool, AppError> {
    // Movements without a trade come from other callers of the contracts.
    let Some(id) = movement.trade_id else { return Ok(false) };
    let Some(trade) = store::trades::find_any(tx, id).await? else { return Ok(false) };
    let settlement = Settlement {
        tx_hash: movement.tx_hash,
        block_number: movement.block_number,
        usdc: movement.usdc,
        tokens: movement.tokens,
        fee: movement.fee,
    };
    let transition = Transition::complete(Status::Executing, settlement, now);
    moved(store::trades::apply(tx, &trade, &transition.map_err(AppError::internal)?).await, id)
}

async fn fail(tx: &mut Tx, failure: &IntentFailure, now: domain::Timestamp) -> Result<bool, AppError> {
    let Some(trade) = store::trades::find_any(tx, failure.trade_id).await? else { return Ok(false) };
    // A second event of a trade that has ended, e.g. a duplicate after its success, changes
    // nothing.
    if trade.state.status() != Status::Executing {
        return Ok(false);
    }
    let code = match failure.reason.as_str() {
        // The trade was already given another nonce; the event is about the old one.
        DUPLICATE if is_superseded(&trade, failure) => return Ok(false),
        DUPLICATE if renewed(tx, &trade, now).await? => return Ok(false),
        DUPLICATE => ErrorCode::RequestTimeout,
        reason => {
            reason.parse::<Revert>().map_or(ErrorCode::InternalError, |revert| revert::code_of(&revert))
        }
    };
    let message = code.default_detail().to_owned();
    let failed = Failure { code, message, tx_hash: Some(failure.tx_hash) };
    let transition = Transition::fail(Status::Executing, failed, now).map_err(AppError::internal)?;
    moved(store::trades::apply(tx, &trade, &transition).await, trade.id)
}

/// Returns whether the trade has received another nonce since the intent of this event.
fn is_superseded(trade: &Trade, duplicate: &IntentFailure) -> bool {
    duplicate.nonce.is_some_and(|nonce| trade.nonce != Some(nonce))
}

/// Gives a trade another nonce, at most once and only before its deadline. Returns whether it did.
///
/// No event of the trade precedes its duplicate. So either another intent used the nonce, or the
/// nonce fell out of the Gate's window. In both cases the trade's own intent never ran and never
/// will.
async fn renewed(tx: &mut Tx, trade: &Trade, now: domain::Timestamp) -> Result<bool, AppError> {
    match trade.nonce {
        Some(nonce) if trade.deadline > now => Ok(store::trades::renew(tx, trade.id, nonce, now).await?),
        _ => Ok(false),
    }
}

/// The stored failure reason of an intent whose nonce had been used before.
pub const DUPLICATE: &str = "duplicate";

fn moved(moved: Result<Moved, StoreError>, id: domain::ids::TradeId) -> Result<bool, AppError> {
    match moved? {
        Moved::Moved => Ok(true),
        Moved::Stale { current } => {
            tracing::warn!(trade.id = %id, %current, "the chain has decided a trade that is not executing");
            Ok(false)
        }
    }
}
