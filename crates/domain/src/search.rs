//! The words of a text, as they are kept for searching and as they are asked for.

/// The most characters of a word that count.
const MAX_WORD: usize = 40;
/// The most words of a text that count.
const MAX_WORDS: usize = 100;
/// The most words of a question.
pub const MAX_ASKED: usize = 6;

/// The different words of a text in their order: runs of letters and digits, in lower case.
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
    fn words_are_letters_and_digits_in_lower_case_each_once() {
        assert_eq!(
            words("Will ÅRE win the 2026 cup, will it?"),
            ["will", "åre", "win", "the", "2026", "cup", "it"]
        );
        assert_eq!(words("C++ / C#"), ["c"]);
        assert!(words(" -- ").is_empty());
    }

    #[test]
    fn a_long_text_counts_to_its_hundredth_word_and_a_word_to_its_fortieth_character() {
        let text: String = (0..200).map(|n| format!("w{n} ")).collect();
        assert_eq!(words(&text).len(), 100);
        assert_eq!(words(&"é".repeat(90)), ["é".repeat(40)]);
    }
}
