//! Display data that API responses, pages and cards share: summaries of markets and threads, prices
//! as numbers, charts and Markdown. Nothing here knows HTTP.

pub mod amounts;
mod bars;
pub mod chart;
mod deadlines;
pub mod guide;
mod guide_markdown;
pub mod links;
mod lookup;
pub mod markdown;
pub mod market_face;
mod market_tile;
pub mod numbers;
pub mod page_height;
mod profit_chart;
mod theme;
pub mod thread_face;

pub use bars::{Bar, Bars};
pub use chart::{Chart, Scale};
pub use deadlines::{next_end, next_turn};
pub use guide_markdown::{guide_markdown, guide_summary};
pub use lookup::{find_market, find_thread};
pub use market_face::{MarketFace, Shown};
pub use market_tile::MarketTile;
pub use profit_chart::ProfitChart;
pub use theme::Theme;
pub use thread_face::ThreadFace;
