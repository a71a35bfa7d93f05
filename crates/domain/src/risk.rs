//! Why the risk engine refuses a trade before anything reaches the chain.

use std::fmt;
use std::str::FromStr;

macro_rules! refusals {
    ($($name:ident = $word:literal, $message:literal;)*) => {
        /// A risk refusal: its own namespace beside the error codes, lower snake case.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RiskRefusal {
            $(#[doc = $message] $name,)*
        }

        impl RiskRefusal {
            /// Every refusal.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word as it is sent and stored.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The sanitised reason for people.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

refusals! {
    TradeTooLarge = "trade_too_large", "The trade is above the key's cap per trade on chain.";
    DailyLimitExceeded = "daily_limit_exceeded", "The trade is above what is left of the key's daily cap on chain.";
    PriceMoved = "price_moved", "The price has moved past the bound of the request.";
    MarketPaused = "market_paused", "The market stopped trading before the trade was sent.";
    InsufficientBalance = "insufficient_balance", "The smart account no longer holds what the trade needs.";
    DelegationInactive = "delegation_inactive", "This key trades no more: its delegation was revoked or has expired, or its trading is paused.";
    PositionLimitExceeded = "position_limit_exceeded", "The trade is larger than the market can take.";
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
    fn the_words_are_the_documented_ones_and_are_read_back() {
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
