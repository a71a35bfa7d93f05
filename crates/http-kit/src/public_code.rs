//! The error codes of the public API in one table. If the trading API has a code for the same
//! error, both use the same word.

use domain::ErrorCode;

domain::error_codes! {
    /// A stable, machine-readable error code of the public API. Clients branch on it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PublicCode;

    DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", 503, "Dependency unavailable", "The database or the chain does not answer. Wait, then try again.";
    FormatNotSupported = "FORMAT_NOT_SUPPORTED", 501, "Format not supported", "Only the format json is supported.";
    InternalError = "INTERNAL_ERROR", 500, "Internal error", "An internal error occurred. Include the request id if you report it.";
    InvalidRequest = "INVALID_REQUEST", 400, "Invalid request", "A parameter does not have the documented form.";
    LiquidityInsufficient = "LIQUIDITY_INSUFFICIENT", 409, "Liquidity insufficient", "The market cannot pay this amount. Try a smaller one.";
    MarketNotFound = "MARKET_NOT_FOUND", 404, "Market not found", "There is no market with this id.";
    MarketNotTradeable = "MARKET_NOT_TRADEABLE", 409, "Market not tradeable", "The market is not open for trading.";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "Method not allowed", "This API only supports GET and HEAD.";
    NotFound = "NOT_FOUND", 404, "Not found", "There is no route with this path.";
    OrganizationNotFound = "ORGANIZATION_NOT_FOUND", 404, "Organization not found", "There is no organization with this id.";
    PartnerNotFound = "PARTNER_NOT_FOUND", 404, "Partner not found", "There is no partner with this id.";
    RateLimitExceeded = "RATE_LIMIT_EXCEEDED", 429, "Too many requests", "Too many requests from your address. Wait for retryAfter seconds.";
    RequestTimeout = "REQUEST_TIMEOUT", 504, "Request timeout", "The request took too long. Try again.";
    RouteDisabled = "ROUTE_DISABLED", 503, "Route disabled", "This route is switched off. Try again later.";
    ThreadNotFound = "THREAD_NOT_FOUND", 404, "Thread not found", "There is no thread with this id.";
    TransactionNotFound = "TRANSACTION_NOT_FOUND", 404, "Transaction not found", "No transaction with this hash has moved a position in a market of this service.";
    Unauthorized = "UNAUTHORIZED", 401, "Not signed in", "Sign in to the web application to read this.";
}

impl From<ErrorCode> for PublicCode {
    /// Maps a use case's error code. Codes that a reader of public data cannot cause become
    /// `INTERNAL_ERROR`.
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
    fn the_codes_are_sorted_and_unique() {
        let codes: Vec<_> = PublicCode::ALL.iter().map(|code| code.as_str()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
        let table: Vec<_> =
            PublicCode::ALL.iter().map(|code| format!("{} {}", code.status(), code.as_str())).collect();
        insta::assert_snapshot!(table.join("\n"));
    }

    #[test]
    fn a_code_of_both_surfaces_has_one_status() {
        for code in PublicCode::ALL {
            if let Ok(other) = code.as_str().parse::<ErrorCode>() {
                assert_eq!(code.status(), other.status(), "{}", code.as_str());
                assert_eq!(PublicCode::from(other), *code);
            }
        }
    }
}
