//! Formats responses for snapshots: JSON with line breaks, and ids replaced by numbered names.

use std::collections::HashMap;

/// Adds line breaks to JSON. The order of members and the form of numbers are unchanged.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        if in_text {
            out.push(c);
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                in_text = true;
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Replaces the first UUID everywhere by `<uuid-1>`, the second by `<uuid-2>`, and so on, and
/// likewise for other kinds of ids.
pub fn name_ids(text: &str) -> String {
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(len);
        match kind_of(word) {
            Some(kind) => out.push_str(names.entry(word).or_insert_with(|| {
                let count = counts.entry(kind).or_default();
                *count += 1;
                format!("<{kind}-{count}>")
            })),
            None => out.push_str(word),
        }
        let mut others = after.chars();
        out.extend(others.next());
        rest = others.as_str();
    }
    out
}

fn kind_of(word: &str) -> Option<&'static str> {
    let hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let uuid = || word.split('-').map(|part| if hex(part) { part.len() } else { 0 }).eq([8, 4, 4, 4, 12]);
    match (word.len(), word) {
        (36, _) if word.starts_with("req_") && hex(&word[4..]) => Some("request"),
        (36, _) if uuid() => Some("uuid"),
        (66, _) if word.starts_with("0x") && hex(&word[2..]) => Some("hash"),
        (42, _) if word.starts_with("0x") && hex(&word[2..]) => Some("address"),
        (32, _) if hex(word) => Some("trace"),
        (46, _) if word.starts_with("ct_") => Some("token"),
        (79.., _) if word.bytes().any(|b| !b.is_ascii_digit()) => Some("cursor"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_order_and_its_numbers() {
        let text = r#"{"b":[1.0,{}],"a":"x,\"{:","c":[]}"#;
        assert_eq!(
            pretty(text),
            "{\n  \"b\": [\n    1.0,\n    {}\n  ],\n  \"a\": \"x,\\\"{:\",\n  \"c\": []\n}"
        );
    }

    #[test]
    fn equal_ids_get_equal_names() {
        let id = "018f0000-0000-7000-8000-000000000001";
        let text = format!("{id} /v1/{id}/x 0x{} {}", "ab".repeat(20), "12".repeat(30));
        assert_eq!(name_ids(&text), format!("<uuid-1> /v1/<uuid-1>/x <address-1> {}", "12".repeat(30)));
    }
}
