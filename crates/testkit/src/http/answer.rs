//! What came back, and what every answer must be like.

use std::fmt;

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use domain::ErrorCode;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::http::{DOCS_URL, contract, print};

/// A whole answer. Printed, it is its status, its headers and its body, with every id told by the order in which it
/// appears.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub text: String,
    method: Method,
    path: String,
}

impl Answer {
    pub(super) async fn read(method: Method, path: String, response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).expect("answers are text");
        let answer = Self { status: parts.status, headers: parts.headers, text, method, path };
        contract::check(&answer.method, &answer.path, &answer);
        answer
    }

    /// The one header of this name.
    ///
    /// # Panics
    /// Where it is repeated or no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter().map(|value| value.to_str().unwrap());
        let first = values.next();
        assert_eq!(values.next(), None, "{name} is repeated in\n{self}");
        first
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// Where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in\n{self}"))
    }

    /// The body of an answer with this status.
    ///
    /// # Panics
    /// Where the status is another, or the headers of every answer are not there.
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

    /// The body of a 200.
    ///
    /// # Panics
    /// As [`Self::expect`].
    pub fn ok(&self) -> Value {
        self.expect(200)
    }

    /// The trade that this 201 has created.
    ///
    /// # Panics
    /// As [`Self::expect`]; where it replays another.
    pub fn created(&self) -> Value {
        let mut body = self.expect(201);
        assert_eq!(body["_meta"]["idempotent"], false, "\n{self}");
        assert_eq!(self.header("idempotent-replayed"), None, "\n{self}");
        assert_eq!(body["trade"], body["data"], "\n{self}");
        body["trade"].take()
    }

    /// The problem document of a refusal with this code.
    ///
    /// # Panics
    /// Where it is anything else, or not as every refusal must be.
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
        assert_eq!(self.header("www-authenticate").is_some(), code.status() == 401, "\n{self}");
        let is_write = self.method == Method::POST;
        assert_eq!(body["extensions"].get("submission").is_some(), is_write, "\n{self}");
        body
    }

    /// The pointers of a refusal's field errors.
    ///
    /// # Panics
    /// Where the refusal names no fields.
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
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for (name, value) in &self.headers {
            lines.push(format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
        }
        lines.sort_unstable();
        let text = format!("{}\n{}\n{}", self.status, lines.concat(), print::pretty(&self.text));
        f.write_str(&print::name_ids(&text))
    }
}
