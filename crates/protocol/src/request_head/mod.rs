//! Finds the boundaries of HTTP/1.1 requests in a connection's bytes and rejects ambiguous
//! requests.
//!
//! If a proxy and this service disagree on the end of a request, an attacker can smuggle a second
//! request past the proxy. The HTTP library accepts several ambiguous forms. Therefore a
//! [`RequestScanner`] reads the connection's bytes first, and strictly: everything that it releases
//! has a single interpretation.

mod chunks;
mod head;

use chunks::Chunks;
use head::Framing;

/// The maximum total length of the request line and the headers, in bytes.
pub const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The reason for rejecting a request before it is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadFault {
    /// Neither HTTP/1.1 nor HTTP/1.0.
    NotHttp1,
    /// The request line and headers are longer than [`MAX_HEAD_BYTES`].
    TooLong,
    /// More than 100 headers.
    TooManyHeaders,
    /// A line ends with a line feed without a carriage return.
    BareLineFeed,
    /// HTTP/1.1 without exactly one `Host`, or HTTP/1.0 with more than one.
    Host,
    /// Both `Content-Length` and `Transfer-Encoding`.
    TwoLengths,
    /// A repeated or non-numeric `Content-Length`, or a `Transfer-Encoding` other than a single
    /// `chunked`.
    Length,
    /// A header line that starts with whitespace, has no colon, has whitespace in its name, or has a
    /// control character in its value.
    Line,
    /// A malformed chunked body, or a chunk of 4 GiB or more.
    Chunk,
}

#[derive(Debug, Default)]
pub struct RequestScanner {
    state: State,
    fault: Option<HeadFault>,
    /// The path of the faulty head.
    path: Option<String>,
}

#[derive(Debug)]
enum State {
    /// In a head. This many of its bytes have been searched for its end.
    Head {
        scanned: usize,
    },
    /// In a body. This many of its bytes are missing.
    Body(u64),
    Chunked(Chunks),
}

impl Default for State {
    fn default() -> Self {
        Self::Head { scanned: 0 }
    }
}

impl RequestScanner {
    /// Reads more bytes. `bytes` must begin with those that the last call did not release. Returns
    /// the number of bytes to pass to the parser: complete heads, and bodies as far as they have
    /// arrived. Releases nothing after a fault.
    pub fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut released = 0;
        while released < bytes.len() && self.fault.is_none() {
            match self.step(&bytes[released..]) {
                Ok(0) => break,
                Ok(count) => released += count,
                Err(fault) => {
                    self.fault = Some(fault);
                    if matches!(self.state, State::Head { .. }) {
                        self.path = head::readable_path(&bytes[released..]).map(str::to_owned);
                    }
                }
            }
        }
        released
    }

    /// Returns the fault that stopped the scanner.
    pub const fn fault(&self) -> Option<HeadFault> {
        self.fault
    }

    /// Returns the path of the faulty head, if there is one and it was readable.
    pub fn faulty_path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Returns how many of `bytes`, which must not be empty, belong to the current part; 0 if more
    /// bytes are needed.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, HeadFault> {
        match &mut self.state {
            State::Body(missing) => {
                let count = usize::try_from(*missing).unwrap_or(usize::MAX).min(bytes.len());
                *missing -= count as u64;
                if *missing == 0 {
                    self.state = State::default();
                }
                Ok(count)
            }
            State::Chunked(chunks) => {
                let (count, ended) = chunks.advance(bytes)?;
                if ended {
                    self.state = State::default();
                }
                Ok(count)
            }
            State::Head { scanned } => {
                // Clients may send empty lines between requests.
                if bytes.starts_with(b"\r\n") {
                    *scanned = 0;
                    return Ok(2);
                }
                match bytes[0] {
                    b'\n' => return Err(HeadFault::BareLineFeed),
                    // Wait for the next byte: a carriage return may start an empty line.
                    b'\r' if bytes.len() == 1 => return Ok(0),
                    byte if !byte.is_ascii_graphic() => return Err(HeadFault::NotHttp1),
                    _ => {}
                }
                let Some(length) = head::find_end(bytes, scanned)? else { return Ok(0) };
                self.state = match head::framing(&bytes[..length])? {
                    Framing::None | Framing::Length(0) => State::default(),
                    Framing::Length(length) => State::Body(length),
                    Framing::Chunked => State::Chunked(Chunks::default()),
                };
                Ok(length)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `bytes` to a scanner in pieces of `size`. Returns the number of released bytes and the
    /// fault.
    fn scanned(bytes: &[u8], size: usize) -> (usize, Option<HeadFault>) {
        let (mut scanner, mut held, mut released) = (RequestScanner::default(), Vec::new(), 0);
        for piece in bytes.chunks(size) {
            held.extend_from_slice(piece);
            let count = scanner.advance(&held);
            held.drain(..count);
            released += count;
        }
        (released, scanner.fault())
    }

    fn whole(text: &str) {
        for size in [1, 3, 7, 10_000] {
            assert_eq!(scanned(text.as_bytes(), size), (text.len(), None), "{text:?} by {size}");
        }
    }

    fn faulty(text: &str, fault: HeadFault) {
        for size in [1, 3, 7, 10_000] {
            assert_eq!(scanned(text.as_bytes(), size).1, Some(fault), "{text:?} by {size}");
        }
    }

    #[test]
    fn unambiguous_requests_pass_unchanged() {
        whole("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        whole("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /b HTTP/1.1\r\nhost:\r\n\r\n");
        whole("GET / HTTP/1.0\r\n\r\n");
        whole(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\nGET GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        whole(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5;x=y\r\n\n\nabc\r\n000000000000000A\r\n0123456789\r\n0\r\nx: y\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );
    }

    #[test]
    fn a_head_is_released_only_when_it_is_complete() {
        let mut scanner = RequestScanner::default();
        assert_eq!(scanner.advance(b"GET / HTTP/1.1\r\nHost: a\r\n\r"), 0);
        assert_eq!(scanner.advance(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET"), 27);
    }

    #[test]
    fn two_lengths_are_rejected() {
        let head = "POST / HTTP/1.1\r\nHost: a\r\n";
        faulty(
            &format!("{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
            HeadFault::TwoLengths,
        );
        faulty(
            &format!("{head}transfer-encoding: chunked\r\ncontent-length: 0\r\n\r\n"),
            HeadFault::TwoLengths,
        );
        for lengths in ["5\r\nContent-Length: 5", "5, 5", "+5", "-1", "0x5", "", "99999999999999999999"] {
            faulty(&format!("{head}Content-Length: {lengths}\r\n\r\n"), HeadFault::Length);
        }
        for codings in ["gzip, chunked", "chunked\r\nTransfer-Encoding: chunked", "identity", "xchunked", ""]
        {
            faulty(&format!("{head}Transfer-Encoding: {codings}\r\n\r\n"), HeadFault::Length);
        }
        faulty("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", HeadFault::Length);
    }

    #[test]
    fn a_request_names_exactly_one_host() {
        faulty("GET / HTTP/1.1\r\n\r\n", HeadFault::Host);
        faulty("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", HeadFault::Host);
        faulty("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", HeadFault::Host);
    }

    #[test]
    fn bare_line_feeds_are_rejected_in_heads_and_between_chunks() {
        faulty("GET / HTTP/1.1\nHost: a\r\n\r\n", HeadFault::BareLineFeed);
        faulty("GET / HTTP/1.1\r\nHost: a\n\r\n", HeadFault::BareLineFeed);
        faulty("GET / HTTP/1.1\r\nHost: a\r\n\n", HeadFault::BareLineFeed);
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        for body in [
            "5\n",
            "5;\n",
            "1\r\nab",
            "1\r\na\n",
            "0\r\n\n",
            "0\r\nx: y\n",
            "\r\n",
            "g",
            "11111111111111111\r",
            "100000000",
            "ffffffffffffffff\r\n",
        ] {
            faulty(&format!("{chunked}{body}"), HeadFault::Chunk);
        }
    }

    #[test]
    fn ambiguous_header_lines_are_rejected() {
        for line in
            [" folded: x", "\tfolded: x", "Content-Length : 5", "no colon", ": x", "x: a\0b", "x: a\rb"]
        {
            faulty(&format!("GET / HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n"), HeadFault::Line);
        }
    }

    #[test]
    fn a_head_has_at_most_32_kib() {
        let head = |length: usize| {
            let frame = "GET / HTTP/1.1\r\nHost: a\r\nx: \r\n\r\n".len();
            format!("GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n", "x".repeat(length - frame))
        };
        assert_eq!(scanned(head(MAX_HEAD_BYTES).as_bytes(), 1_000), (MAX_HEAD_BYTES, None));
        for size in [1_000, 100_000] {
            assert_eq!(scanned(head(MAX_HEAD_BYTES + 1).as_bytes(), size), (0, Some(HeadFault::TooLong)));
        }
    }

    #[test]
    fn a_head_has_at_most_100_headers() {
        let head =
            |headers: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "x: y\r\n".repeat(headers - 1));
        whole(&head(100));
        faulty(&head(101), HeadFault::TooManyHeaders);
    }

    #[test]
    fn a_faulty_head_has_its_path_if_the_request_line_is_readable() {
        for (head, path) in [
            ("GET /v1/trades?x=1 HTTP/1.1\r\n\r\n", Some("/v1/trades")),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\nx", Some("/b")),
            ("GET /a HTTP/1.1\n", None),
            ("GET /a b HTTP/1.1\r\n\r\n", None),
            ("GET http://a/b HTTP/1.1\r\n\r\n", None),
            ("GET /\u{e9} HTTP/1.1\r\n\r\n", None),
            ("no such thing\r\n\r\n", None),
        ] {
            for size in [1, 7, 1_000] {
                let (mut scanner, mut held) = (RequestScanner::default(), Vec::new());
                for piece in head.as_bytes().chunks(size) {
                    held.extend_from_slice(piece);
                    held.drain(..scanner.advance(&held));
                }
                assert!(scanner.fault().is_some(), "{head:?}");
                assert_eq!(scanner.faulty_path(), path, "{head:?} by {size}");
            }
        }
        let long = format!("GET /long HTTP/1.1\r\nHost: a\r\nx: {}", "x".repeat(MAX_HEAD_BYTES));
        let mut scanner = RequestScanner::default();
        assert_eq!(scanner.advance(long.as_bytes()), 0);
        assert_eq!(scanner.faulty_path(), Some("/long"));
    }

    #[test]
    fn other_protocols_are_rejected() {
        for text in
            ["\u{16}\u{3}\u{1}", "no such thing\r\n\r\n", "GET /\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
        {
            faulty(text, HeadFault::NotHttp1);
        }
        faulty("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", HeadFault::BareLineFeed);
    }
}
