//! Receivers that control every byte of their responses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::webhook::target::Target;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use crate::local_target;

/// The requests that a receiver has seen.
#[derive(Default)]
pub struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<String>>,
    request: Notify,
}

impl Seen {
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The requests, with head and body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    /// Waits for a request that no earlier call has waited for.
    pub async fn request(&self) {
        self.request.notified().await;
    }

    /// Reads a complete request. Returns false if the connection ends.
    pub async fn read(&self, stream: &mut (impl AsyncRead + Unpin)) -> bool {
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if bytes.len() == end + 4 + length.map_or(0, |length| length.parse().unwrap()) {
                    self.requests.lock().push(String::from_utf8_lossy(&bytes).into_owned());
                    self.request.notify_one();
                    return true;
                }
            }
            if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                return false;
            }
        }
    }
}

/// Listens until it is dropped.
pub struct Receiver {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
    _task: AbortOnDropHandle<()>,
}

impl Receiver {
    /// Passes each connection and its number, from 1, to `script`.
    pub async fn scripted<S, F>(script: S) -> Self
    where
        S: Fn(TcpStream, usize, Arc<Seen>) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Self::at("127.0.0.1:0", script).await
    }

    pub async fn at<S, F>(address: &str, script: S) -> Self
    where
        S: Fn(TcpStream, usize, Arc<Seen>) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::<Seen>::default());
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let number = seen.connections.fetch_add(1, Ordering::SeqCst) + 1;
                    tokio::spawn(script(stream, number, Arc::clone(&seen)));
                }
            }
        });
        Self { address, seen, _task: AbortOnDropHandle::new(task) }
    }

    /// Sends these bytes for every request, as long as the connection lasts.
    pub async fn answering(answer: impl AsRef<[u8]> + Clone + Send + Sync + 'static) -> Self {
        Self::scripted(move |mut stream, _, seen| {
            let answer = answer.clone();
            async move {
                while seen.read(&mut stream).await {
                    if stream.write_all(answer.as_ref()).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await
    }

    /// Reads one request, sends these bytes, and closes.
    pub async fn answering_once(answer: impl AsRef<[u8]> + Clone + Send + Sync + 'static) -> Self {
        Self::scripted(move |mut stream, _, seen| {
            let answer = answer.clone();
            async move {
                seen.read(&mut stream).await;
                let _ = stream.write_all(answer.as_ref()).await;
            }
        })
        .await
    }

    pub fn target(&self, path: &str) -> Target {
        local_target(&format!("http://{}{path}", self.address))
    }
}
