//! Amounts of money as integers, in three units that cannot be mixed: [`Usdc`] (6 decimals),
//! [`Wad`] (outcome tokens, 18 decimals) and [`Cents`]. There are no operators that could round.
//! The name of a rounding conversion states its direction.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::U256;
use serde::{Deserialize, Serialize};

/// An amount of USDC in atomic units (6 decimals), at most `i64::MAX`, because SQL databases store
/// signed integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usdc(u64);

/// The maximum amount of one trade: 10,000,000 USDC.
pub const MAX_TRADE: Usdc = Usdc(10_000_000_000_000);

const ATOMIC_PER_USDC: u64 = 1_000_000;
const ATOMIC_PER_CENT: u64 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal amount with at most 12 whole digits and at most 6 decimals")]
pub struct ParseAmountError;

impl Usdc {
    pub const ZERO: Self = Self(0);

    pub const fn from_atomic(atomic: u64) -> Self {
        Self(atomic)
    }

    pub const fn from_whole(whole: u32) -> Self {
        Self(whole as u64 * ATOMIC_PER_USDC)
    }

    /// Returns the amount in millionths of a USDC.
    pub const fn atomic(self) -> u64 {
        self.0
    }

    /// Returns the sum, or `None` if it exceeds the largest representable amount.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) if sum <= i64::MAX as u64 => Some(Self(sum)),
            _ => None,
        }
    }

    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the amount in whole USDC as decimal text, such as `0.01`.
    pub fn to_decimal(self) -> String {
        let (whole, decimals) = (self.0 / ATOMIC_PER_USDC, self.0 % ATOMIC_PER_USDC);
        format!("{whole}.{decimals:06}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// Returns whole cents, rounded down.
    pub const fn to_cents_floor(self) -> Cents {
        Cents(self.0 / ATOMIC_PER_CENT)
    }

    /// Converts to a float for display. Never use it for money.
    #[expect(clippy::cast_precision_loss, clippy::float_arithmetic, reason = "a display value")]
    pub fn to_f64_for_display(self) -> f64 {
        self.0 as f64 / ATOMIC_PER_USDC as f64
    }
}

/// Parses `^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?$`. More than six decimals are rejected, never
/// rounded.
impl FromStr for Usdc {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, decimals) = match text.split_once('.') {
            Some((_, "")) => return Err(ParseAmountError),
            Some((whole, decimals)) => (whole, decimals),
            None => (text, ""),
        };
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty()
            || whole.len() > 12
            || decimals.len() > 6
            || leading_zero
            || !digits(whole)
            || !digits(decimals)
        {
            return Err(ParseAmountError);
        }
        // Cannot overflow: the checks above bound the digits to 12 and 6.
        let number = |part: &str| part.bytes().fold(0u64, |sum, b| sum * 10 + u64::from(b - b'0'));
        let scale = 10u64.pow(6 - decimals.len() as u32);
        Ok(Self(number(whole) * ATOMIC_PER_USDC + number(decimals) * scale))
    }
}

/// Atomic units as a decimal integer.
impl fmt::Display for Usdc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Serializes as a decimal string of atomic units, because JSON numbers lose precision.
impl Serialize for Usdc {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A signed difference of USDC in atomic units, such as a profit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct UsdcDelta(pub i64);

impl UsdcDelta {
    /// Returns `gained - given`.
    pub const fn between(gained: Usdc, given: Usdc) -> Self {
        Self(gained.0 as i64 - given.0 as i64)
    }
}

impl Serialize for UsdcDelta {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An amount of outcome tokens in WAD (18 decimals).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Wad(pub U256);

impl Wad {
    pub const ZERO: Self = Self(U256::ZERO);
    /// One token.
    pub const ONE: Self = Self(U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]));
    /// The smallest amount of tokens that a trade's amount can name, which has six decimals. A token
    /// pays at most 1 USDC, so it is also the smallest amount that can pay anything.
    pub const MIN_AMOUNT: Self = Self(U256::from_limbs([1_000_000_000_000, 0, 0, 0]));

    /// Converts whole tokens that were written with the six decimals of a trade's amount.
    pub fn from_amount(amount: Usdc) -> Self {
        Self(U256::from(amount.atomic()) * Self::MIN_AMOUNT.0)
    }

    /// Parses a share: a decimal from 0 to 1 with at most 18 decimals.
    pub fn from_share(text: &str) -> Result<Self, ParseShareError> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = !decimals.is_empty() && decimals.bytes().all(|b| b.is_ascii_digit());
        if !matches!(whole, "0" | "1") || !digits || decimals.len() > 18 {
            return Err(ParseShareError);
        }
        let share: Self = format!("{whole}{decimals:0<18}").parse().map_err(|_| ParseShareError)?;
        if share <= Self::ONE { Ok(share) } else { Err(ParseShareError) }
    }

    /// Returns the amount in the contracts' width for tokens; `None` if it does not fit.
    pub fn to_u128(self) -> Option<u128> {
        u128::try_from(self.0).ok()
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Returns the value of these tokens at a price of one token, rounded down. The contract pays a
    /// settled position exactly this at its payout.
    pub fn worth_floor(self, price: Self) -> Usdc {
        let atomic = self.0.saturating_mul(price.0) / Self::ONE.0 / Self::MIN_AMOUNT.0;
        Usdc::from_atomic(u64::try_from(atomic).unwrap_or(i64::MAX as u64))
    }

    /// Converts to a float for display. Never use it for money.
    pub fn to_f64_for_display(self) -> f64 {
        wad_to_f64_for_display(self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal between 0 and 1 with at most 18 decimals")]
pub struct ParseShareError;

impl From<u128> for Wad {
    fn from(wad: u128) -> Self {
        Self(U256::from(wad))
    }
}

impl fmt::Display for Wad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Parses a decimal integer of WAD.
impl FromStr for Wad {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text.len() > 78 || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseAmountError);
        }
        U256::from_str_radix(text, 10).map(Self).map_err(|_| ParseAmountError)
    }
}

/// Serializes as a decimal string, because JSON numbers lose precision.
impl Serialize for Wad {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whole US cents, the unit of volumes in the public API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cents(pub u64);

/// Converts a WAD quantity to a float for display. Never use it for money.
#[expect(clippy::cast_precision_loss, clippy::float_arithmetic, reason = "a display value")]
pub fn wad_to_f64_for_display(wad: U256) -> f64 {
    // Both branches round to the nearest float. The first one covers nearly all quantities without
    // formatting text.
    let number = match u128::try_from(wad) {
        Ok(wad) => wad as f64,
        Err(_) => wad.to_string().parse::<f64>().unwrap_or(f64::INFINITY),
    };
    number / 1e18
}

/// Returns `total * part / whole`, rounded up. A position's cost basis is reduced by this when
/// `part` of its tokens leaves. The remaining tokens then never carry more than their share of the
/// cost.
pub fn share_ceil(total: Usdc, part: Wad, whole: Wad) -> Usdc {
    if whole.0.is_zero() || part >= whole {
        return total;
    }
    let share = U256::from(total.0).saturating_mul(part.0).div_ceil(whole.0);
    Usdc(u64::try_from(share).unwrap_or(total.0).min(total.0))
}

/// Splits `total` in proportion to the weights. Each share is rounded down, and the first one with
/// the highest weight receives the remainder, so that the sum is exact. If all weights are 0, that
/// share receives everything.
pub fn shares_by_weight(total: Usdc, weights: &[u32]) -> Vec<Usdc> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let share = |weight: u32| u128::from(total.0) * u128::from(weight) / sum.max(1);
    let mut shares: Vec<Usdc> =
        weights.iter().map(|weight| Usdc(u64::try_from(share(*weight)).unwrap_or(total.0))).collect();
    let given = shares.iter().fold(0, |sum: u64, share| sum.saturating_add(share.0));
    // `max_by_key` returns the last maximum, which is the first one in the original order.
    let top = weights.iter().rev().enumerate().max_by_key(|(_, weight)| **weight);
    if let Some(top) = top.and_then(|(from_end, _)| shares.iter_mut().rev().nth(from_end)) {
        top.0 = top.0.saturating_add(total.0.saturating_sub(given));
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_value_of_tokens_is_rounded_down() {
        let third = Wad::from(333_333_333_333_333_333);
        assert_eq!(Wad::ONE.worth_floor(third), Usdc::from_atomic(333_333));
        assert_eq!(Wad::from(999_999_999_999).worth_floor(Wad::ONE), Usdc::ZERO);
        assert_eq!(Wad::MIN_AMOUNT.worth_floor(Wad::ONE), Usdc::from_atomic(1));
    }

    #[test]
    fn shares_by_weight_sum_to_the_total() {
        assert_eq!(shares_by_weight(Usdc(10), &[1, 1, 1]), [Usdc(4), Usdc(3), Usdc(3)]);
        assert_eq!(shares_by_weight(Usdc(10), &[0, 3, 1]), [Usdc(0), Usdc(8), Usdc(2)]);
        assert_eq!(shares_by_weight(Usdc(7), &[0, 0]), [Usdc(7), Usdc(0)]);
        assert_eq!(shares_by_weight(Usdc(7), &[]), []);
    }

    #[test]
    fn decimals_have_no_trailing_zeros_and_round_trip() {
        for (atomic, text) in
            [(0, "0"), (1, "0.000001"), (10_000, "0.01"), (10_000_000, "10"), (1_500_000, "1.5")]
        {
            assert_eq!(Usdc::from_atomic(atomic).to_decimal(), text);
            assert_eq!(text.parse(), Ok(Usdc::from_atomic(atomic)));
        }
    }

    #[test]
    fn documented_amounts_are_parsed_exactly() {
        for (text, atomic) in [
            ("0", 0),
            ("10", 10_000_000),
            ("10.0", 10_000_000),
            ("0.000001", 1),
            ("999999999999.999999", 999_999_999_999_999_999),
        ] {
            assert_eq!(text.parse(), Ok(Usdc(atomic)), "{text}");
        }
    }

    #[test]
    fn other_amounts_are_rejected() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "01",
            "00",
            "-1",
            "+1",
            "1e3",
            "1,000",
            " 1",
            "1 ",
            "1.0000000",
            "1000000000000",
            "١",
            "NaN",
            "0x1",
            "1.2.3",
        ] {
            assert_eq!(text.parse::<Usdc>(), Err(ParseAmountError), "{text}");
        }
    }

    #[test]
    fn a_share_is_a_decimal_from_0_to_1() {
        let tenth = 100_000_000_000_000_000u128;
        for (text, wad) in
            [("0", 0), ("1", 10 * tenth), ("1.0", 10 * tenth), ("0.10", tenth), ("0.000000000000000001", 1)]
        {
            assert_eq!(Wad::from_share(text), Ok(Wad::from(wad)), "{text}");
        }
        for text in
            ["", ".", "1.", ".5", "00", "2", "1.000000000000000001", "-0.1", "0.1234567890123456789", "1e0"]
        {
            assert_eq!(Wad::from_share(text), Err(ParseShareError), "{text}");
        }
    }

    #[test]
    fn cents_are_rounded_down() {
        assert_eq!(Usdc(19_999).to_cents_floor(), Cents(1));
    }

    proptest! {
        #[test]
        fn a_quantity_is_displayed_as_the_nearest_float(wad: u128) {
            prop_assert_eq!((wad as f64).to_bits(), wad.to_string().parse::<f64>().unwrap().to_bits());
            let more = U256::from(wad) + U256::from(u128::MAX);
            prop_assert!(wad_to_f64_for_display(U256::from(wad)) <= wad_to_f64_for_display(more));
        }

        #[test]
        fn an_amount_keeps_every_decimal(atomic in 0u64..1_000_000_000_000_000_000) {
            let text = format!("{}.{:06}", atomic / 1_000_000, atomic % 1_000_000);
            prop_assert_eq!(text.parse(), Ok(Usdc(atomic)));
        }

        #[test]
        fn a_share_is_never_more_than_the_whole(total in 0u64..1 << 60, part in 0u128..1 << 100, rest in 0u128..1 << 100) {
            let share = share_ceil(Usdc(total), Wad::from(part), Wad::from(part + rest));
            prop_assert!(share <= Usdc(total));
            let left = share_ceil(Usdc(total), Wad::from(rest), Wad::from(part + rest));
            prop_assert!(part == 0 || rest == 0 || (total..=total + 1).contains(&(share.0 + left.0)));
        }
    }
}
