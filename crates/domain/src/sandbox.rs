//! The scenarios of the sandbox: names that a client puts into a trade's metadata to provoke an
//! outcome. They have an effect only in a test environment whose operator has switched them on.

use std::collections::BTreeMap;
use std::fmt;

use crate::code::ErrorCode;
use crate::field_error::FieldError;
use crate::risk::RiskRefusal;

/// The member of a trade's `metadata` that names its scenario.
pub const MEMBER: &str = "sandbox";
/// The longest delay of [`Scenario::Slow`].
pub const MAX_DELAY_S: u32 = 600;

/// An outcome that a client provokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// The request is rejected with this code, and no trade is created.
    Reject(ErrorCode),
    /// The trade is accepted and fails with this code.
    Fail(ErrorCode),
    /// The trade is accepted, and the risk engine rejects it for this reason.
    Risk(RiskRefusal),
    /// The trade is accepted and waits before it is executed.
    Slow {
        /// From 1 to [`MAX_DELAY_S`].
        seconds: u32,
    },
    /// The trade is held for confirmation, whatever its value is.
    Hold,
    /// The trade is created, but the answer reports that this is unknown.
    Lose,
}

impl Scenario {
    /// The codes of [`Self::Reject`]: states that a client cannot cause by its request alone.
    pub const REJECTIONS: &[ErrorCode] = &[
        ErrorCode::ApiKeyPaused,
        ErrorCode::ApiTradeProcessingHalted,
        ErrorCode::DependencyUnavailable,
        ErrorCode::IdempotencyKeyConflict,
        ErrorCode::InsufficientBalance,
        ErrorCode::LiquidityInsufficient,
        ErrorCode::MarketNotTradeable,
        ErrorCode::RateLimitExceeded,
        ErrorCode::SlippageExceeded,
        ErrorCode::SmartAccountNotProvisioned,
        ErrorCode::SpendingLimitExceeded,
        ErrorCode::WalletDelegationNotEnabled,
    ];

    /// The codes of [`Self::Fail`].
    pub const FAILURES: &[ErrorCode] = &[
        ErrorCode::InsufficientBalance,
        ErrorCode::LiquidityInsufficient,
        ErrorCode::RequestTimeout,
        ErrorCode::SlippageExceeded,
        ErrorCode::SpendingLimitExceeded,
        ErrorCode::WalletDelegationNotEnabled,
    ];

    /// Returns the scenario that a trade's metadata names.
    ///
    /// # Errors
    /// If the metadata names an unknown one. The error lists the known ones.
    pub fn find(metadata: &BTreeMap<String, String>) -> Result<Option<Self>, FieldError> {
        let Some(name) = metadata.get(MEMBER) else { return Ok(None) };
        let unknown = || FieldError::new(format!("/metadata/{MEMBER}"), requirement()).got(name);
        Self::parse(name).ok_or_else(unknown).map(Some)
    }

    fn parse(name: &str) -> Option<Self> {
        let (kind, detail) = match name.split_once(':') {
            Some((kind, detail)) => (kind, Some(detail)),
            None => (name, None),
        };
        Some(match (kind, detail) {
            ("reject", Some(code)) => Self::Reject(code_of(code, Self::REJECTIONS)?),
            ("fail", Some(code)) => Self::Fail(code_of(code, Self::FAILURES)?),
            ("risk", Some(reason)) => Self::Risk(reason.parse().ok()?),
            ("slow", Some(seconds)) => Self::Slow { seconds: delay_of(seconds)? },
            ("hold", None) => Self::Hold,
            ("lose", None) => Self::Lose,
            _ => return None,
        })
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reject(code) => write!(f, "reject:{code}"),
            Self::Fail(code) => write!(f, "fail:{code}"),
            Self::Risk(reason) => write!(f, "risk:{reason}"),
            Self::Slow { seconds } => write!(f, "slow:{seconds}"),
            Self::Hold => f.write_str("hold"),
            Self::Lose => f.write_str("lose"),
        }
    }
}

fn code_of(text: &str, known: &[ErrorCode]) -> Option<ErrorCode> {
    known.iter().copied().find(|code| code.as_str() == text)
}

fn delay_of(text: &str) -> Option<u32> {
    // Rust's own parser also takes a plus sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)?;
    digits.parse().ok().filter(|seconds| (1..=MAX_DELAY_S).contains(seconds))
}

fn requirement() -> String {
    let joined = |words: &mut dyn Iterator<Item = &'static str>| words.collect::<Vec<_>>().join(", ");
    format!(
        "must be hold, lose, slow: with 1 to {MAX_DELAY_S} seconds, reject: with one of {}, fail: with one of \
         {}, or risk: with one of {}",
        joined(&mut Scenario::REJECTIONS.iter().map(|code| code.as_str())),
        joined(&mut Scenario::FAILURES.iter().map(|code| code.as_str())),
        joined(&mut RiskRefusal::ALL.iter().map(|reason| reason.as_str())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Result<Option<Scenario>, FieldError> {
        Scenario::find(&BTreeMap::from([(MEMBER.to_owned(), name.to_owned())]))
    }

    #[test]
    fn every_scenario_is_found_by_its_name() {
        let reject = Scenario::REJECTIONS.iter().copied().map(Scenario::Reject);
        let fail = Scenario::FAILURES.iter().copied().map(Scenario::Fail);
        let risk = RiskRefusal::ALL.iter().copied().map(Scenario::Risk);
        let slow = [1, MAX_DELAY_S].map(|seconds| Scenario::Slow { seconds });
        let all = reject.chain(fail).chain(risk).chain(slow).chain([Scenario::Hold, Scenario::Lose]);
        for scenario in all {
            assert_eq!(find(&scenario.to_string()), Ok(Some(scenario)));
        }
    }

    #[test]
    fn metadata_without_the_member_names_no_scenario() {
        let other = BTreeMap::from([("desk".to_owned(), "hold".to_owned())]);
        assert_eq!(Scenario::find(&other), Ok(None));
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        for name in [
            "",
            "hold:",
            "lose:1",
            "Hold",
            "slow",
            "slow:0",
            "slow:601",
            "slow:+1",
            "slow:",
            "reject",
            "reject:AMOUNT_TOO_LARGE",
            "fail:API_KEY_PAUSED",
            "risk:PRICE_MOVED",
        ] {
            let error = find(name).unwrap_err();
            assert_eq!(error.pointer, "/metadata/sandbox");
            for known in
                ["hold", "slow: with 1 to 600", "RATE_LIMIT_EXCEEDED", "REQUEST_TIMEOUT", "price_moved"]
            {
                assert!(error.detail.contains(known), "{name}: {}", error.detail);
            }
        }
    }
}
