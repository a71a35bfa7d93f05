//! Errors of the public API. An error passes through the layers as a typed value, and is rendered
//! to a body only here.

use std::sync::Arc;

use app::AppError;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use serde::Serialize;
use serde_json::Value;
use store::StoreError;
use utoipa::ToSchema;

use super::Code;
use crate::{RequestId, with_causes};

/// An error on its way to the client. As a response it has a status but no body; [`render`] adds
/// it.
#[derive(Debug, Clone)]
pub struct Refusal {
    code: Code,
    message: String,
    retry_after_s: Option<u32>,
    /// The use case's error, if there is one. Its cause is logged.
    error: Option<Arc<AppError>>,
}

/// The body of an error.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error, description = "An error. Branch on code; show message to people.")]
#[serde(rename_all = "camelCase")]
pub struct RefusalBody<'a> {
    /// A short title, the same for every error with this code.
    error: &'a str,
    /// What is wrong and what to do.
    message: &'a str,
    /// The stable code. Codes may be added.
    code: &'a str,
    /// Seconds to wait before the next attempt. Only set if waiting helps.
    #[schema(value_type = Option<u32>, minimum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
}

impl Refusal {
    /// Creates an error with the code's default message.
    pub fn new(code: Code) -> Self {
        Self { code, message: code.message().to_owned(), retry_after_s: None, error: None }
    }

    /// Replaces the message.
    #[must_use]
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Sets the number of seconds after which a retry makes sense.
    #[must_use]
    pub fn retry_after_s(self, seconds: u32) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// Seconds to wait before the next attempt.
    pub const fn retry_s(&self) -> Option<u32> {
        self.retry_after_s
    }

    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns an example error with this code, for the OpenAPI document.
    pub fn sample(code: Code) -> Self {
        let sample = Self::new(code);
        match code {
            Code::InvalidRequest => sample.message("limit must be an integer from 1 to 100, got \"0\"."),
            Code::RateLimitExceeded => sample.retry_after_s(12),
            Code::DependencyUnavailable => sample.retry_after_s(1),
            Code::RouteDisabled => sample.retry_after_s(30),
            _ => sample,
        }
    }

    pub fn body(&self) -> RefusalBody<'_> {
        RefusalBody {
            error: self.code.title(),
            message: &self.message,
            code: self.code.as_str(),
            retry_after: self.retry_after_s,
        }
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<AppError> for Refusal {
    fn from(error: AppError) -> Self {
        let code = Code::from(error.code);
        let has_own_words = error.detail != error.code.default_detail();
        let message = match wrong_parameters(&error) {
            Some(wrong) => wrong,
            None if error.code == ErrorCode::OutcomeIndexInvalid => {
                format!("outcomeIndex is out of range. {}", error.detail)
            }
            // Details of errors that this API does not show would only confuse, or reveal
            // internals.
            None if has_own_words && code != Code::InternalError => error.detail.clone(),
            None => code.message().to_owned(),
        };
        Self { code, message, retry_after_s: error.retry_after_s, error: Some(Arc::new(error)) }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        AppError::from(error).into()
    }
}

/// Returns all invalid parameters in one sentence.
fn wrong_parameters(error: &AppError) -> Option<String> {
    let errors = error.extensions.get("errors").and_then(Value::as_array)?;
    let text = |error: &Value, member: &str| error[member].as_str().unwrap_or_default().to_owned();
    let wrong = |error: &Value| {
        let name = text(error, "pointer");
        format!("{} {}", name.trim_start_matches('/'), text(error, "detail"))
    };
    Some(format!("{}.", errors.iter().map(wrong).collect::<Vec<_>>().join("; ")))
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Fills `response` with the body and headers of `refusal`. The cause is logged once under the
/// request id, and is never part of the body.
pub(super) fn render(response: &mut Response, refusal: &Refusal, path: &str, id: RequestId) {
    log(refusal, path, id);
    // Only strings and a number, so serialization cannot fail.
    *response.body_mut() = Body::from(serde_json::to_vec(&refusal.body()).unwrap_or_default());
    *response.status_mut() = refusal.status();
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = refusal.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}

fn log(refusal: &Refusal, path: &str, id: RequestId) {
    let Some(source) = refusal.error.as_deref().and_then(|error| error.source.as_deref()) else { return };
    let (code, causes) = (refusal.code.as_str(), with_causes(source));
    if refusal.code.status() >= 500 {
        tracing::error!(request.id = %id, http.path = path, error.code = code, error.causes = causes, "{}", refusal.message);
    } else {
        tracing::info!(request.id = %id, http.path = path, error.code = code, error.causes = causes, "{}", refusal.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::trade::FieldError;

    fn shown(refusal: &Refusal) -> String {
        serde_json::to_string(&refusal.body()).unwrap()
    }

    #[test]
    fn an_error_has_the_documented_members_and_retry_after_if_waiting_helps() {
        let plain = Refusal::new(Code::ThreadNotFound);
        let expected = r#"{"error":"Thread not found","message":"There is no thread with this id.","code":"THREAD_NOT_FOUND"}"#;
        assert_eq!(shown(&plain), expected);
        let late = Refusal::new(Code::RateLimitExceeded).message("Later.").retry_after_s(7);
        let expected =
            r#"{"error":"Too many requests","message":"Later.","code":"RATE_LIMIT_EXCEEDED","retryAfter":7}"#;
        assert_eq!(shown(&late), expected);
    }

    #[test]
    fn every_wrong_parameter_is_named_in_the_message() {
        let errors =
            [FieldError::new("/limit", "must be an integer"), FieldError::new("/sortBy", "must be a word")];
        let refusal = Refusal::from(AppError::validation(&errors));
        assert_eq!(refusal.code(), Code::InvalidRequest);
        assert_eq!(refusal.message, "limit must be an integer; sortBy must be a word.");
    }

    #[test]
    fn internal_causes_are_not_in_the_message() {
        let error = AppError::new(ErrorCode::InternalError).detail("table").caused_by("relation trades");
        let text = shown(&Refusal::from(error));
        assert!(!text.contains("table") && !text.contains("relation"), "{text}");
        let text = shown(&Refusal::from(AppError::new(ErrorCode::SpendingLimitExceeded)));
        assert!(text.contains("INTERNAL_ERROR"), "{text}");
    }
}
