//! A local webhook receiver that records requests and replies as planned.

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

use crate::{HeldRequest, TestApp, TestKey, TestUser, key_of};

/// A planned reply.
#[derive(Debug, Clone)]
pub enum Reply {
    Status(u16),
    /// A status with a `Retry-After` header.
    RetryAfter(u16, &'static str),
    /// A redirect to this URL.
    Redirect(String),
    /// A status, once it is released.
    Held(HeldRequest, u16),
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Delivered {
    pub headers: HeaderMap,
    pub body: String,
    /// The time of arrival, by the service's clock.
    pub at: Timestamp,
}

impl Delivered {
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The event's type.
    pub fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap_or_default().to_owned()
    }

    /// The event's id.
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

/// A receiver. It replies 200 unless planned otherwise, and stops when dropped.
pub struct Receiver {
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
    /// Takes the requests that were received since the last call, in order.
    pub fn take(&self) -> Vec<Delivered> {
        std::mem::take(&mut self.shared.script.lock().came)
    }

    /// Takes the only request that was received since the last call.
    ///
    /// # Panics
    /// If there is not exactly one.
    pub fn one(&self) -> Delivered {
        let mut came = self.take();
        assert_eq!(came.len(), 1, "requests that came");
        came.remove(0)
    }

    /// Takes the received requests and returns their event types.
    pub fn kinds(&self) -> Vec<String> {
        self.take().iter().map(Delivered::kind).collect()
    }

    /// Replies to the next requests with these replies, after those that are already planned.
    pub fn next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.script.lock().next.extend(replies);
    }

    /// Replies with this to every request without another planned reply.
    pub fn always(&self, reply: Reply) {
        self.shared.script.lock().always = Some(reply);
    }

    /// Holds back the reply to the next request, which has this status.
    pub fn hold(&self, status: u16) -> HeldRequest {
        let held = HeldRequest::default();
        self.next([Reply::Held(held.clone(), status)]);
        held
    }

    /// The maximum number of requests that were open at the same time.
    pub fn most_at_once(&self) -> usize {
        self.shared.script.lock().most_open
    }
}

impl TestApp {
    /// Starts a receiver.
    pub async fn receiver(&self) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { clock: Arc::clone(&self.clock), script: Mutex::default() });
        let routes = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Receiver { url, shared, server }
    }

    /// Issues and enables a key whose events are sent to `receiver`.
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
        // Measured here: the sender must not overlap deliveries of one key.
        script.most_open = script.most_open.max(script.open);
        // Planned replies come first, so that a test can interrupt a permanent one.
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
        Reply::Held(held, status) => {
            held.pass().await;
            StatusCode::from_u16(status).unwrap().into_response()
        }
    };
    shared.script.lock().open -= 1;
    response
}
