//! Documents that others write, read member by member, so that every fault of one is reported at once.

mod json;
mod members;

pub use json::from_json;
pub use members::{Fault, Faults, Members};

use crate::text::shown;

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The line it begins in, from 1, if it is known.
    pub line: Option<u32>,
    /// The value.
    pub value: Value,
}

/// What a [`Node`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A text.
    Text(String),
    /// A text without quotes, which may also be read as a number or a flag (YAML).
    Plain(String),
    /// A list.
    List(Vec<Node>),
    /// An object: its members in order, repeated ones included.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The node without a line.
    pub const fn new(value: Value) -> Self {
        Self { line: None, value }
    }

    /// The value as messages repeat it.
    pub fn shown(&self) -> String {
        match &self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Text(text) | Value::Plain(text) => shown(text),
            Value::List(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        }
    }

    /// Whether the value is null, which counts as absent.
    pub fn is_null(&self) -> bool {
        match &self.value {
            Value::Null => true,
            Value::Plain(text) => matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"),
            _ => false,
        }
    }

    pub(crate) fn into_text(self) -> Result<String, Self> {
        match self.value {
            Value::Text(text) | Value::Plain(text) => Ok(text),
            value => Err(Self { value, ..self }),
        }
    }

    pub(crate) fn as_integer(&self) -> Option<i64> {
        match &self.value {
            Value::Integer(number) => Some(nearest(*number)),
            // JSON readers read integers of more than 64 bits as floating-point numbers.
            Value::Float(number) if *number >= BEYOND_I64 => Some(i64::MAX),
            Value::Float(number) if *number <= BELOW_I64 => Some(i64::MIN),
            Value::Plain(text) => {
                let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
                let is_integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                let most = if text.starts_with('-') { i64::MIN } else { i64::MAX };
                is_integer.then(|| text.parse().unwrap_or(most))
            }
            _ => None,
        }
    }

    pub(crate) fn as_flag(&self) -> Option<bool> {
        match &self.value {
            Value::Bool(flag) => Some(*flag),
            Value::Plain(text) => match text.as_str() {
                "true" | "True" | "TRUE" => Some(true),
                "false" | "False" | "FALSE" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// A decimal as its author wrote it. `None` for a number that the reader may have rounded.
    pub(crate) fn as_decimal(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Plain(text) => match text.bytes().any(|b| matches!(b, b'e' | b'E')) {
                true => text.parse().ok().and_then(unrounded),
                false => text.parse::<f64>().is_ok_and(f64::is_finite).then(|| text.clone()),
            },
            Value::Integer(number) => Some(number.to_string()),
            Value::Float(number) => unrounded(*number),
            _ => None,
        }
    }
}

/// 2^63: floating-point numbers from here on are integers that no `i64` holds.
const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;
const BELOW_I64: f64 = -9_223_372_036_854_775_808.0;

/// The integer, cut to 64 bits.
fn nearest(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

/// The shortest text that reads as `number`: the author's own, if it has at most 15 digits.
fn unrounded(number: f64) -> Option<String> {
    let text = number.to_string();
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let leading = text.bytes().take_while(|b| matches!(b, b'0' | b'.' | b'-')).filter(|b| *b == b'0').count();
    (digits - leading <= 15).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(json: &str) -> Option<String> {
        from_json(json.as_bytes()).unwrap().as_decimal()
    }

    #[test]
    fn a_decimal_is_the_authors_own_text() {
        for (json, text) in [
            ("\"0.10\"", "0.10"),
            ("0.35", "0.35"),
            ("5000", "5000"),
            ("0.000001", "0.000001"),
            ("123456789.012345", "123456789.012345"),
            ("-1", "-1"),
            ("\"0.333333333333333334\"", "0.333333333333333334"),
        ] {
            assert_eq!(decimal(json).as_deref(), Some(text), "{json}");
        }
        let plain = |text: &str| Node::new(Value::Plain(text.to_owned())).as_decimal();
        assert_eq!(plain("0.333333333333333334").as_deref(), Some("0.333333333333333334"));
        assert_eq!(plain("1e3").as_deref(), Some("1000"));
        assert_eq!((plain(".nan"), plain("yes")), (None, None));
    }

    #[test]
    fn a_json_number_that_is_rounded_is_no_decimal() {
        for json in [
            "0.333333333333333334",
            "1e300",
            "18446744073709551616",
            "123456789012.345678",
            "true",
            "null",
            "[]",
        ] {
            assert_eq!(decimal(json), None, "{json}");
        }
    }
}
