//! Problem responses (RFC 7807). An error passes through the layers as a typed value, and is
//! rendered to a body only here.

use std::error::Error;
use std::sync::Arc;

use app::{AppError, Submission};
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chain::ChainError;
use domain::ErrorCode;
use protocol::Documented;
use serde::Serialize;
use serde_json::{Map, Value};
use store::StoreError;

use super::RequestId;

/// Header that repeats the problem's code.
const ERROR_CODE: HeaderName = HeaderName::from_static("x-service-error-code");

/// An error on its way to the client. As a response it has a status but no body; [`render`] adds
/// it.
#[derive(Debug, Clone)]
pub struct Problem {
    error: Arc<AppError>,
    submission: Option<Submission>,
}

impl Problem {
    /// Creates a problem with the code's default detail.
    pub fn new(code: ErrorCode) -> Self {
        AppError::new(code).into()
    }

    pub fn code(&self) -> ErrorCode {
        self.error.code
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Sets the state of the submission, unless it is already set.
    #[must_use]
    pub fn or_submission(self, submission: Submission) -> Self {
        Self { submission: self.submission.or(Some(submission)), ..self }
    }

    /// Replaces the error. The state of the submission stays the same.
    #[must_use]
    pub fn replaced_by(&self, error: AppError) -> Self {
        Self { submission: self.submission, ..error.into() }
    }

    /// Returns the value of `Retry-After`, in seconds.
    pub fn retry_after_s(&self) -> Option<u32> {
        self.error.retry_after_s
    }

    /// Returns an example problem with this code and its documented extensions, for the OpenAPI
    /// document.
    pub fn sample(code: ErrorCode) -> Self {
        let mut error = AppError::new(code);
        error.extensions = serde_json::from_str(code.guide().extensions).unwrap_or_default();
        error.into()
    }

    /// Returns the body of the response to request `id` for the path `instance`. Real responses and
    /// documentation examples both come from here, so that they cannot diverge.
    pub fn body<'a>(&'a self, docs_url: &str, instance: &'a str, id: RequestId) -> impl Serialize + use<'a> {
        ProblemBody {
            r#type: format!("{docs_url}/api-errors/{}", self.error.code),
            title: self.error.code.title(),
            status: self.error.code.status(),
            code: self.error.code.as_str(),
            detail: &self.error.detail,
            instance,
            request_id: id,
            extensions: self.extensions(),
        }
    }

    fn extensions(&self) -> Map<String, Value> {
        let mut extensions = self.error.extensions.clone();
        if let Some(submission) = self.submission {
            // A more specific value of the error itself takes precedence.
            extensions.entry("submission").or_insert_with(|| submission.as_str().into());
        }
        extensions
    }
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        Self { error: Arc::new(error), submission: None }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        AppError::from(error).into()
    }
}

impl From<ChainError> for Problem {
    fn from(error: ChainError) -> Self {
        AppError::from(error).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProblemBody<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    instance: &'a str,
    request_id: RequestId,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extensions: Map<String, Value>,
}

/// Fills `response` with the body and headers of `problem`, and also returns the body for callers
/// that write it themselves. `instance` is the request's path. The cause is logged once under the
/// request id, and is never part of the body.
pub(super) fn render(
    response: &mut Response,
    problem: &Problem,
    docs_url: &str,
    instance: &str,
    id: RequestId,
) -> Bytes {
    let error = &problem.error;
    log(problem, instance, id);
    // Only strings and JSON values, so serialization cannot fail.
    let body = Bytes::from(serde_json::to_vec(&problem.body(docs_url, instance, id)).unwrap_or_default());
    *response.status_mut() = problem.status();
    *response.body_mut() = Body::from(body.clone());
    let headers = response.headers_mut();
    // The length of the previous, empty body.
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(ERROR_CODE, HeaderValue::from_static(error.code.as_str()));
    if let Some(seconds) = error.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    // RFC 9110 requires this header on every 401.
    if error.code.status() == 401 {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("ApiKey realm=\"X-API-Key\""));
    }
    body
}

fn log(problem: &Problem, instance: &str, id: RequestId) {
    let error = &problem.error;
    let causes = error.source.as_deref().map(|source| with_causes(source)).unwrap_or_default();
    let (code, status) = (error.code.as_str(), error.code.status());
    // Switches of the operator fail on purpose and for every request, so logging them would flood
    // the log.
    let on_purpose = matches!(error.code, ErrorCode::RouteDisabled | ErrorCode::ApiTradeProcessingHalted);
    if status >= 500 && error.source.is_none() && !on_purpose {
        tracing::warn!(request.id = %id, http.path = instance, error.code = code, "{}", error.detail);
    } else if status >= 500 && !on_purpose {
        tracing::error!(request.id = %id, http.path = instance, error.code = code, error.causes = causes, "{}", error.detail);
    } else if error.source.is_some() {
        tracing::info!(request.id = %id, http.path = instance, error.code = code, error.causes = causes, "{}", error.detail);
    }
}

/// Formats an error and its causes in one line.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.extend([": ", &error.to_string()]);
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use uuid::Uuid;

    async fn rendered(problem: Problem) -> (Response, String) {
        let mut response = problem.clone().into_response();
        let id = RequestId::of(Uuid::from_u128(7));
        render(&mut response, &problem, "https://docs.test", "/v1/trades", id);
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice::<Value>(&bytes).unwrap();
        let text = serde_json::to_string_pretty(&body).unwrap();
        (Response::from_parts(parts, Body::empty()), text)
    }

    #[tokio::test]
    async fn a_problem_has_every_documented_member() {
        let error = AppError::field("/amount", "must be above zero").retry_after_s(3);
        let (response, body) = rendered(Problem::from(error).or_submission(Submission::NotSubmitted)).await;
        assert_eq!(response.headers()["retry-after"], "3");
        assert_eq!(response.headers()["x-service-error-code"], "VALIDATION_FAILED");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        insta::assert_snapshot!(body);
    }

    #[tokio::test]
    async fn the_cause_and_empty_extensions_are_left_out() {
        let error = AppError::internal("relation trades does not exist");
        let (response, body) = rendered(error.into()).await;
        assert_eq!(response.status(), 500);
        assert!(!body.contains("relation") && !body.contains("extensions"), "{body}");
    }

    #[test]
    fn the_submission_of_an_error_is_not_overwritten() {
        let error = AppError::new(ErrorCode::RequestTimeout).submission(Submission::Unknown);
        let problem = Problem::from(error).or_submission(Submission::NotSubmitted);
        assert_eq!(problem.extensions()["submission"], "unknown");
    }
}
