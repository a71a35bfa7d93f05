//! A receiver of webhooks that outlives the service: one path for each key, and a log of what came.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::webhooks::now;

/// One request, at its arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    /// The last part of the path, which names the key.
    pub key: String,
    /// The event.
    pub event: String,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
}

#[derive(Clone)]
struct Shared {
    came: Arc<Mutex<Vec<Came>>>,
    awake: watch::Receiver<bool>,
}

/// A receiver that acknowledges everything, while it is awake.
pub struct Receiver {
    /// What the keys' paths stand behind.
    pub url: String,
    came: Arc<Mutex<Vec<Came>>>,
    awake: watch::Sender<bool>,
    server: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Receiver {
    /// Awake.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (awake, is_awake) = watch::channel(true);
        let came: Arc<Mutex<Vec<Came>>> = Arc::default();
        let routes =
            Router::new().fallback(receive).with_state(Shared { came: Arc::clone(&came), awake: is_awake });
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, came, awake, server }
    }

    /// Takes requests from now on without answering them.
    pub fn sleep(&self) {
        self.awake.send_replace(false);
    }

    /// Answers what it has taken and what comes.
    pub fn wake(&self) {
        self.awake.send_replace(true);
    }

    /// All that came, in the order of arrival.
    pub fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn receive(State(mut shared): State<Shared>, request: Request) -> StatusCode {
    let key = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let event = request.headers()["x-service-event-id"].to_str().unwrap().to_owned();
    let at_ms = now().ms();
    shared.came.lock().unwrap_or_else(PoisonError::into_inner).push(Came { key, event, at_ms });
    // The receiver is gone where its test is over.
    drop(shared.awake.wait_for(|awake| *awake).await);
    StatusCode::OK
}
