//! Rules for texts that people read.

use std::collections::HashMap;

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
    // Lower case can decompose again, so the names are composed last.
    let folded: String = visible(name).flat_map(char::to_lowercase).map(fold_sigma).nfkc().collect();
    single_spaced(&folded)
}

/// Returns the characters of a name in NFKC, without zero-width ones.
fn visible(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')).nfkc()
}

fn single_spaced(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The small sigma at the end of a word is the same letter.
const fn fold_sigma(c: char) -> char {
    if c == 'ς' { 'σ' } else { c }
}

/// Returns the looks of a name. Two names with a common look can be taken for each other, such as
/// those with a Latin and a Cyrillic `a`. They are not meant for display.
///
/// Case is folded before and after looking, because some letters only look the same in one case:
/// the Cyrillic `Т` looks like a `T`, but `т` does not look like a `t`.
fn looks_of_name(name: &str) -> [String; 2] {
    let cased = single_spaced(&visible(name).collect::<String>());
    [skeleton(&same_name(name)).collect(), skeleton(&cased).flat_map(char::to_lowercase).collect()]
}

/// How people can take one name for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// They differ only in blanks, case and encoding.
    Same,
    /// They look the same, because at least one of them has letters of another alphabet.
    Lookalike,
}

/// Names by what people see, each with its owner.
#[derive(Debug, Clone)]
pub struct NameIndex<T> {
    names: HashMap<String, T>,
    /// The owners of names in ASCII, by look.
    ascii_looks: HashMap<String, T>,
    /// The owners of all other names, by look.
    other_looks: HashMap<String, T>,
}

impl<T> Default for NameIndex<T> {
    fn default() -> Self {
        Self { names: HashMap::new(), ascii_looks: HashMap::new(), other_looks: HashMap::new() }
    }
}

impl<T: Clone> NameIndex<T> {
    /// Adds a name. If people can take it for an earlier one, both are kept.
    pub fn insert(&mut self, name: &str, owner: T) {
        let same = same_name(name);
        let looks = if same.is_ascii() { &mut self.ascii_looks } else { &mut self.other_looks };
        for look in looks_of_name(name) {
            looks.entry(look).or_insert_with(|| owner.clone());
        }
        self.names.entry(same).or_insert(owner);
    }

    /// Returns the owner of a name that people can take for this one.
    pub fn find(&self, name: &str) -> Option<(Likeness, &T)> {
        let same = same_name(name);
        if let Some(owner) = self.names.get(&same) {
            return Some((Likeness::Same, owner));
        }
        // "Modern" and "Modem" are two names, but letters of two alphabets can look the same.
        let is_ascii = same.is_ascii();
        if is_ascii && self.other_looks.is_empty() {
            return None;
        }
        let owner = looks_of_name(name).iter().find_map(|look| {
            let ascii = if is_ascii { None } else { self.ascii_looks.get(look) };
            self.other_looks.get(look).or(ascii)
        });
        owner.map(|owner| (Likeness::Lookalike, owner))
    }
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

    fn likeness(one: &str, other: &str) -> Option<Likeness> {
        let found = |known: &str, name: &str| {
            let mut names = NameIndex::default();
            names.insert(known, ());
            names.find(name).map(|(likeness, ())| likeness)
        };
        assert_eq!(found(one, other), found(other, one), "{one:?} {other:?}");
        found(one, other)
    }

    #[test]
    fn names_in_other_alphabets_can_look_alike() {
        for (one, other) in [
            ("P\u{430}ris", "Paris"),
            ("αthens", "athens"),
            // Only the capital letter looks like a Latin one.
            ("\u{422}own hall", "Town hall"),
            ("\u{422}\u{415}ST", "test"),
            ("\u{412}\u{41e}\u{41d}", "BOH"),
            ("Yes\u{fe0f}", "Yes"),
        ] {
            assert_eq!(likeness(one, other), Some(Likeness::Lookalike), "{one:?} {other:?}");
        }
    }

    #[test]
    fn names_are_the_same_in_any_encoding_and_case() {
        for (one, other) in [("José", "Jose\u{301}"), ("Paris", " PARIS "), ("Élan", "e\u{301}lan")] {
            assert_eq!(likeness(one, other), Some(Likeness::Same), "{one:?} {other:?}");
        }
    }

    #[test]
    fn names_that_people_can_tell_apart_are_different() {
        for (one, other) in [
            ("Москва", "Moskva"),
            ("José", "Jose"),
            ("Modern", "Modem"),
            ("C", "C++"),
            ("C", "C#"),
            ("C++", "C#"),
            ("Выборы 2031", "Погода 2031"),
            ("Выборы 2031", "Выборы 2032"),
            ("選挙 2031", "天気 2031"),
            ("Yes", "Yes!"),
        ] {
            assert_eq!(likeness(one, other), None, "{one:?} {other:?}");
        }
    }

    #[test]
    fn an_index_finds_the_owner_of_a_name_beside_others() {
        let mut names = NameIndex::default();
        for (owner, name) in ["Modern", "Modem", "José", "P\u{430}ris"].into_iter().enumerate() {
            names.insert(name, owner);
        }
        assert_eq!(names.find("modem"), Some((Likeness::Same, &1)));
        assert_eq!(names.find("JOSE\u{301}"), Some((Likeness::Same, &2)));
        assert_eq!(names.find("Paris"), Some((Likeness::Lookalike, &3)));
        assert_eq!(names.find("M\u{43e}dern"), Some((Likeness::Lookalike, &0)));
        assert_eq!(names.find("Moderne"), None);
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
