use std::ops::Deref;
use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use serde_json::Value;

/// The state of a rate limit after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per minute that the limiter allows.
    pub limit: u64,
    /// Requests that are left.
    pub remaining: u64,
    /// The time at which the whole limit is available again.
    pub reset_at: SystemTime,
}

/// The circumstances of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseInfo {
    /// The status of HTTP.
    pub status: u16,
    /// The id of the request. Quote it when you report a problem.
    pub request_id: Option<String>,
    /// The version of the API that answered.
    pub api_version: Option<String>,
    /// The state of the rate limit.
    pub rate_limit: Option<RateLimit>,
    /// True if the response is a replay of an earlier one.
    pub is_replay: bool,
}

impl ResponseInfo {
    /// Reads the circumstances from the headers.
    pub(crate) fn new(status: u16, headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        Self {
            status,
            request_id: text("x-request-id"),
            api_version: text("x-service-api-version"),
            rate_limit: rate_limit(headers),
            is_replay: text("idempotent-replayed").is_some_and(|value| value == "true"),
        }
    }
}

/// Reads a header of at most 12 digits, which fit into any date.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    let text = headers.get(name)?.to_str().ok()?;
    let is_number = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn rate_limit(headers: &HeaderMap) -> Option<RateLimit> {
    let reset_s = number(headers, "x-ratelimit-reset")?;
    Some(RateLimit {
        limit: number(headers, "x-ratelimit-limit")?,
        remaining: number(headers, "x-ratelimit-remaining")?,
        reset_at: SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(reset_s))?,
    })
}

/// A record, with the circumstances of its response. It dereferences to the record.
#[derive(Clone)]
pub struct Response<T> {
    value: T,
    json: Value,
    info: ResponseInfo,
}

impl<T> Response<T> {
    pub(crate) const fn new(value: T, json: Value, info: ResponseInfo) -> Self {
        Self { value, json, info }
    }

    /// The circumstances of the response, such as its rate limit and request id.
    pub const fn info(&self) -> &ResponseInfo {
        &self.info
    }

    /// The record as the service sent it, with members that this version does not know. It may
    /// contain a secret, such as a confirmation token.
    pub const fn json(&self) -> &Value {
        &self.json
    }

    /// The record.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Response<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Response<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The JSON can contain secrets.
        f.debug_struct("Response")
            .field("value", &self.value)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}
