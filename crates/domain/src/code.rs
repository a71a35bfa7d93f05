//! The catalogue of error codes: one table, from which every answer and every document about errors is made.

use std::fmt;
use std::str::FromStr;

macro_rules! catalogue {
    ($($name:ident = $code:literal, $status:literal, $title:literal, $detail:literal;)*) => {
        /// A stable, machine-readable error code of the trading API. Clients branch on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $detail] $name,)*
        }

        impl ErrorCode {
            /// The whole catalogue, in alphabetical order of the codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code as it is sent.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status it is sent with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// A short summary for people.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// What happened and what to do, where the place that refuses has nothing more exact to say.
            pub const fn default_detail(self) -> &'static str {
                match self { $(Self::$name => $detail,)* }
            }
        }
    };
}

catalogue! {
    ActiveKeyLimitReached = "ACTIVE_KEY_LIMIT_REACHED", 409, "Active key limit reached", "The user already holds 5 active keys. Revoke one before issuing another.";
    AmountTooLarge = "AMOUNT_TOO_LARGE", 400, "Amount too large", "The amount is above 10,000,000, the most that one trade can carry.";
    AmountTooSmall = "AMOUNT_TOO_SMALL", 400, "Amount too small", "The amount is below the smallest trade or claim; extensions.minimum is that minimum.";
    ApiKeyExpired = "API_KEY_EXPIRED", 401, "API key expired", "This key is past its expiry. Issue a new one in Settings.";
    ApiKeyInvalid = "API_KEY_INVALID", 401, "API key invalid", "This key is not known here. Check that it is whole and belongs to this environment.";
    ApiKeyMalformed = "API_KEY_MALFORMED", 401, "API key malformed", "The X-API-Key header does not hold a well-formed key.";
    ApiKeyMissing = "API_KEY_MISSING", 401, "API key missing", "Send your key in the X-API-Key header.";
    ApiKeyPaused = "API_KEY_PAUSED", 403, "API key paused", "Trading with this key is paused. Reads still work; the web application or the operator resumes the key.";
    ApiKeyRevoked = "API_KEY_REVOKED", 401, "API key revoked", "This key was revoked. Use another key.";
    ApiTradeProcessingHalted = "API_TRADE_PROCESSING_HALTED", 503, "Trade processing halted", "Trading is halted for all markets for the moment. Reads stay up; try again later.";
    ApiVersionUnsupported = "API_VERSION_UNSUPPORTED", 410, "API version unsupported", "This version of the API was retired. Move to a current one.";
    ChainNotSupported = "CHAIN_NOT_SUPPORTED", 400, "Chain not supported", "The market lives on a chain that is not served here.";
    ClientRequestIdConflict = "CLIENT_REQUEST_ID_CONFLICT", 409, "Client request id conflict", "The Idempotency-Key and the clientRequestId lead to two different trades.";
    ConfirmationExpired = "CONFIRMATION_EXPIRED", 409, "Confirmation expired", "The confirmation window has passed and the trade has failed. Create it again.";
    ConfirmationTokenInvalid = "CONFIRMATION_TOKEN_INVALID", 409, "Confirmation token invalid", "The token does not belong to this trade.";
    ConfirmationTokenUsed = "CONFIRMATION_TOKEN_USED", 409, "Confirmation token used", "The trade was confirmed already.";
    CursorExpired = "CURSOR_EXPIRED", 410, "Cursor expired", "The feed no longer holds what follows this position. Begin again from what it holds.";
    DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", 503, "Dependency unavailable", "The database or the chain does not answer at the moment. Back off and try again.";
    FeedRestarted = "FEED_RESTARTED", 410, "Feed restarted", "The position belongs to an earlier generation of the feed, because data was restored. Read the feed again from its start.";
    HeadersTooLarge = "HEADERS_TOO_LARGE", 431, "Headers too large", "The request's line and headers together are larger than 32 KiB.";
    IdempotencyKeyConflict = "IDEMPOTENCY_KEY_CONFLICT", 409, "Idempotency key conflict", "This key was used before with a different request.";
    IdempotencyKeyExpired = "IDEMPOTENCY_KEY_EXPIRED", 410, "Idempotency key expired", "This key is past its 24 hours.";
    IdempotencyKeyFormatInvalid = "IDEMPOTENCY_KEY_FORMAT_INVALID", 400, "Idempotency key format invalid", "Send one Idempotency-Key of 1 to 255 characters from A-Z a-z 0-9 _ - : and the full stop.";
    IdempotencyKeyTooLong = "IDEMPOTENCY_KEY_TOO_LONG", 400, "Idempotency key too long", "An Idempotency-Key has at most 255 characters.";
    InsufficientBalance = "INSUFFICIENT_BALANCE", 409, "Insufficient balance", "The smart account does not hold enough for this trade.";
    InsufficientScope = "INSUFFICIENT_SCOPE", 403, "Insufficient scope", "This key lacks the scope that the route asks for.";
    InternalError = "INTERNAL_ERROR", 500, "Internal error", "Something went wrong on our side. The request id helps us to find it.";
    IpNotAllowed = "IP_NOT_ALLOWED", 403, "IP address not allowed", "This key does not allow requests from your address.";
    LiquidityInsufficient = "LIQUIDITY_INSUFFICIENT", 409, "Liquidity insufficient", "The market cannot pay that amount. Ask for less.";
    MarketNotFound = "MARKET_NOT_FOUND", 404, "Market not found", "There is no market with this id.";
    MarketNotTradeable = "MARKET_NOT_TRADEABLE", 409, "Market not tradeable", "The market is not open for trading.";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "Method not allowed", "This path exists, but not with this method; see the Allow header.";
    OutcomeIndexInvalid = "OUTCOME_INDEX_INVALID", 400, "Outcome index invalid", "The market has no outcome at this index; the first is 0.";
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", 413, "Payload too large", "The body is larger than 64 KiB.";
    PositionNotClaimable = "POSITION_NOT_CLAIMABLE", 409, "Position not claimable", "This position cannot be claimed; the reason is in extensions.reason.";
    RateLimitExceeded = "RATE_LIMIT_EXCEEDED", 429, "Rate limit exceeded", "Too many requests. Wait as long as Retry-After says.";
    RateLimitUnavailable = "RATE_LIMIT_UNAVAILABLE", 503, "Rate limit unavailable", "The rate limiter does not answer at the moment. Back off and try again.";
    RedemptionsNotEnabled = "REDEMPTIONS_NOT_ENABLED", 404, "Redemptions not enabled", "Winnings are paid automatically here; there is nothing to claim.";
    RequestSignatureInvalid = "REQUEST_SIGNATURE_INVALID", 401, "Request signature invalid", "The X-Service-Signature header does not match the request, or is more than 5 minutes off.";
    RequestTimeout = "REQUEST_TIMEOUT", 504, "Request timeout", "The request took too long. Look the trade up before you send it again.";
    ResourceNotFound = "RESOURCE_NOT_FOUND", 404, "Resource not found", "There is nothing here, or it is not yours.";
    RouteDisabled = "ROUTE_DISABLED", 503, "Route disabled", "This route is switched off for the moment. Try again later.";
    SlippageExceeded = "SLIPPAGE_EXCEEDED", 409, "Slippage exceeded", "The price is outside the bound that the request sets.";
    SmartAccountNotProvisioned = "SMART_ACCOUNT_NOT_PROVISIONED", 409, "Smart account not provisioned", "Your smart account is not on chain yet. Provision it in Settings.";
    SpendingLimitExceeded = "SPENDING_LIMIT_EXCEEDED", 409, "Spending limit exceeded", "The trade passes a spending cap of this key; extensions.cap says which.";
    TradeNotAwaitingConfirmation = "TRADE_NOT_AWAITING_CONFIRMATION", 409, "Trade not awaiting confirmation", "This trade was never held for confirmation.";
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", 415, "Unsupported media type", "Send the body as application/json.";
    ValidationFailed = "VALIDATION_FAILED", 400, "Validation failed", "The request does not have the documented form; extensions.errors says where.";
    WalletDelegationNotEnabled = "WALLET_DELEGATION_NOT_ENABLED", 409, "Wallet delegation not enabled", "The account has not enabled this key on chain, or the delegation has expired or was revoked.";
    WebhookNotConfigured = "WEBHOOK_NOT_CONFIGURED", 409, "Webhook not configured", "The event's key has no webhook URL; set one before anything is sent to it.";
    WebhookReplayLimitReached = "WEBHOOK_REPLAY_LIMIT_REACHED", 429, "Webhook replay limit reached", "This event was replayed 5 times already.";
    WebhookSecretRotationCooldown = "WEBHOOK_SECRET_ROTATION_COOLDOWN", 429, "Webhook secret rotation cooldown", "The secret was rotated less than 60 seconds ago.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no code of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a code of the catalogue")]
pub struct ParseCodeError;

impl FromStr for ErrorCode {
    type Err = ParseCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text).ok_or(ParseCodeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_sorted_and_names_each_code_once() {
        let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }

    #[test]
    fn the_catalogue_reads_as_the_documented_table() {
        let table: Vec<_> = ErrorCode::ALL.iter().map(|code| format!("{} {}", code.status(), code)).collect();
        insta::assert_snapshot!(table.join("\n"));
    }

    #[test]
    fn every_detail_says_something_in_sentences() {
        for code in ErrorCode::ALL {
            assert!(code.default_detail().ends_with('.') && code.default_detail().len() > 20, "{code}");
        }
    }
}
