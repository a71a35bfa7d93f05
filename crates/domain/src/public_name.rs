//! The name that a user shows on the leaderboard.

use std::str::FromStr;

/// The number of characters that a name may have.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=24;
/// Parts that only the operator's names may contain.
const RESERVED: [&str; 5] = ["foretell", "admin", "support", "official", "moderator"];

/// A public name: ASCII letters, digits, spaces and `-._`. Only these, because other letters can look
/// like them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicName {
    text: String,
    key: String,
}

/// The error for a text that cannot be a public name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must have 3 to 24 letters, digits, spaces or -._, at least three of them letters or digits, and not look like \
     the operator's"
)]
pub struct InvalidPublicName;

impl PublicName {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns what no two names may have in common.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl FromStr for PublicName {
    type Err = InvalidPublicName;

    fn from_str(text: &str) -> Result<Self, InvalidPublicName> {
        let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        let text = words.join(" ");
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '.' | '_');
        let key: String =
            text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        let is_valid = LENGTHS.contains(&text.len())
            && text.chars().all(is_allowed)
            && key.len() >= *LENGTHS.start()
            && !RESERVED.iter().any(|reserved| key.contains(reserved));
        if is_valid { Ok(Self { text, key }) } else { Err(InvalidPublicName) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_have_the_same_key() {
        let key = |text: &str| text.parse::<PublicName>().map(|name| name.key);
        assert_eq!(key("Ada L."), key("  ada   -l_"));
        assert_eq!(key("Ada L.").as_deref(), Ok("adal"));
    }

    #[test]
    fn a_name_has_letters_that_cannot_be_mistaken() {
        for text in
            ["", "ab", "a b", "...---", "Аda", "ada\u{202e}", "Fore-tell team", "x".repeat(25).as_str()]
        {
            assert_eq!(text.parse::<PublicName>(), Err(InvalidPublicName), "{text:?}");
        }
        assert_eq!("Ada  Lovelace 7".parse::<PublicName>().unwrap().as_str(), "Ada Lovelace 7");
    }
}
