//! Times in query parameters.

use domain::Timestamp;

/// Error detail for a malformed time.
pub const INSTANT: &str = "must be an ISO 8601 instant or milliseconds since the epoch";

/// The end of the year 9998, in milliseconds since the epoch. Later times may not be representable
/// in the response formats.
const END_MS: i64 = 253_370_764_800_000;

/// Parses a time between 1970 and 9998.
pub fn instant(text: &str) -> Option<Timestamp> {
    // Only digits are milliseconds; everything else must be ISO 8601.
    let is_ms = text.bytes().all(|b| b.is_ascii_digit());
    let at = if is_ms { text.parse().ok().map(Timestamp::from_ms) } else { text.parse().ok() };
    at.filter(|at| (0..END_MS).contains(&at.ms()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_iso_8601_or_milliseconds_since_the_epoch() {
        let at = Timestamp::from_ms(1_777_464_000_123);
        for text in ["2026-04-29T12:00:00.123Z", "1777464000123", "2026-04-29T14:00:00.123+02:00"] {
            assert_eq!(instant(text), Some(at), "{text}");
        }
        assert_eq!(instant("0"), Some(Timestamp::from_ms(0)));
        assert_eq!(
            instant("253370764799999").map(|at| at.to_string()).as_deref(),
            Some("9998-12-31T23:59:59.999Z")
        );
        for text in [
            "-1",
            "+1",
            "1.5",
            "253370764800000",
            "99999999999999999999",
            "1969-12-31T23:59:59Z",
            "today",
            "2026-04-29",
        ] {
            assert_eq!(instant(text), None, "{text}");
        }
    }
}
