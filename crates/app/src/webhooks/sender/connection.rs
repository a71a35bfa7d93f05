//! One connection that speaks HTTP/1.1, one request at a time.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::outcome::{NetworkFault, Outcome};

/// What of an answer is held in memory at once, and how long its head may be.
const MAX_BUFFER_BYTES: usize = 32 * 1_024;
/// How long a connection may take to be ready again after an answer that has been read to its end.
const SETTLING: Duration = Duration::from_millis(100);

/// Closed when dropped.
pub(super) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    _io: AbortOnDropHandle<()>,
}

impl Connection {
    pub async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, Outcome> {
        let mut builder = Builder::new();
        builder.max_buf_size(MAX_BUFFER_BYTES).max_header_size(MAX_BUFFER_BYTES);
        let (requests, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(cut)?;
        let io = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a webhook's target ended");
            }
        });
        Ok(Self { requests, _io: AbortOnDropHandle::new(io) })
    }

    /// Sends a request. One that came back with nothing of it written may go over another connection; of any other that got
    /// no answer, the receiver may know.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Unanswered> {
        self.requests.try_send_request(request).await.map_err(|mut error| match error.take_message() {
            Some(request) => Unanswered::Unsent(Box::new(request)),
            None => Unanswered::Cut(error.into_error()),
        })
    }

    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// The connection, if another request can go over it.
    pub async fn settled(mut self) -> Option<Self> {
        match timeout(SETTLING, self.requests.ready()).await {
            Ok(Ok(())) => Some(self),
            Ok(Err(_)) | Err(_) => None,
        }
    }
}

/// Why there is no answer.
pub(super) enum Unanswered {
    /// The connection was over before anything was written.
    Unsent(Box<Request<Full<Bytes>>>),
    /// It broke with the request under way.
    Cut(hyper::Error),
}

impl From<Unanswered> for Outcome {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Unsent(_) => Self::Unreachable(NetworkFault::Cut),
            Unanswered::Cut(error) => cut(error),
        }
    }
}

/// The outcome of a connection that broke.
pub(super) fn cut(error: hyper::Error) -> Outcome {
    tracing::debug!(%error, "no answer of a webhook's target");
    Outcome::Unreachable(NetworkFault::Cut)
}
