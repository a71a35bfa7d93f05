//! Errors. An error passes through the layers as a typed value, and is rendered to a body on its way
//! out.

use std::borrow::Cow;
use std::sync::Arc;

use app::{AppError, Submission};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chain::ChainError;
use domain::ErrorCode;
use protocol::Documented;
use serde_json::{Map, Value};
use store::StoreError;

use super::{PublicCode, Surface, WebCode};

/// An error on its way to the client. As a response it has a status but no body; `render` adds it.
#[derive(Debug, Clone)]
pub struct Problem {
    pub(super) error: Arc<AppError>,
    /// The public API's code, if it is more specific than the error's.
    public_code: Option<PublicCode>,
    /// The web application's code, if the catalog has none for the error.
    web_code: Option<WebCode>,
    submission: Option<Submission>,
}

impl Problem {
    /// Creates a problem with the code's default detail.
    pub fn new(code: ErrorCode) -> Self {
        AppError::new(code).into()
    }

    /// Creates a problem of the web application with a further member.
    pub fn of_web(code: WebCode, name: &'static str, value: impl Into<Value>) -> Self {
        Self { web_code: Some(code), ..error_of_web(code).with(name, value).into() }
    }

    /// The error of a resource that does not exist or belongs to another user.
    pub fn not_found() -> Self {
        Self::new(ErrorCode::ResourceNotFound)
    }

    pub fn code(&self) -> ErrorCode {
        self.error.code
    }

    /// Returns the description of the error for people.
    pub fn detail(&self) -> &str {
        &self.error.detail
    }

    /// Returns the fields that do not meet their requirements, each with its requirement.
    pub fn field_errors(&self) -> Vec<(&str, &str)> {
        let errors = self.error.extensions.get("errors").and_then(Value::as_array);
        errors
            .into_iter()
            .flatten()
            .map(|error| (text_of(error, "pointer"), text_of(error, "detail")))
            .collect()
    }

    /// Returns the code and the title of the error, as the surface shows them.
    pub fn code_and_title(&self) -> (&'static str, &'static str) {
        match self.web_code {
            Some(code) => (code.as_str(), code.title()),
            None => (self.error.code.as_str(), self.error.code.title()),
        }
    }

    /// Returns the code of the error on the public API.
    pub fn public_code(&self) -> PublicCode {
        self.public_code.unwrap_or_else(|| self.error.code.into())
    }

    pub fn status(&self, surface: Surface) -> StatusCode {
        let status = match surface {
            Surface::Trading => self.error.code.status(),
            Surface::Web => self.web_code.map_or(self.error.code.status(), WebCode::status),
            Surface::Public => self.public_code().status(),
        };
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Sets the state of the submission, unless it is already set.
    #[must_use]
    pub fn or_submission(self, submission: Submission) -> Self {
        Self { submission: self.submission.or(Some(submission)), ..self }
    }

    /// Sets the state of the submission of a write that failed, unless it is already set. A 4xx is
    /// decided before anything is stored. After any other error the outcome is unknown.
    #[must_use]
    pub fn of_write(self) -> Self {
        let is_rejected = self.status(Surface::Trading).is_client_error();
        self.or_submission(if is_rejected { Submission::NotSubmitted } else { Submission::Unknown })
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

    pub(super) fn extensions(&self) -> Map<String, Value> {
        let mut extensions = self.error.extensions.clone();
        if let Some(submission) = self.submission {
            // A more specific value of the error itself takes precedence.
            extensions.entry("submission").or_insert_with(|| submission.as_str().into());
        }
        extensions
    }

    /// Returns the text of the error on the public API.
    pub(super) fn public_message(&self) -> Cow<'_, str> {
        let (error, code) = (&self.error, self.public_code());
        let has_own_words = error.detail != error.code.default_detail();
        match wrong_parameters(error) {
            Some(wrong) => wrong.into(),
            None if error.code == ErrorCode::OutcomeIndexInvalid => {
                format!("outcomeIndex is out of range. {}", error.detail).into()
            }
            // Details of errors that this API does not show would only confuse, or reveal
            // internals.
            None if has_own_words && code != PublicCode::InternalError => error.detail.as_str().into(),
            None => code.default_detail().into(),
        }
    }
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
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

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        Self { error: Arc::new(error), public_code: None, web_code: None, submission: None }
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

impl From<PublicCode> for Problem {
    fn from(code: PublicCode) -> Self {
        // A code that the catalog lacks is never the fault of the service, so it is counted and logged
        // like a missing resource.
        let in_catalog = code.as_str().parse().unwrap_or(ErrorCode::ResourceNotFound);
        Self { public_code: Some(code), ..Self::new(in_catalog) }
    }
}

impl From<WebCode> for Problem {
    fn from(code: WebCode) -> Self {
        Self { web_code: Some(code), ..error_of_web(code).into() }
    }
}

fn error_of_web(code: WebCode) -> AppError {
    // Counted and logged like a missing resource: never the fault of the service.
    AppError::new(ErrorCode::ResourceNotFound).detail(code.default_detail())
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // `render` sets the surface's status.
        let mut response = self.status(Surface::Trading).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::trade::FieldError;

    #[test]
    fn the_submission_of_an_error_is_not_overwritten() {
        let error = AppError::new(ErrorCode::RequestTimeout).submission(Submission::Unknown);
        let problem = Problem::from(error).or_submission(Submission::NotSubmitted);
        assert_eq!(problem.extensions()["submission"], "unknown");
    }

    #[test]
    fn the_public_message_names_every_invalid_parameter() {
        let errors =
            [FieldError::new("/limit", "must be an integer"), FieldError::new("/sortBy", "must be a word")];
        let problem = Problem::from(AppError::validation(&errors));
        assert_eq!(problem.public_code(), PublicCode::InvalidRequest);
        assert_eq!(problem.public_message(), "limit must be an integer; sortBy must be a word.");
    }

    #[test]
    fn a_code_of_the_public_api_has_its_own_status_and_message() {
        for code in PublicCode::ALL {
            let problem = Problem::from(*code);
            assert_eq!(problem.status(Surface::Public).as_u16(), code.status());
            assert_eq!(problem.public_message(), code.default_detail());
        }
    }
}
