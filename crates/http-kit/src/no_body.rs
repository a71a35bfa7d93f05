//! Write requests that carry all information in their path.

use app::AppError;
use axum::extract::{FromRequest, Request};
use domain::ErrorCode;
use protocol::document::Members;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::Problem;
use super::body::{JsonBody, is_json, parse, read_body};

/// An empty body, or `{}`, which many clients send instead.
#[derive(Debug, Clone, Copy)]
pub struct NoBody {}

impl PartialSchema for NoBody {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("An object without members."))
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        RefOr::T(Schema::Object(object.build()))
    }
}

impl ToSchema for NoBody {}

impl JsonBody for NoBody {
    fn read(_: &mut Members<'_>) -> Self {
        Self {}
    }
}

impl<S: Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        // Many clients set no content type without a body, so it is only required with one.
        let says_json = is_json(request.headers());
        let raw = read_body(request).await?;
        if raw.is_empty() {
            return Ok(Self {});
        }
        if !says_json {
            return Err(Problem::new(ErrorCode::UnsupportedMediaType));
        }
        Ok(parse(&raw).map_err(|errors| AppError::validation(&errors))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::header::CONTENT_TYPE;

    async fn read(body: &'static str, content_type: Option<&str>) -> Result<(), ErrorCode> {
        let request = content_type
            .iter()
            .fold(Request::builder(), |request, content_type| request.header(CONTENT_TYPE, *content_type));
        let read = NoBody::from_request(request.body(Body::from(body)).unwrap(), &()).await;
        read.map(drop).map_err(|problem| problem.code())
    }

    #[tokio::test]
    async fn only_an_empty_body_or_an_empty_object_is_accepted() {
        let json = Some("application/json");
        assert_eq!(read("", None).await, Ok(()));
        assert_eq!(read("", json).await, Ok(()));
        assert_eq!(read(" {} ", json).await, Ok(()));
        assert_eq!(read("{}", None).await, Err(ErrorCode::UnsupportedMediaType));
        for body in ["[]", "null", "{", "{} {}", r#"{"paused": true}"#] {
            assert_eq!(read(body, json).await, Err(ErrorCode::ValidationFailed), "{body}");
        }
    }
}
