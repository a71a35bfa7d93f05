//! Ids in the path, unparsed.

use std::convert::Infallible;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use domain::text::OutsideText;

use super::Problem;

/// The path's `{id}`. Invalid UTF-8 and NUL become the empty id, which no resource has: a malformed
/// id gets the same 404 as an unknown one.
#[derive(Debug, Clone)]
pub struct PathId(pub String);

impl PathId {
    /// Parses the id.
    ///
    /// # Errors
    ///
    /// `RESOURCE_NOT_FOUND` if it is malformed.
    pub fn parse<T: FromStr>(&self) -> Result<T, Problem> {
        self.0.parse().map_err(|_| Problem::not_found())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        let id = id.ok().and_then(|Path(id)| OutsideText::new(id).ok());
        Ok(Self(id.map(OutsideText::into_string).unwrap_or_default()))
    }
}
