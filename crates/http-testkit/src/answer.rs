//! Responses, and checks that apply to every response.

use std::fmt;
use std::io::Read;

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use domain::ErrorCode;
use flate2::read::GzDecoder;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::{DOCS_URL, print};

/// A complete response. Its `Display` form has the status, the headers and the body, with ids
/// replaced by numbered names.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The decompressed body. Empty for images.
    pub text: String,
    /// The body as received.
    pub bytes: Vec<u8>,
    method: Method,
    /// The path of the request, without its query.
    pub path: String,
}

impl Answer {
    pub(super) async fn read(method: Method, path: String, response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let kind = parts.headers.get("content-type").and_then(|kind| kind.to_str().ok());
        let is_picture = kind.is_some_and(|kind| kind.starts_with("image/"));
        let bytes = body.to_vec();
        let plain = if parts.headers.get("content-encoding").is_some_and(|coding| coding == "gzip") {
            gunzipped(&bytes)
        } else {
            bytes.clone()
        };
        let text =
            if is_picture { String::new() } else { String::from_utf8(plain).expect("answers are text") };
        Self { status: parts.status, headers: parts.headers, text, bytes, method, path }
    }

    /// Returns the header with this name.
    ///
    /// # Panics
    /// If it occurs more than once or is not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter().map(|value| value.to_str().unwrap());
        let first = values.next();
        assert_eq!(values.next(), None, "{name} is repeated in\n{self}");
        first
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in\n{self}"))
    }

    /// Returns the body after checking the status and the headers that every response must have.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "\n{self}");
        self.assert_headers_of_every_answer();
        assert_eq!(self.header("content-type"), Some("application/json"), "\n{self}");
        let body = self.json();
        if let Some(meta) = body.get("_meta") {
            assert_eq!(meta["requestId"].as_str(), self.header("x-request-id"), "\n{self}");
        }
        body
    }

    /// Returns the body of a 200 response.
    pub fn ok(&self) -> Value {
        self.expect(200)
    }

    /// Returns the trade of a 201 response.
    ///
    /// # Panics
    /// If the response is anything else, including a replay.
    pub fn created(&self) -> Value {
        let mut body = self.expect(201);
        assert_eq!(body["_meta"]["idempotent"], false, "\n{self}");
        assert_eq!(self.header("idempotent-replayed"), None, "\n{self}");
        assert_eq!(body["trade"], body["data"], "\n{self}");
        body["trade"].take()
    }

    /// Returns the problem document of an error response with this code, after checking its form.
    pub fn refused(&self, code: ErrorCode) -> Value {
        assert_eq!(self.header("x-service-error-code"), Some(code.as_str()), "\n{self}");
        self.assert_headers_of_every_answer();
        assert_eq!(self.status.as_u16(), code.status(), "\n{self}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "\n{self}");
        let body = self.json();
        assert_eq!(body["type"], format!("{DOCS_URL}/api-errors/{code}"), "\n{self}");
        assert_eq!(body["title"], code.title(), "\n{self}");
        assert_eq!(body["status"], code.status(), "\n{self}");
        assert_eq!(body["code"], code.as_str(), "\n{self}");
        assert_eq!(body["instance"], self.path.as_str(), "\n{self}");
        assert_eq!(body["requestId"].as_str(), self.header("x-request-id"), "\n{self}");
        assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "\n{self}");
        // HTTP requires the header with a 401.
        assert_eq!(self.header("www-authenticate").is_some(), code.status() == 401, "\n{self}");
        let is_write = self.method == Method::POST;
        assert_eq!(body["extensions"].get("submission").is_some(), is_write, "\n{self}");
        body
    }

    /// Returns the JSON pointers of a validation error.
    pub fn pointers(&self) -> Vec<String> {
        let body = self.refused(ErrorCode::ValidationFailed);
        let errors =
            body["extensions"]["errors"].as_array().unwrap_or_else(|| panic!("no errors in\n{self}"));
        assert!(errors.iter().all(|error| error["detail"].as_str().is_some_and(|detail| !detail.is_empty())));
        errors.iter().map(|error| error["pointer"].as_str().unwrap().to_owned()).collect()
    }

    fn assert_headers_of_every_answer(&self) {
        assert_eq!(self.header("x-service-api-version"), Some("2026-04-29"), "\n{self}");
        assert!(self.header("x-request-id").is_some_and(|id| id.starts_with("req_")), "\n{self}");
        assert!(self.header("cache-control").is_some(), "\n{self}");
        self.assert_limiter_headers();
    }
}

impl Answer {
    /// Checks that every response describes its rate limiter in both header formats, with equal
    /// numbers. A rate limit error also names the limiter and the retry time.
    fn assert_limiter_headers(&self) {
        let number = |name: &str| self.header(name).and_then(|value| value.parse::<u64>().ok());
        let (limit, remaining) = (number("x-ratelimit-limit"), number("x-ratelimit-remaining"));
        assert!(limit.is_some() && remaining <= limit, "\n{self}");
        assert!(number("x-ratelimit-reset").is_some(), "\n{self}");
        let policy = self.header("ratelimit-policy").unwrap_or_default();
        let name = policy.split(';').next().unwrap_or_default();
        assert_eq!(policy, format!("{name};q={};w=60", limit.unwrap_or_default()), "\n{self}");
        // The reset time depends on the clock, so only its form is compared.
        let standing = format!("{name};r={};t=", remaining.unwrap_or_default());
        let found = self.header("ratelimit").unwrap_or_default();
        let until_reset = found.strip_prefix(&standing).and_then(|seconds| seconds.parse::<u64>().ok());
        assert!(until_reset.is_some(), "\n{self}");
        if self.header("x-service-error-code") == Some(ErrorCode::RateLimitExceeded.as_str()) {
            assert!(number("retry-after").is_some_and(|seconds| seconds >= 1), "\n{self}");
            assert!(self.json()["extensions"]["limiter"].is_string(), "\n{self}");
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for (name, value) in &self.headers {
            // ETags differ in every run, like ids.
            let tag = name == "etag" && value.as_bytes().starts_with(b"W/\"");
            let text = if tag { "W/\"<etag>\"".into() } else { String::from_utf8_lossy(value.as_bytes()) };
            lines.push(format!("{name}: {text}\n"));
        }
        lines.sort_unstable();
        let text = format!("{}\n{}\n{}", self.status, lines.concat(), print::pretty(&self.text));
        f.write_str(&print::name_ids(&text))
    }
}

/// A response to HEAD has no body, even if its headers announce a compressed one.
fn gunzipped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    if !bytes.is_empty() {
        GzDecoder::new(bytes).read_to_end(&mut plain).expect("the body is one gzip stream");
    }
    plain
}
