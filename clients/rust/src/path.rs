use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the characters that a segment can contain as they are.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Encodes an id as one segment of a path.
pub(crate) fn segment(id: &str) -> String {
    // A segment of dots would name another resource.
    let dots = id.len() <= 2 && id.bytes().all(|byte| byte == b'.');
    if dots { "-".to_owned() } else { utf8_percent_encode(id, RESERVED).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_within_their_segment() {
        for (id, encoded) in [("a-1_b.c", "a-1_b.c"), ("a/b?c#d", "a%2Fb%3Fc%23d"), ("..", "-"), ("", "-")] {
            assert_eq!(segment(id), encoded);
        }
    }
}
