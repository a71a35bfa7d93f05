//! The API's contract and its interactive reference, both from the binary alone.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use utoipa_swagger_ui::Config;

use crate::http::{PathId, Problem, StablePart};
use crate::openapi;

/// Anyone's page may read the contract; it is the same for everybody.
const SHARED: [(HeaderName, &str); 2] =
    [(ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (CACHE_CONTROL, "public, max-age=300")];
/// Nothing but this service is asked for anything. The reference sets styles by script and draws its icons from data.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

const PAGE: &str = include_str!("docs/page.html");
const START: &str = include_str!("docs/start.js");

/// `GET /v1/openapi.json`: the contract.
#[utoipa::path(
    get, path = "/v1/openapi.json", operation_id = "getOpenApi", tag = "Service", summary = "Read this contract",
    description = "This OpenAPI 3.1 document. Any web page may read it.",
    responses((status = 200, description = "The document.", body = serde_json::Map<String, serde_json::Value>,
        content_type = "application/json")),
)]
pub async fn openapi() -> Response {
    let bytes = Bytes::from_static(openapi::document());
    let kind = [(CONTENT_TYPE, "application/json")];
    (SHARED, kind, Extension(StablePart::of(&bytes)), bytes).into_response()
}

/// `GET /v1/docs`: the reference, to read and to try.
#[utoipa::path(
    get, path = "/v1/docs", operation_id = "getDocs", tag = "Service", summary = "Read the reference",
    description = "An interactive page of this contract. It asks no other host for anything.",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")),
)]
pub async fn page() -> Response {
    asset("text/html; charset=utf-8", Bytes::from_static(PAGE.as_bytes()))
}

/// `GET /v1/docs/{*asset}`: the files of the page.
pub async fn file(PathId(name): PathId) -> Result<Response, Problem> {
    let not_found = || Problem::new(ErrorCode::ResourceNotFound);
    let kind = match name.as_str() {
        "start.js" => {
            return Ok(asset("text/javascript; charset=utf-8", Bytes::from_static(START.as_bytes())));
        }
        "swagger-ui.css" => "text/css; charset=utf-8",
        "swagger-ui-bundle.js" => "text/javascript; charset=utf-8",
        "favicon-32x32.png" => "image/png",
        _ => return Err(not_found()),
    };
    // The settings of the library's own page, which is not served.
    let unused = Arc::new(Config::from("/v1/openapi.json"));
    let file = utoipa_swagger_ui::serve(&name, unused).ok().flatten().ok_or_else(not_found)?;
    Ok(match file.bytes {
        Cow::Borrowed(bytes) => asset(kind, Bytes::from_static(bytes)),
        Cow::Owned(bytes) => asset(kind, Bytes::from(bytes)),
    })
}

fn asset(kind: &'static str, bytes: Bytes) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (StatusCode::OK, SHARED, headers, Extension(StablePart::of(&bytes)), bytes).into_response()
}
