//! Static parts of the document.

use serde_json::{Value, json};

use app::limits::budget::Budget;
use domain::rate::Scope;
use http_kit::PageSize;

/// Returns `info`.
pub fn info() -> Value {
    let address_limit = Budget::Requests.default_share(Scope::Address);
    json!({
        "title": "Foretell public read API",
        "version": "1.0.0",
        "summary": "Public read access to threads, markets, organizations and partners of a prediction-market service.",
        "description": format!("The API needs no key, and web pages of any origin can read it. Requests \
            are limited by IP address: each route has its own limit per minute, which its description \
            names; all other paths together have {address_limit}. Thread times are in seconds since \
            the Unix epoch, a market's endTime is in milliseconds, and members that end in At are ISO \
            8601. Prices are numbers from 0 to 1, and volumes are whole US cents. Unknown values are \
            omitted and never null. Unknown parameters are ignored; known parameters with an invalid value \
            are rejected. Members, codes and words may be added to responses at any time: ignore those \
            that you do not know."),
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    })
}

/// Returns `tags`, in reading order.
pub fn tags() -> Value {
    let tags = [
        ("Threads", "Collections of markets with a time window."),
        ("Markets", "Markets and their prices."),
        ("Organizations", "Organizations and the partners under them."),
        ("Embedding", "Embedding markets and threads in other pages."),
        ("Community", "The leaderboard, and the effects of a transaction."),
        ("Session", "Routes that require a session of the web application."),
        ("Service", "This contract."),
    ];
    tags.into_iter().map(|(name, description)| json!({ "name": name, "description": description })).collect()
}

/// Returns `components.headers`. If a response lists one of these headers, it always has it, except those
/// that are not required.
pub fn headers() -> Value {
    let integer = |description: &str, example: i64| json!({ "description": description, "required": true, "schema": { "type": "integer", "format": "int64", "minimum": 0 }, "example": example });
    let text = |description: &str, example: &str| json!({ "description": description, "required": true, "schema": { "type": "string" }, "example": example });
    // A response to a session has no such header.
    let unless_personal = |description: &str, example: &str| {
        json!({ "description": format!("{description} Missing if _meta.authenticated is true."),
        "required": false, "schema": { "type": "string" }, "example": example })
    };
    json!({
        "X-Request-Id": { "description": "The id of this request. Include it when you report a problem.", "required": true,
            "schema": { "type": "string", "pattern": "^req_[0-9a-f]{32}$" }, "example": "req_0198f3a05d4e7c1b9a2f3b4c5d6e7f80" },
        "X-RateLimit-Limit": integer("Requests per minute that the applied limiter allows.", 100),
        "X-RateLimit-Remaining": integer("Requests that remain.", 99),
        "X-RateLimit-Reset": integer("When X-RateLimit-Remaining is full again, in milliseconds since the Unix epoch.", 1_777_464_060_000),
        "RateLimit": text("The IETF draft's form: limiter, remaining requests, seconds until more are allowed.", "\"route\";r=99;t=60"),
        "RateLimit-Policy": text("The IETF draft's form: limiter, quota, window in seconds.", "\"route\";q=100;w=60"),
        "Cache-Control": text("The rules for caches of the response.", "public, max-age=5, s-maxage=5, stale-while-revalidate=10"),
        "Access-Control-Allow-Origin": unless_personal("The origins that may read the response: any.", "*"),
        "Access-Control-Expose-Headers": unless_personal("The headers that a page may read.", "ETag, X-Request-Id"),
        "ETag": unless_personal("The opaque version of the resource, for If-None-Match. It does not depend on _meta.", "W/\"5d41402abc4b2a76b9719d911017c592\""),
        "Retry-After": { "description": "Seconds to wait before the next attempt.", "required": false,
            "schema": { "type": "integer", "format": "int64", "minimum": 1 }, "example": 12 },
    })
}

/// Returns `components.parameters`.
pub fn parameters() -> Value {
    json!({
        "IfNoneMatch": { "name": "If-None-Match", "in": "header", "required": false, "schema": { "type": "string" },
            "description": "ETags of earlier responses, or *. If one of them is current, the response is \
                304 without a body. It counts against the rate limit like any other request." },
        "Offset": { "name": "offset", "in": "query", "required": false,
            "description": "The number of items to skip.",
            "schema": { "type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX, "default": 0 } },
    })
}

/// Returns the `limit` parameter of a list.
pub fn limit(page: PageSize) -> Value {
    json!({
        "name": "limit", "in": "query", "required": false, "description": "Items per page.",
        "schema": { "type": "integer", "format": "int32", "minimum": 1, "maximum": page.most, "default": page.default },
    })
}
