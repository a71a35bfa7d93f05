//! Splits texts into words for the search index and for search queries.

/// The maximum number of characters of a word. Longer words are truncated.
const MAX_WORD: usize = 40;
/// The maximum number of words of a text. Further words are ignored.
const MAX_WORDS: usize = 100;
/// The maximum number of words of a query.
pub const MAX_ASKED: usize = 6;

/// Returns the distinct words of a text in order. A word is a run of letters and digits in lower
/// case.
pub fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word: String = word.to_lowercase().chars().take(MAX_WORD).collect();
        if !words.contains(&word) {
            words.push(word);
        }
        if words.len() == MAX_WORDS {
            break;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lowercase_alphanumeric_and_unique() {
        assert_eq!(
            words("Will ÅRE win the 2026 cup, will it?"),
            ["will", "åre", "win", "the", "2026", "cup", "it"]
        );
        assert_eq!(words("C++ / C#"), ["c"]);
        assert!(words(" -- ").is_empty());
    }

    #[test]
    fn only_100_words_of_40_characters_are_indexed() {
        let text: String = (0..200).map(|n| format!("w{n} ")).collect();
        assert_eq!(words(&text).len(), 100);
        assert_eq!(words(&"é".repeat(90)), ["é".repeat(40)]);
    }
}
