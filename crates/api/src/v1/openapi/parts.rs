//! Static parts of the document: info, servers, tags, headers, parameters and the problem schema.

use std::collections::BTreeSet;

use domain::ErrorCode;
use domain::version::VERSIONS;
use http_kit::PageSize;
use protocol::Documented;
use serde_json::{Map, Value, json};

/// Returns `info`.
pub fn info(version: &str) -> Value {
    json!({
        "title": "Foretell trading API",
        "version": version,
        "summary": "Markets, quotes, trades and portfolios of a prediction-market service.",
        "description": "Clients create trades over HTTP. The service executes them on chain from the caller's own smart account \
            and reports their status. Amounts are decimal strings: whole USDC in requests; atomic units (millionths) of \
            USDC and WAD (18 decimals) in responses. Every error is a problem document (RFC 7807) with a stable code; \
            its type is the URL of a page about that code. Members, codes and words may be added to responses at any \
            time: ignore those that you do not know.",
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    })
}

/// Returns `tags`: those in `used`, in reading order.
pub fn tags(used: &BTreeSet<String>) -> Value {
    let tags = [
        ("Markets", "Markets, quotes, and the trades of a market."),
        ("Trades", "Create trades and follow their status."),
        ("Events", "The feed of events, in order and without gaps."),
        ("Portfolio", "Balance and positions of the caller's smart account."),
        ("Redemptions", "Claim the payout of settled positions."),
        ("Webhooks", "Deliveries to the key's webhook, and the webhook secret."),
        ("Account", "Usage and settings of the calling key."),
        ("Sandbox", "The clock of a development service."),
        ("Service", "Health, readiness and this document. These routes need no key."),
    ];
    // A tag without operations would be an empty section of the reference.
    let tags = tags.into_iter().filter(|(name, _)| used.contains(*name));
    tags.map(|(name, description)| json!({ "name": name, "description": description })).collect()
}

/// Returns `components.securitySchemes`.
pub fn security_schemes() -> Value {
    json!({ "ApiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "service_live_ (production) or service_test_ (staging) followed by 32 letters and digits. Each \
            operation names the scope that the key must have.",
    }})
}

/// `components.headers`: headers of responses. A response that lists one always has it, except Retry-After, which is only sent
/// if waiting helps.
pub fn headers() -> Value {
    let integer = |description: &str, example: i64| json!({ "description": description, "required": true, "schema": { "type": "integer", "format": "int64", "minimum": 0 }, "example": example });
    let text = |description: &str, example: &str| json!({ "description": description, "required": true, "schema": { "type": "string" }, "example": example });
    json!({
        "X-Request-Id": { "description": "The id of this request, the same as _meta.requestId. Include it when you report a problem.", "required": true,
            "schema": { "type": "string", "pattern": "^req_[0-9a-f]{32}$" }, "example": "req_0198f3a05d4e7c1b9a2f3b4c5d6e7f80" },
        "X-Service-Api-Version": { "description": "The API version that the response follows.", "required": true,
            "schema": { "type": "string", "format": "date" }, "example": http_kit::API_VERSION },
        "X-RateLimit-Limit": integer("Requests per minute that the applied limiter allows.", 300),
        "X-RateLimit-Remaining": integer("Requests that remain.", 299),
        "X-RateLimit-Reset": integer("When X-RateLimit-Remaining is full again, in seconds since the Unix epoch.", 1_777_464_060),
        "RateLimit": text("The IETF draft's form: limiter, remaining requests, seconds until more are allowed.", "\"read\";r=299;t=60"),
        "RateLimit-Policy": text("The IETF draft's form: limiter, quota, window in seconds.", "\"read\";q=300;w=60"),
        "Cache-Control": text("The rules for caches of the response.", "private, no-cache"),
        "ETag": text("The opaque version of the resource, for If-None-Match. It does not depend on _meta.", "W/\"5d41402abc4b2a76b9719d911017c592\""),
        "Retry-After": { "description": "Seconds to wait before the next attempt.", "required": false,
            "schema": { "type": "integer", "format": "int64", "minimum": 0 }, "example": 1 },
        "X-Service-Error-Code": text("The problem's code.", "RATE_LIMIT_EXCEEDED"),
        "WWW-Authenticate": text("The authentication scheme and header.", "ApiKey realm=\"X-API-Key\""),
    })
}

/// Returns `components.parameters`: parameters of many operations.
pub fn parameters() -> Value {
    let header = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "header", "required": false, "description": description, "schema": schema });
    json!({
        // An open string: from an enum, generators make a type of one value for each operation, which
        // rejects later versions.
        "ApiVersion": header("X-Service-Api-Version", "The API version of the response. Default: the version that the key \
            is pinned to, else the current version.", json!({ "type": "string", "x-extensible-enum": VERSIONS.served().collect::<Vec<_>>() })),
        "IfNoneMatch": header("If-None-Match", "ETags of earlier responses, or *. If one of them is current, the \
            response is 304 without a body. It counts against the rate limit like any other request.", json!({ "type": "string" })),
        "Signature": header("X-Service-Signature", "Optional signature of the request: t=<unix-ms>,v1=<hex>, where <hex> is \
            the HMAC-SHA256 of \"<unix-ms>.<METHOD>.<path without query>.<raw body>\" under the plaintext API key. The time \
            must be within 5 minutes of the service's clock. Several v1 values are accepted.", json!({ "type": "string", "pattern": "^t=[0-9]+(,v1=[0-9a-fA-F]{64})+$" })),
        "Cursor": { "name": "cursor", "in": "query", "required": false, "schema": { "type": "string", "minLength": 1 },
            "description": "pagination.cursor of the previous page. The filters must be the same as for that page; limit may differ." },
    })
}

/// Returns the `limit` parameter of a list with these page sizes.
pub fn limit(page: PageSize) -> Value {
    json!({
        "name": "limit", "in": "query", "required": false,
        "description": format!("Items per page. A value above {most} is reduced to {most}.", most = page.most),
        "schema": { "type": "integer", "minimum": 1, "default": page.default },
    })
}

/// Returns the schema of a problem document.
pub fn problem() -> Value {
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    let entry = |code: &ErrorCode| {
        (code.to_string(), json!({ "status": code.status(), "retry": code.guide().retry.as_str() }))
    };
    let catalogue: Map<String, Value> = ErrorCode::ALL.iter().map(entry).collect();
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "description": "An error (RFC 7807). Branch on code; show detail to people.",
        "required": ["type", "title", "status", "code", "detail", "instance", "requestId"],
        "properties": {
            "type": { "type": "string", "format": "uri", "description": "The URL of the page about the code." },
            "title": text("A short summary, the same for every error with this code."),
            "status": { "type": "integer", "format": "int32", "minimum": 400, "maximum": 599, "description": "The HTTP status." },
            "code": {
                "type": "string",
                "description": "The stable code. Codes may be added. x-catalogue lists for each code its status and whether \
                    the same request may be sent again.",
                "x-extensible-enum": codes,
                "x-catalogue": catalogue,
            },
            "detail": text("The error and its remedy, for people."),
            "instance": text("The path of the request."),
            "requestId": { "type": "string", "pattern": "^req_[0-9a-f]{32}$", "description": "The id of the request. Include it when you report a problem." },
            "extensions": {
                "type": "object",
                "description": "Details for programs; which members there are depends on code. Members may be added.",
                "additionalProperties": true,
                "properties": extensions(),
            },
        },
    })
}

fn extensions() -> Map<String, Value> {
    let digits =
        |description: &str| json!({ "type": "string", "pattern": "^[0-9]+$", "description": description });
    let words = |description: &str, words: &[&str]| json!({ "type": "string", "description": description, "x-extensible-enum": words });
    let members = [
        (
            "submission",
            words(
                "Only for writes: if anything was stored or sent.",
                &["not_submitted", "submitted", "unknown"],
            ),
        ),
        (
            "tradeId",
            json!({ "type": "string", "format": "uuid", "description": "The trade that the error is about." }),
        ),
        (
            "errors",
            json!({
                "type": "array",
                "description": "Every field that is wrong.",
                "items": { "type": "object", "required": ["pointer", "detail"], "properties": {
                    "pointer": { "type": "string", "description": "JSON pointer into the body, / and a parameter's name, or /header/ and a header's name." },
                    "detail": { "type": "string", "description": "The requirement that the value does not meet." },
                }},
            }),
        ),
        (
            "cap",
            words(
                "The exceeded cap: USDC of one trade, USDC of buys in 24 hours, tokens of one sale, or tokens of sales in a day.",
                &["per_trade", "daily_volume", "sale_per_trade", "daily_sales"],
            ),
        ),
        (
            "reason",
            words(
                "The reason, for codes with several reasons.",
                &[
                    "in_progress",
                    "market_open",
                    "losing_outcome",
                    "no_tokens",
                    "too_few_tokens",
                    "quarantined",
                ],
            ),
        ),
        ("requiredScope", json!({ "type": "string", "description": "The scope that the route requires." })),
        ("requiredUsdc", digits("USDC that the trade needs, in atomic units.")),
        ("availableUsdc", digits("USDC that is available to the trade, in atomic units.")),
        ("marketStatus", json!({ "type": "string", "description": "The market's status." })),
        ("minimum", digits("The smallest trade, in atomic units of USDC.")),
        (
            "limiter",
            words(
                "The limiter that rejected the request. streams: too many open streams. lockout: too many failed \
                 authentications from this address. network: too many requests of users of the tier free from this \
                 network. bodies: too many requests whose bodies are being received. searches: too many searches \
                 from this address or network.",
                &[
                    "read",
                    "write",
                    "redelivery",
                    "address",
                    "streams",
                    "lockout",
                    "network",
                    "bodies",
                    "searches",
                ],
            ),
        ),
        (
            "oldestSequence",
            json!({ "type": "integer", "format": "int64", "minimum": 1, "description": "The sequence of the oldest event that can be read." }),
        ),
        ("permanent", json!({ "type": "boolean", "description": "True if waiting does not help." })),
    ];
    members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}
