//! The web application (`site`), and what other sites show of it: pages for iframes, cards for link
//! previews, and sitemaps for search engines.
//!
//! Every page is complete without scripts. The only script of a page for iframes reports its height to
//! the parent. A card's URL contains the version of the shown state, so it can be cached forever.

mod assets;
mod card;
mod crawlers;
pub mod own_files;
mod page;
mod pages;
mod resources;
mod router;
mod site;

pub use router::{router, routes, site_routes};
