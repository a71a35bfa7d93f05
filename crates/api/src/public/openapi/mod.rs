//! The public API's OpenAPI 3.1 document.
//!
//! The properties of a single route are in the `#[utoipa::path]` of its handler: parameters,
//! bodies, and its own error codes (`x-error-codes`). The properties of all routes are added here
//! from the route table and the error codes.

mod complete;
pub(crate) mod examples;
mod parts;

use std::sync::LazyLock;

use http_kit::PublicErrorBody;
use serde_json::Value;
use utoipa::OpenApi;

use super::answer::{Meta, Pagination};
use super::router::Operations;

/// The schemas that no body refers to.
#[derive(OpenApi)]
#[openapi(components(schemas(
    Meta,
    Pagination,
    PublicErrorBody,
    domain::candle::Interval,
    domain::ids::MarketId,
    domain::ids::OrganizationId,
    domain::ids::PartnerId,
    domain::ids::ThreadId,
    domain::trade::Side,
    crate::openapi::formats::DecimalAmount,
    crate::openapi::formats::TxHash,
)))]
struct Schemas;

/// Returns the operations of the route table, with all schemas.
fn described() -> utoipa::openapi::OpenApi {
    Operations::openapi().merge_from(Schemas::openapi())
}

/// The document. It must be byte-identical for the same build.
static DOCUMENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut document = serde_json::to_value(described()).unwrap_or_default();
    document["info"] = parts::info();
    document["servers"] = crate::openapi::servers();
    complete::complete(&mut document);
    // A stable order of members makes the document deterministic.
    document.sort_all_objects();
    serde_json::to_vec(&document).unwrap_or_default()
});

/// Returns the document as served.
pub fn document() -> &'static [u8] {
    &DOCUMENT
}

/// Returns the parsed document.
pub fn parsed() -> Value {
    serde_json::from_slice(document()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
