//! The errors of the real conditions, from the functions that the real checks use.

use chain::{ChainError, Revert};
use domain::limits::SpendRefusal;
use domain::market::MarketStatus;
use domain::rate::RateDecision;
use domain::time::MINUTE_MS;
use domain::{ErrorCode, Usdc};
use store::keys::TradingStop;
use store::trades::Trade;

use crate::AppError;
use crate::caller::Caller;
use crate::keys::stopped;
use crate::limits::{LimitKind, exceeded};
use crate::markets::not_open;
use crate::process::desk::Refused;
use crate::process::switches::halted;
use crate::trades::funds::{insufficient, too_few_tokens};

/// Returns the rejection that a request gets if the condition of `code` holds. `trade` is the trade
/// that the request would create.
pub(super) fn rejection(caller: &Caller, code: ErrorCode, trade: &Trade) -> Refused {
    // Only buys reserve USDC.
    let is_buy = trade.reserved > Usdc::ZERO;
    let error = match code {
        ErrorCode::IdempotencyKeyConflict => return Refused::InProgress,
        ErrorCode::ApiKeyPaused => stopped(TradingStop::Paused),
        ErrorCode::ApiTradeProcessingHalted => halted(),
        ErrorCode::DependencyUnavailable => {
            ChainError::Unreachable("the sandbox disconnected it".to_owned()).into()
        }
        ErrorCode::InsufficientBalance if is_buy => insufficient(trade.reserved, Usdc::ZERO, Usdc::ZERO),
        ErrorCode::InsufficientBalance => too_few_tokens(),
        ErrorCode::LiquidityInsufficient => ChainError::Reverted(Revert::LiquidityInsufficient).into(),
        ErrorCode::MarketNotTradeable => not_open(MarketStatus::Frozen),
        ErrorCode::RateLimitExceeded => too_many_writes(caller, trade),
        ErrorCode::SpendingLimitExceeded if is_buy => SpendRefusal::DailyVolume.into(),
        ErrorCode::SpendingLimitExceeded => SpendRefusal::DailySales.into(),
        code => AppError::new(code),
    };
    error.into()
}

/// Returns the error of a user whose bucket has just become empty.
fn too_many_writes(caller: &Caller, trade: &Trade) -> AppError {
    let limit = caller.limits().requests_per_minute;
    let retry_after_ms = MINUTE_MS / i64::from(limit.max(1));
    let reset_at = trade.created_at.plus_ms(MINUTE_MS);
    let decision = RateDecision { allowed: false, limit, remaining: 0, reset_at, retry_after_ms };
    exceeded(LimitKind::Write.as_str(), decision)
}
