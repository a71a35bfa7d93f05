//! Rules for texts that people read.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;

/// The maximum number of characters of a value quoted in a message.
const MAX_SHOWN: usize = 60;

/// A text from outside that the service can process and store: valid UTF-8 without NUL, which
/// PostgreSQL cannot store and which ends a string in many programs. Every reader of requests,
/// arguments and files makes its texts with this type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideText(String);

/// The reason why a text from outside is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// Not UTF-8. Overlong forms and surrogates are no UTF-8 either.
    #[error("must be valid UTF-8")]
    NotUtf8,
    #[error("must not contain NUL characters")]
    Nul,
}

impl OutsideText {
    pub fn new(text: String) -> Result<Self, TextFault> {
        Self::check(&text).map(|()| Self(text))
    }

    /// Checks a text without taking it.
    pub fn check(text: &str) -> Result<(), TextFault> {
        if text.contains('\0') { Err(TextFault::Nul) } else { Ok(()) }
    }

    pub fn from_utf8(bytes: Vec<u8>) -> Result<Self, TextFault> {
        String::from_utf8(bytes).map_err(|_| TextFault::NotUtf8).and_then(Self::new)
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// Decodes a percent-encoded name or value of a query or a form, in which a plus sign is a space.
/// Returns `None` if an escape is malformed, or the text is not an [`OutsideText`].
pub fn decode_form_component(encoded: &str) -> Option<OutsideText> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    OutsideText::from_utf8(bytes).ok()
}

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

/// Normalizes a name for comparison: compatibility forms composed (NFKC), case folded, whitespace
/// trimmed and collapsed, and zero-width characters removed. "José" is one name, however it is
/// encoded.
pub fn same_name(name: &str) -> String {
    let visible =
        name.chars().filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}'));
    // Lower case can decompose again, so the names are composed last.
    let folded: String = visible.nfkc().flat_map(char::to_lowercase).map(fold_sigma).nfkc().collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The small sigma at the end of a word is the same letter.
const fn fold_sigma(c: char) -> char {
    if c == 'ς' { 'σ' } else { c }
}

/// Returns what two names have in common if people can take them for each other, such as those with
/// a Latin and a Cyrillic `a`. It is not meant for display.
pub fn look_of_name(name: &str) -> String {
    skeleton(&same_name(name)).collect()
}

/// Finds names by words, in any order. Case and accents do not matter, and a word matches a part of
/// a name.
#[derive(Debug, Clone)]
pub struct NameFinder {
    words: Vec<String>,
}

impl NameFinder {
    /// Finds every name if the query has no words.
    pub fn new(query: &str) -> Self {
        Self { words: without_accents(query).split_whitespace().map(str::to_owned).collect() }
    }

    pub fn matches(&self, name: &str) -> bool {
        let name = without_accents(name);
        self.words.iter().all(|word| name.contains(word.as_str()))
    }
}

fn without_accents(text: &str) -> String {
    let letters = same_name(text).nfkd().filter(|c| !is_combining_mark(*c)).collect::<String>();
    letters.replace('ı', "i")
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
    fn a_text_from_outside_is_utf_8_without_nul() {
        let bytes = |bytes: &[u8]| OutsideText::from_utf8(bytes.to_vec()).map(OutsideText::into_string);
        assert_eq!(bytes("Zoë\u{1f389}".as_bytes()), Ok("Zoë\u{1f389}".to_owned()));
        assert_eq!(bytes(b"a\0"), Err(TextFault::Nul));
        // An overlong NUL, a surrogate, and a character above U+10FFFF.
        for outside in [&b"\xc0\x80"[..], b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff"] {
            assert_eq!(bytes(outside), Err(TextFault::NotUtf8));
        }
    }

    #[test]
    fn a_form_component_is_decoded_strictly() {
        let decode = |text| decode_form_component(text).map(OutsideText::into_string);
        assert_eq!(decode("a+b%20c%2B%C3%AB").as_deref(), Some("a b c+\u{eb}"));
        for malformed in ["%00", "%", "%4", "%zz", "%C0%80", "%ED%A0%80", "a%FF"] {
            assert_eq!(decode(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn names_that_look_alike_are_equal() {
        for name in ["yes", " Yes", "YES ", "Y\u{200b}es", "yes\u{a0}"] {
            assert_eq!(same_name(name), "yes", "{name:?}");
        }
        assert_eq!(same_name("New  York"), same_name("new york"));
        assert_ne!(same_name("Yes"), same_name("Yes!"));
        assert_eq!(same_name("Jose\u{301}"), same_name("JOSÉ"));
        assert_eq!(same_name("ﬁve ①"), same_name("Five 1"));
        assert_eq!(same_name("ΟΔΟΣ"), same_name("οδος"));
        assert_ne!(same_name("Jose"), same_name("José"));
    }

    #[test]
    fn names_in_other_alphabets_can_look_alike() {
        let looks_like = |one: &str, other: &str| look_of_name(one) == look_of_name(other);
        assert!(looks_like("Pаris", "Paris") && same_name("Pаris") != same_name("Paris"));
        assert!(looks_like("αthens", "athens"));
        assert!(!looks_like("Москва", "Moskva") && !looks_like("José", "Jose"));
    }

    #[test]
    fn names_are_found_by_parts_of_words_without_accents() {
        let finds = |query: &str, name: &str| NameFinder::new(query).matches(name);
        assert!(finds("erdogan", "Recep Tayyip Erdoğan") && finds("İSTANBUL", "İstanbul"));
        assert!(finds("tay rec", "Recep Tayyip Erdoğan") && finds(" ", "Yes") && finds("京", "東京"));
        assert!(!finds("tay x", "Recep Tayyip Erdoğan"));
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
