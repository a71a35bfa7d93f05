//! Requests whose head cannot be parsed. hyper rejects them itself, before any handler and with an
//! empty body. The connection detects such a rejection in the output and replaces it with a problem
//! response, so that every error has the same format.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use app::AppError;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use protocol::request_head::HeadFault;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::head_reader::HeadReader;
use super::{Problem, RequestId, Shared, Surface, rate, render, version};

/// Builds the response to an unreadable request from an address.
pub type Refuse = Arc<dyn Fn(IpAddr, UnreadRequest) -> Vec<u8> + Send + Sync>;

/// A request that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadRequest {
    pub reason: Unread,
    /// Its path, if that much was readable.
    pub path: Option<String>,
}

/// The reason why a request could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The head violates a rule that is checked before parsing.
    Head(HeadFault),
    /// The parser rejected the request.
    Malformed,
    /// The request has more headers than the parser accepts.
    TooLong,
}

impl Unread {
    const fn code(self) -> ErrorCode {
        match self {
            Self::Head(HeadFault::TooLong | HeadFault::TooManyHeaders) | Self::TooLong => {
                ErrorCode::HeadersTooLarge
            }
            Self::Head(_) | Self::Malformed => ErrorCode::ValidationFailed,
        }
    }

    const fn detail(self) -> &'static str {
        match self {
            Self::Head(HeadFault::TooLong) | Self::TooLong => ErrorCode::HeadersTooLarge.default_detail(),
            Self::Head(HeadFault::TooManyHeaders) => "A request must have at most 100 headers.",
            Self::Head(HeadFault::TwoLengths) => {
                "A request must not have both Content-Length and Transfer-Encoding."
            }
            Self::Head(HeadFault::Host) => "An HTTP/1.1 request must have exactly one Host header.",
            Self::Head(HeadFault::BareLineFeed) => {
                "Each line of the request's head must end with a carriage return and a line feed."
            }
            Self::Head(HeadFault::Length) => {
                "The body's length must be one Content-Length in decimal digits, or one Transfer-Encoding: chunked."
            }
            Self::Head(HeadFault::Line) => {
                "A header line must be a name without whitespace, a colon and a value without control characters."
            }
            Self::Head(HeadFault::NotHttp1 | HeadFault::Chunk) | Self::Malformed => {
                "The request must be valid HTTP/1.1."
            }
        }
    }
}

/// Returns the complete response to an unreadable request from `ip`. The connection closes after
/// it.
pub fn refuse(app: &Shared, ip: IpAddr, unread: UnreadRequest) -> Vec<u8> {
    let now = app.ctx.now();
    let id = RequestId::new(&app.ctx);
    let UnreadRequest { reason, path } = unread;
    let problem = Problem::from(AppError::new(reason.code()).detail(reason.detail()));
    let mut response = problem.clone().into_response();
    // Without a path, the surface is unknown, and a path without a route tells nothing either. All
    // unknown paths belong to the trading API.
    let surface = Surface::Trading;
    let instance = path.as_deref().unwrap_or("/");
    let body = render::render(&mut response, &problem, surface, &app.docs_url, instance, id);
    // These requests never reach `finish_response`, so the common headers are added here.
    let headers = response.headers_mut();
    version::add_header(headers, app.versions.current);
    rate::draw(app, ip, now).write(headers, surface, now);
    id.add_header(headers);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    written(&response, &body)
}

fn written(response: &Response, body: &[u8]) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}

/// Detects whether `head` is a rejection by hyper: a status line with only the headers of an empty
/// response. Every response of the service itself has more headers.
fn unread(head: &[u8]) -> Option<Unread> {
    let text = std::str::from_utf8(head).ok()?.strip_suffix("\r\n\r\n")?;
    let mut lines = text.split("\r\n");
    let unread = match lines.next()?.strip_prefix("HTTP/1.1 ")?.split(' ').next()? {
        "400" => Unread::Malformed,
        "414" | "431" => Unread::TooLong,
        _ => return None,
    };
    let of_an_empty_answer = |line: &str| {
        let name = line.split(':').next().unwrap_or_default();
        ["content-length", "connection", "date"].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    lines.all(of_an_empty_answer).then_some(unread)
}

/// Maximum size of a rejection by hyper.
const REFUSAL: usize = 256;

/// A connection's stream that replaces hyper's rejections with problem responses.
pub struct ReplacingStream<S> {
    stream: S,
    ip: IpAddr,
    refuse: Refuse,
    reader: HeadReader,
    /// True once the write side was shut down.
    shut: bool,
    /// The replacement response, and the number of bytes already written.
    instead: Option<(Vec<u8>, usize)>,
}

impl<S: AsyncWrite + Unpin> ReplacingStream<S> {
    pub fn new(stream: S, ip: IpAddr, refuse: Refuse) -> Self {
        Self { stream, ip, refuse, reader: HeadReader::default(), shut: false, instead: None }
    }

    /// If `head` is a rejection, writes the replacement. Resolves to `None` if `head` must be
    /// written unchanged.
    fn poll_instead(&mut self, context: &mut Context<'_>, head: &[u8]) -> Poll<Option<io::Result<()>>> {
        if self.instead.is_none() {
            let Some(unread) = unread(head) else { return Poll::Ready(None) };
            // The scanner's reason is more specific than hyper's status.
            let reason = self.reader.fault().map_or(unread, Unread::Head);
            let path = self.reader.faulty_path().map(str::to_owned);
            self.instead = Some(((self.refuse)(self.ip, UnreadRequest { reason, path }), 0));
        }
        while let Some((bytes, done)) = &mut self.instead {
            if *done == bytes.len() {
                self.instead = None;
                break;
            }
            match ready!(Pin::new(&mut self.stream).poll_write(context, &bytes[*done..])) {
                Ok(0) => return Poll::Ready(Some(Err(io::ErrorKind::WriteZero.into()))),
                Ok(n) => *done += n,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        Poll::Ready(Some(Ok(())))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ReplacingStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // hyper's rejections are short, so larger writes need no inspection.
        if bytes.len() <= REFUSAL
            && let Some(told) = ready!(self.poll_instead(context, bytes))
        {
            // Report the length of hyper's own bytes, because hyper must believe that it wrote
            // them.
            return Poll::Ready(told.map(|()| bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [head] = pieces
            && head.len() <= REFUSAL
            && let Some(told) = ready!(self.poll_instead(context, head))
        {
            return Poll::Ready(told.map(|()| head.len()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, reader, shut, .. } = self.get_mut();
        if !*shut {
            ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
            *shut = true;
        }
        // Discard input only after the shutdown, so that the client sees the end of the response.
        reader.poll_discard(Pin::new(stream), context).map(Ok)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReplacingStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, reader, .. } = self.get_mut();
        reader.poll_read(Pin::new(stream), context, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_error_with_default_headers_comes_from_hyper() {
        let head = |text: &str| unread(text.replace('\n', "\r\n").as_bytes());
        let rest = "connection: close\ncontent-length: 0\ndate: Fri, 20 Nov 2026 00:00:00 GMT\n\n";
        assert_eq!(head(&format!("HTTP/1.1 400 Bad Request\n{rest}")), Some(Unread::Malformed));
        assert_eq!(head(&format!("HTTP/1.1 431 Too Large\n{rest}")), Some(Unread::TooLong));
        assert_eq!(head(&format!("HTTP/1.1 414 Too Long\n{rest}")), Some(Unread::TooLong));
        assert_eq!(head(&format!("HTTP/1.1 404 Not Found\n{rest}")), None);
        assert_eq!(head(&format!("HTTP/1.1 400 Bad Request\nx-request-id: r\n{rest}")), None);
        assert_eq!(head("HTTP/1.1 400 Bad Request\ncontent-length: 0"), None);
    }
}
