//! Write requests that carry all information in their path.

use app::AppError;
use axum::extract::{FromRef, FromRequest, Request};
use domain::ErrorCode;
use protocol::document::Members;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::body::{JsonBody, is_json, parse, read_body};
use super::{Problem, Shared};

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

impl<S: Sync> FromRequest<S> for NoBody
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let says_json = is_json(request.headers());
        Self::of_raw(&read_body(&Shared::from_ref(state), request).await?, says_json)
    }
}

impl NoBody {
    fn of_raw(raw: &[u8], says_json: bool) -> Result<Self, Problem> {
        // Many clients set no content type without a body, so it is only required with one.
        if raw.is_empty() {
            return Ok(Self {});
        }
        if !says_json {
            return Err(Problem::new(ErrorCode::UnsupportedMediaType));
        }
        Ok(parse(raw).map_err(|errors| AppError::validation(&errors))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, says_json: bool) -> Result<(), ErrorCode> {
        NoBody::of_raw(body.as_bytes(), says_json).map(drop).map_err(|problem| problem.code())
    }

    #[test]
    fn only_an_empty_body_or_an_empty_object_is_accepted() {
        assert_eq!(read("", false), Ok(()));
        assert_eq!(read("", true), Ok(()));
        assert_eq!(read(" {} ", true), Ok(()));
        assert_eq!(read("{}", false), Err(ErrorCode::UnsupportedMediaType));
        for body in ["[]", "null", "{", "{} {}", r#"{"paused": true}"#] {
            assert_eq!(read(body, true), Err(ErrorCode::ValidationFailed), "{body}");
        }
    }
}
