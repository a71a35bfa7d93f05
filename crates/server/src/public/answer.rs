//! The form of answers: the members that the route names, then `_meta`.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, Timestamp};
use serde::Serialize;
use std::convert::Infallible;
use utoipa::ToSchema;

use super::Refusal;
use super::query::Window;
use crate::http::{KeptBodies, Shared, Stable, with_meta};

/// About the answer itself.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Whether the request came from somebody who is signed in.
    authenticated: bool,
    requested_at: Timestamp,
    /// Where the list is not cut: how many rows it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
}

impl FromRequestParts<Shared> for Meta {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, app: &Shared) -> Result<Self, Self::Rejection> {
        Ok(Self { authenticated: false, requested_at: app.ctx.now(), count: None })
    }
}

/// Where the rows of an answer stand in the whole list.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// How many rows were passed over.
    offset: u32,
    /// How many rows are given at most.
    limit: u32,
    /// How many rows the whole list has.
    total: u64,
    /// Whether others follow.
    has_more: bool,
}

impl Pagination {
    /// That of `given` rows of a list of `total`.
    pub fn new(window: Window, given: usize, total: u64) -> Self {
        let Window { offset, limit } = window;
        Self { offset, limit, total, has_more: u64::from(offset) + (given as u64) < total }
    }
}

impl Meta {
    /// An answer whose members but `_meta` are those of `body`.
    pub fn answer(self, body: &impl Serialize) -> Result<Response, Refusal> {
        Ok(with_meta(written(body)?, &self).into_response())
    }

    /// The same, kept for a moment under `name`, which says all that it depends on; with the instant at which it reads
    /// otherwise by the clock alone.
    pub async fn kept<T: Serialize>(
        self,
        app: &Shared,
        name: &str,
        read: impl AsyncFnOnce() -> Result<(T, Option<Timestamp>), Refusal>,
    ) -> Result<Response, Refusal> {
        let write = async || {
            let (body, until) = read().await?;
            Ok::<_, Refusal>((written(&body)?, until))
        };
        Ok(with_meta(KeptBodies::for_a_moment(app, name, write).await?, &self))
    }

    /// With the number of rows of a list that is not cut.
    #[must_use]
    pub const fn count(self, count: usize) -> Self {
        Self { count: Some(count), ..self }
    }
}

/// The object without its closing brace.
fn written(body: &impl Serialize) -> Result<Stable, Refusal> {
    let unwritable = |error| app::AppError::new(ErrorCode::InternalError).caused_by(error);
    let mut bytes = serde_json::to_vec(body).map_err(unwritable)?;
    bytes.pop();
    Ok(Stable::of(bytes))
}
