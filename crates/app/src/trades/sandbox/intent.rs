//! Intents that the contracts are sure to reject.

use alloy_primitives::U256;
use chain::IntentSide;
use domain::{ErrorCode, Usdc, Wad};
use store::trades::Trade;

use crate::AppError;
use crate::trades::intents::side_of;

/// More than any account has and any cap allows, in the range of the database's integers.
const MOST_USDC: Usdc = Usdc::from_atomic(i64::MAX as u64);
/// More than any position has. The contracts use 128 bits.
const MOST_TOKENS: Wad = Wad(U256::from_limbs([u64::MAX, u64::MAX, 0, 0]));
const ONE_WEI: Wad = Wad(U256::ONE);

/// Changes the intent of a trade so that the contracts reject it with an error of this code, or so
/// that its deadline has passed. No intent made here can ever move anything: each has a price bound
/// that no market meets.
///
/// `held` is the account's position, which only `INSUFFICIENT_BALANCE` needs.
pub(super) fn make_impossible(trade: &mut Trade, code: ErrorCode, held: Wad) -> Result<(), AppError> {
    let side = side_of(trade)?;
    match code {
        ErrorCode::SlippageExceeded => refuse_every_price(trade, side),
        ErrorCode::SpendingLimitExceeded if side.is_buy() => {
            set(trade, IntentSide::BuyForUsdc, MOST_USDC, MOST_TOKENS);
        }
        // The caps of sales count the tokens of the bound.
        ErrorCode::SpendingLimitExceeded => set(trade, side, MOST_USDC, MOST_TOKENS),
        ErrorCode::InsufficientBalance => {
            // A buy above the balance could be above a cap too, which the Gate checks first.
            let tokens = held.checked_add(ONE_WEI).unwrap_or(MOST_TOKENS);
            set(trade, IntentSide::SellTokens, MOST_USDC, tokens);
        }
        ErrorCode::LiquidityInsufficient => set(trade, IntentSide::SellForUsdc, MOST_USDC, ONE_WEI),
        ErrorCode::WalletDelegationNotEnabled => {
            refuse_every_price(trade, side);
            trade.key_index = other_index(trade.key_index);
        }
        ErrorCode::RequestTimeout => trade.deadline = trade.created_at,
        code => return Err(AppError::internal(format!("the sandbox cannot make a trade fail with {code}"))),
    }
    Ok(())
}

/// Returns an index at which no key of an account has a delegation. Applied twice, it returns the
/// first index.
///
/// It differs per key, because the Gate also counts the nonces of an index without a delegation.
pub(super) const fn other_index(key_index: u32) -> u32 {
    u32::MAX - key_index
}

fn set(trade: &mut Trade, side: IntentSide, usdc: Usdc, tokens: Wad) {
    trade.intent_side = side as u8;
    trade.intent_usdc = usdc;
    trade.intent_tokens = tokens;
}

/// Replaces the bound of a trade. The exact amount stays the same.
fn refuse_every_price(trade: &mut Trade, side: IntentSide) {
    match side {
        IntentSide::BuyForUsdc => trade.intent_tokens = MOST_TOKENS,
        IntentSide::SellForUsdc => trade.intent_tokens = ONE_WEI,
        IntentSide::BuyTokens => trade.intent_usdc = Usdc::ZERO,
        IntentSide::SellTokens | IntentSide::SellAll => trade.intent_usdc = MOST_USDC,
    }
}
