//! The codes of this surface: one table. Where the trading API has a code for the same thing, the word is the same.

use domain::ErrorCode;

macro_rules! codes {
    ($($name:ident = $code:literal, $status:literal, $title:literal, $message:literal;)*) => {
        /// A stable, machine-readable code. Clients branch on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $message] $name,)*
        }

        impl Code {
            /// All of them, in alphabetical order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code as it is sent.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status it is sent with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// A short title for people.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// What happened, where the place that refuses has nothing more exact to say.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

codes! {
    DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", 503, "Dependency unavailable", "The database or the chain does not answer at the moment. Back off and try again.";
    FormatNotSupported = "FORMAT_NOT_SUPPORTED", 501, "Format not supported", "This is answered as JSON alone.";
    InternalError = "INTERNAL_ERROR", 500, "Internal error", "Something went wrong on our side. The request id helps us to find it.";
    InvalidRequest = "INVALID_REQUEST", 400, "Invalid request", "A parameter does not have the documented form.";
    LiquidityInsufficient = "LIQUIDITY_INSUFFICIENT", 409, "Liquidity insufficient", "The market cannot move that amount.";
    MarketNotFound = "MARKET_NOT_FOUND", 404, "Market not found", "There is no market with this id.";
    MarketNotTradeable = "MARKET_NOT_TRADEABLE", 409, "Market not tradeable", "The market is not open for trading.";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "Method not allowed", "This API is read with GET.";
    NotFound = "NOT_FOUND", 404, "Not found", "There is nothing here.";
    OrganizationNotFound = "ORGANIZATION_NOT_FOUND", 404, "Organization not found", "There is no organization with this id.";
    PartnerNotFound = "PARTNER_NOT_FOUND", 404, "Partner not found", "There is no partner with this id.";
    RateLimitExceeded = "RATE_LIMIT_EXCEEDED", 429, "Too many requests", "Too many requests from your address. Wait as long as retryAfter says.";
    RequestTimeout = "REQUEST_TIMEOUT", 504, "Request timeout", "The request took too long. Try it again.";
    RouteDisabled = "ROUTE_DISABLED", 503, "Route disabled", "This route is switched off for the moment. Try again later.";
    ThreadNotFound = "THREAD_NOT_FOUND", 404, "Thread not found", "There is no thread with this id.";
    TransactionNotFound = "TRANSACTION_NOT_FOUND", 404, "Transaction not found", "No transaction with this hash has moved a position here.";
    Unauthorized = "UNAUTHORIZED", 401, "Not signed in", "Sign in to the web application to read this.";
}

impl From<ErrorCode> for Code {
    /// What a use case's refusal reads here. A code that no reader of public data can cause is our mistake.
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::ValidationFailed
            | ErrorCode::OutcomeIndexInvalid
            | ErrorCode::AmountTooLarge
            | ErrorCode::AmountTooSmall => Self::InvalidRequest,
            ErrorCode::MarketNotFound => Self::MarketNotFound,
            ErrorCode::ResourceNotFound => Self::NotFound,
            ErrorCode::MarketNotTradeable | ErrorCode::ChainNotSupported => Self::MarketNotTradeable,
            ErrorCode::LiquidityInsufficient | ErrorCode::InsufficientBalance => Self::LiquidityInsufficient,
            ErrorCode::RateLimitExceeded => Self::RateLimitExceeded,
            ErrorCode::MethodNotAllowed => Self::MethodNotAllowed,
            ErrorCode::RouteDisabled => Self::RouteDisabled,
            ErrorCode::RequestTimeout => Self::RequestTimeout,
            ErrorCode::DependencyUnavailable | ErrorCode::RateLimitUnavailable => Self::DependencyUnavailable,
            _ => Self::InternalError,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_read_as_documented_in_order_and_each_once() {
        let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
        let table: Vec<_> =
            Code::ALL.iter().map(|code| format!("{} {}", code.status(), code.as_str())).collect();
        insta::assert_snapshot!(table.join("\n"));
    }

    #[test]
    fn a_code_of_both_surfaces_has_one_status() {
        for code in Code::ALL {
            if let Ok(other) = code.as_str().parse::<ErrorCode>() {
                assert_eq!(code.status(), other.status(), "{}", code.as_str());
                assert_eq!(Code::from(other), *code);
            }
        }
    }
}
