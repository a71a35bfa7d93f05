//! Scans the request line and headers of one request.

use super::{HeadFault, MAX_HEAD_BYTES};

/// The maximum number of headers. The HTTP library reads no more.
const MAX_HEADERS: usize = 100;

/// The way in which the end of a body is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// Returns the length of the head at the start of `bytes`, if it is complete. The first `scanned`
/// bytes are known not to contain its end.
pub(super) fn find_end(bytes: &[u8], scanned: &mut usize) -> Result<Option<usize>, HeadFault> {
    for (at, byte) in bytes.iter().enumerate().take(MAX_HEAD_BYTES).skip(*scanned) {
        if *byte != b'\n' {
            continue;
        }
        if at == 0 || bytes[at - 1] != b'\r' {
            return Err(HeadFault::BareLineFeed);
        }
        if at >= 3 && bytes[at - 3..at - 1] == *b"\r\n" {
            return Ok(Some(at + 1));
        }
    }
    if bytes.len() > MAX_HEAD_BYTES {
        return Err(HeadFault::TooLong);
    }
    *scanned = bytes.len();
    Ok(None)
}

/// Returns the path at the start of a faulty head, if its request line is complete and readable.
/// The query is left out.
pub(super) fn readable_path(head: &[u8]) -> Option<&str> {
    let end = head.iter().take(MAX_HEAD_BYTES).position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(head[..end].strip_suffix(b"\r")?).ok()?;
    let mut parts = line.split(' ');
    let (_, target, version) = (parts.next()?, parts.next()?, parts.next()?);
    let path = target.split(['?', '#']).next()?;
    let is_readable = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    (is_readable && version.starts_with("HTTP/1.") && parts.next().is_none()).then_some(path)
}

/// The headers that determine the end of the request.
#[derive(Default)]
struct Seen {
    hosts: usize,
    lengths: usize,
    length: Option<u64>,
    codings: usize,
    chunked: bool,
}

/// Determines how the body after a complete head is delimited.
pub(super) fn framing(head: &[u8]) -> Result<Framing, HeadFault> {
    // `find_end` has rejected bare line feeds, so this splits only at line ends.
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let is_1_1 = match lines.next().and_then(|line| line.rsplit(|byte| *byte == b' ').next()) {
        Some(b"HTTP/1.1") => true,
        Some(b"HTTP/1.0") => false,
        _ => return Err(HeadFault::NotHttp1),
    };
    let mut seen = Seen::default();
    for (before, line) in lines.take_while(|line| !line.is_empty()).enumerate() {
        if before == MAX_HEADERS {
            return Err(HeadFault::TooManyHeaders);
        }
        seen.note(line)?;
    }
    if seen.hosts > 1 || (is_1_1 && seen.hosts == 0) {
        return Err(HeadFault::Host);
    }
    // Anything other than one unambiguous length is rejected, even if HTTP allows it.
    match (seen.lengths, seen.codings) {
        (0, 0) => Ok(Framing::None),
        (0, 1) if is_1_1 && seen.chunked => Ok(Framing::Chunked),
        (1, 0) => seen.length.map(Framing::Length).ok_or(HeadFault::Length),
        (0, _) | (_, 0) => Err(HeadFault::Length),
        _ => Err(HeadFault::TwoLengths),
    }
}

impl Seen {
    fn note(&mut self, line: &[u8]) -> Result<(), HeadFault> {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(HeadFault::Line)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) || value.iter().any(is_control) {
            return Err(HeadFault::Line);
        }
        if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            self.lengths += 1;
            self.length = number(value);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.codings += 1;
            self.chunked = value.eq_ignore_ascii_case(b"chunked");
        }
        Ok(())
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_plain {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
