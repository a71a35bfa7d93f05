//! The public read API as anybody sees it: the service's own router over SQLite and the embedded chain, with a clock that
//! stands still and workers that are stepped by hand. Every answer is held against the OpenAPI document.
#![expect(clippy::unwrap_used, reason = "what a test cannot do without fails it")]

mod canary;
mod community;
mod conditional_requests;
mod cors;
mod documents;
mod embeds;
mod embeds_cards;
mod errors;
mod guide;
mod history;
mod lists;
mod markets;
mod oembed;
mod organizations;
mod parameters;
mod quote;
mod rate_limits;
mod scene;
mod sitemap;
mod social;
mod stream;
mod threads;
