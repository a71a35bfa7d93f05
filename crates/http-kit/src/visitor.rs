//! The session cookie of the web application, and the person that it belongs to.

use app::sessions::{self, Person};
use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;

use super::{ClientAddress, Problem, Shared};

/// Browsers accept the prefix only for cookies of this host that are `Secure` and have no domain.
pub const SESSION_COOKIE: &str = "__Host-session";

/// The person who sent the request, if there is a live session.
#[derive(Debug, Clone)]
pub struct Visitor(pub Option<Person>);

/// Marks a response that depends on the session. It is never cached, and no other origin may read it.
#[derive(Debug, Clone, Copy)]
pub struct Personal;

impl<S: Sync> FromRequestParts<S> for Visitor
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Some(token) = cookie(&parts.headers, SESSION_COOKIE).map(str::to_owned) else {
            return Ok(Self(None));
        };
        let Ok(ClientAddress(ip)) = ClientAddress::from_request_parts(parts, state).await;
        Ok(Self(sessions::find(&Shared::from_ref(state).ctx, &token, ip).await?))
    }
}

/// Returns the value of a cookie. If it was sent more than once, the first one counts.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}
