//! A stream of server-sent events, read one event at a time.

use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures::StreamExt;
use serde_json::Value;

/// Longer than any event takes to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    pub id: Option<String>,
    pub name: String,
    pub data: Value,
}

/// A response whose body is still being written.
#[derive(Debug)]
pub struct EventStream {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: BodyDataStream,
    text: String,
}

impl EventStream {
    /// Wraps any response.
    pub fn read(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.into_data_stream();
        Self { status: parts.status, headers: parts.headers, body, text: String::new() }
    }

    /// Returns the next event, or `None` at the end of the stream.
    ///
    /// # Panics
    /// If nothing arrives in time, or if it is not an event.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(event) = parsed(&block) {
                    return Some(event);
                }
                continue;
            }
            let more = tokio::time::timeout(PATIENCE, self.body.next()).await.expect("something is sent");
            let Some(more) = more else {
                assert_eq!(self.text, "", "the stream ends within an event");
                return None;
            };
            self.text.push_str(std::str::from_utf8(&more.unwrap()).unwrap());
        }
    }

    /// Returns whether the stream goes on, without waiting for it.
    pub async fn is_open(&mut self) -> bool {
        loop {
            match futures::poll!(self.body.next()) {
                Poll::Pending => return true,
                Poll::Ready(None) => return false,
                Poll::Ready(Some(more)) => self.text.push_str(std::str::from_utf8(&more.unwrap()).unwrap()),
            }
        }
    }

    /// Returns the next event that is not a `heartbeat`.
    ///
    /// # Panics
    /// Also at the end of the stream.
    pub async fn news(&mut self) -> StreamEvent {
        loop {
            let sent = self.next().await.expect("the stream goes on");
            if sent.name != "heartbeat" {
                return sent;
            }
        }
    }
}

/// Parses a block of lines. `None` if it has no data.
fn parsed(block: &str) -> Option<StreamEvent> {
    let (mut id, mut name, mut data) = (None, None, None);
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("id", value)) => id = Some(value.to_owned()),
            Some(("event", value)) => name = Some(value.to_owned()),
            Some(("data", value)) => data = Some(serde_json::from_str(value).unwrap()),
            Some(("retry", _)) => {}
            _ => panic!("{line:?} is no line of an event"),
        }
    }
    Some(StreamEvent { id, name: name?, data: data? })
}
