//! The reasons for which the risk engine rejects a trade before anything is sent to the chain.

use std::fmt;
use std::str::FromStr;

macro_rules! refusals {
    ($($name:ident = $word:literal, $message:literal;)*) => {
        /// A reason for rejecting a trade. These values form a namespace separate from the error
        /// codes, in lower snake case.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RiskRefusal {
            $(#[doc = $message] $name,)*
        }

        impl RiskRefusal {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the value that the API sends and the database stores.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Returns an explanation for people, without internal details.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

refusals! {
    TradeTooLarge = "trade_too_large", "The trade is above the key's cap per trade on chain.";
    DailyLimitExceeded = "daily_limit_exceeded", "The trade is above the remainder of the key's daily cap on chain.";
    PriceMoved = "price_moved", "The price moved past the bound in the request.";
    MarketPaused = "market_paused", "The market stopped trading before the trade was sent.";
    InsufficientBalance = "insufficient_balance", "The smart account no longer holds the USDC or tokens that the trade needs.";
    DelegationInactive = "delegation_inactive", "This key can no longer trade: its delegation was revoked or has expired, or its trading is paused.";
    PositionLimitExceeded = "position_limit_exceeded", "The trade is larger than the market can execute.";
    SuspiciousActivity = "suspicious_activity", "The trade was stopped for review.";
}

impl fmt::Display for RiskRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RiskRefusal {
    type Err = crate::code::ParseCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|r| r.as_str() == text).ok_or(crate::code::ParseCodeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_equal_the_documented_ones_and_round_trip() {
        let words: Vec<_> = RiskRefusal::ALL.iter().map(|refusal| refusal.as_str()).collect();
        let documented = "trade_too_large daily_limit_exceeded price_moved market_paused insufficient_balance \
            delegation_inactive position_limit_exceeded suspicious_activity";
        assert_eq!(words, documented.split_whitespace().collect::<Vec<_>>());
        for refusal in RiskRefusal::ALL {
            assert_eq!(refusal.as_str().parse(), Ok(*refusal));
        }
        assert!("Price_Moved".parse::<RiskRefusal>().is_err());
    }
}
