//! What the contracts' reasons mean to a caller and to the risk engine: the two readings of one list stand side by side.

use chain::{ChainError, Revert};
use domain::ErrorCode;
use domain::limits::SpendRefusal;
use domain::risk::RiskRefusal;

use crate::AppError;

/// The code of the catalogue for a reason of the contracts.
pub fn code_of(revert: &Revert) -> ErrorCode {
    match revert {
        Revert::MarketNotTradeable | Revert::MarketUnknown => ErrorCode::MarketNotTradeable,
        Revert::OutcomeInvalid => ErrorCode::OutcomeIndexInvalid,
        Revert::InsufficientBalance | Revert::InsufficientPosition => ErrorCode::InsufficientBalance,
        Revert::AllowanceMissing | Revert::PolicyMissing | Revert::PolicyExpired => {
            ErrorCode::WalletDelegationNotEnabled
        }
        Revert::PerTradeCapExceeded | Revert::DailyCapExceeded => ErrorCode::SpendingLimitExceeded,
        Revert::SlippageExceeded => ErrorCode::SlippageExceeded,
        Revert::LiquidityInsufficient | Revert::AmountTooLarge => ErrorCode::LiquidityInsufficient,
        Revert::AmountZero => ErrorCode::AmountTooSmall,
        Revert::DeadlinePassed => ErrorCode::RequestTimeout,
        Revert::TokenPaused | Revert::Blacklisted | Revert::Paused | Revert::HourlyVolumeExceeded => {
            ErrorCode::DependencyUnavailable
        }
        Revert::NothingToRedeem => ErrorCode::PositionNotClaimable,
        _ => ErrorCode::InternalError,
    }
}

/// The risk engine's word for a reason found before anything was sent; `None` where it is no verdict on the trade.
pub const fn risk_of(revert: &Revert) -> Option<RiskRefusal> {
    Some(match revert {
        Revert::MarketNotTradeable | Revert::MarketUnknown => RiskRefusal::MarketPaused,
        Revert::InsufficientBalance | Revert::InsufficientPosition => RiskRefusal::InsufficientBalance,
        Revert::AllowanceMissing | Revert::PolicyMissing | Revert::PolicyExpired => {
            RiskRefusal::DelegationInactive
        }
        Revert::PerTradeCapExceeded => RiskRefusal::TradeTooLarge,
        Revert::DailyCapExceeded => RiskRefusal::DailyLimitExceeded,
        // What moved something at acceptance and moves nothing now has lost its worth.
        Revert::SlippageExceeded | Revert::AmountZero => RiskRefusal::PriceMoved,
        Revert::LiquidityInsufficient | Revert::AmountTooLarge => RiskRefusal::PositionLimitExceeded,
        _ => return None,
    })
}

/// A failure of the chain as a refusal of the request that ran into it.
pub fn to_app_error(error: ChainError) -> AppError {
    let refusal = match &error {
        ChainError::Reverted(revert) => {
            let refusal = AppError::new(code_of(revert));
            match revert {
                Revert::PerTradeCapExceeded => refusal.with("cap", SpendRefusal::PerTrade.cap()),
                Revert::DailyCapExceeded => refusal.with("cap", SpendRefusal::DailyVolume.cap()),
                Revert::AmountZero => refusal.detail("The amount is too small: nothing would move."),
                _ => refusal,
            }
        }
        // Whatever a node says that is no answer of the contracts: another node, or the same one later, may do better.
        ChainError::Unreachable(_)
        | ChainError::Inconsistent(_)
        | ChainError::Ambiguous(_)
        | ChainError::Rejected(_)
        | ChainError::Decode(_) => AppError::new(ErrorCode::DependencyUnavailable).retry_after_s(1),
    };
    refusal.caused_by(error)
}
