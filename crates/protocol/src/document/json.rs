//! Parses JSON into nodes. Repeated members are preserved, so that they can be reported.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_path_to_error::{Path, Segment};

use super::{DocumentNode, DocumentValue, TOO_DEEP};
use domain::field_error::segment;
use domain::trade::FieldError;

/// Parses exactly one JSON value without trailing data.
pub fn from_json(raw: &[u8]) -> Result<DocumentNode, FieldError> {
    let mut reader = serde_json::Deserializer::from_slice(raw);
    let node = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| invalid(pointer(error.path()), error.inner()))?;
    reader.end().map_err(|_| FieldError::new("", "must be one JSON value without trailing data"))?;
    Ok(node)
}

fn invalid(pointer: String, error: &serde_json::Error) -> FieldError {
    if error.to_string().starts_with("recursion limit") {
        // The path to the depth limit is very long: report only its first member.
        let end = pointer.char_indices().skip(1).find(|(_, c)| *c == '/').map_or(pointer.len(), |(at, _)| at);
        return FieldError::new(&pointer[..end], TOO_DEEP);
    }
    let (line, column) = (error.line(), error.column());
    FieldError::new(
        pointer,
        format!("must be valid JSON in UTF-8: the error is at line {line}, column {column}"),
    )
}

fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for part in path {
        match part {
            Segment::Map { key } => pointer.extend(["/", &segment(key)]),
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

impl<'de> Deserialize<'de> for DocumentNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor).map(Self::new)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = DocumentValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Integer(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Integer(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<DocumentValue, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(DocumentValue::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DocumentValue, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(DocumentValue::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_size_are_clamped_to_64_bits() {
        let read = |raw: &str| from_json(raw.as_bytes()).unwrap().as_integer();
        for raw in ["9223372036854775808", "18446744073709551616", "99999999999999999999999999999999999"] {
            assert_eq!(read(raw), Some(i64::MAX), "{raw}");
            assert_eq!(read(&format!("-{raw}0")), Some(i64::MIN), "{raw}");
        }
        assert_eq!(read("9223372036854775807"), Some(i64::MAX));
        assert_eq!((read("1.0"), read("\"1\"")), (None, None));
    }

    #[test]
    fn invalid_json_is_reported_with_its_place() {
        for (raw, pointer, detail) in [
            ("{\"a\": NaN}", "/a", "must be valid JSON in UTF-8: the error is at line 1, column 7"),
            ("{\"a/b\":\n[1,", "/a~1b", "must be valid JSON in UTF-8: the error is at line 2, column 3"),
            ("", "", "must be valid JSON in UTF-8: the error is at line 1, column 0"),
            ("{} {}", "", "must be one JSON value without trailing data"),
        ] {
            assert_eq!(from_json(raw.as_bytes()), Err(FieldError::new(pointer, detail)), "{raw}");
        }
        let deep = from_json("[".repeat(10_000).as_bytes()).unwrap_err();
        assert_eq!(deep.detail, TOO_DEEP);
    }
}
