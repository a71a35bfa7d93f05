//! The guides of `docs/`, rendered once as HTML and as Markdown.

use std::sync::LazyLock;

use axum::body::Bytes;
use presentation::guide::{Guide, guide};
use presentation::{guide_markdown, guide_summary};

/// A guide: the path below `docs/`, without its ending, and its text.
macro_rules! sources {
    ($($group:literal: $($path:literal)*;)*) => {
        &[$(($group, &[$(($path, include_str!(concat!("../../../../../docs/", $path, ".md"))),)*]),)*]
    };
}

type Source = (&'static str, &'static str);

static SOURCES: &[(&str, &[Source])] = sources! {
    "Trading": "trading-api" "api/conventions" "api/authentication" "api/signing" "api/limits" "api/markets"
        "api/trades" "api/idempotency" "api/events" "api/account" "api/redemptions" "api/webhooks" "webhooks"
        "api/errors" "sandbox" "clients" "command-line" "agents";
    "Reading": "public-api" "glossary";
    "Trust": "custody" "verifying";
    "Operating": "operating" "importing" "recovery";
};

/// A guide as a page.
#[derive(Debug)]
pub struct Page {
    /// The path below `/docs/`.
    pub path: &'static str,
    pub guide: Guide,
    /// The first sentence.
    pub summary: String,
    pub markdown: Bytes,
}

/// A group of pages.
#[derive(Debug)]
pub struct Group {
    pub name: &'static str,
    pub pages: Vec<Page>,
}

pub static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    let group = |(name, sources): &(&'static str, &[Source])| Group {
        name,
        pages: sources.iter().map(Page::of).collect(),
    };
    SOURCES.iter().map(group).collect()
});

/// Returns all pages, in the order of the navigation.
pub fn all() -> impl Iterator<Item = &'static Page> {
    GROUPS.iter().flat_map(|group| &group.pages)
}

impl Page {
    fn of((path, text): &Source) -> Self {
        Self {
            path,
            guide: guide(text, |target| url_of(path, target)),
            summary: guide_summary(text),
            markdown: guide_markdown(text, |target| url_of(path, target).map(|url| as_markdown(&url))).into(),
        }
    }

    pub fn url(&self) -> String {
        format!("/docs/{}", self.path)
    }
}

/// Returns the URL of a link's target in the guide at `path`. `None` for documents that are not pages.
fn url_of(path: &str, target: &str) -> Option<String> {
    if let Some((_, code)) = target.split_once("/docs/api-errors") {
        return Some(format!("/docs/api-errors{code}"));
    }
    if target.starts_with('#') || target.starts_with("https://") {
        return Some(target.to_owned());
    }
    let (file, anchor) = split_anchor(target);
    let file = file.strip_suffix(".md")?;
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let file = match file.strip_prefix("../") {
        Some(above) => above.to_owned(),
        None if folder.is_empty() => file.to_owned(),
        None => format!("{folder}/{file}"),
    };
    let is_page = SOURCES.iter().flat_map(|(_, guides)| *guides).any(|(known, _)| *known == file);
    is_page.then(|| format!("/docs/{file}{anchor}"))
}

/// Returns the URL of the same page's Markdown, if it is a page of this documentation.
fn as_markdown(url: &str) -> String {
    if !url.starts_with("/docs/") {
        return url.to_owned();
    }
    let (page, anchor) = split_anchor(url);
    format!("{page}.md{anchor}")
}

/// Splits a URL before its `#`.
fn split_anchor(url: &str) -> (&str, &str) {
    url.find('#').map_or((url, ""), |at| url.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every link between guides leads to a guide, and to a heading that it has.
    #[test]
    fn links_between_guides_lead_to_headings() {
        let mut wrong = Vec::new();
        for Page { path, guide, .. } in all() {
            let own = format!("/docs/{path}");
            for link in guide.html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
                let page = if page.is_empty() { own.as_str() } else { page };
                if !page.starts_with("/docs/") || page.starts_with("/docs/api-errors") {
                    continue;
                }
                let found = all().find(|known| known.url() == page);
                if !found.is_some_and(|it| {
                    anchor.is_empty() || it.guide.html.contains(&format!("id=\"{anchor}\""))
                }) {
                    wrong.push(format!("{path}: {link}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn links_of_the_markdown_lead_to_markdown() {
        let url = |target| url_of("api/trades", target).map(|url| as_markdown(&url));
        assert_eq!(url("limits.md#a-b").as_deref(), Some("/docs/api/limits.md#a-b"));
        assert_eq!(url("../webhooks.md").as_deref(), Some("/docs/webhooks.md"));
        assert_eq!(
            url("http://127.0.0.1:8080/docs/api-errors/INTERNAL_ERROR").as_deref(),
            Some("/docs/api-errors/INTERNAL_ERROR.md")
        );
        assert_eq!(url("#here").as_deref(), Some("#here"));
        assert_eq!(url("https://example.com").as_deref(), Some("https://example.com"));
        assert_eq!(url("../openapi/v1.json"), None);
    }

    #[test]
    fn every_guide_has_a_summary() {
        for page in all() {
            assert!(
                page.summary.ends_with('.') && page.summary.len() > 20,
                "{}: {}",
                page.path,
                page.summary
            );
        }
    }
}
