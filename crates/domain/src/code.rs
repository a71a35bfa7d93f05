//! The catalog of error codes: the only source of every error response and of every document about
//! errors.

use std::fmt;
use std::str::FromStr;

/// Declares an enum of error codes from rows of the form `Name = code, status, title, detail;`, in
/// alphabetical order of the codes.
#[macro_export]
macro_rules! error_codes {
    ($(#[$attribute:meta])* $visibility:vis enum $enum:ident;
    $($name:ident = $code:literal, $status:literal, $title:literal, $detail:literal;)*) => {
        $(#[$attribute])*
        $visibility enum $enum {
            $(#[doc = $detail] $name,)*
        }

        impl $enum {
            /// In alphabetical order of the codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the code as the API sends it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// Returns the HTTP status of responses with this code.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// Returns a short summary for people.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// The error and its remedy, for errors without a more specific detail.
            pub const fn default_detail(self) -> &'static str {
                match self { $(Self::$name => $detail,)* }
            }
        }
    };
}

error_codes! {
    /// A stable, machine-readable error code of the trading API. Clients branch on it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ErrorCode;

    ActiveKeyLimitReached = "ACTIVE_KEY_LIMIT_REACHED", 409, "Active key limit reached", "The user already holds 5 active keys. Revoke one before issuing another.";
    AmountTooLarge = "AMOUNT_TOO_LARGE", 400, "Amount too large", "The amount is above the maximum of 10,000,000 for one trade.";
    AmountTooSmall = "AMOUNT_TOO_SMALL", 400, "Amount too small", "The amount is below the minimum for a trade or claim, which is in extensions.minimum.";
    ApiKeyExpired = "API_KEY_EXPIRED", 401, "API key expired", "This key has expired. Issue a new one in Settings.";
    ApiKeyInvalid = "API_KEY_INVALID", 401, "API key invalid", "This key is unknown. Check that it is complete and belongs to this environment.";
    ApiKeyMalformed = "API_KEY_MALFORMED", 401, "API key malformed", "The X-API-Key header does not contain a well-formed key.";
    ApiKeyMissing = "API_KEY_MISSING", 401, "API key missing", "Send your key in the X-API-Key header.";
    ApiKeyPaused = "API_KEY_PAUSED", 403, "API key paused", "Trading with this key is paused. Reads still work. The web application or the operator can resume the key.";
    ApiKeyRevoked = "API_KEY_REVOKED", 401, "API key revoked", "This key was revoked. Use another key.";
    ApiTradeProcessingHalted = "API_TRADE_PROCESSING_HALTED", 503, "Trade processing halted", "Trading is halted for all markets. Reads still work. Try again later.";
    ApiVersionUnsupported = "API_VERSION_UNSUPPORTED", 410, "API version unsupported", "This version of the API was retired. Use a current version.";
    ChainNotSupported = "CHAIN_NOT_SUPPORTED", 400, "Chain not supported", "The market is on a chain that this deployment does not serve.";
    ClientRequestIdConflict = "CLIENT_REQUEST_ID_CONFLICT", 409, "Client request id conflict", "The Idempotency-Key and the clientRequestId belong to two different trades.";
    ConfirmationExpired = "CONFIRMATION_EXPIRED", 409, "Confirmation expired", "The confirmation window has passed and the trade has failed. Create the trade again.";
    ConfirmationTokenInvalid = "CONFIRMATION_TOKEN_INVALID", 409, "Confirmation token invalid", "The token does not belong to this trade.";
    ConfirmationTokenUsed = "CONFIRMATION_TOKEN_USED", 409, "Confirmation token used", "The trade is already confirmed.";
    CursorExpired = "CURSOR_EXPIRED", 410, "Cursor expired", "The feed no longer has the events after this cursor. Start again from the oldest event.";
    DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", 503, "Dependency unavailable", "The database or the chain does not answer. Wait, then try again.";
    FeedRestarted = "FEED_RESTARTED", 410, "Feed restarted", "Data was restored, and the cursor belongs to an earlier generation of the feed. Read the feed again from its start.";
    HeadersTooLarge = "HEADERS_TOO_LARGE", 431, "Headers too large", "The request line and headers together must be at most 32 KiB.";
    IdempotencyKeyConflict = "IDEMPOTENCY_KEY_CONFLICT", 409, "Idempotency key conflict", "This key was already used with a different request.";
    IdempotencyKeyExpired = "IDEMPOTENCY_KEY_EXPIRED", 410, "Idempotency key expired", "This key is older than 24 hours.";
    IdempotencyKeyFormatInvalid = "IDEMPOTENCY_KEY_FORMAT_INVALID", 400, "Idempotency key format invalid", "Send one Idempotency-Key of 1 to 255 characters from A-Z a-z 0-9 _ - : and the full stop.";
    IdempotencyKeyTooLong = "IDEMPOTENCY_KEY_TOO_LONG", 400, "Idempotency key too long", "An Idempotency-Key must have at most 255 characters.";
    InsufficientBalance = "INSUFFICIENT_BALANCE", 409, "Insufficient balance", "The smart account does not hold enough USDC or tokens for this trade.";
    InsufficientScope = "INSUFFICIENT_SCOPE", 403, "Insufficient scope", "This key lacks the scope that the route requires.";
    InternalError = "INTERNAL_ERROR", 500, "Internal error", "An internal error occurred. Include the request id if you report it.";
    IpNotAllowed = "IP_NOT_ALLOWED", 403, "IP address not allowed", "This key does not allow requests from your IP address.";
    LiquidityInsufficient = "LIQUIDITY_INSUFFICIENT", 409, "Liquidity insufficient", "The market cannot pay this amount. Try a smaller one.";
    MarketNotFound = "MARKET_NOT_FOUND", 404, "Market not found", "There is no market with this id.";
    MarketNotTradeable = "MARKET_NOT_TRADEABLE", 409, "Market not tradeable", "The market is not open for trading.";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "Method not allowed", "This path does not support the method. The Allow header lists the methods that it supports.";
    OriginNotAllowed = "ORIGIN_NOT_ALLOWED", 403, "Origin not allowed", "The request names a host or an origin that is not one of this service.";
    OutcomeIndexInvalid = "OUTCOME_INDEX_INVALID", 400, "Outcome index invalid", "The market has no outcome with this index. The first index is 0.";
    OwnerConfirmationRequired = "OWNER_CONFIRMATION_REQUIRED", 403, "Owner confirmation required", "An agent created this trade. Only the owner of the account can confirm it, on the trade's page of the web application.";
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", 413, "Payload too large", "The body must be at most 64 KiB.";
    PositionNotClaimable = "POSITION_NOT_CLAIMABLE", 409, "Position not claimable", "This position cannot be claimed. extensions.reason is the reason.";
    RateLimitExceeded = "RATE_LIMIT_EXCEEDED", 429, "Rate limit exceeded", "Too many requests. Wait for Retry-After seconds.";
    RateLimitUnavailable = "RATE_LIMIT_UNAVAILABLE", 503, "Rate limit unavailable", "The rate limiter does not answer. Wait, then try again.";
    RedemptionsNotEnabled = "REDEMPTIONS_NOT_ENABLED", 404, "Redemptions not enabled", "Winnings are paid automatically. There is nothing to claim.";
    RequestSignatureInvalid = "REQUEST_SIGNATURE_INVALID", 401, "Request signature invalid", "The X-Service-Signature header does not match the request, or its time is more than 5 minutes off.";
    RequestTimeout = "REQUEST_TIMEOUT", 504, "Request timeout", "The request took too long. Check whether the trade exists before you send it again.";
    ResourceNotFound = "RESOURCE_NOT_FOUND", 404, "Resource not found", "The resource does not exist or is not yours.";
    RouteDisabled = "ROUTE_DISABLED", 503, "Route disabled", "This route is switched off. Try again later.";
    SlippageExceeded = "SLIPPAGE_EXCEEDED", 409, "Slippage exceeded", "The price is outside the bound in the request.";
    SmartAccountNotProvisioned = "SMART_ACCOUNT_NOT_PROVISIONED", 409, "Smart account not provisioned", "Your smart account is not on chain yet. Provision it in Settings.";
    SpendingLimitExceeded = "SPENDING_LIMIT_EXCEEDED", 409, "Spending limit exceeded", "The trade exceeds a spending cap of this key. extensions.cap names the cap.";
    TradeNotAwaitingConfirmation = "TRADE_NOT_AWAITING_CONFIRMATION", 409, "Trade not awaiting confirmation", "This trade was not held for confirmation.";
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", 415, "Unsupported media type", "The body must have Content-Type: application/json.";
    ValidationFailed = "VALIDATION_FAILED", 400, "Validation failed", "The request does not have the documented form. extensions.errors lists the fields to correct.";
    WalletDelegationNotEnabled = "WALLET_DELEGATION_NOT_ENABLED", 409, "Wallet delegation not enabled", "The account has not enabled this key on chain, or the delegation has expired or was revoked.";
    WebhookNotConfigured = "WEBHOOK_NOT_CONFIGURED", 409, "Webhook not configured", "The key of the event has no webhook URL. Set one first.";
    WebhookReplayLimitReached = "WEBHOOK_REPLAY_LIMIT_REACHED", 429, "Webhook replay limit reached", "This event was already replayed 5 times.";
    WebhookSecretRotationCooldown = "WEBHOOK_SECRET_ROTATION_COOLDOWN", 429, "Webhook secret rotation cooldown", "The secret was rotated less than 60 seconds ago.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a code of the catalog")]
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
    fn the_catalog_is_sorted_and_lists_each_code_once() {
        let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }

    #[test]
    fn the_catalog_equals_the_documented_table() {
        let table: Vec<_> = ErrorCode::ALL.iter().map(|code| format!("{} {}", code.status(), code)).collect();
        insta::assert_snapshot!(table.join("\n"));
    }

    #[test]
    fn every_detail_is_a_full_sentence() {
        for code in ErrorCode::ALL {
            assert!(code.default_detail().ends_with('.') && code.default_detail().len() > 20, "{code}");
        }
    }
}
