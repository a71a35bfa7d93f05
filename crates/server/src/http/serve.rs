//! Serving connections: bounded in number, in the time that headers take and that answers are not taken, and in the time that a
//! shutdown waits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::unread::{Refuse, Told};

/// Bounds of [`serve_with`].
#[derive(Debug, Clone, Copy)]
pub struct ServeLimits {
    /// Connections that are open at once; further ones wait in the listener's queue.
    pub connections: usize,
    /// How long a request's headers may take to arrive, and a connection to stay idle.
    pub header_timeout: Duration,
    /// How long a client may take nothing of what is written to it.
    pub write_timeout: Duration,
    /// How long a shutdown waits for requests that are on their way.
    pub drain: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            header_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(10),
        }
    }
}

/// The most bytes of a request's line and headers.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How long to wait after the listener failed for want of descriptors, which only closing connections can cure.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `router` with the usual bounds until `shutdown` is ready, then drains.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    refuse: Refuse,
    shutdown: impl Future<Output = ()>,
) {
    serve_with(listener, router, refuse, shutdown, ServeLimits::default()).await;
}

/// Serves `router` until `shutdown` is ready, and returns once the connections are closed or the drain is over.
pub async fn serve_with(
    listener: TcpListener,
    router: Router,
    refuse: Refuse,
    shutdown: impl Future<Output = ()>,
    limits: ServeLimits,
) {
    let open = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let cut = CancellationToken::new();
    let accepting = async {
        while let Ok(permit) = Arc::clone(&open).acquire_owned().await {
            let Some((stream, peer)) = accept(&listener).await else { continue };
            // Answers are written whole; waiting to fill a packet would only delay them.
            let _ = stream.set_nodelay(true);
            let stream = Told::new(stream, peer.ip().to_canonical(), Arc::clone(&refuse));
            let connection = connection(stream, peer, router.clone(), graceful.watcher(), limits);
            let cut = cut.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = connection => {}
                    () = cut.cancelled() => {}
                }
                drop(permit);
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        () = shutdown => {}
    }
    drop(listener);
    if tokio::time::timeout(limits.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("the drain is over; connections that are still open are cut");
    }
    cut.cancel();
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            tracing::warn!(error = %error, "a connection was not accepted");
            pause().await;
            None
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a listener without descriptors would otherwise spin")]
async fn pause() {
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

async fn connection(
    stream: Told<TcpStream>,
    peer: SocketAddr,
    router: Router,
    watcher: Watcher,
    limits: ServeLimits,
) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.write_timeout));
    let stream = TokioIo::new(Box::pin(stream));
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.header_timeout).max_buf_size(MAX_HEAD_BYTES);
    let served = watcher.watch(builder.serve_connection(stream, service)).await;
    if let Err(error) = served {
        tracing::debug!(peer = %peer, error = %error, "a connection ended with an error");
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
        let router = Router::new().route("/peer", get(peer)).route("/hang", hang);
        let refuse: Refuse = Arc::new(|ip, unread| format!("{ip} {unread:?}").into_bytes());
        let shutdown = async { stopped.await.unwrap_or_default() };
        (address, stop, tokio::spawn(serve_with(listener, router, refuse, shutdown, limits)))
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
    async fn a_request_that_cannot_be_read_is_answered_by_the_service_and_not_by_the_library() {
        let (address, _stop, _server) = started(ServeLimits::default()).await;
        assert_eq!(answer(address, "no such thing\r\n\r\n").await, "127.0.0.1 Malformed");
        let long = format!("GET /peer HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(4 * MAX_HEAD_BYTES));
        assert_eq!(answer(address, &long).await, "127.0.0.1 TooLong");
    }

    #[tokio::test]
    async fn a_connection_whose_headers_do_not_come_is_closed() {
        let limits = ServeLimits { header_timeout: Duration::from_millis(100), ..ServeLimits::default() };
        let (address, _stop, _server) = started(limits).await;
        assert!(!answer(address, "GET /peer HTTP/1.1\r\nhost: x\r\n").await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_of_its_answer_is_cut() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (guard, gone) = oneshot::channel::<()>();
        let guard = Arc::new(std::sync::Mutex::new(Some(guard)));
        // An answer without end, which notes when it is no longer wanted.
        let endless = get(async move || {
            let guard = guard.lock().unwrap().take();
            let pieces = futures::stream::repeat_with(move || {
                let _ = &guard;
                Ok::<_, std::convert::Infallible>(vec![b'x'; 65_536])
            });
            axum::body::Body::from_stream(pieces)
        });
        let limits = ServeLimits { write_timeout: Duration::from_millis(100), ..ServeLimits::default() };
        let refuse: Refuse = Arc::new(|_, _| Vec::new());
        let router = Router::new().route("/", endless);
        tokio::spawn(serve_with(listener, router, refuse, std::future::pending(), limits));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
        assert!(gone.expect("the client is cut").is_err(), "the guard was dropped");
    }

    #[tokio::test]
    async fn a_request_that_never_ends_is_cut_when_the_drain_is_over() {
        let limits = ServeLimits { drain: Duration::from_millis(100), ..ServeLimits::default() };
        let (address, stop, server) = started(limits).await;
        let mut hanging = TcpStream::connect(address).await.unwrap();
        hanging.write_all(b"GET /hang HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let text = answer(address, "GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200"));
        stop.send(()).unwrap();
        server.await.unwrap();
        let mut text = String::new();
        // The end of the stream or a reset: nothing was answered either way.
        let _ = hanging.read_to_string(&mut text).await;
        assert_eq!(text, "");
    }
}
