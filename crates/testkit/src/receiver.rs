//! A webhook's receiver on this machine: notes what is posted to it and answers as it is told to.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::key::Tier;
use domain::time::ManualClock;
use domain::{Clock, Timestamp};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::{Held, TestApp, TestKey, TestUser, key_of};

/// What a receiver says.
#[derive(Debug, Clone)]
pub enum Reply {
    /// This status.
    Status(u16),
    /// This status and this `Retry-After`.
    RetryAfter(u16, &'static str),
    /// Look there.
    Redirect(String),
    /// 200, once it is released.
    Held(Held),
}

/// One request that came.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: String,
    /// When it came, by the service's clock.
    pub at: Timestamp,
}

impl Delivered {
    /// A header.
    ///
    /// # Panics
    /// Where it is not there or no text.
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// Where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// What kind of event it is.
    pub fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap_or_default().to_owned()
    }

    /// Which event it is.
    pub fn id(&self) -> String {
        self.header("x-service-event-id").to_owned()
    }
}

#[derive(Default)]
struct Script {
    came: Vec<Delivered>,
    next: VecDeque<Reply>,
    always: Option<Reply>,
    open: usize,
    most_open: usize,
}

struct Shared {
    clock: Arc<ManualClock>,
    script: Mutex<Script>,
}

/// A receiver. It answers 200 unless it is told otherwise, and is gone when it is dropped.
pub struct Receiver {
    /// Its URL.
    pub url: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Receiver {
    /// What came and was not taken yet, in order.
    pub fn take(&self) -> Vec<Delivered> {
        std::mem::take(&mut self.shared.script.lock().came)
    }

    /// The one request that came since the last was taken.
    ///
    /// # Panics
    /// Where it is not one.
    pub fn one(&self) -> Delivered {
        let mut came = self.take();
        assert_eq!(came.len(), 1, "requests that came");
        came.remove(0)
    }

    /// The kinds of what came, as [`Self::take`].
    pub fn kinds(&self) -> Vec<String> {
        self.take().iter().map(Delivered::kind).collect()
    }

    /// Answers the next requests in this way, after those planned before.
    pub fn next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.script.lock().next.extend(replies);
    }

    /// Answers every request in this way for which nothing else is planned.
    pub fn always(&self, reply: Reply) {
        self.shared.script.lock().always = Some(reply);
    }

    /// Keeps the next request waiting.
    pub fn hold(&self) -> Held {
        let held = Held::default();
        self.next([Reply::Held(held.clone())]);
        held
    }

    /// The most requests that were ever open at once.
    pub fn most_at_once(&self) -> usize {
        self.shared.script.lock().most_open
    }
}

impl TestApp {
    /// A new receiver.
    ///
    /// # Panics
    /// Where this machine has no port left.
    pub async fn receiver(&self) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { clock: Arc::clone(&self.clock), script: Mutex::default() });
        let routes = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Receiver { url, shared, server }
    }

    /// A key that can trade and whose events go to `receiver`.
    ///
    /// # Panics
    /// As [`Self::key`].
    pub async fn key_to(&self, user: &TestUser, tier: Tier, receiver: &Receiver) -> TestKey {
        let mut wanted = key_of(user, tier);
        wanted.webhook_url = Some(receiver.url.clone());
        let key = self.issue(wanted).await.unwrap();
        self.enable(user, &key).await;
        key
    }
}

async fn receive(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let reply = {
        let mut script = shared.script.lock();
        script.came.push(Delivered { headers: parts.headers, body, at: shared.clock.now() });
        script.open += 1;
        script.most_open = script.most_open.max(script.open);
        script.next.pop_front().or_else(|| script.always.clone()).unwrap_or(Reply::Status(200))
    };
    let response = match reply {
        Reply::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Reply::RetryAfter(status, text) => {
            (StatusCode::from_u16(status).unwrap(), [(header::RETRY_AFTER, text)]).into_response()
        }
        Reply::Redirect(url) => {
            (StatusCode::FOUND, [(header::LOCATION, url)], Body::from("elsewhere")).into_response()
        }
        Reply::Held(held) => {
            held.pass().await;
            StatusCode::OK.into_response()
        }
    };
    shared.script.lock().open -= 1;
    response
}
