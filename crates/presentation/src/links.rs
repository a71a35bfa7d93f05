//! URLs of pages, cards and oEmbed responses. Other sites store them, so they never change.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The service's name on other sites.
pub const SITE: &str = "Foretell";
/// Size of a card in pixels.
pub const CARD_WIDTH: u32 = 1_200;
pub const CARD_HEIGHT: u32 = 630;

/// Returns the URL of a card, for a version of the resource at `path` in the web application.
pub fn card_url(app_url: &str, path: &str, version: &str) -> String {
    format!("{app_url}/cards{path}/{version}.png")
}

/// Returns the URL of the oEmbed response for the page at `url`.
pub fn oembed_url(app_url: &str, url: &str) -> String {
    format!("{app_url}/api/oembed?format=json&url={}", percent_encode(url))
}

/// Percent-encodes a text for a query: everything except unreserved characters.
pub fn percent_encode(text: &str) -> String {
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreserved_characters_stay_as_they_are() {
        assert_eq!(percent_encode("a b&c=d#é\"<>'\n"), "a%20b%26c%3Dd%23%C3%A9%22%3C%3E%27%0A");
    }
}
