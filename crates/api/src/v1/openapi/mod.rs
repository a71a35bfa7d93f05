//! The trading API's OpenAPI 3.1 document.
//!
//! The properties of a single route are in the `#[utoipa::path]` of its handler: parameters,
//! bodies, and its own error codes (`x-error-codes`). The properties of all routes are added here
//! from the route table and the error catalog: key and scope, common headers, pagination, errors
//! with examples, and 304.
//!
//! To describe a new route, annotate its handler, and add its examples to `examples/` and to the list
//! in [`examples`]. The tests report missing parts.

mod codes;
mod complete;
mod examples;
mod links;
mod parts;

use std::sync::LazyLock;

use http_kit::{API_VERSION, Meta, Pagination};
use serde_json::Value;
use utoipa::OpenApi;

use crate::openapi::{formats, servers};
use crate::v1;
use crate::v1::router::Operations;

/// The schemas that no body refers to.
#[derive(OpenApi)]
#[openapi(components(schemas(
    Meta,
    Pagination,
    domain::event::EventKind,
    domain::ids::EventId,
    domain::ids::KeyId,
    domain::ids::MarketId,
    domain::ids::OrganizationId,
    domain::candle::Interval,
    domain::ids::CorrelationId,
    domain::ids::PartnerId,
    domain::ids::RedemptionId,
    domain::ids::ThreadId,
    domain::ids::TradeId,
    domain::redemption::RedemptionStatus,
    domain::trade::Side,
    domain::trade::Status,
    domain::webhook::DeliveryStatus,
    v1::events::Beginning,
    formats::ClientRequestId,
    formats::Instant,
)))]
struct Schemas;

/// Returns the operations of the route table, with all schemas.
fn described() -> utoipa::openapi::OpenApi {
    Operations::openapi().merge_from(Schemas::openapi())
}

/// The document. It must be byte-identical for the same build.
static DOCUMENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut document = serde_json::to_value(described()).unwrap_or_default();
    document["info"] = parts::info(API_VERSION);
    document["servers"] = servers();
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
