//! Signed-in people, and the cookie of their session.

use app::passkeys::web;
use app::sessions::{Device, Person, SignedIn};
use app::{AccountChoice, PersonError};
use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::{LOCATION, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use http_kit::{ClientAddress, Problem, SESSION_COOKIE, Shared, Visitor, WebCode};
use presentation::amounts;
use presentation::links::percent_encode;
use serde_json::{Value, json};

/// 90 days, after which every session ends.
const MAX_AGE_S: u32 = 90 * 24 * 3_600;

/// The person who sent the request. Without a live session the request fails.
#[derive(Debug, Clone)]
pub struct Member(pub Person);

impl<S: Sync> FromRequestParts<S> for Member
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Visitor(person) = Visitor::from_request_parts(parts, state).await?;
        person.map(Self).ok_or_else(|| WebCode::SignedOut.into())
    }
}

/// Returns the browser that sent a request.
pub fn device_of(headers: &HeaderMap, ClientAddress(ip): ClientAddress) -> Device {
    let user_agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    Device { ip, user_agent: user_agent.to_owned() }
}

/// Returns the cookie of a new session.
pub fn cookie_of(signed_in: &SignedIn) -> Result<HeaderValue, Problem> {
    written(signed_in.token.expose(), MAX_AGE_S)
}

/// Returns a cookie that ends the session in the browser.
pub fn ended_cookie() -> Result<HeaderValue, Problem> {
    written("", 0)
}

fn written(token: &str, max_age_s: u32) -> Result<HeaderValue, Problem> {
    let text =
        format!("{SESSION_COOKIE}={token}; Path=/; Max-Age={max_age_s}; Secure; HttpOnly; SameSite=Lax");
    let mut value = HeaderValue::try_from(text).map_err(app::AppError::internal)?;
    // Keeps it out of logs of headers.
    value.set_sensitive(true);
    Ok(value)
}

/// Leads a reader without a session to the sign-in page, and from there back to the page at `path`.
pub fn to_sign_in(app: &Shared, path: &str) -> Result<Response, Problem> {
    web(&app.ctx).map_err(|_| Problem::new(ErrorCode::ResourceNotFound))?;
    see_sign_in(path)
}

/// Leads the browser to the sign-in page, and from there back to the page at `path`.
pub fn see_sign_in(path: &str) -> Result<Response, Problem> {
    see(&format!("/sign-in?next={}", percent_encode(path)))
}

/// Leads the browser to another page of the site, after a form.
pub fn see(path: &str) -> Result<Response, Problem> {
    let location = HeaderValue::from_str(path).map_err(app::AppError::internal)?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response())
}

/// Returns the problem of a failed use case of people.
pub fn problem_of(error: PersonError, now: domain::Timestamp) -> Problem {
    match error {
        PersonError::App(error) => error.into(),
        PersonError::LockedOut { until } => {
            let seconds = until.since_ms(now).max(0).unsigned_abs().div_ceil(1_000);
            let error = app::AppError::new(ErrorCode::RateLimitExceeded);
            error
                .detail("Too many failed sign-ins from your address.")
                .retry_after_s(u32::try_from(seconds).unwrap_or(u32::MAX))
                .into()
        }
        PersonError::WebOff => WebCode::WebOff.into(),
        PersonError::ChallengeUnusable => WebCode::ChallengeUnusable.into(),
        PersonError::Passkey(_) => WebCode::PasskeyRejected.into(),
        PersonError::WalletSignature => WebCode::WalletSignatureInvalid.into(),
        PersonError::UnknownCredential => WebCode::UnknownCredential.into(),
        PersonError::SeveralAccounts { accounts } => {
            Problem::of_web(WebCode::SeveralAccounts, "accounts", accounts_of(&accounts))
        }
        PersonError::CredentialOwnsAccount => WebCode::CredentialOwnsAccount.into(),
        PersonError::OwnersChanging => WebCode::OwnersChanging.into(),
        PersonError::CountryRefused => WebCode::CountryRefused.into(),
        PersonError::CredentialTaken => WebCode::CredentialTaken.into(),
        PersonError::TooManyCredentials => WebCode::TooManyCredentials.into(),
        PersonError::LastCredential => WebCode::LastCredential.into(),
        PersonError::PasskeyRequired => WebCode::PasskeyRequired.into(),
        PersonError::SignedOut => WebCode::SignedOut.into(),
        PersonError::StepUpRequired => WebCode::StepUpRequired.into(),
        PersonError::AdminRequired => WebCode::AdminRequired.into(),
    }
}

/// Returns the accounts that a wallet signs in to, for the page on which the person chooses one.
fn accounts_of(accounts: &[AccountChoice]) -> Value {
    let record = |choice: &AccountChoice| {
        json!({
            "account": choice.account,
            "name": choice.name,
            "since": amounts::day(choice.created_at),
        })
    };
    accounts.iter().map(record).collect()
}
