//! The text of the published page of each error code: when it is sent, if the request may be
//! repeated, and how to fix the problem.

use domain::ErrorCode;

/// The recommended retry behavior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Retry after changing the request or its preconditions.
    AfterChange,
    /// Retry the same request later.
    SameRequest,
    /// The outcome is unknown: a repeat is only safe if the service recognises it as one.
    LookUpFirst,
    /// It already took effect, or it can never succeed.
    Never,
}

impl Retry {
    /// Returns the machine-readable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AfterChange => "after_change",
            Self::SameRequest => "same_request",
            Self::LookUpFirst => "look_up_first",
            Self::Never => "never",
        }
    }

    /// Returns the advice for people.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::AfterChange => {
                "Not unchanged: the result stays the same until you correct the request or the condition that it \
                 depends on. Nothing was stored, so the corrected request may use the same Idempotency-Key."
            }
            Self::SameRequest => {
                "Yes, unchanged, after Retry-After seconds. Without that header, wait twice as long before each \
                 attempt. Send a trade with the same Idempotency-Key."
            }
            Self::LookUpFirst => {
                "A read: yes, at once. A write may have taken effect: repeat it only with the same Idempotency-Key \
                 or clientRequestId, which returns the first result, or look up the resource that it creates. \
                 extensions.submission says whether the write was stored or sent, if that is known."
            }
            Self::Never => "No: the result is always the same.",
        }
    }
}

/// The content of an error code's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guide {
    /// The conditions under which the code is sent.
    pub when: &'static str,
    pub retry: Retry,
    /// The steps that fix the error.
    pub fix: &'static str,
    /// The `extensions` of an example response as a JSON object; empty if there are none.
    pub extensions: &'static str,
}

const NOT_SUBMITTED: &str = r#"{"submission": "not_submitted"}"#;

/// Anything whose meaning has a page in the documentation.
pub trait Documented {
    /// The content of its page.
    fn guide(self) -> Guide;
}

impl Documented for ErrorCode {
    #[expect(clippy::too_many_lines, reason = "one arm for each code of the catalog")]
    fn guide(self) -> Guide {
        use Retry::{AfterChange, LookUpFirst, Never, SameRequest};
        let (when, retry, fix, extensions) = match self {
            Self::ActiveKeyLimitReached => (
                "The user already has five keys that are neither revoked nor expired, and another one is being issued. Keys are issued in the web application or by the operator, never through this API.",
                AfterChange,
                "Revoke a key that is no longer used, then issue the new one. GET /v1/account/usage shows when the calling key was last used.",
                "",
            ),
            Self::AmountTooLarge => (
                "The amount is well-formed but above 10,000,000 USDC or, if it is an amount of tokens, above what any market can hold. This is checked before the key's spending caps.",
                AfterChange,
                "Send a smaller amount. A trade takes whole USDC (\"25.00\") and a quote takes atomic units (\"25000000\"): atomic units in a trade are a million times too much.",
                "",
            ),
            Self::AmountTooSmall => (
                "The trade is worth less than the operator's minimum, which is 0.01 USDC by default. An amount of tokens counts at its quoted value. Quotes of buys have the same minimum. A sale of a whole position has none.",
                AfterChange,
                "Trade at least extensions.minimum (millionths of a USDC). To sell a smaller position, sell all of it with amountType all.",
                r#"{"minimum": "10000", "submission": "not_submitted"}"#,
            ),
            Self::ApiKeyExpired => (
                "The key is known, but its expiry date has passed. The date was set when the key was issued; keys without one do not expire.",
                AfterChange,
                "Issue a new key and replace this one. The expiry date of a key cannot be changed.",
                "",
            ),
            Self::ApiKeyInvalid => (
                "The header contains a well-formed key that this environment does not know: it was mistyped, truncated, or issued by the other environment (service_live_ is production, service_test_ is staging).",
                AfterChange,
                "Compare the key with the one that was shown at issue, and its prefix with the URL of the service. Repeated failures lock out the sending address for a while.",
                "",
            ),
            Self::ApiKeyMalformed => (
                "The X-API-Key header does not contain exactly one key: the prefix or the length is wrong, it has characters other than letters and digits, spaces or quotes surround it, or the header was sent twice.",
                AfterChange,
                "Send exactly one X-API-Key header: service_live_ or service_test_ followed by 32 letters and digits. Check for a line break at the end of the file or variable that contains the key.",
                "",
            ),
            Self::ApiKeyMissing => (
                "The route requires a key and the request has no X-API-Key header. Only the health, readiness, OpenAPI and documentation routes need no key.",
                AfterChange,
                "Send the key in the X-API-Key header. It is not read from Authorization, the query or a cookie. Some proxies drop headers that they do not know.",
                "",
            ),
            Self::ApiKeyPaused => (
                "Trading with this key was paused with POST /v1/account/pause, and the request would create or confirm a trade. Reads still work, and the user's other keys are not affected.",
                AfterChange,
                "Find out who paused the key and why. Only the web application and the operator can resume it: the API cannot, so that a stolen key cannot undo its own pause.",
                NOT_SUBMITTED,
            ),
            Self::ApiKeyRevoked => (
                "The owner or the operator revoked the key. Revocation is final and takes effect everywhere within a second.",
                Never,
                "Use another active key. If you did not revoke this one, check the account's keys in the web application.",
                "",
            ),
            Self::ApiTradeProcessingHalted => (
                "The operator has halted trading for the whole service. Every route that starts a trade returns this error. Reads still work, and trades that were already sent to the chain complete.",
                SameRequest,
                "Stop sending trades, and retry at a low rate. Nothing of the rejected request was stored.",
                NOT_SUBMITTED,
            ),
            Self::ApiVersionUnsupported => (
                "The request, or the version that its key is pinned to, asks for a retired version of the API. A version is retired 12 months after its routes begin to send Deprecation and Sunset headers.",
                AfterChange,
                "Omit X-Service-Api-Version, or send a version that is served. The same header of every response names the version in use.",
                "",
            ),
            Self::ChainNotSupported => (
                "The market exists, but its contracts are on a chain that this deployment does not trade on, for example after a move from a test chain.",
                Never,
                "Trade the market on a deployment that serves its chain. chainId of the market names the chain.",
                "",
            ),
            Self::ClientRequestIdConflict => (
                "The Idempotency-Key belongs to one of your trades, and the clientRequestId of the same request belongs to another one. There is no single trade to return.",
                AfterChange,
                "Look up both trades, then send the request with one of the two values, or with new values for both. Derive both values from the same source so that they always match.",
                NOT_SUBMITTED,
            ),
            Self::ConfirmationExpired => (
                "A trade that was held for confirmation was not confirmed within its window, which is five minutes by default. The trade has failed and the USDC that it reserved is available again.",
                Never,
                "Create the trade again with a new Idempotency-Key, and confirm it before confirmation.expiresAt.",
                r#"{"submission": "not_submitted", "tradeId": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80"}"#,
            ),
            Self::ConfirmationTokenInvalid => (
                "The trade is held for confirmation and its window is open, but the token in the body belongs to another trade.",
                AfterChange,
                "Send the confirmation.token of the 202 response that created this trade. If the token is lost, repeat the creation with the same Idempotency-Key: the response contains the same token.",
                r#"{"submission": "not_submitted", "tradeId": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80"}"#,
            ),
            Self::ConfirmationTokenUsed => (
                "The token is correct, but the trade was already confirmed, possibly by a concurrent request. Of several concurrent confirmations exactly one succeeds.",
                Never,
                "Nothing more is needed: the trade is being executed. Follow it with GET /v1/trades/{id}.",
                r#"{"submission": "submitted", "tradeId": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80"}"#,
            ),
            Self::CursorExpired => (
                "The cursor or Last-Event-ID of GET /v1/events points before the oldest event that the feed still has, so that some events in between are gone, or it points past the last event.",
                AfterChange,
                "Start again without a cursor, from the oldest event, or with from=latest. Then update your own records from GET /v1/trades. extensions.oldestSequence is the oldest event that can be read.",
                r#"{"oldestSequence": 4211}"#,
            ),
            Self::DependencyUnavailable => (
                "The database or the chain did not answer in time, refused the connection, or is too busy. The chain's USDC or the contracts may also be paused.",
                SameRequest,
                "Wait, then repeat the request. GET /v1/ready shows which part fails. If extensions.submission is \"unknown\", repeat a write only with the same Idempotency-Key.",
                NOT_SUBMITTED,
            ),
            Self::FeedRestarted => (
                "The service's data was restored from a backup, so that events may be lost and their sequence numbers reused. The feed has a new generation, and the cursor or Last-Event-ID of GET /v1/events belongs to an earlier one.",
                AfterChange,
                "Read the feed again from its start: send neither cursor nor Last-Event-ID. Skip events whose id you have already processed, and update your own records from GET /v1/trades.",
                r#"{"generation": 1790000000, "oldestSequence": 1}"#,
            ),
            Self::HeadersTooLarge => (
                "The request line and headers are larger than 32 KiB together, or there are more than 100 headers. The service closes the connection.",
                AfterChange,
                "Send fewer or shorter headers, or a shorter query. Cookies of a shared domain are a common cause; this API reads none.",
                "",
            ),
            Self::IdempotencyKeyConflict => (
                "The Idempotency-Key or the clientRequestId was already used for a trade with different content. If extensions.reason is \"in_progress\", the first request with this key is still running after two seconds.",
                AfterChange,
                "Use a new key for each new operation. For \"in_progress\" repeat the same request after Retry-After seconds: it returns the trade of the first one. Metadata is part of the content; the order of members is not, and \"10\" equals \"10.00\".",
                NOT_SUBMITTED,
            ),
            Self::IdempotencyKeyExpired => (
                "Reserved: no request gets this error today, because an Idempotency-Key can be used again after 24 hours. The code stays in the catalogue for clients that know it.",
                AfterChange,
                "Send the request with a new Idempotency-Key. To recognise a trade after more than 24 hours, give it a clientRequestId, which does not expire.",
                NOT_SUBMITTED,
            ),
            Self::IdempotencyKeyFormatInvalid => (
                "The Idempotency-Key header is empty, was sent more than once, or contains a character other than A-Z a-z 0-9 _ - : and the full stop. One pair of surrounding double quotes is removed first.",
                AfterChange,
                "Send one header with 1 to 255 of those characters. A random UUID for each operation is the usual choice.",
                NOT_SUBMITTED,
            ),
            Self::IdempotencyKeyTooLong => (
                "The Idempotency-Key header has more than 255 characters.",
                AfterChange,
                "Send a shorter key: a random UUID has 36 characters. If you build the key from your own data, send a hash of that data.",
                NOT_SUBMITTED,
            ),
            Self::InsufficientBalance => (
                "A buy needs more USDC than the smart account has available after the reservations of other buys, or a sale needs more tokens than the account holds.",
                AfterChange,
                "Compare requiredUsdc with availableUsdc (millionths of a USDC). Fund the account at the address in GET /v1/portfolio, or trade less. Reserved USDC becomes available when the trades that reserved it end. To sell everything, send amountType \"all\".",
                r#"{"requiredUsdc": "25000000", "availableUsdc": "10000000", "submission": "not_submitted"}"#,
            ),
            Self::InsufficientScope => (
                "The key is valid but does not have the scope that the route requires. The scope is checked after the rate limit and before the body is read.",
                AfterChange,
                "Issue a key with the scope in extensions.requiredScope. The scopes of an existing key cannot be changed.",
                r#"{"requiredScope": "trades:write", "submission": "not_submitted"}"#,
            ),
            Self::InternalError => (
                "The service failed unexpectedly. The cause is in its log under the request id and is never returned.",
                LookUpFirst,
                "If the error occurs again, report the requestId. After a write, check whether it took effect before you treat it as failed.",
                r#"{"submission": "unknown"}"#,
            ),
            Self::IpNotAllowed => (
                "The key has an allowlist of IP addresses and the request came from an address that is not on it. Behind a proxy that the deployment trusts, the address is the one that the proxy forwards.",
                AfterChange,
                "Send the request from an allowed address, or issue a key whose allowlist contains this one. A host with both IPv4 and IPv6 may send from the address that is not on the list.",
                "",
            ),
            Self::LiquidityInsufficient => (
                "The market maker cannot make this trade: the sale would pay more than the market holds, or the amount is outside the range for which it can compute a price.",
                AfterChange,
                "Get a quote for another amount and trade that. You can split a large trade; each part gets the price at its own time.",
                NOT_SUBMITTED,
            ),
            Self::MarketNotFound => (
                "No market on chain has the id in the path or in marketId. A malformed id and a market that is not on chain yet get the same error.",
                AfterChange,
                "Use an id exactly as GET /v1/markets returns it. Staging and production have different ids.",
                "",
            ),
            Self::MarketNotTradeable => (
                "The market exists but is not OPEN: it is FROZEN by its guardian or past its endTime, RESOLVED, or CANCELLED. extensions.marketStatus is the status, if it is known before the chain is asked.",
                AfterChange,
                "Read the market. A FROZEN one may open again before its endTime; positions of a RESOLVED or CANCELLED one are claimed instead of traded. Repeating a trade that was accepted while the market was open still returns that trade.",
                r#"{"marketStatus": "FROZEN", "submission": "not_submitted"}"#,
            ),
            Self::MethodNotAllowed => (
                "The path exists in this API, but no route has this method. HEAD works for every route that has GET.",
                Never,
                "Use a method from the Allow header of this response.",
                "",
            ),
            Self::OriginNotAllowed => (
                "A request to /mcp has a Host header with a name that the service does not know, or the Origin header of a web page of another site. Both are signs of a web page that tries to use the tools for agents through its visitor's browser.",
                AfterChange,
                "Connect to the service's own address, without a browser in between. The operator of a service with several names lists them in the setting mcp-hosts.",
                NOT_SUBMITTED,
            ),
            Self::OutcomeIndexInvalid => (
                "outcomeIndex is an integer, but the market has no outcome with that index. The first index is 0.",
                AfterChange,
                "Read the market's outcomes and send the index of one of them. A market with two outcomes has 0 and 1.",
                "",
            ),
            Self::OwnerConfirmationRequired => (
                "A trade that was created with a tool for agents, or with a key that is marked as an agent's, is confirmed by a person and not by a program. The same holds for every trade that an agent's key tries to confirm.",
                Never,
                "Show the trade's page, confirmationPage.url of the 202 response, to the owner of the account, who confirms it there before confirmationPage.expiresAt.",
                r#"{"submission": "not_submitted", "tradeId": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80"}"#,
            ),
            Self::PayloadTooLarge => (
                "The body is larger than 64 KiB, by its Content-Length or as received. The rest of it was not read.",
                AfterChange,
                "Send a smaller body. A trade with all 50 metadata entries is below the limit.",
                NOT_SUBMITTED,
            ),
            Self::PositionNotClaimable => (
                "The position cannot be claimed: the market is not settled (reason \"market_open\"), the outcome pays nothing (\"losing_outcome\"), the account holds none of its tokens (\"no_tokens\"), or so few that they pay less than 0.000001 USDC (\"too_few_tokens\").",
                AfterChange,
                "For \"market_open\" wait until the market is RESOLVED or CANCELLED and its result is final. The other reasons do not change. claimable in GET /v1/portfolio/positions shows what can be claimed.",
                r#"{"reason": "market_open", "submission": "not_submitted"}"#,
            ),
            Self::RateLimitExceeded => (
                "One of these limits was exceeded: the user's reads, writes or redeliveries per minute, which are counted separately and over all keys of the user; the requests per minute of an address without a key; the open event streams; or the address is locked out after repeated failed authentications. extensions.limiter names the limit.",
                SameRequest,
                "Wait for Retry-After seconds, then spread your requests according to X-RateLimit-Remaining and X-RateLimit-Reset. Conditional requests count too. A request that this limit rejects does not count.",
                r#"{"limiter": "read"}"#,
            ),
            Self::RateLimitUnavailable => (
                "The store of the request counts does not answer. The service rejects requests that it cannot count.",
                SameRequest,
                "Wait, then repeat the request. checks.rateLimiter in GET /v1/ready shows the state. The request did not count.",
                "",
            ),
            Self::RedemptionsNotEnabled => (
                "The request claims a position that this deployment pays automatically.",
                Never,
                "Do nothing: the USDC arrives in the smart account without a claim. GET /v1/portfolio shows it.",
                NOT_SUBMITTED,
            ),
            Self::RequestSignatureInvalid => (
                "The request has an X-Service-Signature header that is malformed, was sent twice, is more than five minutes off the service's clock, or has no matching v1 value. Signatures are optional: requests without the header are accepted.",
                AfterChange,
                "Send t=<unix-ms>,v1=<hex>, the HMAC-SHA256 of \"<unix-ms>.<METHOD>.<path without query>.<raw body>\" under the plaintext API key (not the webhook secret). Sign exactly the bytes that you send, check your clock, and sign each attempt again.",
                NOT_SUBMITTED,
            ),
            Self::RequestTimeout => (
                "The response was not ready 10 seconds after the request arrived, the body took longer than 8 seconds to arrive, or the deadline of a trade passed before the chain executed it.",
                LookUpFirst,
                "Look up the trade with GET /v1/trades?clientRequestId=..., or repeat the creation with the same Idempotency-Key. \"not_submitted\" means that nothing was stored or sent.",
                r#"{"submission": "unknown"}"#,
            ),
            Self::ResourceNotFound => (
                "There is no such route, or the key's user has no trade, trace, claim or event with this id. Another user's resource and a malformed id get the same error.",
                AfterChange,
                "Compare the path with the reference, and the id with the list that it came from. Use a key of the user who owns the resource, in the same environment.",
                "",
            ),
            Self::RouteDisabled => (
                "The operator has switched off this route. Other routes still work.",
                SameRequest,
                "Wait for Retry-After seconds and retry at a low rate, or continue without the route.",
                "",
            ),
            Self::SlippageExceeded => (
                "The price is outside a bound that the request sets: minTokensOut, maxTokensIn or maxSlippageBps. The bound is checked when the trade is accepted and again by the contracts at execution, where this code becomes the errorCode of the failed trade.",
                AfterChange,
                "Get a new quote, decide whether its price is acceptable, and send new bounds. Nothing was traded at a worse price.",
                NOT_SUBMITTED,
            ),
            Self::SmartAccountNotProvisioned => (
                "The key's user has no smart account on chain yet, so there is nothing to trade from or to show.",
                AfterChange,
                "Provision the account in the web application (Settings), which also enables keys, then send the request again.",
                "",
            ),
            Self::SpendingLimitExceeded => (
                "The USDC of the trade are above the key's cap per trade (extensions.cap \"per_trade\"), or the key's buys of the last 24 hours and this one are above its daily cap (\"daily_volume\"). Of these two, only the cap per trade applies to sales. The tokens of sales count for two caps of the chain, at 1 USDC each: ten times the cap per trade in one sale (\"sale_per_trade\"), and ten times the daily cap in a day (\"daily_sales\").",
                AfterChange,
                "For \"per_trade\" and \"sale_per_trade\" send a smaller amount. For \"daily_sales\" wait until the chain's day ends. For \"daily_volume\" wait until earlier buys are 24 hours old (GET /v1/account/usage shows what remains), or ask the operator for higher limits. Failed and rejected trades do not count.",
                r#"{"cap": "daily_volume", "submission": "not_submitted"}"#,
            ),
            Self::TradeNotAwaitingConfirmation => (
                "The trade to confirm is yours, but it was below its key's threshold when it was created and was never held.",
                Never,
                "There is nothing to confirm: only a trade whose creation returned 202 with confirmation.token needs it. Follow the trade with GET /v1/trades/{id}.",
                r#"{"submission": "submitted", "tradeId": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80"}"#,
            ),
            Self::UnsupportedMediaType => (
                "The route requires a JSON body, and Content-Type is missing, repeated, not application/json, or names a charset other than UTF-8, or the body is compressed.",
                AfterChange,
                "Send Content-Type: application/json and an uncompressed UTF-8 body. Some HTTP libraries send form encoding if they are given a map.",
                NOT_SUBMITTED,
            ),
            Self::ValidationFailed => (
                "The body, the query or a header does not have the documented form: a member is missing, malformed, unknown or repeated, the body is not a single JSON object, or a cursor does not belong to this list and its filters.",
                AfterChange,
                "Correct every field in extensions.errors: pointer is a JSON pointer into the body, or / and the parameter's name. Unknown members are rejected so that a misspelt one is not ignored.",
                r#"{"errors": [{"pointer": "/amount", "detail": "must be above zero, got \"0\""}], "submission": "not_submitted"}"#,
            ),
            Self::WalletDelegationNotEnabled => (
                "The smart account exists, but on chain it has not enabled this key, the delegation has expired or was revoked, or the account has not approved USDC for the service's contract.",
                AfterChange,
                "Enable the key for the account in the web application. delegation in GET /v1/portfolio shows the calling key's delegation on chain.",
                NOT_SUBMITTED,
            ),
            Self::WebhookNotConfigured => (
                "The request sends a test event or redelivers an event, and the key that the event belongs to has no webhook URL, or was revoked.",
                AfterChange,
                "Set the key's webhook URL in the web application or through the operator, then send the request again. GET /v1/webhooks/endpoint shows the URL of the calling key.",
                NOT_SUBMITTED,
            ),
            Self::WebhookReplayLimitReached => (
                "The event was already redelivered five times, which is the maximum for one event.",
                Never,
                "Read the trade itself: GET /v1/trades/{id} with the event's tradeRequestId. Make sure that your receiver returns 2xx before it processes the event.",
                r#"{"permanent": true, "submission": "not_submitted"}"#,
            ),
            Self::WebhookSecretRotationCooldown => (
                "The key's webhook secret was rotated less than 60 seconds ago. The cooldown prevents a double click or a repeated request from replacing the secret that was just returned.",
                SameRequest,
                "If the response to the rotation was lost, rotate again after Retry-After seconds. The previous secret stays valid for deliveries for seven days.",
                NOT_SUBMITTED,
            ),
        };
        Guide { when, retry, fix, extensions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_explains_its_cause_and_its_fix() {
        let mut texts = BTreeSet::new();
        for code in ErrorCode::ALL {
            let guide = code.guide();
            for text in [guide.when, guide.fix, code.title(), code.default_detail()] {
                assert!(text.len() > 10 && text.is_ascii(), "{code}: {text}");
                assert!(texts.insert(text), "{code} repeats: {text}");
            }
            for text in [guide.when, guide.fix] {
                assert!(text.len() > 40 && text.ends_with('.'), "{code}: {text}");
            }
        }
    }

    #[test]
    fn example_extensions_are_json_objects() {
        for code in ErrorCode::ALL {
            let text = code.guide().extensions;
            let parsed = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text);
            assert!(text.is_empty() || parsed.is_ok(), "{code}: {text}");
        }
    }

    #[test]
    fn only_429_and_5xx_codes_are_retried_unchanged() {
        for code in ErrorCode::ALL {
            let same = matches!(code.guide().retry, Retry::SameRequest | Retry::LookUpFirst);
            assert!(!same || code.status() == 429 || code.status() >= 500, "{code}");
            assert!(same || code.status() < 500, "{code}");
        }
    }
}
