//! An HTTP proxy in front of a node's JSON-RPC endpoint that can apply each [`RpcFault`] at any
//! time. It serves tests in this process and processes of the real binary.

mod answer;
mod fault;
mod storm;
#[cfg(test)]
mod tests;
mod view;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alloy::transports::http::reqwest;
use embedded_chain::{Access, EmbeddedNode};
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub use self::fault::RpcFault;
pub use self::storm::{Schedule, Storm};

use self::answer::{CutConnection, ProxyBody};
use self::view::Fakes;

/// The node behind a proxy.
#[derive(Debug, Clone)]
enum Upstream {
    Url(String),
    Embedded(Arc<EmbeddedNode>),
}

#[derive(Debug, Default)]
struct Plan {
    always: Option<RpcFault>,
    by_method: Vec<(String, RpcFault)>,
    /// The newest block when the fault was set, for [`RpcFault::Stalled`].
    height: Option<u64>,
    /// Set while a storm is active. A storm that has ended must not change the faults any more.
    storms: bool,
}

#[derive(Debug)]
struct Shared {
    upstream: Mutex<Upstream>,
    http: reqwest::Client,
    plan: Mutex<Plan>,
    fakes: Mutex<Fakes>,
    methods: Mutex<Vec<String>>,
    answered: AtomicU64,
}

/// The proxy. It stops listening when dropped.
#[derive(Debug)]
pub struct RpcProxy {
    url: String,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

impl RpcProxy {
    /// Starts a proxy in front of the node at `upstream`, without faults.
    pub async fn start(upstream: &str) -> Self {
        Self::before(Upstream::Url(upstream.to_owned())).await
    }

    /// Starts a proxy in front of an embedded chain of this process.
    pub async fn embedded(node: &Arc<EmbeddedNode>) -> Self {
        Self::before(Upstream::Embedded(Arc::clone(node))).await
    }

    async fn before(upstream: Upstream) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            plan: Mutex::default(),
            fakes: Mutex::default(),
            methods: Mutex::default(),
            answered: AtomicU64::new(0),
        });
        let mut server = JoinSet::new();
        server.spawn(accept(listener, Arc::clone(&shared)));
        Self { url, shared, _server: server }
    }

    /// The URL for clients, instead of the node's.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Applies `fault` to every request from now on.
    pub async fn set(&self, fault: RpcFault) {
        self.shared.set(fault).await;
    }

    /// Applies `fault` to every request of `method` from now on.
    pub async fn set_for(&self, method: &str, fault: RpcFault) {
        let height = self.shared.height_for(fault).await;
        let mut plan = self.shared.plan.lock();
        plan.height = height;
        plan.by_method.retain(|(of, _)| of != method);
        plan.by_method.push((method.to_owned(), fault));
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.shared.heal();
    }

    /// Forwards to another node from now on.
    pub fn forward_to(&self, upstream: &str) {
        *self.shared.upstream.lock() = Upstream::Url(upstream.to_owned());
    }

    /// Forwards to another embedded chain from now on.
    pub fn forward_to_embedded(&self, node: &Arc<EmbeddedNode>) {
        *self.shared.upstream.lock() = Upstream::Embedded(Arc::clone(node));
    }

    /// Counts the requests of `method` so far.
    pub fn count(&self, method: &str) -> usize {
        self.shared.methods.lock().iter().filter(|of| *of == method).count()
    }

    /// Sets and removes random faults until the returned handle is dropped. The schedule depends
    /// only on the seed.
    pub fn storm(&self, seed: u64) -> Storm {
        self.storm_of(seed, RpcFault::ALL)
    }

    /// Like [`Self::storm`], with these faults.
    pub fn storm_of(&self, seed: u64, faults: &[RpcFault]) -> Storm {
        Storm::start(Arc::clone(&self.shared), Schedule::new(seed, faults))
    }
}

impl Shared {
    async fn set(&self, fault: RpcFault) {
        let height = self.height_for(fault).await;
        let mut plan = self.plan.lock();
        plan.height = height;
        plan.always = Some(fault);
    }

    fn heal(&self) {
        *self.plan.lock() = Plan::default();
    }

    /// Applies a step of a storm. Returns false if the storm has ended.
    async fn set_in_storm(&self, fault: Option<RpcFault>) -> bool {
        let height = match fault {
            Some(fault) => self.height_for(fault).await,
            None => None,
        };
        let mut plan = self.plan.lock();
        if plan.storms {
            (plan.always, plan.height) = (fault, height);
        }
        plan.storms
    }

    async fn height_for(&self, fault: RpcFault) -> Option<u64> {
        if fault == RpcFault::Stalled { self.head().await } else { None }
    }

    fn fault(&self, method: &str) -> Option<RpcFault> {
        let plan = self.plan.lock();
        let of_method = plan.by_method.iter().find(|(of, _)| of == method);
        of_method.map(|(_, fault)| *fault).or(plan.always)
    }

    /// The node's actual newest block.
    async fn head(&self) -> Option<u64> {
        let answer = self.ask("eth_blockNumber", json!([])).await?;
        u64::from_str_radix(answer.get("result")?.as_str()?.strip_prefix("0x")?, 16).ok()
    }

    /// Asks the node directly. `None` if it does not answer.
    async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = self.forward(Bytes::from(request.to_string())).await?;
        serde_json::from_slice(&answer).ok()
    }

    async fn forward(&self, body: Bytes) -> Option<Bytes> {
        let upstream = self.upstream.lock().clone();
        match upstream {
            Upstream::Embedded(node) => {
                let access = Access { test_methods: true, ..Access::OPERATOR };
                let answer = tokio::task::spawn_blocking(move || node.handle_http(&body, &access));
                answer.await.ok().map(Into::into)
            }
            Upstream::Url(url) => {
                let request = self.http.post(url).header("content-type", "application/json").body(body);
                request.send().await.ok()?.bytes().await.ok()
            }
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with the server, which closes the connections.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        connections.spawn(serve(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    drop(stream.set_nodelay(true));
    let service = service_fn(|request| handle(Arc::clone(&shared), request));
    // An error means that a fault or the client closed the connection.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

async fn handle(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<ProxyBody>, CutConnection> {
    let body = request.into_body().collect().await.map_err(|_| CutConnection)?.to_bytes();
    let parsed: Option<Value> = serde_json::from_slice(&body).ok();
    let request = parsed.filter(|value| value.get("method").is_some_and(Value::is_string));
    let Some(request) = request else { return shared.pass(body).await };
    let method = request["method"].as_str().unwrap_or_default().to_owned();
    shared.methods.lock().push(method.clone());
    let number = shared.answered.fetch_add(1, Ordering::Relaxed);
    match shared.fault(&method) {
        None => shared.pass(body).await,
        Some(RpcFault::Contradictory(behind)) if number % 2 == 1 => {
            shared.answer_with(RpcFault::Stale(behind), request, body).await
        }
        Some(RpcFault::Contradictory(_)) => shared.pass(body).await,
        Some(fault) => shared.answer_with(fault, request, body).await,
    }
}

impl Shared {
    async fn pass(&self, body: Bytes) -> Result<Response<ProxyBody>, CutConnection> {
        // If the node is unreachable, the proxy closes the connection.
        let answer = self.forward(body).await.ok_or(CutConnection)?;
        Ok(answer::whole(answer))
    }
}

/// Sleeps in real time, because some faults consist of a delay.
#[expect(clippy::disallowed_methods, reason = "a fault's time is its content")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

fn never<T>(never: Infallible) -> T {
    match never {}
}
