//! The trading API's OpenAPI document and interactive reference. Both are embedded in the binary.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use domain::ErrorCode;
use http_kit::{PathId, Problem};
use utoipa_swagger_ui::Config;

use super::openapi;
use crate::reference::{asset, contract};

const PAGE: &str = include_str!("docs/page.html");
const START: &str = include_str!("docs/start.js");
const STYLE: &str = include_str!("docs/reference.css");

/// `GET /v1/openapi.json`: the contract.
#[utoipa::path(
    get, path = "/v1/openapi.json", operation_id = "getOpenApi", tag = "Service", summary = "Read the OpenAPI document",
    description = "This OpenAPI 3.1 document. Web pages of any origin can read it.",
    responses((status = 200, description = "The document.", body = serde_json::Map<String, serde_json::Value>,
        content_type = "application/json")),
)]
pub async fn openapi() -> Response {
    contract(openapi::document())
}

/// `GET /v1/docs`: the reference, to read and to try.
#[utoipa::path(
    get, path = "/v1/docs", operation_id = "getDocs", tag = "Service", summary = "Open the API reference",
    description = "An interactive page for this document. It loads nothing from other hosts.",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")),
)]
pub async fn page() -> Response {
    asset("text/html; charset=utf-8", Bytes::from_static(PAGE.as_bytes()))
}

/// `GET /v1/docs/{*asset}`: the files of the page.
#[utoipa::path(
    get, path = "/v1/docs/{asset}", operation_id = "getDocsAsset", tag = "Service", summary = "Load a file of the API reference",
    description = "A script, style sheet or image of the reference page.",
    params(("asset" = String, Path, description = "The file's name.", example = "swagger-ui.css")),
    responses((status = 200, description = "The file.",
        content((String = "text/javascript"), (String = "text/css"), (String = "image/png")))),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND"]))),
)]
pub async fn file(PathId(name): PathId) -> Result<Response, Problem> {
    let not_found = || Problem::new(ErrorCode::ResourceNotFound);
    let kind = match name.as_str() {
        "start.js" => {
            return Ok(asset("text/javascript; charset=utf-8", Bytes::from_static(START.as_bytes())));
        }
        "reference.css" => {
            return Ok(asset("text/css; charset=utf-8", Bytes::from_static(STYLE.as_bytes())));
        }
        "swagger-ui.css" => "text/css; charset=utf-8",
        "swagger-ui-bundle.js" => "text/javascript; charset=utf-8",
        "favicon-32x32.png" => "image/png",
        _ => return Err(not_found()),
    };
    // The library requires a configuration for its own page, which is not served.
    let unused = Arc::new(Config::from("/v1/openapi.json"));
    let file = utoipa_swagger_ui::serve(&name, unused).ok().flatten().ok_or_else(not_found)?;
    Ok(match file.bytes {
        Cow::Borrowed(bytes) => asset(kind, Bytes::from_static(bytes)),
        Cow::Owned(bytes) => asset(kind, Bytes::from(bytes)),
    })
}
