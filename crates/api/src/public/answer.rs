//! The envelope of public responses: the members of the route, then `_meta`.

use axum::Extension;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use domain::Timestamp;
use serde::Serialize;
use store::public::PageRange;
use utoipa::ToSchema;

use http_kit::{CachedBody, Personal, Problem, Shared, Visitor, with_meta};

/// Metadata of the response.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// True if the request has a session of a signed-in user.
    authenticated: bool,
    requested_at: Timestamp,
    /// The number of items. Only set for lists without pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
}

impl FromRequestParts<Shared> for Meta {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        let Visitor(person) = Visitor::from_request_parts(parts, app).await?;
        Ok(Self { authenticated: person.is_some(), requested_at: app.ctx.now(), count: None })
    }
}

/// The position of a page in the whole list.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// The number of skipped items.
    offset: u32,
    /// The maximum number of items per page.
    limit: u32,
    /// The number of items in the whole list.
    total: u64,
    /// True if more items follow.
    has_more: bool,
}

impl Pagination {
    /// Returns the pagination of a page with `given` rows out of `total`.
    pub fn new(window: PageRange, given: usize, total: u64) -> Self {
        let PageRange { offset, limit } = window;
        Self { offset, limit, total, has_more: u64::from(offset) + (given as u64) < total }
    }
}

impl Meta {
    /// Returns a response with the members of `body` and `_meta`.
    pub fn answer(self, body: &impl Serialize) -> Result<Response, Problem> {
        Ok(self.complete(written(body)?))
    }

    /// Like [`Meta::answer`], with a short-lived cache. `name` must identify everything that the
    /// body depends on. `read` also returns when its body expires even if nothing changes.
    pub async fn kept<T: Serialize>(
        self,
        app: &Shared,
        name: &str,
        read: impl AsyncFnOnce() -> Result<(T, Option<Timestamp>), Problem>,
    ) -> Result<Response, Problem> {
        let write = async || {
            let (body, until) = read().await?;
            Ok::<_, Problem>((written(&body)?, until))
        };
        Ok(self.complete(app.responses.for_a_moment(&app.ctx, name, write).await?))
    }

    /// Adds `_meta`. A response that says that a user is signed in must not be cached.
    fn complete(self, body: CachedBody) -> Response {
        let response = with_meta(body, &self);
        if self.authenticated { (Extension(Personal), response).into_response() } else { response }
    }

    /// Sets the number of rows, for lists without pagination.
    #[must_use]
    pub const fn count(self, count: usize) -> Self {
        Self { count: Some(count), ..self }
    }
}

/// Serializes an object without its closing brace.
fn written(body: &impl Serialize) -> Result<CachedBody, Problem> {
    let mut bytes = serde_json::to_vec(body).map_err(app::AppError::internal)?;
    bytes.pop();
    Ok(CachedBody::of(bytes))
}
