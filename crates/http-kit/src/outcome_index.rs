//! Outcome indexes in queries. Any integer is accepted here, because only the market determines how
//! many outcomes there are. An integer out of range is then `OUTCOME_INDEX_INVALID`, however large
//! it is.

use std::num::ParseIntError;
use std::str::FromStr;

/// An outcome's index. Integers that do not fit saturate, which is harmless because no market has
/// the index `i64::MAX` either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeIndex(pub i64);

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

#[cfg(test)]
mod tests {
    use super::*;

    const BEYOND: [&str; 3] =
        ["9223372036854775808", "18446744073709551616", "99999999999999999999999999999999999"];

    #[test]
    fn integers_of_any_size_are_read_and_cut_to_64_bits() {
        let read = |raw: &str| raw.parse().ok();
        for raw in BEYOND {
            assert_eq!(read(raw), Some(OutcomeIndex(i64::MAX)), "{raw}");
            assert_eq!(read(&format!("-{raw}0")), Some(OutcomeIndex(i64::MIN)), "-{raw}0");
        }
        for (raw, index) in [("0", 0), ("-1", -1), ("300", 300), ("9223372036854775807", i64::MAX)] {
            assert_eq!(read(raw), Some(OutcomeIndex(index)), "{raw}");
        }
    }

    #[test]
    fn only_integers_are_accepted() {
        for raw in ["", "one", "1.0", "0x1", "--1"] {
            assert!(raw.parse::<OutcomeIndex>().is_err(), "{raw}");
        }
    }
}
