//! A webhook receiver that outlives the service. It has one path per key and logs all requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::webhooks::now;

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    /// The last part of the path, which identifies the key.
    pub key: String,
    pub event: String,
    /// Arrival time in milliseconds since the epoch.
    pub at_ms: i64,
    /// Whether the request was acknowledged. It is not if the sender did not wait for the response.
    pub answered: bool,
}

#[derive(Clone)]
struct Shared {
    came: Arc<Mutex<Vec<Came>>>,
    takes: watch::Receiver<Option<Duration>>,
}

impl Shared {
    fn came(&self) -> MutexGuard<'_, Vec<Came>> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A receiver that acknowledges everything while it is awake.
pub struct Receiver {
    /// Base URL of the keys' paths.
    pub url: String,
    address: SocketAddr,
    shared: Shared,
    /// Time to respond to each request. `None` while the receiver is asleep.
    takes: watch::Sender<Option<Duration>>,
    connections: TaskTracker,
    server: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Receiver {
    /// Starts a receiver that is awake and responds immediately.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (takes, is_awake) = watch::channel(Some(Duration::ZERO));
        let shared = Shared { came: Arc::default(), takes: is_awake };
        let routes = Router::new().fallback(receive).with_state(shared.clone());
        let connections = TaskTracker::new();
        let server = tokio::spawn(serve(listener, routes, connections.clone()));
        Self { url: format!("http://{address}"), address, shared, takes, connections, server }
    }

    /// Accepts requests from now on without responding.
    pub fn sleep(&self) {
        self.takes.send_replace(None);
    }

    /// Responds to pending and new requests, each after this time.
    pub fn answer_within(&self, takes: Duration) {
        self.takes.send_replace(Some(takes));
    }

    /// Returns all requests in the order of arrival.
    pub fn came(&self) -> Vec<Came> {
        self.came_from(0)
    }

    /// Returns the requests after the first `first` ones.
    pub fn came_from(&self, first: usize) -> Vec<Came> {
        self.shared.came()[first..].to_vec()
    }

    /// Waits until a further request arrives.
    pub async fn hear_more(&self) {
        let (before, mut polls) = (self.shared.came().len(), tokio::time::interval(Duration::from_millis(5)));
        for _ in 0..12_000 {
            polls.tick().await;
            if self.shared.came().len() > before {
                return;
            }
        }
        panic!("nothing came within a minute");
    }

    /// Waits until all current connections have ended. If their sender is dead, the log is then
    /// complete, and no request is pending.
    pub async fn hear_out(&self) {
        // Connections are accepted in order: when this one has ended, all earlier ones were
        // accepted.
        let mut last = TcpStream::connect(self.address).await.unwrap();
        last.shutdown().await.unwrap();
        assert_eq!(last.read(&mut [0]).await.unwrap(), 0, "nothing was asked");
        self.connections.close();
        self.connections.wait().await;
        self.connections.reopen();
    }
}

async fn serve(listener: TcpListener, routes: Router, connections: TaskTracker) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = TowerToHyperService::new(routes.clone());
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // Errors of a connection are the sender's problem.
        connections.spawn(async move { drop(connection.await) });
    }
}

async fn receive(State(mut shared): State<Shared>, request: Request) -> StatusCode {
    let key = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let event = request.headers()["x-service-event-id"].to_str().unwrap().to_owned();
    let place = {
        let mut came = shared.came();
        came.push(Came { key, event, at_ms: now().ms(), answered: false });
        came.len() - 1
    };
    let takes = shared.takes.wait_for(Option::is_some).await.map(|takes| *takes);
    // The sender of the channel is gone if the test is over.
    let Ok(Some(takes)) = takes else { return StatusCode::SERVICE_UNAVAILABLE };
    if !takes.is_zero() {
        // The first tick of an interval is immediate, the second one comes after its period.
        let mut work = tokio::time::interval(takes);
        work.tick().await;
        work.tick().await;
    }
    shared.came()[place].answered = true;
    StatusCode::OK
}
