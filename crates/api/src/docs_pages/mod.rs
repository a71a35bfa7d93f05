//! Error pages, which the `type` of every problem links to.
//!
//! They are generated from the error catalogs, as HTML for people and as Markdown for programs.

mod entry;
mod html;
mod markdown;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use http_kit::{PathId, Problem, Shared, StablePart, prefers_markdown};

use self::entry::CodePage;

/// The pages load nothing and run no scripts. Their styles are inline.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Markdown,
}

/// `GET /docs/api-errors`: every code.
#[utoipa::path(
    get, path = "/docs/api-errors", operation_id = "listErrorPages", tag = "Service", summary = "List the error codes",
    description = "A page that lists every error code, as HTML, or as Markdown if `Accept` names it first.",
    responses((status = 200, description = "The page.",
        content((String = "text/html"), (String = "text/markdown")))),
)]
pub async fn index(headers: HeaderMap) -> Response {
    match form(&headers) {
        Form::Html => answer(Form::Html, html::index()),
        Form::Markdown => answer(Form::Markdown, markdown::index()),
    }
}

/// `GET /docs/api-errors.md`: every code, as Markdown.
#[utoipa::path(
    get, path = "/docs/api-errors.md", operation_id = "listErrorPagesAsMarkdown", tag = "Service",
    summary = "List the error codes as Markdown",
    description = "The page that lists every error code, as Markdown whatever `Accept` names.",
    responses((status = 200, description = "The page.", body = String, content_type = "text/markdown")),
)]
pub async fn index_markdown() -> Response {
    answer(Form::Markdown, markdown::index())
}

/// `GET /docs/api-errors/{code}`: the page of one code, as HTML or Markdown.
#[utoipa::path(
    get, path = "/docs/api-errors/{code}", operation_id = "getErrorPage", tag = "Service", summary = "Explain an error code",
    description = "The page that a problem's `type` leads to. As HTML, or as Markdown if `Accept` names it first or the path ends \
        with `.md`.",
    params(("code" = String, Path, description = "The error code.", example = "API_KEY_MISSING")),
    responses((status = 200, description = "The page.",
        content((String = "text/html"), (String = "text/markdown")))),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND"]))),
)]
pub async fn code(
    State(app): State<Shared>,
    PathId(name): PathId,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, form) = match name.strip_suffix(".md") {
        Some(name) => (name, Form::Markdown),
        None => (name.as_str(), form(&headers)),
    };
    let Some(entry) = CodePage::find(name, &app.docs_url) else { return not_found(&headers) };
    Ok(match form {
        Form::Html => answer(Form::Html, html::page(&entry)),
        Form::Markdown => answer(Form::Markdown, markdown::page(&entry)),
    })
}

/// Returns a page for browsers, and a problem for other clients.
fn not_found(headers: &HeaderMap) -> Result<Response, Problem> {
    const DETAIL: &str = "There is no such error code.";
    let names_html = |value: &str| value.to_ascii_lowercase().contains("text/html");
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if accepted.into_iter().any(names_html) {
        return Ok((StatusCode::NOT_FOUND, answer(Form::Html, html::not_found(DETAIL))).into_response());
    }
    Err(app::AppError::new(ErrorCode::ResourceNotFound).detail(DETAIL).into())
}

fn form(headers: &HeaderMap) -> Form {
    if prefers_markdown(headers) { Form::Markdown } else { Form::Html }
}

fn answer(form: Form, text: String) -> Response {
    let kind = match form {
        Form::Html => "text/html; charset=utf-8",
        Form::Markdown => "text/markdown; charset=utf-8",
    };
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "public, max-age=300"),
        // The same URL has two formats.
        (VARY, "Accept"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let bytes = Bytes::from(text);
    (headers, Extension(StablePart::of(&bytes)), bytes).into_response()
}

#[cfg(test)]
mod tests {
    use protocol::Documented;

    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            html::escaped(r#"<a href="x">'&'</a>"#),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;"
        );
    }

    #[test]
    fn a_page_shows_every_field_of_its_code() {
        for code in ErrorCode::ALL.iter().copied() {
            let (guide, entry) = (code.guide(), CodePage::find(code.as_str(), "https://docs.test").unwrap());
            let example = &entry.examples[0].1;
            assert!(example.contains(&format!("https://docs.test/api-errors/{code}")), "{code}");
            let (html, markdown) = (html::page(&entry), markdown::page(&entry));
            for text in
                [guide.when, guide.fix, guide.retry.advice(), code.title(), code.default_detail(), example]
            {
                assert!(html.contains(&html::escaped(text)), "{code}: {text}");
                assert!(markdown.contains(text), "{code}: {text}");
            }
            assert!(html::index().contains(&format!("/docs/api-errors/{code}\"")), "{code}");
            assert!(markdown::index().contains(&format!("(/docs/api-errors/{code}.md)")), "{code}");
        }
    }

    #[test]
    fn a_page_matches_its_snapshot() {
        let entry = CodePage::find("SPENDING_LIMIT_EXCEEDED", "https://docs.test").unwrap();
        insta::assert_snapshot!(html::page(&entry));
        insta::assert_snapshot!(markdown::page(&entry));
    }

    #[test]
    fn codes_of_the_public_read_api_have_pages_and_are_listed() {
        for code in entry::only_public() {
            let (name, entry) = (code.as_str(), CodePage::find(code.as_str(), "https://docs.test").unwrap());
            assert!(html::page(&entry).contains(&html::escaped(entry.when)), "{name}");
            assert!(markdown::page(&entry).contains(entry.fix), "{name}");
            assert!(html::index().contains(&format!("/docs/api-errors/{name}\"")), "{name}");
            assert!(markdown::index().contains(&format!("(/docs/api-errors/{name}.md)")), "{name}");
        }
        let shared = CodePage::find("MARKET_NOT_FOUND", "https://docs.test").unwrap();
        assert_eq!(shared.examples.len(), 2);
    }

    #[test]
    fn an_unknown_code_gets_a_page_for_browsers_and_a_problem_for_programs() {
        let accept = |kind: &'static str| [(ACCEPT, HeaderValue::from_static(kind))].into_iter().collect();
        let page = not_found(&accept("text/html,application/xhtml+xml,*/*;q=0.8")).unwrap();
        assert_eq!(page.status(), StatusCode::NOT_FOUND);
        assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        for headers in [HeaderMap::new(), accept("*/*"), accept("application/json")] {
            assert_eq!(not_found(&headers).unwrap_err().code(), ErrorCode::ResourceNotFound);
        }
    }
}
