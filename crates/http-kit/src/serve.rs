//! The HTTP server. It limits the number of connections (in total, per address and per network), the time until
//! a first byte, headers and reads of a response, and the duration of a shutdown.

use std::any::Any;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use app::limits::budget::{Budget, BudgetShares};
use app::metrics::Metrics;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use domain::rate::Scope;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::connections::{Admission, Answering, ConnectionLimits, ConnectionMeter, Connections, Place};
use super::last_connections::{self, LastConnections};
use super::unread::{Refuse, ReplacingStream};
use super::{AppState, TrustedProxies};

/// Limits of a [`Server`].
#[derive(Debug, Clone, Copy)]
pub struct ServeLimits {
    /// Maximum numbers of open connections. At a limit, an idle one gives way to a new one. If all are
    /// busy, further ones are closed, or wait in the listener's queue if it is the limit of the total.
    pub connections: ConnectionLimits,
    /// Maximum time until the first byte of a new connection.
    pub first_byte_timeout: Duration,
    /// Maximum time for a request's headers to arrive, and for a connection to be idle between
    /// requests.
    pub header_timeout: Duration,
    /// Maximum time for which a client may read nothing of a response.
    pub write_timeout: Duration,
    /// Maximum time that a shutdown waits for running requests.
    pub drain: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            connections: ConnectionLimits::of_budget(&BudgetShares::default()),
            first_byte_timeout: Duration::from_secs(5),
            header_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(15),
            drain: Duration::from_secs(10),
        }
    }
}

const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// Size of hyper's buffer. It must hold a request's head, whose limit is lower, and the first bytes
/// of the body.
const BUFFER_BYTES: usize = 64 * 1024;
/// Pause after a failed accept. Usually the process is out of file descriptors, which only closing
/// connections can free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Maximum time that a shutdown waits for the first byte of a connection. A client that has just
/// connected sends its request within this time.
const LAST_FIRST_BYTE: Duration = Duration::from_secs(2);
/// Time for which a shutdown keeps idle connections open. A request that was on its way when the
/// shutdown began is still answered.
const LAST_REQUEST: Duration = Duration::from_millis(100);

impl ConnectionLimits {
    /// Returns the limits of the public listener.
    pub fn of_budget(shares: &BudgetShares) -> Self {
        let limit = |scope| {
            let limit = shares.share(Budget::Connections, scope).limit();
            limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
        };
        Self {
            address: limit(Scope::Address),
            network: limit(Scope::Network),
            site: limit(Scope::Site),
            total: limit(Scope::Total),
        }
    }
}

/// The connections of the public listener, as their budget counts them.
impl ConnectionMeter for AppState {
    fn opened(&self, ip: IpAddr, is_exempt: bool) -> Box<dyn Any + Send + Sync> {
        Box::new(self.ctx.budgets().count_admitted(Budget::Connections, ip, is_exempt))
    }

    fn refused(&self, scope: Scope) {
        self.ctx.budgets().count_refused(Budget::Connections, scope);
    }
}

/// An HTTP server on one listener.
pub struct Server {
    pub listener: TcpListener,
    pub router: Router,
    /// Writes the response to requests that cannot be parsed.
    pub refuse: Refuse,
    pub limits: ServeLimits,
    /// Trusted proxies. Their connections carry many clients, so only the limit of the total applies to
    /// them.
    pub trusted_proxies: TrustedProxies,
    /// Counts the connections, if they use a budget.
    pub meter: Option<Arc<dyn ConnectionMeter>>,
    /// Cancelled when clients must move to another process: from then on each response closes its
    /// connection. A shutdown cancels it too.
    pub draining: CancellationToken,
    /// Counts the open connections, if given.
    pub metrics: Option<Arc<Metrics>>,
}

/// The state that all connections of a server share.
#[derive(Clone)]
struct Shared {
    router: Router,
    refuse: Refuse,
    limits: ServeLimits,
    draining: CancellationToken,
    metrics: Option<Arc<Metrics>>,
    /// Cancelled when the shutdown begins.
    stopping: CancellationToken,
    /// Cancelled when the drain period ends.
    cut: CancellationToken,
    open: TaskTracker,
}

impl Server {
    /// Serves until `shutdown` completes. Then answers the connections that were made before, closes
    /// the listener, and returns once all connections are closed or the drain period is over.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, router, refuse, limits, trusted_proxies, meter, draining, metrics } = self;
        if let Some(metrics) = &metrics {
            metrics.allow_connections(limits.connections.total);
        }
        let connections = Connections::new(limits.connections, trusted_proxies, meter);
        let (stopping, cut) = (CancellationToken::new(), CancellationToken::new());
        let open = TaskTracker::new();
        let shared = Shared { router, refuse, limits, draining, metrics, stopping, cut, open };
        tokio::select! {
            () = accept_all(&listener, &connections, &shared) => {}
            () = shutdown => {}
        }
        shared.draining.cancel();
        accept_last(listener, &connections, &shared).await;
        // Idle connections close soon, and busy ones after their current response.
        shared.stopping.cancel();
        shared.open.close();
        if tokio::time::timeout(limits.drain, shared.open.wait()).await.is_err() {
            tracing::warn!("the drain time is over: closing the connections that are still open");
        }
        shared.cut.cancel();
    }
}

async fn accept_all(listener: &TcpListener, connections: &Connections, shared: &Shared) {
    loop {
        let Some((stream, peer)) = accept(listener).await else { continue };
        let admitted = loop {
            match connections.admit(peer.ip()) {
                Admission::Admitted(place) => break Some(place),
                Admission::Refused => break None,
                // Meanwhile, further connections wait in the kernel's queue.
                Admission::Full => connections.freed().await,
            }
        };
        if let Some(place) = admitted {
            shared.spawn(stream, peer, place);
        }
    }
}

/// Accepts the connections that clients have made before the listener closes. The kernel resets those
/// that nobody accepts.
async fn accept_last(listener: TcpListener, connections: &Connections, shared: &Shared) {
    last_connections::refuse_new(&listener);
    let mut last = LastConnections::of(listener);
    while let Some((stream, peer)) = last.next().await {
        // Nobody can be told to wait any more, so a full server exceeds its limit by the length of the
        // queue at most. The limits of addresses and networks hold.
        match connections.admit(peer.ip()) {
            Admission::Admitted(place) => shared.spawn(stream, peer, place),
            Admission::Full => shared.spawn(stream, peer, connections.admit_beyond(peer.ip())),
            Admission::Refused => {}
        }
    }
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            tracing::warn!(error = %error, "could not accept a connection");
            wait(ACCEPT_PAUSE).await;
            None
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "no signal ends these waits: a full table of descriptors, a stop"
)]
async fn wait(time: Duration) {
    tokio::time::sleep(time).await;
}

impl Shared {
    fn spawn(&self, stream: TcpStream, peer: SocketAddr, place: Place) {
        let shared = self.clone();
        let counted = self.metrics.as_ref().map(|metrics| metrics.open_connection());
        self.open.spawn(async move {
            let cut = shared.cut.clone();
            tokio::select! {
                () = shared.serve(stream, peer, Arc::new(place)) => {}
                () = cut.cancelled() => {}
            }
            // The connection counts as open until it has ended.
            drop(counted);
        });
    }

    async fn serve(self, stream: TcpStream, peer: SocketAddr, place: Arc<Place>) {
        // Wait for the first byte before allocating buffers, so that idle connections are cheap.
        tokio::select! {
            readable = tokio::time::timeout(self.limits.first_byte_timeout, stream.readable()) =>
                if !matches!(readable, Ok(Ok(()))) { return },
            () = after(&self.stopping, LAST_FIRST_BYTE) => return,
            () = place.evicted() => return,
        }
        // Responses are written in one piece, so Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        let stream = ReplacingStream::new(stream, peer.ip().to_canonical(), self.refuse);
        let mut stream = TimeoutStream::new(stream);
        // A client that does not read would otherwise hold a connection and its buffers forever.
        stream.set_write_timeout(Some(self.limits.write_timeout));
        let stream = TokioIo::new(Box::pin(stream));
        let (router, draining, of_requests) = (self.router, self.draining, Arc::clone(&place));
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let answering = of_requests.begin_answer();
            let (answer, draining) = (router.clone().oneshot(request), draining.clone());
            async move {
                let mut response = answer.await?;
                if draining.is_cancelled() {
                    response.headers_mut().insert(CONNECTION, CLOSE);
                }
                Ok::<_, Infallible>(response.map(|body| AnswerBody { body, _answering: answering }))
            }
        });
        let mut builder = http1::Builder::new();
        // hyper needs a timer for the header timeout.
        builder.timer(TokioTimer::new());
        builder.header_read_timeout(self.limits.header_timeout).max_buf_size(BUFFER_BYTES);
        let mut connection = pin!(builder.serve_connection(stream, service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = must_end(&self.stopping, &place) => {
                if !place.is_busy() && !self.stopping.is_cancelled() {
                    return;
                }
                // The current response, or one whose request is arriving, is the last one.
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(peer = %peer, error = %error, "a connection ended with an error");
        }
    }
}

/// Completes when a connection that is open must end: the server stops, or it must give way.
async fn must_end(stopping: &CancellationToken, place: &Place) {
    tokio::select! {
        () = after(stopping, LAST_REQUEST) => {}
        () = place.evicted() => {}
    }
}

async fn after(token: &CancellationToken, time: Duration) {
    token.cancelled().await;
    wait(time).await;
}

/// The body of a response. Its connection is busy until it is written.
struct AnswerBody {
    body: Body,
    _answering: Answering,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    async fn peer(ConnectInfo(peer): ConnectInfo<SocketAddr>) -> String {
        peer.ip().to_string()
    }

    async fn started(limits: ServeLimits) -> (SocketAddr, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let hang = get(std::future::pending::<()>);
        let echo = axum::routing::post(|body: String| async move { body });
        let router = Router::new().route("/peer", get(peer)).route("/hang", hang).route("/echo", echo);
        let refuse: Refuse = Arc::new(|ip, unread| {
            let path = unread.path.unwrap_or_default();
            format!("{ip}{path} {:?}", unread.reason).into_bytes()
        });
        let shutdown = async { stopped.await.unwrap_or_default() };
        let server = Server {
            listener,
            router,
            refuse,
            limits,
            trusted_proxies: TrustedProxies::default(),
            meter: None,
            draining: CancellationToken::new(),
            metrics: None,
        };
        (address, stop, tokio::spawn(server.run(shutdown)))
    }

    async fn answer(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn a_request_knows_its_peer_and_a_shutdown_ends_an_idle_server() {
        let (address, stop, server) = started(ServeLimits::default()).await;
        let text = answer(address, "GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("127.0.0.1"), "{text}");
        stop.send(()).unwrap();
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_draining_server_answers_and_closes_each_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let draining = CancellationToken::new();
        let server = Server {
            listener,
            router: Router::new().route("/peer", get(peer)),
            refuse: Arc::new(|_, _| Vec::new()),
            limits: ServeLimits::default(),
            trusted_proxies: TrustedProxies::default(),
            meter: None,
            draining: draining.clone(),
            metrics: None,
        };
        tokio::spawn(server.run(std::future::pending()));
        let mut open = TcpStream::connect(address).await.unwrap();
        let request = b"GET /peer HTTP/1.1\r\nhost: x\r\n\r\n";
        open.write_all(request).await.unwrap();
        let mut head = [0; 12];
        open.read_exact(&mut head).await.unwrap();
        draining.cancel();
        // The connection from before, and a new one.
        open.write_all(request).await.unwrap();
        let mut text = String::new();
        open.read_to_string(&mut text).await.unwrap();
        assert!(!text.split("HTTP/1.1 200").next().unwrap().contains("connection: close"), "{text}");
        assert!(text.contains("connection: close") && text.ends_with("127.0.0.1"), "{text}");
        let text = answer(address, "GET /peer HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("connection: close"), "{text}");
    }

    #[tokio::test]
    async fn a_fault_in_a_body_cannot_complete_the_body() {
        let (address, _stop, _server) = started(ServeLimits::default()).await;
        let head =
            "POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
        for (read, faulty) in
            [("0;a", "\n"), ("0", "\n"), ("0\r\nx: y", "\n"), ("0\r\n", "\n"), ("1\r\na\r\n0", "\0")]
        {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(read.as_bytes()).await.unwrap();
            // A complete exchange on another connection gives the server time to read the first
            // part.
            answer(address, "GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
            stream.write_all(faulty.as_bytes()).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap_or_default();
            assert!(!text.starts_with("HTTP/1.1 2"), "{read:?} {faulty:?}: {text}");
        }
    }

    #[tokio::test]
    async fn a_chunk_longer_than_any_body_is_400_at_once() {
        let (address, _stop, _server) = started(ServeLimits::default()).await;
        let head = "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
        for size in ["ffffffffffffffff", "8000000000000000", "100000000"] {
            let request = format!("{head}{size}\r\nabc");
            let text = tokio::time::timeout(Duration::from_secs(4), answer(address, &request)).await;
            let text = text.expect("an answer before the chunk has arrived");
            assert!(text.starts_with("HTTP/1.1 400"), "{size}: {text}");
        }
    }

    #[tokio::test]
    async fn the_service_itself_answers_an_unreadable_request() {
        let (address, _stop, _server) = started(ServeLimits::default()).await;
        assert_eq!(answer(address, "no such thing\r\n\r\n").await, "127.0.0.1 Head(NotHttp1)");
        assert_eq!(answer(address, "GET\t/ HTTP/1.1\r\nhost: x\r\n\r\n").await, "127.0.0.1 Malformed");
        let long = format!("GET /peer HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "x".repeat(32 * 1_024));
        assert_eq!(answer(address, &long).await, "127.0.0.1/peer Head(TooLong)");
        let many = format!("GET /peer HTTP/1.1\r\nhost: x\r\n{}\r\n", "x: x\r\n".repeat(1_000));
        assert_eq!(answer(address, &many).await, "127.0.0.1/peer Head(TooManyHeaders)");
    }

    #[tokio::test]
    async fn a_connection_without_complete_headers_is_closed() {
        let limits = ServeLimits { header_timeout: Duration::from_millis(100), ..ServeLimits::default() };
        let (address, _stop, _server) = started(limits).await;
        assert!(!answer(address, "GET /peer HTTP/1.1\r\nhost: x\r\n").await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn an_ambiguous_request_gets_400_after_the_answers_of_earlier_requests() {
        let (address, _stop, _server) = started(ServeLimits::default()).await;
        for (bad, fault) in [
            ("content-length: 0\r\ntransfer-encoding: chunked\r\nhost: x\r\n", "TwoLengths"),
            ("host: x\r\nhost: x\r\n", "Host"),
            ("accept: x\r\n", "Host"),
            ("host: x\nx: x\r\n", "BareLineFeed"),
        ] {
            let good = "GET /peer HTTP/1.1\r\nhost: x\r\n\r\n";
            let text = answer(address, &format!("{good}GET /peer HTTP/1.1\r\n{bad}\r\n{good}")).await;
            assert!(text.starts_with("HTTP/1.1 200"), "{text}");
            assert!(text.ends_with(&format!("127.0.0.1127.0.0.1/peer Head({fault})")), "{text}");
        }
    }

    #[tokio::test]
    async fn a_connection_without_a_first_byte_is_closed() {
        let limits = ServeLimits { first_byte_timeout: Duration::from_millis(100), ..ServeLimits::default() };
        let (address, _stop, _server) = started(limits).await;
        assert_eq!(answer(address, "").await, "");
    }

    /// Limits the connections of all and of each address.
    fn limits_of(total: usize, address: usize) -> ServeLimits {
        let connections = ConnectionLimits { address, network: usize::MAX, site: usize::MAX, total };
        ServeLimits { connections, ..ServeLimits::default() }
    }

    async fn connect_from(source: [u8; 4], to: SocketAddr) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        socket.connect(to).await.unwrap()
    }

    #[tokio::test]
    async fn half_open_connections_of_one_address_do_not_delay_another() {
        let limits = limits_of(60, 50);
        let (address, _stop, _server) = started(limits).await;
        let mut flood = Vec::new();
        for _ in 0..400 {
            flood.push(connect_from([127, 0, 0, 2], address).await);
        }
        let probe = async {
            let mut stream = connect_from([127, 0, 0, 3], address).await;
            stream.write_all(b"GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        };
        // Shorter than the timeout that closes half-open connections anyway.
        let text = tokio::time::timeout(Duration::from_secs(4), probe).await.unwrap();
        assert!(text.ends_with("127.0.0.3"), "{text}");
        // The oldest ones gave way to the newest ones of their address.
        let mut is_closed = 0;
        for stream in &mut flood {
            let read = tokio::time::timeout(Duration::ZERO, stream.read(&mut [0])).await;
            is_closed += usize::from(read.is_ok());
        }
        assert!((350..400).contains(&is_closed), "{is_closed}");
    }

    #[tokio::test]
    async fn idle_connections_of_many_addresses_give_way_to_a_new_one() {
        let limits = limits_of(100, 50);
        let (address, _stop, _server) = started(limits).await;
        let mut kept = connect_from([127, 0, 0, 100], address).await;
        kept.write_all(b"GET /hang HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let (mut flood, mut slow) = (Vec::new(), Vec::new());
        for n in 0..25 * 8 {
            let from = [127, 0, 1, n % 25];
            flood.push(connect_from(from, address).await);
            let mut stream = connect_from(from, address).await;
            // Half of them have begun a head.
            stream.write_all(b"GET /peer HTTP/1.1\r\n").await.unwrap();
            slow.push(stream);
        }
        let mut guest = connect_from([127, 0, 0, 3], address).await;
        guest.write_all(b"GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut text = String::new();
        guest.read_to_string(&mut text).await.unwrap();
        assert!(text.ends_with("127.0.0.3"), "{text}");
        let busy = tokio::time::timeout(Duration::ZERO, kept.read(&mut [0])).await;
        assert!(busy.is_err(), "a request that is being answered is not cut off");
        // None of them was closed by a timeout yet, so each closed one gave way.
        let mut open = 0;
        for stream in flood.iter_mut().chain(&mut slow) {
            open += usize::from(tokio::time::timeout(Duration::ZERO, stream.read(&mut [0])).await.is_err());
        }
        assert!((90..=99).contains(&open), "{open} connections of the flood are open");
    }

    #[tokio::test]
    async fn every_connection_that_was_made_before_a_stop_is_answered() {
        let (address, stop, server) = started(ServeLimits::default()).await;
        // Idle between two requests.
        let mut open = TcpStream::connect(address).await.unwrap();
        let request = b"GET /peer HTTP/1.1\r\nhost: x\r\n\r\n";
        open.write_all(request).await.unwrap();
        let mut head = [0; 12];
        open.read_exact(&mut head).await.unwrap();
        // The server cannot run between these steps: the test has the only thread. So the kernel has
        // queued the connections when the stop begins.
        let connect = |_| std::net::TcpStream::connect(address).unwrap();
        let mut queued: Vec<_> = (0..64).map(connect).collect();
        stop.send(()).unwrap();
        let send = |stream: &mut std::net::TcpStream| std::io::Write::write_all(stream, request).unwrap();
        queued.iter_mut().take(32).for_each(send);
        tokio::task::yield_now().await;
        queued.iter_mut().skip(32).for_each(send);
        open.write_all(request).await.unwrap();
        let queued = queued.into_iter().map(|stream| {
            stream.set_nonblocking(true).unwrap();
            TcpStream::from_std(stream).unwrap()
        });
        for mut stream in queued {
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            assert!(text.starts_with("HTTP/1.1 200") && text.contains("connection: close"), "{text}");
        }
        let mut text = String::new();
        open.read_to_string(&mut text).await.unwrap();
        assert!(text.contains("HTTP/1.1 200") && text.contains("connection: close"), "{text}");
        server.await.unwrap();
        TcpStream::connect(address).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_its_answer_is_disconnected() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (guard, gone) = oneshot::channel::<()>();
        let guard = Arc::new(std::sync::Mutex::new(Some(guard)));
        // An endless response that records when it is dropped.
        let endless = get(async move || {
            let guard = guard.lock().unwrap().take();
            let pieces = futures::stream::repeat_with(move || {
                let _ = &guard;
                Ok::<_, Infallible>(vec![b'x'; 65_536])
            });
            Body::from_stream(pieces)
        });
        let limits = ServeLimits { write_timeout: Duration::from_millis(100), ..ServeLimits::default() };
        let refuse: Refuse = Arc::new(|_, _| Vec::new());
        let router = Router::new().route("/", endless);
        let server = Server {
            listener,
            router,
            refuse,
            limits,
            trusted_proxies: TrustedProxies::default(),
            meter: None,
            draining: CancellationToken::new(),
            metrics: None,
        };
        tokio::spawn(server.run(std::future::pending()));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
        assert!(gone.expect("the client is cut").is_err(), "the guard was dropped");
    }

    #[tokio::test]
    async fn an_endless_request_is_aborted_after_the_drain() {
        let limits = ServeLimits { drain: Duration::from_millis(100), ..ServeLimits::default() };
        let (address, stop, server) = started(limits).await;
        let mut hanging = TcpStream::connect(address).await.unwrap();
        hanging.write_all(b"GET /hang HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let text = answer(address, "GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200"));
        stop.send(()).unwrap();
        server.await.unwrap();
        let mut text = String::new();
        // The stream ends or is reset. In both cases there was no response.
        let _ = hanging.read_to_string(&mut text).await;
        assert_eq!(text, "");
    }
}
