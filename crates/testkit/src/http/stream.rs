//! A stream of server-sent events, read one by one.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures::StreamExt;
use serde_json::Value;

/// Longer than anything that is sent takes to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Its id, where it has one.
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: Value,
}

/// An answer whose body is read while it is written.
#[derive(Debug)]
pub struct EventStream {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: BodyDataStream,
    text: String,
}

impl EventStream {
    /// Of an answer, wherever it comes from.
    pub fn read(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.into_data_stream();
        Self { status: parts.status, headers: parts.headers, body, text: String::new() }
    }

    /// The next event; `None` where the stream has ended.
    ///
    /// # Panics
    /// Where nothing comes, or something that is no event.
    pub async fn next(&mut self) -> Option<Sent> {
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

    /// The next event with a name other than `heartbeat`.
    ///
    /// # Panics
    /// As [`Self::next`], and where the stream ends.
    pub async fn news(&mut self) -> Sent {
        loop {
            let sent = self.next().await.expect("the stream goes on");
            if sent.name != "heartbeat" {
                return sent;
            }
        }
    }
}

/// The event of a block of lines; `None` where it has no data.
fn parsed(block: &str) -> Option<Sent> {
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
    Some(Sent { id, name: name?, data: data? })
}
