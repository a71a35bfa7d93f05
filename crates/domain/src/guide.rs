//! What a client's author needs to know of an error code beyond its title: when exactly it is sent, whether the same
//! request may be sent again, and how to mend it. The published pages are made of this and the catalogue.

use crate::ErrorCode;

/// Whether the request may be sent again as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The request, or what it relies on, has to change first.
    AfterChange,
    /// The same request, later.
    SameRequest,
    /// What became of it is not known: a repeat is safe only where it is recognised as one.
    LookUpFirst,
    /// It was done already, or can never be done.
    Never,
}

impl Retry {
    /// A word for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AfterChange => "after_change",
            Self::SameRequest => "same_request",
            Self::LookUpFirst => "look_up_first",
            Self::Never => "never",
        }
    }

    /// How to go about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::AfterChange => {
                "Not as it is: the answer stays the same until the request, or what it relies on, has changed. \
                 Nothing was stored, so the same Idempotency-Key may carry the mended request."
            }
            Self::SameRequest => {
                "Yes, the very same request, after the seconds that Retry-After names; without that header, after a \
                 pause that doubles with each attempt. Keep the Idempotency-Key of a trade."
            }
            Self::LookUpFirst => {
                "A read may be sent again at once. A write may have been done: repeat it only with the same \
                 Idempotency-Key or clientRequestId, which returns the first result instead of doing it twice, or \
                 look for what it should have made. extensions.submission says what is known."
            }
            Self::Never => "No: a repeat can only be answered the same way.",
        }
    }
}

/// What the page of a code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guide {
    /// The conditions under which it is sent.
    pub when: &'static str,
    /// Whether the request may be sent again.
    pub retry: Retry,
    /// What to do about it.
    pub mend: &'static str,
    /// The `extensions` of an example, a JSON object; empty where it has none.
    pub extensions: &'static str,
}

const NOT_SUBMITTED: &str = r#"{"submission": "not_submitted"}"#;

impl ErrorCode {
    /// What its page says.
    #[expect(clippy::too_many_lines, reason = "one arm for each code of the catalogue")]
    pub const fn guide(self) -> Guide {
        use Retry::{AfterChange, LookUpFirst, Never, SameRequest};
        let (when, retry, mend, extensions) = match self {
            Self::ActiveKeyLimitReached => (
                "A further key is issued for a user who holds five keys that are neither revoked nor expired. Routes of this API issue no keys; the web application and the operator's command do.",
                AfterChange,
                "Revoke a key that is idle (GET /v1/account/usage shows when a key was last used), then issue the new one.",
                "",
            ),
            Self::AmountTooLarge => (
                "The amount is of the documented form but above 10,000,000 USDC, or, where it counts tokens, above what any market can hold. This is judged before the key's spending caps.",
                AfterChange,
                "Send a smaller amount. A trade counts whole USDC (\"25.00\"), a quote atomic units (\"25000000\"): a trade's amount in atomic units is a million times too large.",
                "",
            ),
            Self::AmountTooSmall => (
                "The trade would move, or the claim would pay, less USDC than the operator's minimum, which is 0.01 USDC by default. An amount in tokens counts at its quoted value. A quote of such a trade is refused in the same way.",
                AfterChange,
                "Trade at least extensions.minimum (millionths of a USDC). A position that is worth less can still be sold or redeemed by its owner directly on chain.",
                r#"{"minimum": "10000", "submission": "not_submitted"}"#,
            ),
            Self::ApiKeyExpired => (
                "The key is known and was given an end when it was issued, which has passed. Keys without an end do not expire.",
                AfterChange,
                "Issue a new key and put it in the place of this one. An end cannot be moved.",
                "",
            ),
            Self::ApiKeyInvalid => (
                "The header holds a key of the right form that this environment does not know: mistyped, cut, or issued by the other environment (service_live_ belongs to production, service_test_ to staging).",
                AfterChange,
                "Compare the key with the one that was shown at issue, and the address of the service with the key's prefix. Repeated failures shut the sending address out for a while.",
                "",
            ),
            Self::ApiKeyMalformed => (
                "The X-API-Key header is there but does not hold one key: another prefix, another length, other characters than letters and digits, spaces or quotes around it, or the header twice.",
                AfterChange,
                "Send exactly one X-API-Key header with service_live_ or service_test_ and 32 letters and digits, and nothing else. Look for a line break at the end of a file or variable.",
                "",
            ),
            Self::ApiKeyMissing => (
                "The route asks for a key and the request has no X-API-Key header. Only the health, readiness, OpenAPI and documentation routes go without one.",
                AfterChange,
                "Send the key in X-API-Key. It is not read from Authorization, from the query or from a cookie. Some proxies drop headers they do not know.",
                "",
            ),
            Self::ApiKeyPaused => (
                "This key's trading was stopped with POST /v1/account/pause, and the request would create or confirm a trade. Reads go on, and the user's other keys are not concerned.",
                AfterChange,
                "Find out who paused the key and why. The web application or the operator's command resumes it; the API cannot, so that a stolen key cannot undo its own pause.",
                NOT_SUBMITTED,
            ),
            Self::ApiKeyRevoked => (
                "The key was revoked by its owner or by the operator. Revocation is final and takes effect within a second everywhere.",
                Never,
                "Move to another active key. If you did not revoke this one, look at the account's keys in the web application.",
                "",
            ),
            Self::ApiTradeProcessingHalted => (
                "The operator has halted trading for the whole service. Every route that starts a trade answers this; reads stay up, and what was sent to the chain before goes on to its end.",
                SameRequest,
                "Stop sending trades, and probe with one request a minute at most. Nothing of the refused request was kept.",
                NOT_SUBMITTED,
            ),
            Self::ApiVersionUnsupported => (
                "The request, or the version its key is pinned to, asks for a version of the API that was retired. Versions are retired twelve months after their routes began to carry Deprecation and Sunset.",
                AfterChange,
                "Leave X-Service-Api-Version out, or name a version that is served; the same header of any answer names the one in use.",
                "",
            ),
            Self::ChainNotSupported => (
                "The market exists, but its contracts live on a chain that this deployment does not trade on, as after a move from a test chain.",
                Never,
                "Trade the market where it is served. A market's chainId says which chain it lives on.",
                "",
            ),
            Self::ClientRequestIdConflict => (
                "The Idempotency-Key belongs to one of your trades and the clientRequestId of the same request to another one, so that there is no single trade to return.",
                AfterChange,
                "Look both trades up, then send the request with one of the two, or with new values for both. Make both from one source, so that they never part.",
                NOT_SUBMITTED,
            ),
            Self::ConfirmationExpired => (
                "A trade that was held for confirmation was not confirmed within its window, five minutes unless the deployment says otherwise. The trade is failed and what it had reserved is free again.",
                Never,
                "Create the trade again, with a new Idempotency-Key, and confirm it before confirmation.expiresAt.",
                r#"{"submission": "not_submitted", "tradeId": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80"}"#,
            ),
            Self::ConfirmationTokenInvalid => (
                "The trade is held for confirmation and its window is open, but the token in the body is not this trade's.",
                AfterChange,
                "Send confirmation.token of the 202 that created this very trade. If it is lost, repeat the creation with the same Idempotency-Key: the answer carries the same token.",
                r#"{"submission": "not_submitted", "tradeId": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80"}"#,
            ),
            Self::ConfirmationTokenUsed => (
                "The token is right, but the trade was confirmed before, possibly by another request a moment ago. Of several confirmations at once exactly one succeeds.",
                Never,
                "Nothing is left to do: the trade is on its way. Follow it with GET /v1/trades/{id}.",
                r#"{"submission": "submitted", "tradeId": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80"}"#,
            ),
            Self::CursorExpired => (
                "The cursor or Last-Event-ID of GET /v1/events stands before the oldest event that the feed still holds, so that some events between them are gone; or after its last event.",
                AfterChange,
                "Begin again without a cursor, from the oldest event that is held, or with from=latest, and bring your own records up to date from GET /v1/trades. extensions.oldestSequence is the first event that can be read.",
                r#"{"oldestSequence": 4211}"#,
            ),
            Self::DependencyUnavailable => (
                "The database or the chain did not answer in time, refused the connection, or is so busy that the request gave up; or the chain's token or contracts are paused.",
                SameRequest,
                "Back off and repeat. GET /v1/ready says which part is failing. Where extensions.submission is \"unknown\", repeat the write with the same Idempotency-Key alone.",
                NOT_SUBMITTED,
            ),
            Self::FeedRestarted => (
                "The service's data was restored, so that some events may be lost and their numbers used again. The feed began a new generation, and the cursor or Last-Event-ID of GET /v1/events belongs to an earlier one.",
                AfterChange,
                "Read the feed again from its start: send neither cursor nor Last-Event-ID. Recognize events that you have processed by their id, and bring your own records up to date from GET /v1/trades.",
                r#"{"generation": 1790000000, "oldestSequence": 1}"#,
            ),
            Self::HeadersTooLarge => (
                "The request's line and headers together are larger than 32 KiB, or there are more than 100 headers. The connection is closed.",
                AfterChange,
                "Send fewer or shorter headers, or a shorter query. Cookies of a shared domain are a common cause; this API reads none.",
                "",
            ),
            Self::IdempotencyKeyConflict => (
                "The Idempotency-Key, or the clientRequestId, was used for a trade with other content; or, where extensions.reason is \"in_progress\", the first request with this key is still running after two seconds.",
                AfterChange,
                "Take a new key for each new operation. For \"in_progress\" repeat the same request after Retry-After: it returns the first one's trade. Metadata counts as content; the order of members does not, and \"10\" equals \"10.00\".",
                NOT_SUBMITTED,
            ),
            Self::IdempotencyKeyExpired => (
                "Reserved: an Idempotency-Key is forgotten after 24 hours and can then be used anew, so that no request is answered with this today. The code stays in the catalogue for clients that know it.",
                AfterChange,
                "Send the request with a new Idempotency-Key. To recognise a trade beyond 24 hours, give it a clientRequestId, which never expires.",
                NOT_SUBMITTED,
            ),
            Self::IdempotencyKeyFormatInvalid => (
                "The Idempotency-Key header is empty, was sent more than once, or holds a character other than A-Z a-z 0-9 _ - : and the full stop. One pair of double quotes around the whole is taken off first.",
                AfterChange,
                "Send one header with 1 to 255 of those characters. A random UUID for each operation is the usual choice.",
                NOT_SUBMITTED,
            ),
            Self::IdempotencyKeyTooLong => (
                "The Idempotency-Key header holds more than 255 characters.",
                AfterChange,
                "Shorten it: a random UUID has 36 characters. If you build the key from your own data, send a digest of that data.",
                NOT_SUBMITTED,
            ),
            Self::InsufficientBalance => (
                "A buy needs more USDC than the smart account holds beyond what other buys have set aside, or a sale more tokens than it holds.",
                AfterChange,
                "Compare requiredUsdc with availableUsdc (millionths of a USDC), fund the account at the address that GET /v1/portfolio shows, or trade less. What is reserved is freed when the trades before it end. To sell everything send amountType \"all\".",
                r#"{"requiredUsdc": "25000000", "availableUsdc": "10000000", "submission": "not_submitted"}"#,
            ),
            Self::InsufficientScope => (
                "The key is valid, but was issued without the scope that the route asks for. The scope is judged after the rate limit and before the body is read.",
                AfterChange,
                "Issue a key with the scope in extensions.requiredScope. The scopes of a key do not change after it was issued.",
                r#"{"requiredScope": "trades:write", "submission": "not_submitted"}"#,
            ),
            Self::InternalError => (
                "The service ran into something it was not made for. The cause is in its log under the request id and is never shown.",
                LookUpFirst,
                "If it comes again, report the requestId. Of a write, look up whether it was done before you decide that it failed.",
                r#"{"submission": "unknown"}"#,
            ),
            Self::IpNotAllowed => (
                "The key has an allowlist of addresses and the request came from none of them. Behind a proxy that the deployment trusts, the address is the one that the proxy passes on.",
                AfterChange,
                "Send from an allowed address, or issue a key whose allowlist names this one. Mind IPv6: a host with both families may leave by the one that is not on the list.",
                "",
            ),
            Self::LiquidityInsufficient => (
                "The market maker cannot make this trade: the sale would pay more than the market can, or the amount is beyond the prices that it can compute.",
                AfterChange,
                "Ask for a quote with another amount and trade what it shows. A large trade may be split, at the price that each part then has.",
                NOT_SUBMITTED,
            ),
            Self::MarketNotFound => (
                "No market on chain has the id in the path or in marketId. A malformed id, and a market that is not on chain yet, are answered alike.",
                AfterChange,
                "Take the id from GET /v1/markets, as it is. Ids of staging and production differ.",
                "",
            ),
            Self::MarketNotTradeable => (
                "The market exists but is not OPEN: FROZEN by its guardian or past its endTime, RESOLVED, or CANCELLED. extensions.marketStatus names the status where it is known before the chain is asked.",
                AfterChange,
                "Read the market: a FROZEN one may open again before its endTime, a RESOLVED or CANCELLED one is claimed, not traded. A repeat of a trade that was accepted before the market stopped still returns that trade.",
                r#"{"marketStatus": "FROZEN", "submission": "not_submitted"}"#,
            ),
            Self::MethodNotAllowed => (
                "The path is one of this API's, but no route answers it with this method. HEAD goes wherever GET does.",
                Never,
                "Use a method that the Allow header of this answer names.",
                "",
            ),
            Self::OutcomeIndexInvalid => (
                "outcomeIndex is an integer, but the market has no outcome there. Outcomes count from 0.",
                AfterChange,
                "Read the market's outcomes and send the index of one of them. A market of two outcomes has 0 and 1.",
                "",
            ),
            Self::PayloadTooLarge => (
                "The body is larger than 64 KiB, by its Content-Length or as it arrived. It was not read further.",
                AfterChange,
                "Send less: a full trade with 50 metadata entries stays below the bound.",
                NOT_SUBMITTED,
            ),
            Self::PositionNotClaimable => (
                "The position cannot be claimed: the market is not settled (reason \"market_open\"), the outcome pays nothing (\"losing_outcome\"), or the account holds none of its tokens (\"no_tokens\").",
                AfterChange,
                "For \"market_open\" wait until the market reads RESOLVED or CANCELLED and its result is final. The other two reasons will not change; claimable in GET /v1/portfolio/positions shows what can be claimed.",
                r#"{"reason": "market_open", "submission": "not_submitted"}"#,
            ),
            Self::RateLimitExceeded => (
                "The user's requests of this kind (reads, writes and redeliveries are counted apart, over all keys of the user) are used up; or the address sent too many requests to routes without a key; or it is shut out after repeated failures to authenticate.",
                SameRequest,
                "Wait for Retry-After, then spread requests by X-RateLimit-Remaining and X-RateLimit-Reset instead of running into the limit. Conditional requests count too. A refused request costs nothing of the quota.",
                r#"{"limiter": "read"}"#,
            ),
            Self::RateLimitUnavailable => (
                "The place where request counts are kept does not answer. Requests are refused rather than let through uncounted.",
                SameRequest,
                "Back off and repeat; GET /v1/ready shows rateLimiter among its checks. No quota was spent.",
                "",
            ),
            Self::RedemptionsNotEnabled => (
                "A claim is made on a deployment that pays winnings and refunds to their holders by itself.",
                Never,
                "Do nothing: the USDC arrives in the smart account without a claim and shows in GET /v1/portfolio.",
                NOT_SUBMITTED,
            ),
            Self::RequestSignatureInvalid => (
                "The request carries X-Service-Signature, and it is malformed, sent twice, more than five minutes off the service's clock, or no v1 value matches. Without the header no signature is asked for.",
                AfterChange,
                "Sign \"<unix-ms>.<METHOD>.<path without query>.<raw body>\" with HMAC-SHA256 under the plaintext API key (not the webhook secret) and send t=<unix-ms>,v1=<hex>. Sign the very bytes that are sent, and check the clock. Sign anew for each attempt.",
                NOT_SUBMITTED,
            ),
            Self::RequestTimeout => (
                "The answer was not ready ten seconds after the request arrived, the body took longer than eight seconds to arrive, or a trade's deadline passed before the chain could make it.",
                LookUpFirst,
                "Find the trade with GET /v1/trades?clientRequestId=..., or repeat the creation with the same Idempotency-Key. \"not_submitted\" says for certain that nothing was begun.",
                r#"{"submission": "unknown"}"#,
            ),
            Self::ResourceNotFound => (
                "There is no such route, or no trade, trace, claim or event with this id among those of the key's user. What belongs to somebody else, and a malformed id, are answered alike.",
                AfterChange,
                "Check the path against the reference and the id against the list it came from. Use a key of the user who made the resource, in the same environment.",
                "",
            ),
            Self::RouteDisabled => (
                "The operator has switched this one route off. Other routes are not concerned.",
                SameRequest,
                "Wait for Retry-After and try again at a slow pace, or do without the route for the while.",
                "",
            ),
            Self::SlippageExceeded => (
                "The price is outside a bound that the request itself sets: minTokensOut, maxTokensIn or maxSlippageBps. Judged at acceptance, and again by the contracts at execution, where it is a failed trade's errorCode.",
                AfterChange,
                "Ask for a new quote and decide whether its price is good enough, then send new bounds. Nothing was traded at a worse price.",
                NOT_SUBMITTED,
            ),
            Self::SmartAccountNotProvisioned => (
                "The key's user has no smart account on chain yet, so that there is nothing to trade from or to show.",
                AfterChange,
                "Provision the account in the web application (Settings), which also enables keys, then send the request again.",
                "",
            ),
            Self::SpendingLimitExceeded => (
                "The trade's USDC is above the key's cap for one trade (extensions.cap \"per_trade\"), or would lift what the key's buys of the last 24 hours add up to above its daily cap (\"daily_volume\"). Sales draw on the first cap alone.",
                AfterChange,
                "For \"per_trade\" send less at once. For \"daily_volume\" wait until earlier buys are 24 hours old (GET /v1/account/usage shows what remains), or have the key's limits raised. Failed and rejected trades give back what they drew.",
                r#"{"cap": "daily_volume", "submission": "not_submitted"}"#,
            ),
            Self::TradeNotAwaitingConfirmation => (
                "The trade that is to be confirmed is yours, but was below its key's threshold when it was created and was never held.",
                Never,
                "Nothing is to be confirmed: only a creation that answers 202 with confirmation.token is. Follow the trade with GET /v1/trades/{id}.",
                r#"{"submission": "submitted", "tradeId": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80"}"#,
            ),
            Self::UnsupportedMediaType => (
                "The route reads a JSON body and Content-Type is missing, repeated, something other than application/json, names a charset other than UTF-8, or the body is compressed.",
                AfterChange,
                "Send Content-Type: application/json and the body as plain UTF-8. Some HTTP libraries fall back to form encoding when they are given a map.",
                NOT_SUBMITTED,
            ),
            Self::ValidationFailed => (
                "The body, the query, or a header has not the documented form: a member is missing, malformed, unknown or repeated, the body is no single JSON object, or a cursor does not belong to this list and its filters.",
                AfterChange,
                "extensions.errors names every place that is wrong: pointer is a JSON pointer into the body, or / and the parameter's name. Unknown members are refused so that a misspelt one cannot be lost silently.",
                r#"{"errors": [{"pointer": "/amount", "detail": "must be above zero, got \"0\""}], "submission": "not_submitted"}"#,
            ),
            Self::WalletDelegationNotEnabled => (
                "The smart account exists, but on chain it has not allowed this key to trade from it, its permission has expired or was revoked, or the allowance of USDC is missing.",
                AfterChange,
                "Enable the key for the account in the web application. delegation in GET /v1/portfolio shows what the chain says of the calling key.",
                NOT_SUBMITTED,
            ),
            Self::WebhookNotConfigured => (
                "A test event or a redelivery was asked for and the key whose URL it would go to has none.",
                AfterChange,
                "Set the key's webhook URL, in the web application or through the operator, and ask again. GET /v1/webhooks/endpoint shows the calling key's.",
                NOT_SUBMITTED,
            ),
            Self::WebhookReplayLimitReached => (
                "The event was redelivered five times already, which is all that one event gets.",
                Never,
                "Read what the event says from the trade itself: GET /v1/trades/{id} with its tradeRequestId. Make sure that the receiver answers 2xx before it does its work.",
                r#"{"permanent": true, "submission": "not_submitted"}"#,
            ),
            Self::WebhookSecretRotationCooldown => (
                "The key's webhook secret was rotated less than 60 seconds ago. It guards against a doubled click or a repeated request taking away the secret that was just handed out.",
                SameRequest,
                "If the answer of the rotation was lost, rotate again after Retry-After. The secret before stays valid for deliveries for seven days.",
                NOT_SUBMITTED,
            ),
        };
        Guide { when, retry, mend, extensions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_says_when_it_is_sent_and_how_to_mend_it_in_sentences_of_its_own() {
        let mut texts = BTreeSet::new();
        for code in ErrorCode::ALL {
            let guide = code.guide();
            for text in [guide.when, guide.mend, code.title(), code.default_detail()] {
                assert!(text.len() > 10 && text.is_ascii(), "{code}: {text}");
                assert!(texts.insert(text), "{code} repeats: {text}");
            }
            for text in [guide.when, guide.mend] {
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
    fn what_may_be_repeated_as_it_is_is_the_services_own_trouble_or_haste() {
        for code in ErrorCode::ALL {
            let same = matches!(code.guide().retry, Retry::SameRequest | Retry::LookUpFirst);
            assert!(!same || code.status() == 429 || code.status() >= 500, "{code}");
            assert!(same || code.status() < 500, "{code}");
        }
    }
}
