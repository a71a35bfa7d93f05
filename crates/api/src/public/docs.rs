//! The public API's OpenAPI document and interactive reference. The reference shares its assets
//! with the trading API's.

use axum::body::Bytes;
use axum::response::Response;

use super::openapi;
use crate::reference::{asset, contract};

const PAGE: &str = include_str!("docs/page.html");

/// `GET /api/openapi.json`: the contract.
#[utoipa::path(
    get, path = "/api/openapi.json", operation_id = "getPublicOpenApi", tag = "Service", summary = "Read the OpenAPI document",
    description = "This OpenAPI 3.1 document.",
    responses((status = 200, description = "The document.", body = serde_json::Map<String, serde_json::Value>,
        content_type = "application/json")),
)]
pub async fn openapi() -> Response {
    contract(openapi::document())
}

/// `GET /api/docs`: the reference, to read and to try.
#[utoipa::path(
    get, path = "/api/docs", operation_id = "getPublicDocs", tag = "Service", summary = "Open the API reference",
    description = "An interactive page for this document. It loads nothing from other hosts.",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")),
)]
pub async fn page() -> Response {
    asset("text/html; charset=utf-8", Bytes::from_static(PAGE.as_bytes()))
}
