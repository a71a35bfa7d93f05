//! Rendering of errors: problem documents (RFC 7807) on the trading API, `{error, message, code}` on
//! the public API.

use std::error::Error;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use domain::ErrorCode;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Problem, RequestId, Surface};

/// Header that repeats the problem's code.
const ERROR_CODE: HeaderName = HeaderName::from_static("x-service-error-code");

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

/// The body of an error of the public API.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error, description = "An error. Branch on code; show message to people.")]
#[serde(rename_all = "camelCase")]
pub struct PublicErrorBody {
    /// A short title, the same for every error with this code.
    error: &'static str,
    /// The problem and what to do about it.
    message: String,
    /// The stable code. Codes may be added.
    code: &'static str,
    /// Seconds to wait before the next attempt. Only set if waiting helps.
    #[schema(value_type = Option<u32>, minimum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
}

impl Problem {
    /// Returns the body of the response to request `id` for the path `instance`. Real responses and
    /// documentation examples both come from here, so that they cannot diverge.
    pub fn body<'a>(&'a self, docs_url: &str, instance: &'a str, id: RequestId) -> impl Serialize + use<'a> {
        let (code, title) = self.code_and_title();
        ProblemBody {
            r#type: format!("{docs_url}/api-errors/{code}"),
            title,
            // Without a code of the web application, both surfaces have the same status.
            status: self.status(Surface::Web).as_u16(),
            code,
            detail: &self.error.detail,
            instance,
            request_id: id,
            extensions: self.extensions(),
        }
    }

    /// Logs the cause of the error under the request id.
    pub fn log(&self, instance: &str, id: RequestId) {
        let error = &self.error;
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

    /// Returns the body of the error on the public API.
    pub fn public_body(&self) -> PublicErrorBody {
        let code = self.public_code();
        PublicErrorBody {
            error: code.title(),
            message: self.public_message().into_owned(),
            code: code.as_str(),
            retry_after: self.retry_after_s(),
        }
    }
}

/// Fills `response` with the body and headers of `problem`, and also returns the body for callers
/// that write it themselves. `instance` is the request's path. The cause is logged once under the
/// request id, and is never part of the body.
pub(super) fn render(
    response: &mut Response,
    problem: &Problem,
    surface: Surface,
    docs_url: &str,
    instance: &str,
    id: RequestId,
) -> Bytes {
    problem.log(instance, id);
    let (kind, body) = match surface {
        Surface::Trading | Surface::Web => {
            ("application/problem+json", serde_json::to_vec(&problem.body(docs_url, instance, id)))
        }
        Surface::Public => ("application/json", serde_json::to_vec(&problem.public_body())),
    };
    // Only strings and JSON values, so serialization cannot fail.
    let body = Bytes::from(body.unwrap_or_default());
    *response.status_mut() = problem.status(surface);
    *response.body_mut() = Body::from(body.clone());
    let headers = response.headers_mut();
    // The length of the previous, empty body.
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if surface == Surface::Trading {
        write_code(headers, problem.code());
    }
    if let Some(seconds) = problem.retry_after_s() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    body
}

fn write_code(headers: &mut HeaderMap, code: ErrorCode) {
    headers.insert(ERROR_CODE, HeaderValue::from_static(code.as_str()));
    // RFC 9110 requires this header on every 401.
    if code.status() == 401 {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("ApiKey realm=\"X-API-Key\""));
    }
}

/// Formats an error and its causes in one line.
fn with_causes(error: &(dyn Error + 'static)) -> String {
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
    use crate::PublicCode;
    use app::{AppError, Submission};
    use axum::response::IntoResponse;
    use http_body_util::BodyExt;
    use uuid::Uuid;

    async fn rendered(problem: Problem) -> (Response, String) {
        let mut response = problem.clone().into_response();
        let id = RequestId::of(Uuid::from_u128(7));
        render(&mut response, &problem, Surface::Trading, "https://docs.test", "/v1/trades", id);
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

    fn public(problem: &Problem) -> String {
        serde_json::to_string(&problem.public_body()).unwrap()
    }

    #[test]
    fn a_public_error_has_the_documented_members_and_retry_after_if_waiting_helps() {
        let expected = r#"{"error":"Thread not found","message":"There is no thread with this id.","code":"THREAD_NOT_FOUND"}"#;
        assert_eq!(public(&PublicCode::ThreadNotFound.into()), expected);
        let late = AppError::new(ErrorCode::RateLimitExceeded).detail("Later.").retry_after_s(7);
        let expected =
            r#"{"error":"Too many requests","message":"Later.","code":"RATE_LIMIT_EXCEEDED","retryAfter":7}"#;
        assert_eq!(public(&late.into()), expected);
    }

    #[test]
    fn internal_causes_are_not_in_the_public_message() {
        let error = AppError::new(ErrorCode::InternalError).detail("table").caused_by("relation trades");
        let text = public(&error.into());
        assert!(!text.contains("table") && !text.contains("relation"), "{text}");
        let text = public(&Problem::new(ErrorCode::SpendingLimitExceeded));
        assert!(text.contains("INTERNAL_ERROR"), "{text}");
    }
}
