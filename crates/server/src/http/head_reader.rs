//! Lets only unambiguous requests through to the HTTP library.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use domain::request_head::{HeadFault, RequestScanner};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that are read from the socket at once.
const READ_BYTES: usize = 8 * 1024;
/// What the library reads in place of a faulty request: no method begins like that, so it answers 400 and closes.
const POISON: &[u8] = b"\0\r\n\r\n";
/// How many reads are discarded at most after a fault.
const DISCARDED_READS: usize = 512;

/// Reads a connection's bytes ahead of the library and passes on whole heads.
#[derive(Debug, Default)]
pub struct HeadReader {
    scanner: RequestScanner,
    /// Bytes that the library has not got yet, the first `released` of which it can get.
    held: Vec<u8>,
    released: usize,
    poisoned: bool,
    discarded: usize,
}

impl HeadReader {
    /// Why no further request of this connection is read, if that is so.
    pub const fn fault(&self) -> Option<HeadFault> {
        self.scanner.fault()
    }

    /// Reads what can be passed on of `stream`.
    pub fn poll_read<S: AsyncRead>(
        &mut self,
        mut stream: Pin<&mut S>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.released == 0 {
            if self.fault().is_some() {
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
            self.held.extend_from_slice(read.filled());
            self.released = self.scanner.advance(&self.held);
        }
        self.pass_on(into);
        Poll::Ready(Ok(()))
    }

    /// After a fault: reads and discards what the client still sends. Closing a socket with unread bytes resets it, and the client
    /// would lose its answer.
    pub fn poll_discard<S: AsyncRead>(
        &mut self,
        mut stream: Pin<&mut S>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
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
            // An idle connection keeps no memory.
            self.held = Vec::new();
        } else {
            self.held.drain(..count);
        }
    }
}
