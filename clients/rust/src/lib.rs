// check.sh runs the programs of README.md against a service.
#![cfg_attr(not(doctest), doc = include_str!("../README.md"))]
#![warn(missing_docs)]

mod amounts;
mod client;
mod clock;
mod error;
mod feed;
mod pages;
mod path;
mod resources;
mod response;
mod secret;
mod signing;
mod sse;
mod trades;
mod transport;
pub mod types;
pub mod webhooks;

pub use amounts::{AmountError, Decimal, DecimalAmount, Usdc, Wad};
pub use client::{Builder, Foretell};
pub use clock::{Clock, SystemClock};
pub use error::{Error, ErrorDetails, ErrorFamily};
pub use feed::{EventFeed, FeedItem, FeedOptions, FeedStart, OnGeneration};
pub use pages::{Page, Pages};
pub use resources::{Account, Events, Keys, Markets, Redemptions, Webhooks};
pub use response::{RateLimit, Response, ResponseInfo};
pub use secret::Secret;
pub use signing::request_signature;
pub use trades::{OnStatus, Trades, WaitOptions};
pub use transport::{ConfigError, EtagStore, StoredAnswer};
pub use types::{NewQuote, NewTrade};
