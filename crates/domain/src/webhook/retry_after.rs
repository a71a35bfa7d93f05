//! Parses the `Retry-After` header of a receiver's response: seconds, or a date in any of HTTP's
//! three formats.

use jiff::fmt::strtime;
use jiff::tz::TimeZone;

use crate::Timestamp;

/// The maximum number of digits of seconds. Longer values are treated as infinite instead of
/// overflowing.
const MAX_DIGITS: usize = 12;
/// The current format, and the two obsolete ones that HTTP requires recipients to accept: RFC 850's
/// and C's `asctime`.
const DATE_FORMS: [&str; 3] =
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// Returns the milliseconds from `now` for which the receiver asks to wait; `None` if the text is
/// malformed. A date in the past gives 0.
pub fn retry_after_ms(text: &str, now: Timestamp) -> Option<i64> {
    let text = text.trim_matches([' ', '\t']);
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let seconds: i64 = if text.len() > MAX_DIGITS { i64::MAX } else { text.parse().ok()? };
        return Some(seconds.saturating_mul(1_000));
    }
    DATE_FORMS.iter().find_map(|form| date(form, text)).map(|at| at.since_ms(now).max(0))
}

fn date(form: &str, text: &str) -> Option<Timestamp> {
    let date = strtime::parse(form, text).ok()?.to_datetime().ok()?;
    let at = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(Timestamp::from_ms(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-04-29T12:00:00Z, a Wednesday.
    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    #[test]
    fn seconds_and_all_three_date_formats_are_parsed() {
        for (text, wait_ms) in [
            ("0", 0),
            ("120", 120_000),
            (" 7\t", 7_000),
            ("007", 7_000),
            ("999999999999", 999_999_999_999_000),
            ("1000000000000", i64::MAX),
            (&"9".repeat(400), i64::MAX),
            ("Wed, 29 Apr 2026 12:00:30 GMT", 30_000),
            ("Thu, 30 Apr 2026 12:00:00 GMT", 86_400_000),
            ("Wednesday, 29-Apr-26 12:01:00 GMT", 60_000),
            ("Wed Apr 29 12:00:01 2026", 1_000),
            ("Fri May  1 12:00:00 2026", 172_800_000),
            // A date in the past means no wait.
            ("Wed, 29 Apr 2026 11:59:59 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ] {
            assert_eq!(retry_after_ms(text, NOW), Some(wait_ms), "{text}");
        }
    }

    #[test]
    fn dates_written_by_this_service_round_trip() {
        let later = NOW.plus_ms(3_600_000);
        assert_eq!(retry_after_ms(&later.http_date(), NOW), Some(3_600_000));
    }

    #[test]
    fn other_values_are_ignored() {
        for text in [
            "",
            " ",
            "-1",
            "+1",
            "1.5",
            "1 s",
            "soon",
            "0x10",
            "\u{ff11}",
            "2026-04-29T12:00:30Z",
            "Wed, 29 Apr 2026 12:00:30",
            "Wed, 29 Apr 2026 12:00:30 +0200",
            "Tue, 29 Apr 2026 12:00:30 GMT",
            "Wed, 31 Apr 2026 12:00:30 GMT",
            "Wed, 29 Apr 2026 25:00:30 GMT",
            "Wed, 29 Apr 2026 12:00:30 GMT, 120",
        ] {
            assert_eq!(retry_after_ms(text, NOW), None, "{text}");
        }
    }
}
