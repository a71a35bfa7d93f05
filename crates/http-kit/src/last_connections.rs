//! The connections that clients have made before a listener closes. The kernel completes handshakes
//! and queues connections by itself, and resets the queued ones when the listener closes. So a stop
//! first keeps new ones from being made, then accepts what is queued, and then closes.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Time for which a handshake that has begun may take to complete.
const HANDSHAKE: Duration = Duration::from_millis(100);
/// Maximum time until the listener closes, if new connections cannot be kept from being made.
const LONGEST: Duration = Duration::from_secs(1);

/// The remaining connections of a listener. Closes it when they have all been accepted.
pub struct LastConnections {
    listener: Option<TcpListener>,
    /// What was in the queue when the listener closed.
    rest: Option<std::net::TcpListener>,
    until: Instant,
}

impl LastConnections {
    pub fn of(listener: TcpListener) -> Self {
        Self { listener: Some(listener), rest: None, until: Instant::now() + LONGEST }
    }

    /// Returns the next connection, or `None` if there is none any more.
    pub async fn next(&mut self) -> Option<(TcpStream, SocketAddr)> {
        if let Some(listener) = &self.listener {
            let until = self.until.min(Instant::now() + HANDSHAKE);
            if let Ok(Ok(accepted)) = tokio::time::timeout_at(until, listener.accept()).await {
                return Some(accepted);
            }
        }
        // The runtime may not have noticed the last ones yet, so ask the kernel itself.
        if let Some(listener) = self.listener.take() {
            self.rest = listener.into_std().ok();
        }
        let (stream, peer) = self.rest.as_ref()?.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(stream).ok()?, peer))
    }
}

/// Lets the kernel drop requests for new connections. Handshakes that have begun go on. A client asks
/// again after a second, when the listener is closed or another process has the address.
#[cfg(target_os = "linux")]
pub fn refuse_new(listener: &TcpListener) {
    use socket2::{SockFilter, SockRef};

    // The kernel's classic packet filter. Offsets count from the TCP header.
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    const DROP: u32 = 0;
    const PASS: u32 = u32::MAX;
    let program = [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS_OFFSET),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        // Only the first segment of a handshake has SYN without ACK.
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, DROP),
        SockFilter::new(RETURN, 0, 0, PASS),
    ];
    if let Err(error) = SockRef::from(listener).attach_filter(&program) {
        tracing::debug!(%error, "new connections are made until the listener closes");
    }
}

/// Other systems have no such filter.
#[cfg(not(target_os = "linux"))]
pub fn refuse_new(_: &TcpListener) {}
