//! The API's contract for machines: an OpenAPI 3.1 document.
//!
//! What is special to a route stands beside its handler, in its `#[utoipa::path]`: parameters, bodies, the codes that it
//! alone refuses with (`x-error-codes`). What holds for every route is added here from the table of routes and the
//! catalogue of codes, so that a new route gets it without a word: key and scope, headers of requests and answers, pages,
//! refusals with an example each, 304.
//!
//! To describe a new route: annotate its handler, name the handler in [`Described`], and put its examples into
//! `examples/` and the list of [`examples`]. The tests say what is missing.

pub(crate) mod answers;
mod codes;
mod complete;
mod examples;
pub mod formats;
mod links;
mod parts;
pub(crate) mod schemas;

use std::sync::LazyLock;

use serde_json::Value;
use utoipa::OpenApi;

use crate::http::{API_VERSION, Meta, Pagination};
use crate::{docs_pages, v1};

/// Every handler of a described route, and the schemas that no body names.
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
        v1::trades_create::create,
        v1::trades_read::list,
        v1::trades_read::find,
        v1::trades_confirm::confirm,
        v1::traces::find,
        v1::events::list,
        v1::redemptions::create,
        v1::redemptions::list,
        v1::redemptions::find,
        v1::portfolio::summary,
        v1::portfolio::positions,
        v1::webhook_events::list,
        v1::webhook_events::find,
        v1::webhook_sends::redeliver,
        v1::webhook_sends::test,
        v1::webhook_endpoint::endpoint,
        v1::webhook_secret::rotate,
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

/// The document. The same for the same program, to the byte.
static DOCUMENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut document = serde_json::to_value(Described::openapi()).unwrap_or_default();
    document["info"] = parts::info(API_VERSION);
    document["servers"] = parts::servers();
    complete::complete(&mut document);
    document.sort_all_objects();
    serde_json::to_vec(&document).unwrap_or_default()
});

/// `servers` of both surfaces' documents.
pub(crate) fn servers() -> Value {
    parts::servers()
}

/// The document as it is sent.
pub fn document() -> &'static [u8] {
    &DOCUMENT
}

/// The document for programs.
pub fn parsed() -> Value {
    serde_json::from_slice(document()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
