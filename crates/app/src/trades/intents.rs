//! Trades as the chain sees them.

use alloy_primitives::Address;
use chain::{Intent, Side};
use domain::ErrorCode;
use store::trades::Trade;

use crate::AppError;

/// The lane of an account: all its trades go through one executor, and so stay in order.
pub fn lane_of(account: Address, lanes: u16) -> u16 {
    let last = account.as_slice().iter().rev().take(2).fold(0u16, |sum, byte| (sum << 8) | u16::from(*byte));
    last % lanes.max(1)
}

/// The account of a trade.
pub fn account_of(trade: &Trade) -> Result<Address, AppError> {
    trade.account.parse().map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))
}

/// The way to trade that was stored with a trade.
pub fn side_of(trade: &Trade) -> Result<Side, AppError> {
    Side::ALL
        .get(usize::from(trade.intent_side))
        .copied()
        .ok_or_else(|| AppError::new(ErrorCode::InternalError))
}

/// The intent of a trade. Built again from the row it is the same intent, so that the chain's own once-only nonce holds
/// for every form that it is ever sent in.
pub fn intent_of(trade: &Trade, chain_market_id: u64, nonce: u32) -> Result<Intent, AppError> {
    let internal = || AppError::new(ErrorCode::InternalError);
    Ok(Intent {
        account: account_of(trade)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_always_has_the_same_lane_and_lanes_share_the_accounts() {
        let lanes: Vec<_> = (0..6u8).map(|n| lane_of(Address::with_last_byte(n), 3)).collect();
        assert_eq!(lanes, [0, 1, 2, 0, 1, 2]);
        assert_eq!(lane_of(Address::with_last_byte(9), 0), 0);
    }
}
