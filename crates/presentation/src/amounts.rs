//! Amounts, prices and addresses as people read them. Rounding is never in the reader's favor, so
//! that a page never shows more money than there is.

use alloy_primitives::{Address, B256};
use domain::{Timestamp, Usdc, UsdcDelta, Wad};

/// Atomic units of one cent.
const CENT: u64 = 10_000;
/// Hundredths of a token, in WAD.
const HUNDREDTH: u64 = 10_000_000_000_000_000;
pub(crate) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Formats dollars and cents, rounded down, e.g. `$1,284.50`.
pub fn dollars(amount: Usdc) -> String {
    format!("${}", hundredths(amount.atomic() / CENT))
}

/// Formats a profit or loss, rounded down, e.g. `+$6.02` or `−$0.51`.
pub fn profit(amount: UsdcDelta) -> String {
    // Towards negative infinity, so that a loss is never shown too small.
    let cents = amount.0.div_euclid(CENT.cast_signed());
    let sign = match cents {
        ..0 => "−",
        0 => "",
        _ => "+",
    };
    format!("{sign}${}", hundredths(cents.unsigned_abs()))
}

/// Formats tokens with two decimals, rounded down, e.g. `78.27`.
pub fn tokens(amount: Wad) -> String {
    let units = amount.0 / alloy_primitives::U256::from(HUNDREDTH);
    hundredths(u64::try_from(units).unwrap_or(u64::MAX))
}

/// Formats the USDC per token in cents, e.g. `63.9¢`. `None` if there are no tokens.
pub fn price(usdc: Usdc, amount: Wad) -> Option<String> {
    let wei = alloy_primitives::U256::from(usdc.atomic()) * Wad::ONE.0;
    // Tenths of a cent: atomic units per token, divided by a thousand.
    let tenths = wei.checked_div(amount.0)? / alloy_primitives::U256::from(1_000);
    let tenths = u64::try_from(tenths).unwrap_or(u64::MAX);
    Some(match tenths % 10 {
        0 => format!("{}¢", tenths / 10),
        tenth => format!("{}.{tenth}¢", tenths / 10),
    })
}

/// Shortens an address, e.g. `0x71c4…9a2e`.
pub fn short_address(address: Address) -> String {
    shorten(&format!("{address:#x}"))
}

/// Shortens a transaction hash.
pub fn short_hash(hash: B256) -> String {
    shorten(&format!("{hash:#x}"))
}

/// Formats a day, e.g. `16 Dec 2026`. Days are UTC.
pub fn day(at: Timestamp) -> String {
    let iso = at.to_string();
    let part = |range: std::ops::Range<usize>| iso.get(range).unwrap_or_default();
    let month = part(5..7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    format!("{} {} {}", part(8..10).trim_start_matches('0'), month.copied().unwrap_or_default(), part(0..4))
}

/// Formats a day and a minute, e.g. `16 Dec 2026, 19:00 UTC`.
pub fn minute(at: Timestamp) -> String {
    let iso = at.to_string();
    format!("{}, {} UTC", day(at), iso.get(11..16).unwrap_or_default())
}

/// Formats a duration in milliseconds in its largest unit, e.g. `12 ms`, `1.2 s`, `3 min` or `5 h`.
pub fn duration(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// Formats a count with its noun, e.g. `1 market` or `1,204 markets`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// Formats a whole number with thousands separators.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn hundredths(units: u64) -> String {
    format!("{}.{:02}", grouped(units / 100), units % 100)
}

fn shorten(hex: &str) -> String {
    match (hex.get(..6), hex.get(hex.len().saturating_sub(4)..)) {
        (Some(start), Some(end)) => format!("{start}…{end}"),
        _ => hex.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_rounded_down_to_cents() {
        for (atomic, text) in
            [(0, "$0.00"), (9_999, "$0.00"), (10_000, "$0.01"), (1_284_509_999, "$1,284.50")]
        {
            assert_eq!(dollars(Usdc::from_atomic(atomic)), text);
        }
        for (atomic, text) in
            [(0, "$0.00"), (6_020_000, "+$6.02"), (-1, "−$0.01"), (-510_000, "−$0.51"), (9_999, "$0.00")]
        {
            assert_eq!(profit(UsdcDelta(atomic)), text);
        }
    }

    #[test]
    fn tokens_and_prices_are_rounded_down() {
        let wad = |text: &str| text.parse::<Wad>().unwrap();
        assert_eq!(tokens(wad("78279999999999999999")), "78.27");
        assert_eq!(tokens(Wad::ZERO), "0.00");
        assert_eq!(price(Usdc::from_atomic(639_999), Wad::ONE).as_deref(), Some("63.9¢"));
        assert_eq!(price(Usdc::from_atomic(500_000), Wad::ONE).as_deref(), Some("50¢"));
        assert_eq!(price(Usdc::from_whole(1), Wad::ZERO), None);
    }

    #[test]
    fn days_and_counts_have_one_format() {
        let at = Timestamp::from_ms(1_777_464_000_000);
        assert_eq!((day(at), minute(at)), ("29 Apr 2026".to_owned(), "29 Apr 2026, 12:00 UTC".to_owned()));
        assert_eq!((count(1, "market"), count(1_204, "market")), ("1 market".into(), "1,204 markets".into()));
        assert_eq!(short_address(Address::ZERO), "0x0000…0000");
    }
}
