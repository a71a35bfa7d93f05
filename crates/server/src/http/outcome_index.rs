//! An outcome's index as it is sent. Any integer is accepted here: only the market knows how many outcomes it has, so an
//! integer that is out of range is `OUTCOME_INDEX_INVALID` however large it is.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// An outcome's index. Integers that do not fit are cut to the nearest one that does, which no market has either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeIndex(pub i64);

/// 2^63: floating-point numbers from here on are integers that no `i64` holds.
const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;

impl FromStr for OutcomeIndex {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        match text.parse() {
            Ok(index) => Ok(Self(index)),
            Err(error) if *error.kind() == PosOverflow => Ok(Self(i64::MAX)),
            Err(error) if *error.kind() == NegOverflow => Ok(Self(i64::MIN)),
            Err(error) => Err(error),
        }
    }
}

impl<'de> Deserialize<'de> for OutcomeIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Index;
        impl Visitor<'_> for Index {
            type Value = OutcomeIndex;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer")
            }

            fn visit_i64<E: Error>(self, index: i64) -> Result<OutcomeIndex, E> {
                Ok(OutcomeIndex(index))
            }

            fn visit_u64<E: Error>(self, index: u64) -> Result<OutcomeIndex, E> {
                Ok(OutcomeIndex(i64::try_from(index).unwrap_or(i64::MAX)))
            }

            fn visit_f64<E: Error>(self, index: f64) -> Result<OutcomeIndex, E> {
                if index.abs() < BEYOND_I64 {
                    return Err(E::custom("must be an integer"));
                }
                Ok(OutcomeIndex(if index.is_sign_negative() { i64::MIN } else { i64::MAX }))
            }
        }
        deserializer.deserialize_any(Index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEYOND: [&str; 3] =
        ["9223372036854775808", "18446744073709551616", "99999999999999999999999999999999999"];

    #[test]
    fn integers_of_any_size_are_read_and_cut_to_64_bits() {
        let (json, text) =
            (|raw: &str| serde_json::from_str::<OutcomeIndex>(raw).ok(), |raw: &str| raw.parse().ok());
        for raw in BEYOND {
            assert_eq!(
                (json(raw), text(raw)),
                (Some(OutcomeIndex(i64::MAX)), Some(OutcomeIndex(i64::MAX))),
                "{raw}"
            );
            let negative = format!("-{raw}0");
            let least = Some(OutcomeIndex(i64::MIN));
            assert_eq!((json(&negative), text(&negative)), (least, least), "{negative}");
        }
        for (raw, index) in [("0", 0), ("-1", -1), ("300", 300), ("9223372036854775807", i64::MAX)] {
            assert_eq!(
                (json(raw), text(raw)),
                (Some(OutcomeIndex(index)), Some(OutcomeIndex(index))),
                "{raw}"
            );
        }
    }

    #[test]
    fn what_is_not_an_integer_is_refused() {
        for raw in ["\"0\"", "0.5", "1.0", "-0.5", "true", "[0]"] {
            assert!(serde_json::from_str::<OutcomeIndex>(raw).is_err(), "{raw}");
        }
        for raw in ["", "one", "1.0", "0x1", "--1"] {
            assert!(raw.parse::<OutcomeIndex>().is_err(), "{raw}");
        }
    }
}
