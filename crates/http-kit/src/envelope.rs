//! The JSON envelopes of responses: one resource, a list, or plain data, each with `_meta`.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use domain::Timestamp;
use hyper::body::{Frame, SizeHint};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::{Problem, RequestId, StablePart};

/// `_meta` of a response.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(description = "Metadata of the response.")]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The id of this request, the same as in X-Request-Id.
    #[schema(value_type = String, pattern = "^req_[0-9a-f]{32}$")]
    request_id: RequestId,
    timestamp: Timestamp,
    /// Only for the creation of a trade: true if the response repeats an earlier one.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent: Option<bool>,
    /// Only for queued work: the next step.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
}

impl Meta {
    pub const fn new(request_id: RequestId, timestamp: Timestamp) -> Self {
        Self { request_id, timestamp, idempotent: None, message: None }
    }

    /// Adds a message about the next step.
    #[must_use]
    pub const fn message(self, message: &'static str) -> Self {
        Self { message: Some(message), ..self }
    }

    /// Sets `idempotent`, which is true if the response repeats an earlier one. Every response to a
    /// trade's creation has this member.
    #[must_use]
    pub const fn idempotent(self, idempotent: bool) -> Self {
        Self { idempotent: Some(idempotent), ..self }
    }

    /// Wraps one resource under its own name and under `data`.
    pub const fn single<T>(self, name: &'static str, resource: T) -> Single<T> {
        Single { name, resource, meta: self }
    }

    /// Wraps `data` without pagination.
    pub const fn plain<T>(self, data: T) -> Plain<T> {
        Plain { data, meta: self }
    }

    /// Wraps one page of a list.
    pub const fn list<T>(self, data: Vec<T>, pagination: Pagination) -> List<T> {
        List { data, pagination, meta: self }
    }
}

/// One resource, under its own name and again under `data`, with `_meta`.
#[derive(Debug)]
pub struct Single<T> {
    name: &'static str,
    resource: T,
    meta: Meta,
}

/// The same object as the response, as a part of another one.
impl<T: Serialize> Serialize for Single<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(3))?;
        object.serialize_entry(self.name, &self.resource)?;
        object.serialize_entry("data", &self.resource)?;
        object.serialize_entry("_meta", &self.meta)?;
        object.end()
    }
}

/// The end of a page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// The cursor of the next page. Null on the last page.
    pub cursor: Option<String>,
    /// True if there are more pages.
    pub has_more: bool,
    /// The page size that was applied.
    pub limit: u32,
}

#[derive(Debug)]
pub struct List<T> {
    data: Vec<T>,
    pagination: Pagination,
    meta: Meta,
}

/// `data` and `_meta`, without pagination.
#[derive(Debug)]
pub struct Plain<T> {
    data: T,
    meta: Meta,
}

/// The members of an envelope besides `_meta`. `_meta` is always last, so everything before it is
/// identical as long as the resource is.
trait Members {
    /// Appends `{"name":value,...` without the closing brace.
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;

    fn meta(&self) -> &Meta;

    /// Returns the approximate size in bytes, to allocate the buffer at once.
    fn about_bytes(&self) -> usize {
        1_024
    }
}

/// Appends `,"name":value`, with `{` instead of the comma for the first member. Names must not need
/// escaping.
fn write_member(out: &mut Vec<u8>, name: &str, value: &impl Serialize) -> serde_json::Result<()> {
    write_name(out, name);
    serde_json::to_writer(out, value)
}

fn write_name(out: &mut Vec<u8>, name: &str) {
    out.push(if out.is_empty() { b'{' } else { b',' });
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

impl<T: Serialize> Members for Single<T> {
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        write_name(out, self.name);
        let start = out.len();
        serde_json::to_writer(&mut *out, &self.resource)?;
        let end = out.len();
        write_name(out, "data");
        // Copy the serialized bytes instead of serializing the same content twice.
        out.extend_from_within(start..end);
        Ok(())
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl<T: Serialize> Members for List<T> {
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        write_member(out, "data", &self.data)?;
        write_member(out, "pagination", &self.pagination)
    }

    fn about_bytes(&self) -> usize {
        256 + 768 * self.data.len()
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl<T: Serialize> Members for Plain<T> {
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        write_member(out, "data", &self.data)
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// The stable part of an envelope's body: everything except `_meta` and the closing brace.
#[derive(Debug, Clone)]
pub struct CachedBody {
    bytes: Bytes,
    part: StablePart,
}

impl CachedBody {
    /// Wraps the bytes of an object that still lacks `_meta` and its closing brace.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { part: StablePart::of(&bytes), bytes: Bytes::from(bytes) }
    }

    /// Returns the size in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes as a whole body without `_meta`, e.g. an HTML page.
    pub fn whole(self) -> (Extension<StablePart>, Bytes) {
        (Extension(self.part), self.bytes)
    }
}

/// An envelope whose stable part can be cached and sent again with another `_meta`.
pub trait Written {
    /// Serializes the stable part.
    fn stable(&self) -> Result<CachedBody, Problem>;
}

fn stable(envelope: &impl Members) -> serde_json::Result<CachedBody> {
    let mut out = Vec::with_capacity(envelope.about_bytes());
    envelope.write(&mut out)?;
    Ok(CachedBody::of(out))
}

/// Completes a stable part with `_meta` to a response. The stable bytes are shared, not copied.
pub fn with_meta(stable: CachedBody, meta: &impl Serialize) -> Response {
    match rest(meta) {
        Ok(rest) => {
            let body = Body::new(SplitBody::of(stable.bytes, rest));
            let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (Extension(stable.part), kind, body).into_response()
        }
        Err(error) => unwritable(error).into_response(),
    }
}

/// Approximate size of `_meta`.
const META_BYTES: usize = 128;

/// Serializes `_meta` and the closing brace.
fn rest(meta: &impl Serialize) -> serde_json::Result<Bytes> {
    let mut out = Vec::with_capacity(META_BYTES);
    out.extend_from_slice(b",\"_meta\":");
    serde_json::to_writer(&mut out, meta)?;
    out.push(b'}');
    Ok(Bytes::from(out))
}

fn answer(envelope: &impl Members) -> Response {
    match stable(envelope) {
        Ok(stable) => with_meta(stable, envelope.meta()),
        Err(error) => unwritable(error).into_response(),
    }
}

/// A body of two chunks, sent one after the other.
pub(super) struct SplitBody([Bytes; 2]);

impl SplitBody {
    pub(super) const fn of(first: Bytes, second: Bytes) -> Self {
        Self([first, second])
    }
}

impl hyper::body::Body for SplitBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Skip empty pieces: `is_end_stream` counts them as sent.
        let left = self.get_mut().0.iter_mut().find(|half| !half.is_empty());
        Poll::Ready(left.map(|half| Ok(Frame::data(std::mem::take(half)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|half| half.len() as u64).sum())
    }
}

fn json_body(body: impl Into<Bytes>) -> impl IntoResponse {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body.into())
}

pub(super) fn unwritable(error: serde_json::Error) -> Problem {
    app::AppError::internal(error).into()
}

/// Returns `value` as a JSON response without an envelope and without a stable part, so it gets no
/// `ETag`.
pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => json_body(body).into_response(),
        Err(error) => unwritable(error).into_response(),
    }
}

macro_rules! answers {
    ($($envelope:ident),*) => {$(
        impl<T: Serialize> IntoResponse for $envelope<T> {
            fn into_response(self) -> Response {
                answer(&self)
            }
        }

        impl<T: Serialize> Written for $envelope<T> {
            fn stable(&self) -> Result<CachedBody, Problem> {
                stable(self).map_err(unwritable)
            }
        }
    )*};
}
answers!(Single, List, Plain);

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn bytes(envelope: &impl Members) -> serde_json::Result<(Vec<u8>, usize)> {
        let stable = stable(envelope)?.bytes;
        let body = [&stable[..], &rest(envelope.meta())?].concat();
        Ok((body, stable.len()))
    }

    fn meta() -> Meta {
        let request_id = RequestId::of(Uuid::from_u128(1));
        Meta::new(request_id, Timestamp::from_ms(1_777_464_000_123))
    }

    #[test]
    fn a_single_resource_is_under_its_name_and_under_data() {
        let (body, stable) = bytes(&meta().idempotent(true).single("trade", "x")).unwrap();
        let text = String::from_utf8(body).unwrap();
        assert_eq!(&text[..stable], r#"{"trade":"x","data":"x""#);
        let meta = r#"{"requestId":"req_00000000000000000000000000000001","timestamp":"2026-04-29T12:00:00.123Z","idempotent":true}"#;
        assert_eq!(text, format!(r#"{{"trade":"x","data":"x","_meta":{meta}}}"#));
        let part = self::meta().idempotent(true).single("trade", "x");
        assert_eq!(serde_json::to_string(&part).unwrap(), text);
    }

    #[test]
    fn a_list_shows_if_more_rows_follow() {
        let pagination = Pagination { cursor: None, has_more: false, limit: 20 };
        let (body, stable) = bytes(&meta().list(vec![1], pagination)).unwrap();
        assert!(body[..stable].starts_with(br#"{"data":[1],"pagination":{"#));
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let expected = serde_json::json!({ "cursor": null, "hasMore": false, "limit": 20 });
        assert_eq!(value["pagination"], expected);
        assert!(value["_meta"].get("idempotent").is_none());
    }

    #[test]
    fn a_plain_answer_is_its_data() {
        let (body, stable) = bytes(&meta().plain([1, 2])).unwrap();
        assert_eq!(&body[..stable], br#"{"data":[1,2]"#);
        assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok());
    }
}
