//! One HTTP/1.1 connection with one request at a time.

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

use super::outcome::{NetworkFault, PostOutcome};
use super::unasked::WriteCheck;

/// The read buffer's size, which also limits the response head.
const MAX_BUFFER_BYTES: usize = 32 * 1_024;
/// The time that a connection may take to become ready after a response was read.
const SETTLING: Duration = Duration::from_millis(100);

/// A connection that is closed on drop.
pub(super) struct TargetConnection {
    requests: SendRequest<Full<Bytes>>,
    check: WriteCheck,
    /// The connection has carried a request before.
    is_reused: bool,
    _io: AbortOnDropHandle<()>,
}

impl TargetConnection {
    /// Opens a connection over `stream`, whose writes `check` can refuse.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        check: WriteCheck,
    ) -> Result<Self, PostOutcome> {
        let mut builder = Builder::new();
        builder.max_buf_size(MAX_BUFFER_BYTES).max_header_size(MAX_BUFFER_BYTES);
        let (requests, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(cut)?;
        let io = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a webhook target ended");
            }
        });
        Ok(Self { requests, check, is_reused: false, _io: AbortOnDropHandle::new(io) })
    }

    /// Sends a request.
    ///
    /// If nothing of it was written, the error returns the request for another connection. In all
    /// other cases the receiver may have seen it.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, SendFailure> {
        // A new connection isn't checked: over TLS, the receiver's session tickets may be waiting,
        // and nobody else has used it.
        let copy = self.is_reused.then(|| request.clone());
        if self.is_reused {
            self.check.request();
        }
        self.is_reused = true;
        self.requests.try_send_request(request).await.map_err(|mut error| {
            let refused = copy.filter(|_| self.check.has_refused());
            match error.take_message().or(refused) {
                Some(request) => SendFailure::Unsent(Box::new(request)),
                None => SendFailure::Cut(error.into_error()),
            }
        })
    }

    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Returns the connection if it can carry another request.
    pub async fn settled(mut self) -> Option<Self> {
        match timeout(SETTLING, self.requests.ready()).await {
            Ok(Ok(())) => Some(self),
            Ok(Err(_)) | Err(_) => None,
        }
    }
}

/// The reason why there is no response.
pub(super) enum SendFailure {
    /// The connection was closed before anything was written.
    Unsent(Box<Request<Full<Bytes>>>),
    /// The connection broke while the request was under way.
    Cut(hyper::Error),
}

impl From<SendFailure> for PostOutcome {
    fn from(unanswered: SendFailure) -> Self {
        match unanswered {
            SendFailure::Unsent(_) => Self::Unreachable(NetworkFault::Cut),
            SendFailure::Cut(error) => cut(error),
        }
    }
}

pub(super) fn cut(error: hyper::Error) -> PostOutcome {
    tracing::debug!(%error, "a webhook target did not answer");
    PostOutcome::Unreachable(NetworkFault::Cut)
}
