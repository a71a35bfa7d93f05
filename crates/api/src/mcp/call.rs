//! The arguments of a call, exactly as they were sent.
//!
//! The protocol's library reads a message into a map, in which the last of two equal members wins. Arguments
//! that may cost money are read by the strict reader of request bodies instead.

use app::AppError;
use domain::text::OutsideText;
use domain::trade::FieldError;
use protocol::document::{DocumentNode, DocumentValue};
use serde::Deserialize;

/// The parts of a message that the tools read themselves.
#[derive(Debug)]
pub struct Message {
    /// The arguments of a call. Empty if the message has none.
    pub arguments: DocumentNode,
}

#[derive(Deserialize)]
struct RawMessage {
    params: Option<RawParams>,
}

#[derive(Deserialize)]
struct RawParams {
    arguments: Option<DocumentNode>,
}

impl Message {
    /// Reads a message. Repeated members of the message itself are rejected.
    pub fn read(raw: &[u8]) -> Result<Self, AppError> {
        let requirement = "must be one JSON-RPC message: a JSON object without repeated members";
        // A derived type would also accept an array of its members.
        if raw.trim_ascii_start().first() != Some(&b'{') {
            return Err(AppError::field("", requirement));
        }
        let message: RawMessage =
            serde_json::from_slice(raw).map_err(|error| AppError::field("", requirement).caused_by(error))?;
        let arguments = message.params.and_then(|params| params.arguments);
        let arguments = arguments.unwrap_or_else(|| DocumentNode::new(DocumentValue::Object(Vec::new())));
        Ok(Self { arguments })
    }
}

/// Removes the text `name` from the arguments and returns it.
pub fn take_text(arguments: &mut DocumentNode, name: &str, requirement: &str) -> Result<String, FieldError> {
    let wrong = |detail: &str| FieldError::new(format!("/{name}"), detail);
    let DocumentValue::Object(members) = &mut arguments.value else {
        return Err(FieldError::new("", "must be an object"));
    };
    let mut found = members.extract_if(.., |(known, _)| *known == name);
    let first = found.next().map(|(_, node)| node.value);
    if found.next().is_some() {
        return Err(wrong("must be sent only once"));
    }
    match first {
        Some(DocumentValue::Text(text)) => {
            let text = OutsideText::new(text).map_err(|fault| wrong(&fault.to_string()))?;
            Ok(text.into_string())
        }
        None | Some(DocumentValue::Null) => Err(wrong(&format!("is required: {requirement}"))),
        Some(_) => Err(wrong("must be a string")),
    }
}

/// Returns a value as JSON, with its repeated members.
pub fn to_json(node: &DocumentNode) -> String {
    let mut out = String::new();
    write(node, &mut out);
    out
}

fn write(node: &DocumentNode, out: &mut String) {
    match &node.value {
        DocumentValue::Null => out.push_str("null"),
        DocumentValue::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        DocumentValue::Integer(number) => out.push_str(&number.to_string()),
        DocumentValue::Float(number) => out.push_str(&serde_json::Value::from(*number).to_string()),
        DocumentValue::Text(text) | DocumentValue::Plain(text) => write_text(text, out),
        DocumentValue::List(items) => {
            write_all(out, ['[', ']'], items, write);
        }
        DocumentValue::Object(members) => write_all(out, ['{', '}'], members, |(name, node), out| {
            write_text(name, out);
            out.push(':');
            write(node, out);
        }),
    }
}

fn write_all<T>(out: &mut String, [open, close]: [char; 2], all: &[T], write: impl Fn(&T, &mut String)) {
    out.push(open);
    for (index, each) in all.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(each, out);
    }
    out.push(close);
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(raw: &str) -> DocumentNode {
        Message::read(format!("{{\"params\":{{\"arguments\":{raw}}}}}").as_bytes()).unwrap().arguments
    }

    #[test]
    fn arguments_are_kept_as_they_were_sent() {
        for raw in [
            r#"{"a":1,"a":2,"b":{"c":"\u0000\"","c":null},"d":[true,false,1.5,-3]}"#,
            r#"{"big":18446744073709551615}"#,
            "{}",
            "[]",
        ] {
            assert_eq!(to_json(&arguments(raw)), raw);
        }
    }

    #[test]
    fn a_message_with_repeated_members_is_rejected() {
        for raw in [
            r#"{"params":{"arguments":{},"arguments":{}}}"#,
            r#"{"params":{},"params":{}}"#,
            r#"[{"params":{}}]"#,
            "nonsense",
        ] {
            assert!(Message::read(raw.as_bytes()).is_err(), "{raw}");
        }
        assert_eq!(to_json(&Message::read(br#"{"method":"ping"}"#).unwrap().arguments), "{}");
    }

    #[test]
    fn a_text_is_taken_once() {
        let mut given = arguments(r#"{"x":1,"k":"abc"}"#);
        assert_eq!(take_text(&mut given, "k", "a text").unwrap(), "abc");
        assert_eq!(to_json(&given), r#"{"x":1}"#);
        for (raw, detail) in [
            ("{}", "is required: a text"),
            (r#"{"k":null}"#, "is required: a text"),
            (r#"{"k":1}"#, "must be a string"),
            (r#"{"k":"a","k":"b"}"#, "must be sent only once"),
        ] {
            assert_eq!(take_text(&mut arguments(raw), "k", "a text").unwrap_err().detail, detail);
        }
    }
}
