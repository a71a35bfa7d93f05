//! The lists of the public read API: filtered, sorted, paged by offset, with how many there are.
//!
//! A list takes its page of ids from a narrow index first and reads the rows of that page alone, so that a page far
//! behind costs steps through an index and no rows. Every order ends with the id. How many there are is a kept sum where
//! at most one scope narrows the list, and counted over an index otherwise.

mod clauses;
mod groups;
mod leaders;
mod markets;
mod places;
#[cfg(test)]
mod plans;
mod threads;
mod transactions;
mod trending;

pub use groups::{
    ChapterRow, OrganizationRow, PartnerFilter, PartnerRow, get_organization, get_partner, list_chapters,
    list_partners,
};
pub use leaders::{
    Leader, LeaderSort, OpenPosition, Timeframe, list_all_open_positions, list_leaders, list_open_positions,
};
pub use markets::{ListedMarket, MarketFilter, MarketSort, get_market, list_featured, list_markets};
pub use places::{Place, PlaceKind, count_places, list_places};
pub use threads::{ThreadFilter, ThreadRow, ThreadSort, ThreadWhen, get_thread, list_threads};
pub use transactions::{TransactionRows, find_transaction};
pub use trending::{TrendingMarket, Window, list_trending};

/// Which way a list is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The least first.
    Asc,
    /// The greatest first.
    #[default]
    Desc,
}

impl Order {
    const fn as_sql(self) -> &'static str {
        match self {
            Self::Asc => "ASC",
            Self::Desc => "DESC",
        }
    }
}

/// A piece of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// At most so many rows.
    pub limit: u32,
    /// Behind so many.
    pub offset: u32,
}

/// A piece of a list, and how long the whole list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// The rows.
    pub items: Vec<T>,
    /// How many rows the whole list has.
    pub total: u64,
}
