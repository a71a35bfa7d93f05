//! Server-sent events: detecting the request for a stream, and writing events.

use std::fmt::Display;
use std::time::Duration;

use app::AppError;
use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures::Stream;
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Tells nginx and similar proxies not to buffer the response.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Reconnection delay of browsers, in milliseconds.
const RETRY_MS: u32 = 2_000;

/// The longest time for which a stream sends nothing.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Returns the interval at which a stream that has no events sends a heartbeat. After a pause, one
/// heartbeat is enough.
pub fn heartbeats() -> Interval {
    let mut heartbeats = interval(HEARTBEAT);
    heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeats.reset();
    heartbeats
}

/// Returns whether the request accepts an event stream.
pub fn wants_events(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    // Quality values are ignored: a client that lists the type wants a stream.
    let mut kinds = lines.flat_map(|line| line.split(',')).map(|kind| kind.split(';').next().unwrap_or(kind));
    kinds.any(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// A buffer of serialized events.
#[derive(Debug, Default)]
pub struct EventBytes(Vec<u8>);

impl EventBytes {
    /// Returns the start of a stream.
    pub fn beginning() -> Self {
        Self(format!("retry: {RETRY_MS}\n\n").into_bytes())
    }

    /// Appends an event. If it has an id, a client that is disconnected after it can resume from
    /// there. `data` needs no splitting, because compact JSON is one line.
    pub fn push(
        &mut self,
        id: Option<&dyn Display>,
        name: &str,
        data: &impl Serialize,
    ) -> serde_json::Result<()> {
        if let Some(id) = id {
            self.0.extend_from_slice(format!("id: {id}\n").as_bytes());
        }
        self.0.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
        serde_json::to_writer(&mut self.0, data)?;
        self.0.extend_from_slice(b"\n\n");
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_bytes(self) -> Bytes {
        Bytes::from(self.0)
    }

    /// Returns a response that streams these bytes. The stream is polled only when the client has
    /// read the previous bytes.
    pub fn answer<E>(stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> Response
    where
        E: Into<axum::BoxError> + 'static,
    {
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (X_ACCEL_BUFFERING, HeaderValue::from_static("no")),
        ];
        (headers, Body::from_stream(stream)).into_response()
    }
}

/// Returns the id in `Last-Event-ID`. `None` if the header is missing or empty; browsers send it
/// empty before the first id.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, AppError> {
    let malformed = || AppError::field("/header/Last-Event-ID", "must be the id of an event of this stream");
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().map_err(|_| malformed())?.trim();
    Ok((!text.is_empty()).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_requested_by_its_media_type_in_any_case() {
        let wants = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(text));
            wants_events(&headers)
        };
        assert!(
            wants("text/event-stream") && wants("Text/Event-Stream;q=0.9") && wants("*/*, text/event-stream")
        );
        assert!(!wants("application/json") && !wants("*/*") && !wants_events(&HeaderMap::new()));
    }

    #[test]
    fn an_event_is_its_id_its_name_and_one_line_of_data() {
        let mut bytes = EventBytes::beginning();
        bytes.push(Some(&7), "trade.failed", &serde_json::json!({ "errorMessage": "two\nlines" })).unwrap();
        bytes.push(None, "closing", &serde_json::json!({})).unwrap();
        let text = String::from_utf8(bytes.into_bytes().to_vec()).unwrap();
        let expected = concat!(
            "retry: 2000\n\n",
            "id: 7\nevent: trade.failed\ndata: {\"errorMessage\":\"two\\nlines\"}\n\n",
            "event: closing\ndata: {}\n\n"
        );
        assert_eq!(text, expected);
    }
}
