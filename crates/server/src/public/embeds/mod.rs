//! What other sites show of markets and threads: pages for their frames, what oEmbed tells of these pages, cards for their
//! previews, and what search engines read.
//!
//! A page works without scripts and cookies; its one script tells the parent how high it is. A card's address carries the
//! version of the state that it shows, so that it may be kept for good.

mod card;
mod chart;
mod crawlers;
mod face;
pub mod oembed;
mod page;
mod pages;
mod size;
mod thread_face;

pub use card::Cards;
pub(super) use card::{of_market as market_card, of_thread as thread_card};
pub use crawlers::Sitemaps;
pub(super) use crawlers::{robots, sitemap, sitemap_part};
pub(super) use face::MarketFace;
pub(super) use page::{show_refusal, theme_of};
pub(super) use pages::{card_address, market, thread};
pub(super) use thread_face::ThreadFace;

/// What the service is called where one site names another.
const SITE: &str = "Foretell";
