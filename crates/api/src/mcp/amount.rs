//! Exact amounts as agents read and write them: decimals with their unit, instead of atomic integers.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

/// An exact amount.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Amount {
    /// A decimal number, exact and without rounding.
    #[schema(pattern = "^-?[0-9]+(\\.[0-9]+)?$", example = "25.5")]
    amount: String,
    unit: Unit,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
enum Unit {
    #[serde(rename = "USDC")]
    Usdc,
    #[serde(rename = "outcome tokens")]
    Tokens,
}

/// An amount that the trading API writes as an integer of its smallest unit.
#[derive(Debug, Clone)]
struct Exact<const DECIMALS: usize>(String);

impl<'de, const DECIMALS: usize> Deserialize<'de> for Exact<DECIMALS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let atomic = String::deserialize(deserializer)?;
        to_decimal(&atomic, DECIMALS).map(Self).ok_or_else(|| D::Error::custom("no atomic amount"))
    }
}

/// USDC.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct UsdcAmount(Exact<6>);

/// Outcome tokens.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct TokenAmount(Exact<18>);

impl UsdcAmount {
    pub fn is_zero(&self) -> bool {
        self.0.0 == "0"
    }
}

impl TokenAmount {
    /// Reports whether a trade's amount, which has six decimals, can name these tokens.
    pub fn is_tradeable(&self) -> bool {
        let digits = self.0.0.bytes().filter(|byte| *byte != b'.');
        digits.take(self.0.0.find('.').unwrap_or(self.0.0.len()) + 6).any(|digit| digit != b'0')
    }
}

impl Serialize for UsdcAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Amount { amount: self.0.0.clone(), unit: Unit::Usdc }.serialize(serializer)
    }
}

impl Serialize for TokenAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Amount { amount: self.0.0.clone(), unit: Unit::Tokens }.serialize(serializer)
    }
}

/// Places the decimal point in an integer of the smallest unit.
fn to_decimal(atomic: &str, decimals: usize) -> Option<String> {
    let (sign, digits) = atomic.strip_prefix('-').map_or(("", atomic), |digits| ("-", digits));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let padded = format!("{digits:0>width$}", width = decimals + 1);
    let (whole, fraction) = padded.split_at_checked(padded.len() - decimals)?;
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// Returns a decimal above 0 with at most `decimals` decimals as an integer of the smallest unit.
pub fn to_atomic(decimal: &str, decimals: usize) -> Option<String> {
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > decimals {
        return None;
    }
    let atomic = format!("{whole}{fraction:0<decimals$}");
    let atomic = atomic.trim_start_matches('0');
    (!atomic.is_empty()).then(|| atomic.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_integers_become_decimals() {
        for (atomic, decimals, decimal) in [
            ("0", 6, "0"),
            ("1", 6, "0.000001"),
            ("25500000", 6, "25.5"),
            ("-1500000", 6, "-1.5"),
            ("123", 2, "1.23"),
            ("48902203193255351000", 18, "48.902203193255351"),
        ] {
            assert_eq!(to_decimal(atomic, decimals).as_deref(), Some(decimal));
        }
        for wrong in ["", "-", "1.5", "+1", "é"] {
            assert_eq!(to_decimal(wrong, 6), None, "{wrong}");
        }
    }

    #[test]
    fn decimals_become_atomic_integers_without_rounding() {
        for (decimal, decimals, atomic) in [
            ("25.5", 6, "25500000"),
            ("0.000001", 6, "1"),
            ("10", 6, "10000000"),
            ("007.10", 6, "7100000"),
            ("48.902203193255351", 18, "48902203193255351000"),
        ] {
            assert_eq!(to_atomic(decimal, decimals).as_deref(), Some(atomic));
        }
        for wrong in ["", "0", "0.0", ".5", "5.", "1.0000001", "-1", "+1", "1e3", "1,5", " 1"] {
            assert_eq!(to_atomic(wrong, 6), None, "{wrong}");
        }
    }

    #[test]
    fn an_amount_is_written_with_its_unit() {
        let usdc: UsdcAmount = serde_json::from_str("\"25500000\"").unwrap();
        assert_eq!(serde_json::to_string(&usdc).unwrap(), r#"{"amount":"25.5","unit":"USDC"}"#);
        let tokens: TokenAmount = serde_json::from_str("\"1500000000000000000\"").unwrap();
        assert_eq!(serde_json::to_string(&tokens).unwrap(), r#"{"amount":"1.5","unit":"outcome tokens"}"#);
        assert!(serde_json::from_str::<UsdcAmount>("\"x\"").is_err());
    }
}
