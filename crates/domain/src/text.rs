//! Rules for texts that people read.

/// The maximum number of characters of a value quoted in a message.
const MAX_SHOWN: usize = 60;

/// Returns true for invisible characters that can change how the surrounding text is displayed:
/// control characters and overrides of the text direction.
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Returns true if `text` contains a character for which [`is_control`] is true. If `several_lines`
/// is true, line breaks and tabs are allowed.
pub fn has_control(text: &str, several_lines: bool) -> bool {
    text.chars().any(|c| is_control(c) && !(several_lines && matches!(c, '\n' | '\r' | '\t')))
}

/// Normalizes a name for comparison: lower case, whitespace trimmed and collapsed, and zero-width
/// characters removed.
pub fn same_name(name: &str) -> String {
    let visible: String = name
        .chars()
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}'))
        .collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Truncates a text and marks the truncation with an ellipsis.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Quotes a value for a message: truncated, with control characters escaped.
pub fn shown(text: &str) -> String {
    let mut shown = String::from('"');
    for c in cut(text).chars() {
        match c {
            '"' | '\\' => shown.extend(['\\', c]),
            '\n' => shown.push_str("\\n"),
            c if is_control(c) => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_equal() {
        for name in ["yes", " Yes", "YES ", "Y\u{200b}es", "yes\u{a0}"] {
            assert_eq!(same_name(name), "yes", "{name:?}");
        }
        assert_eq!(same_name("New  York"), same_name("new york"));
        assert_ne!(same_name("Yes"), same_name("Yes!"));
    }

    #[test]
    fn control_and_direction_characters_are_found() {
        for text in ["a\0", "a\u{1b}[1m", "a\u{202e}b", "a\u{2066}b", "a\nb"] {
            assert!(has_control(text, false), "{text:?}");
        }
        assert!(!has_control("a\nb\tc", true));
        assert!(!has_control("Ünïcode 🎉 עברית", false));
    }

    #[test]
    fn a_displayed_value_has_no_control_characters() {
        assert_eq!(shown("a\u{202e}\0\"b"), r#""a\u202e\u0000\"b""#);
    }
}
