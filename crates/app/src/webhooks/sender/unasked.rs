//! A TCP stream that doesn't write a request while bytes that nobody asked for are waiting.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Checks a stream's next write. The stream and its connection share one.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteCheck(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    is_due: AtomicBool,
    has_refused: AtomicBool,
}

impl WriteCheck {
    /// Has the stream look for unread bytes just before its next write.
    pub fn request(&self) {
        self.0.is_due.store(true, Ordering::Release);
    }

    /// Returns whether a checked write was refused, so that nothing of its request was written.
    pub fn has_refused(&self) -> bool {
        self.0.has_refused.load(Ordering::Acquire)
    }

    /// Fails if the peer has sent something or has closed its side.
    fn run(&self, stream: &TcpStream) -> io::Result<()> {
        if !self.0.is_due.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        // Asks the kernel instead of tokio: tokio learns of bytes only when its event loop runs,
        // and a request written before that would take them for its response.
        let peeked = SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]);
        if peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return Ok(());
        }
        self.0.has_refused.store(true, Ordering::Release);
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the peer sent something unasked, or closed"))
    }
}

/// A TCP stream whose writes can be checked.
#[derive(Debug)]
pub(super) struct CheckedStream {
    tcp: TcpStream,
    check: WriteCheck,
}

impl CheckedStream {
    pub fn new(tcp: TcpStream) -> Self {
        Self { tcp, check: WriteCheck::default() }
    }

    pub fn check(&self) -> WriteCheck {
        self.check.clone()
    }
}

impl AsyncRead for CheckedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for CheckedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check.run(&self.tcp)?;
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check.run(&self.tcp)?;
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
