//! How the command line's values are read, and amounts written. Decimals go in and come out exactly: integers all the way.

use std::str::FromStr;

use alloy_primitives::U256;
use clap::Args;
use domain::time::{DAY_MS, MINUTE_MS};
use domain::{Timestamp, Usdc, Wad};
use uuid::Uuid;

/// A value that is not of the documented form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(String);

impl BadValue {
    /// With these words.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

fn bad(why: impl Into<String>) -> BadValue {
    BadValue::new(why)
}

/// Which part of a list is shown.
#[derive(Debug, Clone, Args)]
pub struct PageArgs {
    /// The most rows
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Start behind the row with this id; lists begin with the newest
    #[arg(long, value_name = "ID")]
    pub after: Option<Uuid>,
}

/// An instant, or a time from now: `2027-01-01T00:00:00Z`, `90m`, `30d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// This instant.
    At(Timestamp),
    /// This many milliseconds from now.
    In(i64),
}

impl When {
    /// The instant, as seen at `now`.
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
            bad("neither an instant such as 2027-01-01T00:00:00Z nor a time from now such as 90m, 12h, 30d")
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
        if number.is_empty() || number.len() > 9 || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(neither());
        }
        let number: i64 = number.parse().map_err(|_| neither())?;
        number.checked_mul(unit_ms).map(Self::In).ok_or_else(neither)
    }
}

/// An instant, or a time before now: `2027-01-01T00:00:00Z`, `90m`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ago(When);

impl Ago {
    /// The instant, as seen at `now`.
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

/// A new value, or `none` to take the old one away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit<T>(pub Option<T>);

impl<T: FromStr> FromStr for Edit<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" { Ok(Self(None)) } else { text.parse().map(Some).map(Self) }
    }
}

/// Writes a value over another, where there is a new one.
pub fn overwrite<T: Clone>(old: &mut T, new: Option<&T>) {
    if let Some(new) = new {
        old.clone_from(new);
    }
}

/// Writes a text over another; an empty one takes it away.
pub fn edit_text(old: &mut Option<String>, new: Option<&String>) {
    if let Some(new) = new {
        *old = Some(new.clone()).filter(|text| !text.is_empty());
    }
}

/// Opening odds, WAD, summing to exactly one.
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

/// What one token of each outcome pays, WAD of USDC, at most one in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payouts(pub Vec<U256>);

impl Payouts {
    /// Everything to one outcome.
    pub fn winner(outcome_index: u8, outcomes: usize) -> Self {
        let paid = |index| if index == usize::from(outcome_index) { Wad::ONE.0 } else { U256::ZERO };
        Self((0..outcomes).map(paid).collect())
    }
}

impl FromStr for Payouts {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let payouts = wads(text)?;
        if sum(&payouts) > Wad::ONE.0 {
            return Err(bad("payouts sum to at most 1"));
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

/// Bytes in hex, with or without `0x`.
pub fn hex_bytes(text: &str) -> Result<alloy_primitives::Bytes, BadValue> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode(digits).map(Into::into).map_err(|_| bad("not bytes in hex"))
}

/// An amount in the form in which it is typed: `25`, `0.5`.
pub fn usdc_text(usdc: Usdc) -> String {
    usdc.decimal()
}

/// Tokens or a share, in the form in which it is typed.
pub fn wad_text(wad: Wad) -> String {
    decimal(&wad.to_string(), 18)
}

/// An integer of `10^-decimals` units with its point put in, and without the zeros behind it.
pub fn decimal(integer: &str, decimals: usize) -> String {
    let padded = format!("{integer:0>width$}", width = decimals + 1);
    let (whole, fraction) = padded.split_at(padded.len() - decimals);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// A name for addresses made from a name for people: its words of a-z and 0-9, joined by hyphens. Empty where it has none.
pub fn slug_of(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-");
    // All of it is ASCII, so that any place may be cut at.
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
    fn payouts_sum_to_at_most_one() {
        assert_eq!("1,0".parse(), Ok(Payouts::winner(0, 2)));
        assert_eq!("0,0.5".parse::<Payouts>().unwrap().0[1], U256::from(500_000_000_000_000_000u64));
        for text in ["1,0.1", "2,0", "1.000000000000000001,0", "0.1234567890123456789,0", "a,b"] {
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
    fn none_takes_a_value_away() {
        assert_eq!("none".parse::<Edit<Timestamp>>(), Ok(Edit(None)));
        assert!("nothing".parse::<Edit<Timestamp>>().is_err());
    }

    #[test]
    fn a_slug_is_made_of_the_names_words() {
        assert_eq!(slug_of("  Northlight  Media, Inc. "), "northlight-media-inc");
        assert_eq!(slug_of("Ünïcode 2026"), "n-code-2026");
        assert_eq!(slug_of("日本"), "");
        assert_eq!(slug_of(&"abc ".repeat(60)).len(), 99);
    }
}
