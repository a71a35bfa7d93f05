//! Exact amounts: integers of atomic units, never floating-point numbers.

use std::fmt;
use std::ops::{Add, Neg, Sub};
use std::str::FromStr;

use num_bigint::BigInt;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an amount of {unit} must be {form}")]
pub struct AmountError {
    unit: &'static str,
    form: &'static str,
}

/// Parses an optional minus sign and digits.
fn parse_atomic(text: &str, unit: &'static str) -> Result<BigInt, AmountError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let error = AmountError { unit, form: "a string of digits" };
    if is_whole { text.parse().map_err(|_| error) } else { Err(error) }
}

fn parse_decimal(
    text: &str,
    decimals: usize,
    unit: &'static str,
    form: &'static str,
) -> Result<BigInt, AmountError> {
    let error = AmountError { unit, form };
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return Err(error),
        None => (text, ""),
    };
    if fraction.len() > decimals || whole.trim_start_matches('-').is_empty() || fraction.starts_with('-') {
        return Err(error);
    }
    parse_atomic(&format!("{whole}{fraction:0<decimals$}"), unit).map_err(|_| error)
}

/// Writes whole units as the shortest decimal string.
fn write_decimal(atomic: &BigInt, decimals: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_negative = atomic.sign() == num_bigint::Sign::Minus;
    let digits = format!("{:0>1$}", atomic.magnitude(), decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    f.pad_integral(!is_negative, "", &format!("{whole}{point}{fraction}"))
}

macro_rules! amount {
    ($(#[$doc:meta])* $name:ident, $decimals:literal, $unit:literal, $form:literal) => {
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(BigInt);

        impl $name {
            /// Parses whole units, such as `25.00`.
            ///
            /// # Errors
            ///
            /// If the text is not a decimal number, or has too many decimals.
            pub fn parse(text: &str) -> Result<Self, AmountError> {
                parse_decimal(text, $decimals, $unit, $form).map(Self)
            }

            /// Parses atomic units, as responses contain them.
            ///
            /// # Errors
            ///
            /// If the text is not an integer.
            pub fn parse_atomic(text: &str) -> Result<Self, AmountError> {
                parse_atomic(text, $unit).map(Self)
            }

            /// Converts an integer of atomic units.
            #[must_use]
            pub fn from_atomic(atomic: impl Into<i128>) -> Self {
                Self(BigInt::from(atomic.into()))
            }

            /// Returns the atomic units as an integer, as responses contain them.
            #[must_use]
            pub fn to_atomic(&self) -> String {
                self.0.to_string()
            }

            /// Multiplies with the fraction `numerator / denominator`, and rounds toward zero. Returns
            /// `None` if the denominator is 0.
            #[must_use]
            pub fn times_ratio(&self, numerator: u64, denominator: u64) -> Option<Self> {
                (denominator != 0).then(|| Self(&self.0 * numerator / denominator))
            }

            /// Drops the digits after this many decimals. The `amount` of a trade has at most 6.
            #[must_use]
            pub fn round_down(&self, decimals: u32) -> Self {
                let dropped = u32::saturating_sub($decimals, decimals);
                Self(&self.0 - &self.0 % BigInt::from(10).pow(dropped))
            }

            /// Returns true if the amount is 0.
            #[must_use]
            pub fn is_zero(&self) -> bool {
                self.0.sign() == num_bigint::Sign::NoSign
            }
        }

        /// Whole units as the shortest decimal string, such as `25.5`. Requests take this form.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_decimal(&self.0, $decimals, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self} {}", $unit)
            }
        }

        impl FromStr for $name {
            type Err = AmountError;

            fn from_str(text: &str) -> Result<Self, AmountError> {
                Self::parse(text)
            }
        }

        impl Add for &$name {
            type Output = $name;

            fn add(self, other: Self) -> $name {
                $name(&self.0 + &other.0)
            }
        }

        impl Add for $name {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for &$name {
            type Output = $name;

            fn sub(self, other: Self) -> $name {
                $name(&self.0 - &other.0)
            }
        }

        impl Sub for $name {
            type Output = Self;

            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Neg for $name {
            type Output = Self;

            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
                amounts.fold(Self::default(), Add::add)
            }
        }

        /// Atomic units, as in the records of the API.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_atomic())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse_atomic(&text).map_err(D::Error::custom)
            }
        }

        impl From<$name> for DecimalAmount {
            fn from(amount: $name) -> Self {
                Self(amount.to_string())
            }
        }

        impl From<&$name> for DecimalAmount {
            fn from(amount: &$name) -> Self {
                Self(amount.to_string())
            }
        }
    };
}

amount! {
    /// USDC: 6 decimals. Responses contain atomic units, requests whole USDC.
    Usdc, 6, "USDC", "a decimal string with at most 6 decimals"
}

amount! {
    /// Outcome tokens: 18 decimals ("WAD").
    Wad, 18, "tokens", "a decimal string with at most 18 decimals"
}

/// An amount of a request, in whole units: a decimal string, [`Usdc`] or [`Wad`]. The service
/// validates it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecimalAmount(String);

impl DecimalAmount {
    /// The text of the request.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for DecimalAmount {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for DecimalAmount {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// A price, probability or ratio of a response, with the digits that the service wrote.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Decimal(String);

impl Decimal {
    /// The number as text, without an exponent. `Wad::parse` makes it an exact number.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number: serde_json::Number = self.0.parse().map_err(serde::ser::Error::custom)?;
        number.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        // The shortest text that reads as the same number has the digits that were sent. Numbers
        // below 0.00001 would have an exponent in JSON.
        let text = match number.as_f64() {
            Some(value) if number.is_f64() => value.to_string(),
            _ => number.to_string(),
        };
        Ok(Self(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn vectors() -> Value {
        let table: Value = serde_json::from_str(include_str!("../../behaviors/behaviors.json")).unwrap();
        table["amounts"].clone()
    }

    /// The decimal string and the atomic units of a text, in the type that the vector names.
    fn read(of: &Value, atomic: bool) -> Result<(String, String), AmountError> {
        let text = of[if atomic { "atomic" } else { "text" }].as_str().unwrap();
        match of["type"].as_str().unwrap() {
            "Usdc" => (if atomic { Usdc::parse_atomic(text) } else { Usdc::parse(text) })
                .map(|amount| (amount.to_string(), amount.to_atomic())),
            _ => (if atomic { Wad::parse_atomic(text) } else { Wad::parse(text) })
                .map(|amount| (amount.to_string(), amount.to_atomic())),
        }
    }

    #[test]
    fn amounts_are_exact() {
        let vectors = vectors();
        for (list, is_atomic) in [("parse", false), ("atomic", true)] {
            for vector in vectors[list].as_array().unwrap() {
                let (decimal, atomic) = read(vector, is_atomic).unwrap();
                assert_eq!((&vector["decimal"], &vector["atomic"]), (&decimal.into(), &atomic.into()));
            }
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        let vectors = vectors();
        for vector in vectors["rejected"].as_array().unwrap() {
            assert!(read(vector, false).is_err(), "{vector}");
        }
        for digits in vectors["rejectedAtomic"].as_array().unwrap() {
            assert!(Usdc::parse_atomic(digits.as_str().unwrap()).is_err(), "{digits}");
        }
        for text in ["--1", "-", "1.-5", "-.5", "1.5.5"] {
            assert!(Usdc::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sums_and_order_are_exact() {
        for vector in vectors()["sums"].as_array().unwrap() {
            let text = |member: &str| vector[member].as_str().unwrap();
            let order = vector["order"].as_i64().unwrap();
            let (sum, difference, compared) = if text("type") == "Usdc" {
                let (a, b) = (Usdc::parse(text("a")).unwrap(), Usdc::parse(text("b")).unwrap());
                ((&a + &b).to_string(), (&a - &b).to_string(), a.cmp(&b))
            } else {
                let (a, b) = (Wad::parse(text("a")).unwrap(), Wad::parse(text("b")).unwrap());
                ((&a + &b).to_string(), (&a - &b).to_string(), a.cmp(&b))
            };
            assert_eq!((sum.as_str(), difference.as_str()), (text("sum"), text("difference")));
            assert_eq!(i64::from(compared as i8), order);
        }
    }

    #[test]
    fn rounding_down_drops_digits() {
        for vector in vectors()["rounded"].as_array().unwrap() {
            let text = |member: &str| vector[member].as_str().unwrap();
            let decimals = u32::try_from(vector["decimals"].as_u64().unwrap()).unwrap();
            let rounded = if text("type") == "Usdc" {
                Usdc::parse(text("text")).unwrap().round_down(decimals).to_string()
            } else {
                Wad::parse(text("text")).unwrap().round_down(decimals).to_string()
            };
            assert_eq!(rounded, text("result"));
        }
    }

    #[test]
    fn ratios_round_toward_zero() {
        let amount = Usdc::from_atomic(-7);
        assert_eq!(amount.times_ratio(1, 2), Some(Usdc::from_atomic(-3)));
        assert_eq!(amount.times_ratio(1, 0), None);
    }

    #[test]
    fn prices_keep_their_digits() {
        for text in ["0.442476", "0.000001", "1", "0", "-0.024446", "123456.789"] {
            let price: Decimal = serde_json::from_str(text).unwrap();
            assert_eq!(price.as_str(), text);
            let again: Decimal = serde_json::from_str(&serde_json::to_string(&price).unwrap()).unwrap();
            assert_eq!(again, price);
        }
    }
}
