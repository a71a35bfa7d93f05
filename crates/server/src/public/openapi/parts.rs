//! The parts of the document that are data.

use serde_json::{Value, json};

use crate::public::PageSize;
use crate::public::standing::ADDRESS_PER_MINUTE;

/// `info`.
pub fn info() -> Value {
    json!({
        "title": "Foretell public read API",
        "version": "1.0.0",
        "summary": "Threads, markets, organizations and partners of a prediction-market service, for anybody to read.",
        "description": format!("No key is asked for, and any web page may read it. Requests are limited by address: each route \
            has its own count of a minute, and names it; what belongs to no route with data has {ADDRESS_PER_MINUTE} together. \
            Thread times are seconds since 1970, a market's endTime is milliseconds, members that end in At are ISO 8601. \
            Prices are numbers from 0 to 1, volumes whole US cents. What is not known is left out and never null. Parameters \
            that a route does not know are passed over; known ones with a wrong value are refused. Members, codes and words \
            may be added to answers at any time: pass over what you do not know."),
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    })
}

/// `tags`, in reading order.
pub fn tags() -> Value {
    let tags = [
        ("Threads", "Collections of markets with a time window."),
        ("Markets", "Markets, their prices and what moves them."),
        ("Organizations", "Organizations and the partners under them."),
        ("Embedding", "Pages of markets and threads within others."),
        ("Community", "Who trades well, and what a transaction did."),
        ("Session", "What takes a session of the web application."),
        ("Service", "This contract."),
    ];
    tags.into_iter().map(|(name, description)| json!({ "name": name, "description": description })).collect()
}

/// `components.headers`: of answers. Where an answer names one it has it.
pub fn headers() -> Value {
    let integer = |description: &str, example: i64| json!({ "description": description, "required": true, "schema": { "type": "integer", "format": "int64", "minimum": 0 }, "example": example });
    let text = |description: &str, example: &str| json!({ "description": description, "required": true, "schema": { "type": "string" }, "example": example });
    json!({
        "X-Request-Id": { "description": "The handle of this request.", "required": true,
            "schema": { "type": "string", "pattern": "^req_[0-9a-f]{32}$" }, "example": "req_0198f3a05d4e7c1b9a2f3b4c5d6e7f80" },
        "X-RateLimit-Limit": integer("Requests a minute of the limiter that applied.", 100),
        "X-RateLimit-Remaining": integer("How many of them are left.", 99),
        "X-RateLimit-Reset": integer("When X-RateLimit-Remaining refills, in milliseconds since 1970.", 1_777_464_060_000),
        "RateLimit": text("The same by the IETF's draft: name, remaining, seconds until more.", "\"route\";r=99;t=60"),
        "RateLimit-Policy": text("The same by the IETF's draft: name, quota, window in seconds.", "\"route\";q=100;w=60"),
        "Cache-Control": text("How the answer may be kept.", "public, max-age=5, stale-while-revalidate=10"),
        "Access-Control-Allow-Origin": text("Which pages may read the answer: any.", "*"),
        "Access-Control-Expose-Headers": text("Which headers a page may read.", "ETag, X-Request-Id"),
        "ETag": text("Names this state for If-None-Match. Opaque; it does not depend on _meta.", "W/\"5d41402abc4b2a76b9719d911017c592\""),
        "Retry-After": { "description": "Seconds after which another try makes sense.", "required": false,
            "schema": { "type": "integer", "format": "int64", "minimum": 1 }, "example": 12 },
    })
}

/// `components.parameters`.
pub fn parameters() -> Value {
    json!({
        "IfNoneMatch": { "name": "If-None-Match", "in": "header", "required": false, "schema": { "type": "string" },
            "description": "ETags of earlier answers, or *. Where one still holds, the answer is 304 without a body. It \
                counts against the rate limit all the same." },
        "Offset": { "name": "offset", "in": "query", "required": false,
            "description": "How many rows are passed over.",
            "schema": { "type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX, "default": 0 } },
    })
}

/// The `limit` parameter of a list.
pub fn limit(page: PageSize) -> Value {
    json!({
        "name": "limit", "in": "query", "required": false, "description": "Rows of a page.",
        "schema": { "type": "integer", "format": "int32", "minimum": 1, "maximum": page.most, "default": page.default },
    })
}
