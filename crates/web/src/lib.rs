//! Pages for people and documents for crawlers: pages for iframes on other sites, cards for link
//! previews, and sitemaps for search engines.
//!
//! A page works without scripts and cookies. Its only script reports its height to the parent. A
//! card's URL contains the version of the shown state, so it can be cached forever.

mod card;
mod crawlers;
mod page;
mod pages;
mod resources;
mod router;

pub use router::{router, routes};
