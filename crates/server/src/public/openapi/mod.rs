//! This surface's contract for machines: an OpenAPI 3.1 document.
//!
//! What is special to a route stands beside its handler, in its `#[utoipa::path]`: parameters, bodies, the codes that it
//! alone refuses with (`x-error-codes`). What holds for every route is added here from the table of routes and the codes.

mod complete;
mod examples;
mod parts;

use std::sync::LazyLock;

use serde_json::Value;
use utoipa::OpenApi;

use super::answer::{Meta, Pagination};
use super::refusal::RefusalBody;
use super::{
    analytics, docs, embeds, history, leaderboard, lists, markets, organizations, partners, quote, social,
    stream, threads, transactions,
};

/// Every handler of a route, and the schemas that no body names.
#[derive(OpenApi)]
#[openapi(
    paths(
        threads::list,
        threads::find,
        lists::of_thread,
        threads::chapters,
        social::of_thread,
        lists::markets,
        markets::trending,
        markets::featured,
        analytics::for_you,
        markets::find,
        quote::quote,
        history::history,
        stream::stream,
        social::of_market,
        organizations::find,
        organizations::threads,
        lists::of_organization,
        organizations::partners,
        partners::find,
        partners::threads,
        leaderboard::leaderboard,
        analytics::analytics,
        transactions::find,
        embeds::oembed::oembed,
        docs::openapi,
        docs::page,
    ),
    components(schemas(
        Meta,
        Pagination,
        RefusalBody<'static>,
        domain::candle::Interval,
        domain::ids::MarketId,
        domain::ids::OrganizationId,
        domain::ids::PartnerId,
        domain::ids::ThreadId,
        domain::trade::Side,
        crate::openapi::formats::DecimalAmount,
        crate::openapi::formats::TxHash,
    ))
)]
struct Described;

/// The document. The same for the same program, to the byte.
static DOCUMENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut document = serde_json::to_value(Described::openapi()).unwrap_or_default();
    document["info"] = parts::info();
    document["servers"] = crate::openapi::servers();
    complete::complete(&mut document);
    document.sort_all_objects();
    serde_json::to_vec(&document).unwrap_or_default()
});

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
