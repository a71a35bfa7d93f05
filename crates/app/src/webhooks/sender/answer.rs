//! Reads a receiver's response without trusting it.

use http::header::RETRY_AFTER;
use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

/// The maximum number of body bytes to read, plus at most one buffer.
const MAX_READ_BYTES: usize = 64 * 1_024;
/// The maximum number of body bytes to store.
const MAX_KEPT_BYTES: usize = 1_024;
/// An HTTP date has 29 characters, so anything longer than this is no valid value.
const MAX_RETRY_AFTER_BYTES: usize = 64;

/// A response, as far as it was read.
pub(super) struct ReceiverResponse {
    pub status: u16,
    pub retry_after: Option<String>,
    pub head: Option<String>,
    /// The body was read to its end, so the connection can be reused.
    pub is_whole: bool,
}

/// Reads the response. Only the status decides the attempt: a body that breaks off or is too long
/// does not matter.
pub(super) async fn read(response: Response<Incoming>) -> ReceiverResponse {
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let mut body = response.into_body();
    let (mut head, mut read_bytes) = (Vec::new(), 0);
    let is_whole = loop {
        if read_bytes > MAX_READ_BYTES {
            break false;
        }
        if body.is_end_stream() {
            break true;
        }
        match body.frame().await {
            None => break true,
            Some(Err(_)) => break false,
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else { continue };
                read_bytes += data.len();
                let room = MAX_KEPT_BYTES - head.len();
                head.extend_from_slice(&data[..room.min(data.len())]);
            }
        }
    };
    ReceiverResponse { status, retry_after, head: legible(&head), is_whole }
}

fn retry_after(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    (text.len() <= MAX_RETRY_AFTER_BYTES).then(|| text.to_owned())
}

/// Replaces characters that cannot be stored or shown safely. Databases reject NUL, and terminals
/// interpret other control characters.
fn legible(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut kept = String::new();
    for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if kept.len() + c.len_utf8() > MAX_KEPT_BYTES {
            break;
        }
        kept.push(c);
    }
    let kept = kept.trim();
    (!kept.is_empty()).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_body_is_at_most_1_kib_of_clean_text() {
        for (bytes, expected) in [
            (&b""[..], None),
            (b"ok", Some("ok")),
            (b" \r\n\t\0 ", None),
            (b"a\0b\x1b[31mc\r\nd\x7f\xc2\x85e", Some("a b [31mc  d  e")),
            (b"caf\xc3\xa9 \xff", Some("caf\u{e9} \u{fffd}")),
            (b"cut \xc3", Some("cut \u{fffd}")),
        ] {
            assert_eq!(legible(bytes).as_deref(), expected, "{bytes:?}");
        }
        assert_eq!(legible(&[b'a'; 1_024]).unwrap().len(), 1_024);
        assert_eq!(legible(&[0xff; 1_024]).unwrap(), "\u{fffd}".repeat(341));
    }

    #[test]
    fn a_long_or_binary_retry_after_is_ignored() {
        let found = |value: &[u8]| {
            let value = http::HeaderValue::from_bytes(value).unwrap();
            retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value)]))
        };
        assert_eq!(found(b"120").as_deref(), Some("120"));
        let date = "Wed, 21 Oct 2026 07:28:00 GMT";
        assert_eq!(found(date.as_bytes()).as_deref(), Some(date));
        assert_eq!(found(&[b'1'; 65]), None);
        assert_eq!(found(b"\xff"), None);
    }
}
