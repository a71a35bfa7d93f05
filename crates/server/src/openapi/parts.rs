//! The parts of the document that are data: who and where, tags, headers, parameters, the problem's schema.

use std::collections::BTreeSet;

use domain::ErrorCode;
use domain::version::VERSIONS;
use serde_json::{Map, Value, json};

/// `info`.
pub fn info(version: &str) -> Value {
    json!({
        "title": "Foretell trading API",
        "version": version,
        "summary": "Markets, quotes, trades and portfolios of a prediction-market service.",
        "description": "Trades are taken over HTTP, executed on chain from the caller's own smart account, and followed \
            by their status. Amounts are decimal strings: of whole USDC in requests, of atomic units (millionths) of USDC \
            and of WAD (18 decimals) in answers. Every refusal is a problem document (RFC 7807) with a stable code; its \
            type leads to a page about that code. Members, codes and words may be added to answers at any time: pass \
            over what you do not know.",
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    })
}

/// `servers`: the one that the document came from.
pub fn servers() -> Value {
    json!([{ "url": "/", "description": "The service that this document was read from." }])
}

/// `tags`: those that are `used`, in reading order.
pub fn tags(used: &BTreeSet<String>) -> Value {
    let tags = [
        ("Markets", "Markets, quotes, and the trades made against a market."),
        ("Trades", "Creating trades and following them."),
        ("Events", "What happened, in order and without a gap."),
        ("Portfolio", "What the caller's smart account holds."),
        ("Redemptions", "Claiming what settled positions pay."),
        ("Webhooks", "What was delivered to the key's webhook, and its secret."),
        ("Account", "The calling key: its use and its pause."),
        ("Service", "Health, readiness and this contract. No key is asked for."),
    ];
    let tags = tags.into_iter().filter(|(name, _)| used.contains(*name));
    tags.map(|(name, description)| json!({ "name": name, "description": description })).collect()
}

/// `components.securitySchemes`.
pub fn security_schemes() -> Value {
    json!({ "ApiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "service_live_ (production) or service_test_ (staging) and 32 letters and digits. Each operation \
            names the scope that the key must have.",
    }})
}

/// `components.headers`: of answers. Where an answer names one it has it, but for Retry-After, which is there where waiting
/// helps.
pub fn headers() -> Value {
    let integer = |description: &str, example: i64| json!({ "description": description, "required": true, "schema": { "type": "integer", "format": "int64", "minimum": 0 }, "example": example });
    let text = |description: &str, example: &str| json!({ "description": description, "required": true, "schema": { "type": "string" }, "example": example });
    json!({
        "X-Request-Id": { "description": "The handle of this request; _meta.requestId says the same.", "required": true,
            "schema": { "type": "string", "pattern": "^req_[0-9a-f]{32}$" }, "example": "req_0198f3a05d4e7c1b9a2f3b4c5d6e7f80" },
        "X-Service-Api-Version": { "description": "The version of the API that answered.", "required": true,
            "schema": { "type": "string", "format": "date" }, "example": crate::http::API_VERSION },
        "X-RateLimit-Limit": integer("Requests a minute of the limiter that applied.", 300),
        "X-RateLimit-Remaining": integer("How many of them are left.", 299),
        "X-RateLimit-Reset": integer("When X-RateLimit-Remaining refills, in seconds since 1970.", 1_777_464_060),
        "RateLimit": text("The same by the IETF's draft: name, remaining, seconds until more.", "\"read\";r=299;t=60"),
        "RateLimit-Policy": text("The same by the IETF's draft: name, quota, window in seconds.", "\"read\";q=300;w=60"),
        "Cache-Control": text("How the answer may be kept.", "private, no-cache"),
        "ETag": text("Names this state of the resource for If-None-Match. Opaque; it does not depend on _meta.", "W/\"5d41402abc4b2a76b9719d911017c592\""),
        "Retry-After": { "description": "Seconds after which another try makes sense.", "required": false,
            "schema": { "type": "integer", "format": "int64", "minimum": 0 }, "example": 1 },
        "X-Service-Error-Code": text("The problem's code.", "RATE_LIMIT_EXCEEDED"),
        "WWW-Authenticate": text("How to authenticate.", "ApiKey realm=\"X-API-Key\""),
    })
}

/// `components.parameters`: what is common to many requests.
pub fn parameters() -> Value {
    let header = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "header", "required": false, "description": description, "schema": schema });
    json!({
        "ApiVersion": header("X-Service-Api-Version", "The version to be answered in. Left out: the one that the key is \
            pinned to, or the current one.", json!({ "type": "string", "enum": VERSIONS.served().collect::<Vec<_>>() })),
        "IfNoneMatch": header("If-None-Match", "ETags of earlier answers, or *. Where one still holds, the answer is 304 \
            without a body. It counts against the rate limit all the same.", json!({ "type": "string" })),
        "Signature": header("X-Service-Signature", "Optional proof of the request: t=<unix-ms>,v1=<hex>, HMAC-SHA256 under \
            the plaintext key over \"<unix-ms>.<METHOD>.<path without query>.<raw body>\", at most five minutes old. Several \
            v1 values are accepted.", json!({ "type": "string", "pattern": "^t=[0-9]+(,v1=[0-9a-fA-F]{64})+$" })),
        "Cursor": { "name": "cursor", "in": "query", "required": false, "schema": { "type": "string", "minLength": 1 },
            "description": "pagination.cursor of the page before, opaque. The filters must be the same; limit may change." },
    })
}

/// The `limit` parameter of a list with this page size.
pub fn limit(default: u32) -> Value {
    json!({
        "name": "limit", "in": "query", "required": false,
        "description": "Rows of a page. More than 100 is reduced to 100.",
        "schema": { "type": "integer", "minimum": 1, "default": default },
    })
}

/// The schema of a problem document.
pub fn problem() -> Value {
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    let entry = |code: &ErrorCode| {
        (code.to_string(), json!({ "status": code.status(), "retry": code.guide().retry.as_str() }))
    };
    let catalogue: Map<String, Value> = ErrorCode::ALL.iter().map(entry).collect();
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "description": "A refusal (RFC 7807). Branch on code; show detail to people.",
        "required": ["type", "title", "status", "code", "detail", "instance", "requestId"],
        "properties": {
            "type": { "type": "string", "format": "uri", "description": "The page about the code." },
            "title": text("A short summary, the same for each code."),
            "status": { "type": "integer", "format": "int32", "minimum": 400, "maximum": 599, "description": "The HTTP status." },
            "code": {
                "type": "string",
                "description": "The stable code. Others may be added. x-catalogue says of each its status and whether the \
                    same request may be sent again.",
                "x-extensible-enum": codes,
                "x-catalogue": catalogue,
            },
            "detail": text("What happened and what to do, for people."),
            "instance": text("The path of the request."),
            "requestId": { "type": "string", "pattern": "^req_[0-9a-f]{32}$", "description": "The handle of the request." },
            "extensions": {
                "type": "object",
                "description": "More for programs, by code. Others may be added.",
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
                "On writes: whether anything may have been done.",
                &["not_submitted", "submitted", "unknown"],
            ),
        ),
        (
            "tradeId",
            json!({ "type": "string", "format": "uuid", "description": "The trade that the refusal speaks of." }),
        ),
        (
            "errors",
            json!({
                "type": "array",
                "description": "Every place that is wrong.",
                "items": { "type": "object", "required": ["pointer", "detail"], "properties": {
                    "pointer": { "type": "string", "description": "JSON pointer into the body, or / and a parameter's name." },
                    "detail": { "type": "string", "description": "What it should be." },
                }},
            }),
        ),
        ("cap", words("Which spending cap.", &["per_trade", "daily_volume"])),
        (
            "reason",
            words(
                "Why, where a code has several reasons.",
                &["in_progress", "market_open", "losing_outcome", "no_tokens"],
            ),
        ),
        ("requiredScope", json!({ "type": "string", "description": "The scope that the route asks for." })),
        ("requiredUsdc", digits("What the trade needs, in atomic units.")),
        ("availableUsdc", digits("What the account has left for it, in atomic units.")),
        ("marketStatus", json!({ "type": "string", "description": "The market's status." })),
        ("limiter", words("Which limiter refused.", &["read", "write", "redelivery", "address", "streams"])),
        (
            "oldestSequence",
            json!({ "type": "integer", "format": "int64", "minimum": 1, "description": "The first event that can be read." }),
        ),
        ("permanent", json!({ "type": "boolean", "description": "Whether waiting is of no use." })),
    ];
    members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}
