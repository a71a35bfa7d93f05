//! Passes only unambiguous requests on to the HTTP library, which protects against request
//! smuggling.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use protocol::request_head::{HeadFault, RequestScanner};
use tokio::io::{AsyncRead, ReadBuf};

/// Size of one read from the socket.
const READ_BYTES: usize = 8 * 1024;
/// Bytes that the library reads instead of a faulty head. No method starts with NUL, so the library
/// answers 400 and closes.
const POISON: &[u8] = b"\0\r\n\r\n";
/// Maximum number of reads that are discarded after a fault.
const DISCARDED_READS: usize = 512;

/// Reads a connection's bytes ahead of the library, and releases only complete heads.
#[derive(Debug, Default)]
pub struct HeadReader {
    scanner: RequestScanner,
    /// Bytes that were not yet passed to the library. The first `released` ones may be passed on.
    held: Vec<u8>,
    released: usize,
    poisoned: bool,
    discarded: usize,
}

impl HeadReader {
    /// Returns the fault that ended reading from this connection, if any.
    pub const fn fault(&self) -> Option<HeadFault> {
        self.scanner.fault()
    }

    /// Returns the path of the faulty head, if it was readable.
    pub fn faulty_path(&self) -> Option<&str> {
        self.scanner.faulty_path()
    }

    /// Reads the bytes of `stream` that may be passed on.
    pub fn poll_read<S: AsyncRead>(
        &mut self,
        mut stream: Pin<&mut S>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.released == 0 {
            if let Some(fault) = self.fault() {
                // Inside a body, injected bytes could complete a chunk that the library has partly
                // read. An I/O error cannot.
                if fault == HeadFault::Chunk {
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "malformed chunk")));
                }
                if !std::mem::replace(&mut self.poisoned, true) {
                    into.put_slice(&POISON[..POISON.len().min(into.remaining())]);
                }
                return Poll::Ready(Ok(()));
            }
            let mut space = [MaybeUninit::uninit(); READ_BYTES];
            let mut read = ReadBuf::uninit(&mut space);
            ready!(stream.as_mut().poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            // A head may arrive in several reads, and is released only when it is complete.
            self.held.extend_from_slice(read.filled());
            self.released = self.scanner.advance(&self.held);
        }
        self.pass_on(into);
        Poll::Ready(Ok(()))
    }

    /// After a fault, reads and discards what the client still sends. Closing a socket with unread
    /// bytes resets the connection, and the client would lose the response.
    pub fn poll_discard<S: AsyncRead>(
        &mut self,
        mut stream: Pin<&mut S>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        // Bounded, so that a client cannot keep the connection open by sending forever.
        while self.fault().is_some() && self.discarded < DISCARDED_READS {
            let mut space = [MaybeUninit::uninit(); READ_BYTES];
            let mut read = ReadBuf::uninit(&mut space);
            let done = ready!(stream.as_mut().poll_read(context, &mut read));
            if done.is_err() || read.filled().is_empty() {
                break;
            }
            self.discarded += 1;
        }
        Poll::Ready(())
    }

    fn pass_on(&mut self, into: &mut ReadBuf<'_>) {
        let count = self.released.min(into.remaining());
        into.put_slice(&self.held[..count]);
        self.released -= count;
        if count == self.held.len() {
            // Free the buffer, so that an idle connection uses no memory.
            self.held = Vec::new();
        } else {
            self.held.drain(..count);
        }
    }
}
