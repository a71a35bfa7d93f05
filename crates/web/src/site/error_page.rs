//! The page of an error.

use askama::Template;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::Response;
use domain::ErrorCode;
use http_kit::{FailedRequest, Problem, Surface, WebCode};

use super::session::see_sign_in;
use super::shell::{Reader, Section, Shell};

#[derive(Debug, Template)]
#[template(path = "site/error.html")]
struct ErrorPage<'a> {
    shell: Shell,
    status: u16,
    heading: &'a str,
    detail: &'a str,
    /// The names of invalid fields, and their requirements.
    fields: Vec<(&'a str, &'a str)>,
    code: &'a str,
    /// The code has its own page: it is not only of the web application.
    is_documented: bool,
    retry_after_s: Option<u32>,
    request_id: String,
}

/// Replaces the body of an error with a page. Assets and requests of scripts keep theirs.
pub fn show(failed: &FailedRequest<'_>, problem: &Problem, response: &mut Response) {
    let path = failed.uri.path();
    if path.starts_with("/assets/") || path.starts_with("/app/") {
        return;
    }
    let (public_code, title) = problem.code_and_title();
    // The form of a reader whose session has ended keeps its fields until the reader is back.
    if let Some(path) = form_of(failed).filter(|_| public_code == WebCode::SignedOut.as_str())
        && let Ok(sign_in) = see_sign_in(&path)
    {
        *response = sign_in;
        return;
    }
    let reader = Reader::anonymous(
        &failed.cookie.map(|cookie| (axum::http::header::COOKIE, cookie.clone())).into_iter().collect(),
    );
    let code = problem.code();
    let status = problem.status(Surface::Web);
    let (heading, detail) = match code {
        ErrorCode::ResourceNotFound | ErrorCode::MarketNotFound if status == StatusCode::NOT_FOUND => (
            "This page does not exist",
            "The link is incomplete, or it leads to something that was never here.",
        ),
        ErrorCode::DependencyUnavailable => (
            "Not available at the moment",
            "The service does not reach its chain or its database. Your money and positions are unchanged.",
        ),
        ErrorCode::RateLimitExceeded => ("Too many requests", "Your network has asked for too many pages."),
        _ => (title, problem.detail()),
    };
    let fields = problem.field_errors();
    let page = ErrorPage {
        shell: Shell::new(&reader, Section::None, heading),
        status: status.as_u16(),
        heading,
        detail,
        fields: fields
            .into_iter()
            .map(|(pointer, detail)| (pointer.trim_start_matches('/'), detail))
            .collect(),
        code: public_code,
        is_documented: public_code == code.as_str(),
        retry_after_s: problem.retry_after_s(),
        request_id: failed.id.to_string(),
    };
    let Ok(html) = page.render() else { return };
    *response.body_mut() = Body::from(html);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
}

/// Returns the path and the query of the page that sent the request, if it named one.
fn form_of(failed: &FailedRequest<'_>) -> Option<String> {
    let url: Uri = failed.referer?.to_str().ok()?.parse().ok()?;
    url.path_and_query().map(ToString::to_string)
}
