//! Parsing of command-line values, and formatting of amounts. Decimals are exact: they are never
//! converted to floats.

use std::str::FromStr;

use alloy_primitives::U256;
use clap::Args;
use domain::time::{DAY_MS, MINUTE_MS};
use domain::{Timestamp, Usdc, Wad};
use uuid::Uuid;

/// A value that does not have the documented form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(String);

impl BadValue {
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

fn bad(why: impl Into<String>) -> BadValue {
    BadValue::new(why)
}

/// The page of a list to show.
#[derive(Debug, Clone, Args)]
pub struct PageArgs {
    /// The maximum number of rows
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Start after the row with this id. Lists start with the newest row
    #[arg(long, value_name = "ID")]
    pub after: Option<Uuid>,
}

/// An absolute time, or a duration from now, e.g. `2027-01-01T00:00:00Z`, `90m` or `30d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    At(Timestamp),
    /// Milliseconds from now.
    In(i64),
}

impl When {
    /// Returns the absolute time, given the current time `now`.
    pub const fn from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::In(ms) => now.plus_ms(ms),
        }
    }
}

impl FromStr for When {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(at) = text.parse() {
            return Ok(Self::At(at));
        }
        let neither = || {
            bad("must be an instant such as 2027-01-01T00:00:00Z or a time from now such as 90m, 12h, 30d")
        };
        let unit_ms = match text.chars().last() {
            Some('s') => 1_000,
            Some('m') => MINUTE_MS,
            Some('h') => 60 * MINUTE_MS,
            Some('d') => DAY_MS,
            Some('w') => 7 * DAY_MS,
            _ => return Err(neither()),
        };
        let number = &text[..text.len() - 1];
        // The parser would also accept a plus sign.
        if number.is_empty() || number.len() > 9 || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(neither());
        }
        let number: i64 = number.parse().map_err(|_| neither())?;
        number.checked_mul(unit_ms).map(Self::In).ok_or_else(neither)
    }
}

/// An absolute time, or a duration before now, e.g. `2027-01-01T00:00:00Z`, `90m` or `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ago(When);

impl Ago {
    /// Returns the absolute time, given the current time `now`.
    pub const fn from(self, now: Timestamp) -> Timestamp {
        match self.0 {
            When::At(at) => at,
            When::In(ms) => now.plus_ms(-ms),
        }
    }
}

impl FromStr for Ago {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let neither =
            |_| bad("must be an instant such as 2027-01-01T00:00:00Z or a time ago such as 90m, 12h, 7d");
        text.parse().map(Self).map_err(neither)
    }
}

/// A new value, or `none` to remove the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit<T>(pub Option<T>);

impl<T: FromStr> FromStr for Edit<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" { Ok(Self(None)) } else { text.parse().map(Some).map(Self) }
    }
}

/// Overwrites a value if a new one is given.
pub fn overwrite<T: Clone>(old: &mut T, new: Option<&T>) {
    if let Some(new) = new {
        old.clone_from(new);
    }
}

/// Overwrites a text if a new one is given. An empty text removes it.
pub fn edit_text(old: &mut Option<String>, new: Option<&String>) {
    if let Some(new) = new {
        *old = Some(new.clone()).filter(|text| !text.is_empty());
    }
}

/// Opening odds in WAD, with a sum of exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Odds(pub Vec<U256>);

impl FromStr for Odds {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let odds = wads(text)?;
        app::markets::check_odds(&odds).map_err(bad)?;
        Ok(Self(odds))
    }
}

/// Payouts per token of each outcome, in WAD of USDC, with a sum of exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payouts(pub Vec<U256>);

impl Payouts {
    /// Assigns the whole payout to one outcome.
    pub fn winner(outcome_index: u8, outcomes: usize) -> Self {
        let paid = |index| if index == usize::from(outcome_index) { Wad::ONE.0 } else { U256::ZERO };
        Self((0..outcomes).map(paid).collect())
    }
}

impl FromStr for Payouts {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let payouts = wads(text)?;
        if sum(&payouts) != Wad::ONE.0 {
            return Err(bad("payouts must sum to exactly 1"));
        }
        Ok(Self(payouts))
    }
}

fn wads(text: &str) -> Result<Vec<U256>, BadValue> {
    text.split(',').map(|part| wad(part.trim())).collect()
}

fn sum(parts: &[U256]) -> U256 {
    parts.iter().fold(U256::ZERO, |sum, part| sum.saturating_add(*part))
}

fn wad(text: &str) -> Result<U256, BadValue> {
    Wad::from_share(text).map(|wad| wad.0).map_err(|error| bad(format!("{text:?} is {error}")))
}

/// Parses bytes in hex, with or without `0x`.
pub fn hex_bytes(text: &str) -> Result<alloy_primitives::Bytes, BadValue> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode(digits).map(Into::into).map_err(|_| bad("must be bytes in hex"))
}

/// Formats an amount the way the command line accepts it, e.g. `25` or `0.5`.
pub fn usdc_text(usdc: Usdc) -> String {
    usdc.to_decimal()
}

/// Formats tokens or a share the way the command line accepts them.
pub fn wad_text(wad: Wad) -> String {
    decimal(&wad.to_string(), 18)
}

/// Formats an integer of `10^-decimals` units as a decimal, without trailing zeros.
pub fn decimal(integer: &str, decimals: usize) -> String {
    let padded = format!("{integer:0>width$}", width = decimals + 1);
    let (whole, fraction) = padded.split_at(padded.len() - decimals);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Derives a URL slug from a name: its words of a-z and 0-9, joined by hyphens. Empty if the name
/// has no such word.
pub fn slug_of(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-");
    // The slug is ASCII, so truncating cannot split a character.
    slug.truncate(100);
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_an_instant_or_a_time_from_now() {
        let now = Timestamp::from_ms(1_000);
        let at = |text: &str| text.parse::<When>().map(|when| when.from(now).ms());
        assert_eq!(at("30d"), Ok(1_000 + 30 * DAY_MS));
        assert_eq!(at("90m"), Ok(1_000 + 90 * MINUTE_MS));
        assert_eq!(at("2w"), Ok(1_000 + 14 * DAY_MS));
        assert_eq!(at("2026-04-29T12:00:00Z"), Ok(1_777_464_000_000));
        for text in ["", "d", "-1d", "1.5d", "30", "30y", "1e3d", "9999999999d", "ä", "tomorrow"] {
            assert!(at(text).is_err(), "{text}");
        }
    }

    #[test]
    fn odds_sum_to_exactly_one() {
        let odds: Odds = "0.6,0.4".parse().unwrap();
        assert_eq!(odds.0, [600_000_000_000_000_000u64, 400_000_000_000_000_000].map(U256::from));
        let thirds = "0.333333333333333333, 0.333333333333333333, 0.333333333333333334".parse::<Odds>();
        assert_eq!(sum(&thirds.unwrap().0), Wad::ONE.0);
        for text in [
            "",
            "0.6",
            "0.6,0.3",
            "0.6,0.5",
            "1,0",
            "0.9999999,0.0000001",
            "0.6,0.4,",
            "60,40",
            "-0.1,1.1",
            ".5,.5",
        ] {
            assert!(text.parse::<Odds>().is_err(), "{text}");
        }
    }

    #[test]
    fn payouts_sum_to_exactly_one() {
        assert_eq!("1,0".parse(), Ok(Payouts::winner(0, 2)));
        assert_eq!("0.5,0.5".parse::<Payouts>().unwrap().0[1], U256::from(500_000_000_000_000_000u64));
        for text in [
            "1,0.1",
            "0,0.5",
            "0.5,0.499999999999999999",
            "2,0",
            "1.000000000000000001,0",
            "0.1234567890123456789,0",
            "a,b",
        ] {
            assert!(text.parse::<Payouts>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_amount_is_written_as_it_is_typed() {
        for text in ["0", "25", "0.5", "0.000001", "123456789012.345678"] {
            assert_eq!(usdc_text(text.parse().unwrap()), text);
        }
        assert_eq!(wad_text(Wad::ONE), "1");
    }

    #[test]
    fn none_removes_a_value() {
        assert_eq!("none".parse::<Edit<Timestamp>>(), Ok(Edit(None)));
        assert!("nothing".parse::<Edit<Timestamp>>().is_err());
    }

    #[test]
    fn a_slug_consists_of_the_words_of_the_name() {
        assert_eq!(slug_of("  Northlight  Media, Inc. "), "northlight-media-inc");
        assert_eq!(slug_of("Ünïcode 2026"), "n-code-2026");
        assert_eq!(slug_of("日本"), "");
        assert_eq!(slug_of(&"abc ".repeat(60)).len(), 99);
    }
}
