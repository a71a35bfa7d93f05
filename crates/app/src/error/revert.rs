//! Maps the contracts' revert reasons to API error codes and to risk refusals. Both mappings are in
//! one place so that they stay consistent.

use chain::{ChainError, Revert};
use domain::ErrorCode;
use domain::limits::SpendRefusal;
use domain::risk::RiskRefusal;

use super::AppError;

/// Returns the API error code of a revert reason.
pub fn code_of(revert: &Revert) -> ErrorCode {
    match revert {
        Revert::MarketNotTradeable | Revert::MarketUnknown => ErrorCode::MarketNotTradeable,
        Revert::OutcomeInvalid => ErrorCode::OutcomeIndexInvalid,
        Revert::InsufficientBalance | Revert::InsufficientPosition => ErrorCode::InsufficientBalance,
        Revert::AllowanceMissing | Revert::PolicyMissing | Revert::PolicyExpired => {
            ErrorCode::WalletDelegationNotEnabled
        }
        Revert::PerTradeCapExceeded
        | Revert::DailyCapExceeded
        | Revert::SalePerTradeCapExceeded
        | Revert::SaleDailyCapExceeded => ErrorCode::SpendingLimitExceeded,
        Revert::SlippageExceeded | Revert::SaleBoundExceeded => ErrorCode::SlippageExceeded,
        Revert::LiquidityInsufficient | Revert::AmountTooLarge => ErrorCode::LiquidityInsufficient,
        Revert::AmountZero => ErrorCode::AmountTooSmall,
        Revert::DeadlinePassed => ErrorCode::RequestTimeout,
        Revert::TokenPaused | Revert::Blacklisted | Revert::Paused | Revert::HourlyVolumeExceeded => {
            ErrorCode::DependencyUnavailable
        }
        Revert::NothingToRedeem => ErrorCode::PositionNotClaimable,
        Revert::OwnerInvalid
        | Revert::OwnerExists
        | Revert::OwnerUnknown
        | Revert::LastOwner
        | Revert::OwnerLimitReached => ErrorCode::ValidationFailed,
        _ => ErrorCode::InternalError,
    }
}

/// Returns the risk refusal of a revert reason. `None` if the reason does not concern the trade
/// itself.
pub const fn risk_of(revert: &Revert) -> Option<RiskRefusal> {
    Some(match revert {
        Revert::MarketNotTradeable | Revert::MarketUnknown => RiskRefusal::MarketPaused,
        Revert::InsufficientBalance | Revert::InsufficientPosition => RiskRefusal::InsufficientBalance,
        Revert::AllowanceMissing | Revert::PolicyMissing | Revert::PolicyExpired => {
            RiskRefusal::DelegationInactive
        }
        Revert::PerTradeCapExceeded | Revert::SalePerTradeCapExceeded => RiskRefusal::TradeTooLarge,
        Revert::DailyCapExceeded | Revert::SaleDailyCapExceeded => RiskRefusal::DailyLimitExceeded,
        // It moved something when it was accepted and nothing now, so the price has moved.
        Revert::SlippageExceeded | Revert::SaleBoundExceeded | Revert::AmountZero => RiskRefusal::PriceMoved,
        Revert::LiquidityInsufficient | Revert::AmountTooLarge => RiskRefusal::PositionLimitExceeded,
        _ => return None,
    })
}

/// Converts a chain error to an API error.
pub fn to_app_error(error: ChainError) -> AppError {
    let refusal = match &error {
        ChainError::Reverted(revert) => {
            let refusal = AppError::new(code_of(revert));
            match revert {
                Revert::PerTradeCapExceeded => refusal.with("cap", SpendRefusal::PerTrade.cap()),
                Revert::DailyCapExceeded => refusal.with("cap", SpendRefusal::DailyVolume.cap()),
                Revert::SalePerTradeCapExceeded => refusal.with("cap", SpendRefusal::SalePerTrade.cap()),
                Revert::SaleDailyCapExceeded => refusal.with("cap", SpendRefusal::DailySales.cap()),
                Revert::AmountZero => refusal.detail("The amount is too small: it rounds to zero."),
                _ => refusal,
            }
        }
        // Node problems, not answers of the contracts: a retry, or another node, may succeed.
        ChainError::Unreachable(_)
        | ChainError::Inconsistent(_)
        | ChainError::Ambiguous(_)
        | ChainError::Rejected(_)
        | ChainError::Decode(_) => AppError::new(ErrorCode::DependencyUnavailable).retry_after_s(1),
    };
    refusal.caused_by(error)
}
