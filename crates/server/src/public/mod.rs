//! The public read API: what anybody may see of threads, markets, organizations and partners, without a key.
//!
//! A request passes `surround` (request id, bodies of refusals, headers of every answer, CORS), is routed, passes its
//! route's `guard` (limiter, switch, deadline) and then the extractors of its handler. A refusal anywhere is a [`Refusal`],
//! which becomes a body in one place on the way out.
//!
//! Nothing here knows the trading API's routes. Thread times are seconds, market times milliseconds, `*At` are ISO 8601;
//! prices are numbers for display, volumes whole cents. What is not known is left out and never null.

mod analytics;
mod answer;
mod code;
mod cors;
mod docs;
mod embeds;
mod guard;
mod history;
mod leaderboard;
mod lists;
mod market_record;
mod markets;
pub mod openapi;
mod organizations;
mod partners;
mod query;
mod quote;
mod refusal;
mod route;
mod router;
mod social;
pub(crate) mod standing;
mod stream;
mod surround;
mod thread_record;
mod threads;
mod transactions;

pub use code::Code;
pub use embeds::{Cards, Sitemaps};
pub use refusal::Refusal;
pub use route::{Limiter, PageSize, PublicRoute};
pub use router::{pages, router, routes};
