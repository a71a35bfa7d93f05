//! Tests of the pages for iframes, the cards and the documents for crawlers: the service's own router
//! with SQLite and the embedded chain. The clock only advances explicitly, and the workers run step
//! by step.
#![expect(clippy::unwrap_used, reason = "what a test cannot do without fails it")]

mod admin;
mod budgets;
mod cards;
mod claims;
mod confirmation;
mod counters;
mod developers;
mod docs;
mod embeds;
mod inputs;
mod law;
mod live;
mod outcomes;
mod owners;
mod people;
mod settings;
mod site;
mod sitemap;
mod stops;
