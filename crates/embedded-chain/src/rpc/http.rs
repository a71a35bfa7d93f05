//! Handles JSON-RPC 2.0 request bodies: one request or a batch.

use std::time::Instant;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Access, RpcResult};
use crate::EmbeddedNode;
use crate::error::RpcError;

/// The maximum number of requests in a batch.
const BATCH: usize = 100;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    jsonrpc: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    method: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    /// `None` if the member is absent, which makes the request a notification. `null` is an id.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

enum Body<'a> {
    /// The whole body is rejected.
    Refused(RpcError),
    Single(&'a RawValue),
    Batch(Vec<&'a RawValue>),
}

impl<'a> Body<'a> {
    fn parse(body: &'a [u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<&RawValue>(body) else {
            return Self::Refused(RpcError::parse());
        };
        if !value.get().starts_with('[') {
            return Self::Single(value);
        }
        match serde_json::from_str::<Vec<&RawValue>>(value.get()) {
            Ok(requests) if requests.is_empty() => Self::Refused(RpcError::request("empty batch")),
            Ok(requests) if requests.len() > BATCH => Self::Refused(RpcError::request("batch too large")),
            Ok(requests) => Self::Batch(requests),
            Err(_) => Self::Refused(RpcError::parse()),
        }
    }
}

/// Parses a request, or returns the error response for an invalid one.
fn parse(value: &RawValue) -> Result<Request<'_>, Vec<u8>> {
    let refuse = |why: &'static str| write(None, &Err(RpcError::request(why)));
    let request: Request<'_> = serde_json::from_str(value.get()).map_err(|_| refuse("invalid request"))?;
    if request.jsonrpc.as_deref() != Some("2.0") {
        return Err(refuse("invalid request: jsonrpc must be 2.0"));
    }
    match request.id.map(|id| id.get().as_bytes()[0]) {
        // Checks the first byte only: the value already parsed as JSON.
        Some(b'{' | b'[' | b't' | b'f') => Err(refuse("invalid request: id must be a string or a number")),
        _ => Ok(request),
    }
}

fn write(id: Option<&RawValue>, answer: &RpcResult) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    bytes.extend_from_slice(id.map_or("null", RawValue::get).as_bytes());
    match answer {
        Ok(result) => {
            bytes.extend_from_slice(br#","result":"#);
            bytes.extend_from_slice(result.get().as_bytes());
        }
        Err(RpcError { code, message, data }) => {
            let message = serde_json::Value::from(message.as_ref());
            bytes.extend_from_slice(format!(r#","error":{{"code":{code},"message":{message}"#).as_bytes());
            if let Some(data) = data {
                bytes.extend_from_slice(br#","data":"#);
                bytes.extend_from_slice(data.get().as_bytes());
            }
            bytes.push(b'}');
        }
    }
    bytes.push(b'}');
    bytes
}

/// Joins the responses of a batch into one array. Returns nothing if all requests were
/// notifications.
fn join(answers: Vec<Vec<u8>>) -> Vec<u8> {
    match answers.is_empty() {
        true => Vec::new(),
        false => [b"[".as_slice(), &answers.join(&b','), b"]"].concat(),
    }
}

impl EmbeddedNode {
    /// Handles the body of one JSON-RPC request or batch (at most 100 requests) within the limits
    /// of `access`. A send blocks this thread until its block is durable. The result is empty if
    /// the body contains only notifications.
    pub fn handle_http(&self, body: &[u8], access: &Access) -> Vec<u8> {
        match Body::parse(body) {
            Body::Refused(error) => write(None, &Err(error)),
            Body::Single(value) => self.answer_one(value, access, true).unwrap_or_default(),
            Body::Batch(values) => self.answer_batch(&values, access),
        }
    }

    fn answer_batch(&self, values: &[&RawValue], access: &Access) -> Vec<u8> {
        let began = Instant::now();
        let mut answers = Vec::with_capacity(values.len());
        let mut bytes = 0;
        for value in values {
            // Checked before each request, so one batch cannot exceed its limits by more than one
            // request.
            let in_bounds = bytes < access.batch_bytes && began.elapsed() < access.batch_time;
            if let Some(answer) = self.answer_one(value, access, in_bounds) {
                bytes += answer.len();
                answers.push(answer);
            }
        }
        join(answers)
    }

    fn answer_one(&self, value: &RawValue, access: &Access, in_bounds: bool) -> Option<Vec<u8>> {
        let request = match parse(value) {
            Ok(request) => request,
            Err(refusal) => return Some(refusal),
        };
        let answer = match in_bounds {
            true => self.handle_as(&request.method, request.params, access),
            false => Err(RpcError::limit("the batch is too expensive: send fewer requests at once")),
        };
        request.id.map(|id| write(Some(id), &answer))
    }
}
