//! Parses documents (JSON and YAML) that users write, member by member, so that all faults are
//! reported at once.

mod json;
mod members;
mod yaml;

pub use json::from_json;
pub use members::{DocumentFault, DocumentFaults, Members};
pub use yaml::from_yaml;

use domain::field_error::segment;
use domain::text::{OutsideText, shown};
use domain::trade::FieldError;

/// The maximum number of lists and objects inside each other: what serde_json allows.
const MAX_LEVELS: usize = 127;
const TOO_DEEP: &str = "must not have more than 127 levels of lists and objects";

/// A value of a document with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentNode {
    /// The line of its start, counted from 1, if known.
    pub line: Option<u32>,
    pub value: DocumentValue,
}

/// The content of a [`DocumentNode`].
#[derive(Debug, Clone, PartialEq)]
pub enum DocumentValue {
    Null,
    Bool(bool),
    Integer(i128),
    /// A number with a fraction or an exponent.
    Float(f64),
    Text(String),
    /// An unquoted YAML scalar, which can also be read as a number or a boolean.
    Plain(String),
    List(Vec<DocumentNode>),
    /// Members in order, including repeated ones.
    Object(Vec<(String, DocumentNode)>),
}

impl DocumentNode {
    /// Creates a node without a line.
    pub const fn new(value: DocumentValue) -> Self {
        Self { line: None, value }
    }

    /// Returns the value in the form used by error messages.
    pub fn shown(&self) -> String {
        match &self.value {
            DocumentValue::Null => "null".to_owned(),
            DocumentValue::Bool(flag) => flag.to_string(),
            DocumentValue::Integer(number) => number.to_string(),
            DocumentValue::Float(number) => number.to_string(),
            DocumentValue::Text(text) | DocumentValue::Plain(text) => shown(text),
            DocumentValue::List(_) => "a list".to_owned(),
            DocumentValue::Object(_) => "an object".to_owned(),
        }
    }

    /// Returns true for null, which counts as absent.
    pub fn is_null(&self) -> bool {
        match &self.value {
            DocumentValue::Null => true,
            DocumentValue::Plain(text) => matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"),
            _ => false,
        }
    }

    /// Checks that all texts in this value, names included, are [`OutsideText`]s.
    ///
    /// # Errors
    /// The first other one.
    pub fn check_texts(&self) -> Result<(), FieldError> {
        let check =
            |text: &str| OutsideText::check(text).map_err(|fault| FieldError::new("", fault.to_string()));
        // The pointer is built from the inside out, so that it costs nothing without a fault.
        let inside = |part: &str, FieldError { pointer, detail }: FieldError| {
            FieldError::new(format!("/{}{pointer}", segment(part)), detail)
        };
        match &self.value {
            DocumentValue::Text(text) | DocumentValue::Plain(text) => check(text),
            DocumentValue::List(items) => items.iter().enumerate().try_for_each(|(index, node)| {
                node.check_texts().map_err(|error| inside(&index.to_string(), error))
            }),
            DocumentValue::Object(members) => members.iter().try_for_each(|(name, node)| {
                check(name).and_then(|()| node.check_texts()).map_err(|error| inside(name, error))
            }),
            DocumentValue::Null
            | DocumentValue::Bool(_)
            | DocumentValue::Integer(_)
            | DocumentValue::Float(_) => Ok(()),
        }
    }

    pub(crate) fn into_text(self) -> Result<String, Self> {
        match self.value {
            DocumentValue::Text(text) | DocumentValue::Plain(text) => Ok(text),
            value => Err(Self { value, ..self }),
        }
    }

    pub(crate) fn as_integer(&self) -> Option<i64> {
        match &self.value {
            DocumentValue::Integer(number) => Some(nearest(*number)),
            // serde_json parses integers of more than 64 bits as floats: clamp them too.
            DocumentValue::Float(number) if *number >= BEYOND_I64 => Some(i64::MAX),
            DocumentValue::Float(number) if *number <= BELOW_I64 => Some(i64::MIN),
            DocumentValue::Plain(text) => {
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
            DocumentValue::Bool(flag) => Some(*flag),
            DocumentValue::Plain(text) => match text.as_str() {
                "true" | "True" | "TRUE" => Some(true),
                "false" | "False" | "FALSE" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns a decimal exactly as it was written. `None` if parsing may have rounded the number.
    pub(crate) fn as_decimal(&self) -> Option<String> {
        match &self.value {
            DocumentValue::Text(text) => Some(text.clone()),
            DocumentValue::Plain(text) => match text.bytes().any(|b| matches!(b, b'e' | b'E')) {
                true => text.parse().ok().and_then(unrounded),
                false => text.parse::<f64>().is_ok_and(f64::is_finite).then(|| text.clone()),
            },
            DocumentValue::Integer(number) => Some(number.to_string()),
            DocumentValue::Float(number) => unrounded(*number),
            _ => None,
        }
    }
}

/// 2^63: from here on, floats are integers outside of `i64`.
const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;
const BELOW_I64: f64 = -9_223_372_036_854_775_808.0;

/// Clamps the integer to 64 bits.
fn nearest(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

/// Returns the shortest text that parses as `number`, or `None` if it has more than 15 significant
/// digits. Up to 15 digits, a float preserves the author's digits.
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
    fn a_nul_is_found_with_its_place() {
        let pointer = |json: &str| from_json(json.as_bytes()).unwrap().check_texts().map_err(|e| e.pointer);
        assert_eq!(pointer(r#"{"a": ["b", {"c": "\\u0000"}], "d": null}"#), Ok(()));
        assert_eq!(pointer(r#"{"a": ["b", {"c/d": "e\u0000"}]}"#), Err("/a/1/c~1d".to_owned()));
        assert_eq!(pointer(r#"{"a\u0000": 1}"#), Err("/a\0".to_owned()));
    }

    #[test]
    fn a_decimal_keeps_its_original_text() {
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
        let plain = |text: &str| DocumentNode::new(DocumentValue::Plain(text.to_owned())).as_decimal();
        assert_eq!(plain("0.333333333333333334").as_deref(), Some("0.333333333333333334"));
        assert_eq!(plain("1e3").as_deref(), Some("1000"));
        assert_eq!((plain(".nan"), plain("yes")), (None, None));
    }

    #[test]
    fn a_rounded_json_number_is_not_a_decimal() {
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
