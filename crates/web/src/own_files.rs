//! Compares a site with this program: the pages' policy, the scripts and styles that they load, and
//! the bytes of every file.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_SECURITY_POLICY;

use crate::{assets, site};

/// Pages that people sign on, or that lead there.
pub const PAGES: [&str; 4] = ["/", "/markets", "/sign-in", "/sign-up"];

/// Returns the path and the bytes of every file that pages load.
pub fn files() -> impl Iterator<Item = (String, &'static [u8])> {
    assets::all().map(|(name, bytes)| (assets::path_of(name), bytes))
}

/// Returns how a page differs from this program's: another policy, or a script or style that is not
/// one of its files.
pub fn faults_of(headers: &HeaderMap, html: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if headers.get_all(CONTENT_SECURITY_POLICY).iter().ne([&site::POLICY]) {
        faults.push("another Content-Security-Policy".to_owned());
    }
    let script = format!("<script type=\"module\" src=\"{}\"></script>", assets::path_of("js/main.js"));
    let style = format!("<link rel=\"stylesheet\" href=\"{}\">", assets::path_of("app.css"));
    // Whatever else looks like a script or a style is reported, even in a text: better one too many.
    let rest = html.replace(&script, "").replace(&style, "").to_ascii_lowercase();
    for (mark, what) in [("<script", "script"), ("stylesheet", "style sheet"), ("<style", "inline style")] {
        if rest.contains(mark) {
            faults.push(format!("another {what}"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_another_script_style_or_policy_is_reported() {
        let own = HeaderMap::from_iter([(CONTENT_SECURITY_POLICY, site::POLICY)]);
        let page = format!(
            "<link rel=\"stylesheet\" href=\"{}\"><script type=\"module\" src=\"{}\"></script><p>Hello</p>",
            assets::path_of("app.css"),
            assets::path_of("js/main.js")
        );
        assert_eq!(faults_of(&own, &page), Vec::<String>::new());
        for added in [
            "<SCRIPT>steal()</SCRIPT>",
            "<script src=\"/assets/0/js/main.js\"></script>",
            "<link rel=stylesheet href=\"/x.css\">",
            "<style>p{}</style>",
        ] {
            assert_eq!(faults_of(&own, &format!("{page}{added}")).len(), 1, "{added}");
        }
        assert_eq!(faults_of(&HeaderMap::new(), &page), ["another Content-Security-Policy"]);
    }
}
