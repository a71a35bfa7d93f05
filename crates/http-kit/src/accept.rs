//! The choice between a page's HTML and its Markdown.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// Returns whether `Accept` names Markdown before HTML and before wildcards. Quality values are
/// ignored. A request that accepts neither gets HTML: no route rejects a request for its `Accept`.
pub fn prefers_markdown(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted
        .flat_map(|line| line.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    let known = kinds.find(|kind| ["text/markdown", "text/html", "text/*", "*/*"].contains(&kind.as_str()));
    known.is_some_and(|kind| kind == "text/markdown")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn markdown_is_sent_if_the_client_prefers_it() {
        let of = |accept: &'static str| {
            prefers_markdown(&[(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect())
        };
        for accept in [
            "text/markdown",
            "Text/Markdown",
            "text/markdown, text/html;q=0.5",
            "application/json, text/markdown;q=0.9",
        ] {
            assert!(of(accept), "{accept}");
        }
        for accept in
            ["", "*/*", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html, text/markdown", "image/png"]
        {
            assert!(!of(accept), "{accept}");
        }
        assert!(!prefers_markdown(&HeaderMap::new()));
    }
}
