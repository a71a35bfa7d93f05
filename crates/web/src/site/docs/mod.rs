//! The guides of `docs/` as pages, and as Markdown for programs.

pub mod llms;
mod pages;

use askama::Template;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, LINK, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use http_kit::{PathId, Problem, Shared, StablePart, prefers_markdown};
use presentation::guide::Guide;

use self::pages::{GROUPS, Page};
use super::shell::{Reader, Section, Shell, cached};

const MARKDOWN: &str = "text/markdown; charset=utf-8";

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

/// `GET /docs`, as HTML, or as Markdown if `Accept` names it first.
pub async fn index(
    State(app): State<Shared>,
    reader: Reader,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if prefers_markdown(&headers) { Ok(markdown_index(&app)) } else { html(&app, &reader, None).await }
}

/// `GET /docs.md`.
pub async fn index_markdown(State(app): State<Shared>) -> Response {
    markdown_index(&app)
}

/// `GET /docs/{guide}`, as HTML, or as Markdown if the path ends with `.md` or `Accept` names it first.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    PathId(name): PathId,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show(&app, &reader, &name, &headers).await
}

/// `GET /docs/api/{guide}`, like [`page`].
pub async fn page_of_api(
    State(app): State<Shared>,
    reader: Reader,
    PathId(name): PathId,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show(&app, &reader, &format!("api/{name}"), &headers).await
}

async fn show(app: &Shared, reader: &Reader, name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let (path, is_markdown) = match name.strip_suffix(".md") {
        Some(path) => (path, true),
        None => (name, prefers_markdown(headers)),
    };
    let page = pages::all().find(|page| page.path == path).ok_or_else(Problem::not_found)?;
    if is_markdown {
        Ok(markdown(app, &page.url(), page.markdown.clone()))
    } else {
        html(app, reader, Some(page)).await
    }
}

async fn html(app: &Shared, reader: &Reader, page: Option<&'static Page>) -> Result<Response, Problem> {
    let url = page.map_or_else(|| "/docs".to_owned(), Page::url);
    let link = |known: &'static Page| GuideLink {
        url: known.url(),
        title: &known.guide.title,
        is_current: page.is_some_and(|page| page.path == known.path),
    };
    let read = async || {
        let title = page.map_or("Documentation", |page| &page.guide.title);
        let groups = GROUPS.iter();
        let page = GuidePage {
            shell: Shell::new(reader, Section::Docs, title).listed_at(app, &url),
            groups: groups
                .map(|group| GuideGroup { name: group.name, guides: group.pages.iter().map(link).collect() })
                .collect(),
            guide: page.map(|page| &page.guide),
        };
        Ok((page, None))
    };
    let response = cached(app, reader, &url, read).await?;
    Ok(negotiated(response, &format!("<{}{url}.md>; rel=\"alternate\"; type=\"text/markdown\"", app.app_url)))
}

fn markdown_index(app: &Shared) -> Response {
    let text = format!(
        "# Documentation\n\nForetell has two APIs. The [trading API](/docs/trading-api.md) trades for an account with a \
         key. The [public API](/docs/public-api.md) reads everything that the site shows, without a key.\n{}",
        llms::list("")
    );
    markdown(app, "/docs", text.into())
}

/// Returns the Markdown of the page at `url`.
fn markdown(app: &Shared, url: &str, bytes: Bytes) -> Response {
    // Search engines list the page for people, not its Markdown.
    negotiated(text(MARKDOWN, bytes), &format!("<{}{url}>; rel=\"canonical\"", app.app_url))
}

/// Returns a document that is not HTML.
fn text(kind: &'static str, bytes: impl Into<Bytes>) -> Response {
    let bytes = bytes.into();
    ([(CONTENT_TYPE, kind)], Extension(StablePart::of(&bytes)), bytes).into_response()
}

/// Says that the same URL has two forms, and where the other one is.
fn negotiated(mut response: Response, link: &str) -> Response {
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("accept"));
    if let Ok(link) = HeaderValue::from_str(link) {
        headers.append(LINK, link);
    }
    response
}
