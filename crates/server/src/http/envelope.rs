//! The envelopes of answers.

use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, Timestamp};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::{Problem, RequestId, Shared};

/// `_meta` of an answer.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(description = "About the answer itself.")]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The handle of this request, as in X-Request-Id.
    #[schema(value_type = String, pattern = "^req_[0-9a-f]{32}$")]
    request_id: RequestId,
    timestamp: Timestamp,
    /// On a trade's creation: whether the answer repeats an earlier one.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent: Option<bool>,
}

impl Meta {
    /// With whether the answer repeats an earlier one, as every answer to a trade's creation says.
    #[must_use]
    pub const fn idempotent(self, idempotent: bool) -> Self {
        Self { idempotent: Some(idempotent), ..self }
    }

    /// One resource under its own name.
    pub const fn single<T>(self, name: &'static str, resource: T) -> Single<T> {
        Single { name, resource, meta: self }
    }

    /// `data` alone, without pages.
    pub const fn plain<T>(self, data: T) -> Plain<T> {
        Plain { data, meta: self }
    }

    /// One page of a list.
    pub const fn list<T>(self, data: Vec<T>, pagination: Pagination) -> List<T> {
        List { data, pagination, meta: self }
    }
}

impl FromRequestParts<Shared> for Meta {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Self::Rejection> {
        let request_id = RequestId::from_request_parts(parts, app).await?;
        Ok(Self { request_id, timestamp: app.ctx.now(), idempotent: None })
    }
}

/// One resource: under its own name, again under `data`, and `_meta`.
#[derive(Debug)]
pub struct Single<T> {
    name: &'static str,
    resource: T,
    meta: Meta,
}

impl<T: Serialize> Serialize for Single<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry(self.name, &self.resource)?;
        map.serialize_entry("data", &self.resource)?;
        map.serialize_entry("_meta", &self.meta)?;
        map.end()
    }
}

/// Where a page of a list ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// What leads to the next page; null on the last.
    pub cursor: Option<String>,
    /// Whether there is a next page.
    pub has_more: bool,
    /// The page size that was applied.
    pub limit: u32,
}

/// One page of a list.
#[derive(Debug, Serialize)]
pub struct List<T> {
    data: Vec<T>,
    pagination: Pagination,
    #[serde(rename = "_meta")]
    meta: Meta,
}

/// `data` and `_meta`.
#[derive(Debug, Serialize)]
pub struct Plain<T> {
    data: T,
    #[serde(rename = "_meta")]
    meta: Meta,
}

/// `value` as a JSON answer.
pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response(),
        Err(error) => {
            Problem::from(app::AppError::new(ErrorCode::InternalError).caused_by(error)).into_response()
        }
    }
}

macro_rules! answers {
    ($($envelope:ident),*) => {$(
        impl<T: Serialize> IntoResponse for $envelope<T> {
            fn into_response(self) -> Response {
                json(&self)
            }
        }
    )*};
}
answers!(Single, List, Plain);

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn meta() -> Meta {
        let request_id = RequestId::of(Uuid::from_u128(1));
        Meta { request_id, timestamp: Timestamp::from_ms(1_777_464_000_123), idempotent: None }
    }

    #[test]
    fn a_single_resource_stands_under_its_name_and_under_data() {
        let text = serde_json::to_string(&meta().idempotent(true).single("trade", "x")).unwrap();
        let meta = r#"{"requestId":"req_00000000000000000000000000000001","timestamp":"2026-04-29T12:00:00.123Z","idempotent":true}"#;
        assert_eq!(text, format!(r#"{{"trade":"x","data":"x","_meta":{meta}}}"#));
    }

    #[test]
    fn a_list_says_where_it_ends() {
        let pagination = Pagination { cursor: None, has_more: false, limit: 20 };
        let value = serde_json::to_value(meta().list(vec![1], pagination)).unwrap();
        let expected = serde_json::json!({ "cursor": null, "hasMore": false, "limit": 20 });
        assert_eq!(value["pagination"], expected);
        assert!(value["_meta"].get("idempotent").is_none());
    }
}
