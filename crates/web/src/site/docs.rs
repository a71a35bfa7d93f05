//! The guides of `docs/` as pages.

use std::sync::LazyLock;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http_kit::{PathId, Problem, Shared};
use presentation::guide::{Guide, guide};

use super::shell::{Reader, Section, Shell, cached};

/// A guide: the path below `docs/`, without its ending, and its text.
macro_rules! sources {
    ($($group:literal: $($path:literal)*;)*) => {
        &[$(($group, &[$(($path, include_str!(concat!("../../../../docs/", $path, ".md"))),)*]),)*]
    };
}

type Group = (&'static str, &'static [(&'static str, &'static str)]);

static SOURCES: &[Group] = sources! {
    "Trading": "trading-api" "api/conventions" "api/authentication" "api/signing" "api/limits" "api/markets"
        "api/trades" "api/idempotency" "api/events" "api/account" "api/redemptions" "api/webhooks" "webhooks"
        "api/errors";
    "Reading": "public-api" "glossary";
    "Trust": "custody" "verifying";
    "Operating": "operating" "importing" "recovery";
};

/// A group with its rendered guides, by path.
type RenderedGroup = (&'static str, Vec<(&'static str, Guide)>);

static GUIDES: LazyLock<Vec<RenderedGroup>> = LazyLock::new(|| {
    let render =
        |(path, text): &(&'static str, &'static str)| (*path, guide(text, |target| url_of(path, target)));
    SOURCES.iter().map(|(group, guides)| (*group, guides.iter().map(render).collect())).collect()
});

/// Returns the URL of a link's target in the guide at `path`. `None` for documents that are not pages.
fn url_of(path: &str, target: &str) -> Option<String> {
    if let Some((_, code)) = target.split_once("/docs/api-errors") {
        return Some(format!("/docs/api-errors{code}"));
    }
    if target.starts_with('#') || target.starts_with("https://") {
        return Some(target.to_owned());
    }
    let (file, anchor) = target.find('#').map_or((target, ""), |at| target.split_at(at));
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

/// A link of the side navigation.
#[derive(Debug)]
struct GuideLink {
    url: String,
    title: &'static str,
    is_current: bool,
}

/// A group of the side navigation.
#[derive(Debug)]
struct GuideGroup {
    name: &'static str,
    guides: Vec<GuideLink>,
}

#[derive(Debug, Template)]
#[template(path = "site/docs.html")]
struct GuidePage {
    shell: Shell,
    groups: Vec<GuideGroup>,
    guide: Option<&'static Guide>,
}

/// `GET /docs`.
pub async fn index(State(app): State<Shared>, reader: Reader) -> Result<Response, Problem> {
    show(&app, &reader, None).await
}

/// `GET /docs/{guide}`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    PathId(name): PathId,
) -> Result<Response, Problem> {
    show(&app, &reader, Some(&name)).await
}

/// `GET /docs/api/{guide}`.
pub async fn page_of_api(
    State(app): State<Shared>,
    reader: Reader,
    PathId(name): PathId,
) -> Result<Response, Problem> {
    show(&app, &reader, Some(&format!("api/{name}"))).await
}

async fn show(app: &Shared, reader: &Reader, path: Option<&str>) -> Result<Response, Problem> {
    let all = GUIDES.iter().flat_map(|(_, guides)| guides);
    let found = path.map(|path| all.clone().find(|(known, _)| *known == path).ok_or_else(Problem::not_found));
    let guide = found.transpose()?.map(|(_, guide)| guide);
    let url = path.map_or_else(|| "/docs".to_owned(), |path| format!("/docs/{path}"));
    let link = |(known, guide): &'static (&'static str, Guide)| GuideLink {
        url: format!("/docs/{known}"),
        title: &guide.title,
        is_current: path == Some(known),
    };
    let read = async || {
        let shell = Shell::new(reader, Section::Docs, guide.map_or("Documentation", |guide| &guide.title));
        let groups = GUIDES.iter();
        let page = GuidePage {
            shell: shell.listed_at(app, &url),
            groups: groups
                .map(|(name, guides)| GuideGroup { name, guides: guides.iter().map(link).collect() })
                .collect(),
            guide,
        };
        Ok((page, None))
    };
    cached(app, reader, &url, read).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every link between guides leads to a guide, and to a heading that it has.
    #[test]
    fn links_between_guides_lead_to_headings() {
        let guides: Vec<_> = GUIDES.iter().flat_map(|(_, guides)| guides).collect();
        let mut wrong = Vec::new();
        for (path, guide) in &guides {
            let own = format!("/docs/{path}");
            for link in guide.html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
                let page = if page.is_empty() { own.as_str() } else { page };
                let Some(target) = page.strip_prefix("/docs/").filter(|it| !it.starts_with("api-errors"))
                else {
                    continue;
                };
                let found = guides.iter().find(|(known, _)| *known == target);
                if !found
                    .is_some_and(|(_, it)| anchor.is_empty() || it.html.contains(&format!("id=\"{anchor}\"")))
                {
                    wrong.push(format!("{path}: {link}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
