//! Pages about the API that the service itself publishes: where the `type` of every problem leads.
//!
//! They are made of the catalogue of codes alone, as HTML for people and as Markdown for programs that read.

mod html;
mod markdown;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY,
};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use uuid::Uuid;

use crate::http::{PathId, Problem, RequestId, Shared, StablePart};

/// The pages load nothing and run nothing; their style stands in them.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The request id of example bodies.
const REQUEST_ID: Uuid = Uuid::from_u128(0x0198_f3a0_5d4e_7c1b_9a2f_3b4c_5d6e_7f80);

/// The forms that a page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Markdown,
}

/// `GET /docs/api-errors`: every code.
pub async fn index(headers: HeaderMap) -> Response {
    match form(&headers) {
        Form::Html => answer(Form::Html, html::index()),
        Form::Markdown => answer(Form::Markdown, markdown::index()),
    }
}

/// `GET /docs/api-errors/{code}`: one code; with `.md` behind it, or where the client asks for Markdown, as Markdown.
pub async fn code(
    State(app): State<Shared>,
    PathId(name): PathId,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, form) = match name.strip_suffix(".md") {
        Some(name) => (name, Form::Markdown),
        None => (name.as_str(), form(&headers)),
    };
    let not_found = |_| {
        Problem::from(app::AppError::new(ErrorCode::ResourceNotFound).detail("There is no such error code."))
    };
    let code: ErrorCode = name.parse().map_err(not_found)?;
    let example = example(code, &app.docs_url);
    Ok(match form {
        Form::Html => answer(Form::Html, html::page(code, &example)),
        Form::Markdown => answer(Form::Markdown, markdown::page(code, &example)),
    })
}

/// Markdown where the client names it, and neither HTML nor everything before it.
fn form(headers: &HeaderMap) -> Form {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted
        .flat_map(|line| line.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim());
    match kinds.find(|kind| ["text/markdown", "text/html", "text/*", "*/*"].contains(kind)) {
        Some("text/markdown") => Form::Markdown,
        _ => Form::Html,
    }
}

/// The body that a client gets with this code.
fn example(code: ErrorCode, docs_url: &str) -> String {
    let problem = Problem::sample(code);
    let instance = if code.guide().extensions.contains("submission") { "/v1/trades" } else { "/v1/markets" };
    serde_json::to_string_pretty(&problem.body(docs_url, instance, RequestId::of(REQUEST_ID)))
        .unwrap_or_default()
}

fn answer(form: Form, text: String) -> Response {
    let kind = match form {
        Form::Html => "text/html; charset=utf-8",
        Form::Markdown => "text/markdown; charset=utf-8",
    };
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "public, max-age=300"),
        (VARY, "Accept"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let bytes = Bytes::from(text);
    (headers, Extension(StablePart::of(&bytes)), bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn markdown_is_for_those_who_ask_for_it_first() {
        let of =
            |accept: &'static str| form(&[(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect());
        for accept in
            ["text/markdown", "text/markdown, text/html;q=0.5", "application/json, text/markdown;q=0.9"]
        {
            assert_eq!(of(accept), Form::Markdown, "{accept}");
        }
        for accept in
            ["", "*/*", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html, text/markdown", "image/png"]
        {
            assert_eq!(of(accept), Form::Html, "{accept}");
        }
        assert_eq!(form(&HeaderMap::new()), Form::Html);
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(
            html::escaped(r#"<a href="x">'&'</a>"#),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;"
        );
    }

    #[test]
    fn a_page_says_all_that_is_known_of_its_code() {
        for code in ErrorCode::ALL.iter().copied() {
            let (guide, example) = (code.guide(), example(code, "https://docs.test"));
            assert!(example.contains(&format!("https://docs.test/api-errors/{code}")), "{code}");
            let (html, markdown) = (html::page(code, &example), markdown::page(code, &example));
            for text in
                [guide.when, guide.mend, guide.retry.advice(), code.title(), code.default_detail(), &example]
            {
                assert!(html.contains(&html::escaped(text)), "{code}: {text}");
                assert!(markdown.contains(text), "{code}: {text}");
            }
            assert!(html::index().contains(&format!("/docs/api-errors/{code}\"")), "{code}");
            assert!(markdown::index().contains(&format!("(/docs/api-errors/{code}.md)")), "{code}");
        }
    }

    #[test]
    fn a_page_reads_as_documented() {
        let example = example(ErrorCode::SpendingLimitExceeded, "https://docs.test");
        insta::assert_snapshot!(html::page(ErrorCode::SpendingLimitExceeded, &example));
        insta::assert_snapshot!(markdown::page(ErrorCode::SpendingLimitExceeded, &example));
    }
}
