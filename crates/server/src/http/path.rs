//! An id in the path, as it came.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

/// The path's `{id}`. What is no text at all stands as the empty id, which nothing has: a malformed id is a 404 like an
/// unknown one.
#[derive(Debug, Clone)]
pub struct PathId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(id.map(|Path(id)| id).unwrap_or_default()))
    }
}
