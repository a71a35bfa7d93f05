//! The trading API's OpenAPI 3.1 document.
//!
//! The properties of a single route are in the `#[utoipa::path]` of its handler: parameters,
//! bodies, and its own error codes (`x-error-codes`). The properties of all routes are added here
//! from the route table and the error catalog: key and scope, common headers, pagination, errors
//! with examples, and 304.
//!
//! To describe a new route, annotate its handler, add the handler to [`Described`], and add its
//! examples to `examples/` and to the list in [`examples`]. The tests report missing parts.

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
use crate::{docs_pages, v1};

/// All described handlers, and the schemas that no body refers to.
#[derive(OpenApi)]
#[openapi(
    paths(
        v1::health::health,
        v1::health::ready,
        v1::docs::openapi,
        v1::docs::page,
        v1::docs::file,
        docs_pages::index,
        docs_pages::code,
        v1::markets::list,
        v1::markets::find,
        v1::quote::quote,
        v1::predictions::list,
        v1::history::history,
        v1::trades::create::create,
        v1::trades::read::list,
        v1::trades::read::find,
        v1::trades::confirm::confirm,
        v1::traces::find,
        v1::events::list,
        v1::redemptions::create,
        v1::redemptions::list,
        v1::redemptions::find,
        v1::portfolio::summary,
        v1::portfolio::positions,
        v1::webhooks::events::list,
        v1::webhooks::events::find,
        v1::webhooks::sends::redeliver,
        v1::webhooks::sends::test,
        v1::webhooks::endpoint::endpoint,
        v1::webhooks::secret::rotate,
        v1::account_pause::pause,
        v1::usage::usage,
        v1::readiness::readiness,
        v1::key::key,
    ),
    components(schemas(
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
        domain::redemption::Status,
        domain::trade::Side,
        domain::trade::Status,
        domain::webhook::DeliveryStatus,
        v1::events::Beginning,
        formats::ClientRequestId,
        formats::Instant,
    ))
)]
struct Described;

/// The document. It must be byte-identical for the same build.
static DOCUMENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut document = serde_json::to_value(Described::openapi()).unwrap_or_default();
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
