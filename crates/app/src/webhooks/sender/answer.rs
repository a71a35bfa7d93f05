//! Reading what a receiver answers, without trusting any of it.

use http::header::RETRY_AFTER;
use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

/// What is read of a body at most.
const MAX_READ_BYTES: usize = 64 * 1_024;
/// What is kept of it at most.
const MAX_KEPT_BYTES: usize = 1_024;
/// An HTTP date has 29 characters.
const MAX_RETRY_AFTER_BYTES: usize = 64;

/// An answer, as far as it was read.
pub(super) struct Answer {
    pub status: u16,
    pub retry_after: Option<String>,
    pub head: Option<String>,
    /// Whether it was read to its end, so that the connection can carry another one.
    pub is_whole: bool,
}

/// Reads the answer. Its status has been said by now: a body that breaks off, or goes on for too long, changes nothing.
pub(super) async fn read(response: Response<Incoming>) -> Answer {
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let mut body = response.into_body();
    let (mut head, mut read_bytes) = (Vec::new(), 0);
    let is_whole = loop {
        if body.is_end_stream() {
            break true;
        }
        if read_bytes >= MAX_READ_BYTES {
            break false;
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
    Answer { status, retry_after, head: legible(&head), is_whole }
}

fn retry_after(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    (text.len() <= MAX_RETRY_AFTER_BYTES).then(|| text.to_owned())
}

/// Text that can be stored and shown: a database refuses NUL, a terminal obeys the other control characters.
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
    fn what_is_kept_is_text_without_control_characters_of_a_kibibyte_at_most() {
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
    fn a_retry_after_that_is_no_short_text_is_not_there() {
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
