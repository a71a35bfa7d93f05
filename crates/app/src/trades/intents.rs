//! Conversions from stored trades to contract types.

use chain::{Intent, IntentSide};
use domain::ErrorCode;
use store::trades::Trade;

use crate::AppError;

pub fn side_of(trade: &Trade) -> Result<IntentSide, AppError> {
    IntentSide::ALL
        .get(usize::from(trade.intent_side))
        .copied()
        .ok_or_else(|| AppError::new(ErrorCode::InternalError))
}

/// Builds the intent of a trade.
///
/// The result depends only on the row and the nonce. A trade that is signed again gets an identical
/// intent, and the Gate executes a nonce at most once.
pub fn intent_of(trade: &Trade, chain_market_id: u64, nonce: u32) -> Result<Intent, AppError> {
    let internal = || AppError::new(ErrorCode::InternalError);
    Ok(Intent {
        account: trade.account,
        key_index: trade.key_index,
        nonce,
        deadline_s: u32::try_from(trade.deadline.s()).map_err(|_| internal())?,
        market_id: chain_market_id,
        outcome: trade.outcome_index,
        side: side_of(trade)?,
        usdc_atomic: trade.intent_usdc.atomic(),
        tokens_wad: trade.intent_tokens.to_u128().ok_or_else(internal)?,
        trade_id: trade.id.0,
    })
}
