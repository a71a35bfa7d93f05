//! Lists of the public read API: filtered, sorted, and paged by offset, with their total length.
//!
//! A list first selects its page of ids from a narrow index, and then reads only the rows of that
//! page. A distant page therefore costs index steps but no row reads. Every sort order ends with
//! the id. The total is a stored count if at most one scope filters the list, and is otherwise
//! counted over an index.

mod clauses;
mod groups;
mod leaders;
mod markets;
mod places;
#[cfg(test)]
mod plans;
mod threads;
mod traders;
mod transactions;
mod trending;

pub use crate::traders::RankingWindow;
pub use groups::{
    ChapterRow, OrganizationRow, PartnerFilter, PartnerRow, get_organization, get_partner, list_chapters,
    list_partners,
};
pub use leaders::{
    Leader, LeaderSort, OpenPosition, Timeframe, list_all_open_positions, list_leaders, list_open_positions,
};
pub use markets::{ListedMarket, MarketFilter, MarketSort, get_market, list_featured, list_markets};
pub use places::{SitemapPage, SitemapPageKind, count_places, list_places};
pub use threads::{MAX_TAGS, ThreadFilter, ThreadRow, ThreadSort, ThreadWhen, get_thread, list_threads};
pub use traders::{Holder, Traded, find_leader, list_holders, list_movements, list_traded};
pub use transactions::{TransactionRows, find_transaction};
pub use trending::{TrendingMarket, list_trending};

/// The direction of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Smallest first.
    Asc,
    /// Greatest first.
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

/// A page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRange {
    /// The maximum number of rows.
    pub limit: u32,
    /// The number of rows to skip.
    pub offset: u32,
}

/// A page of a list, and the length of the whole list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    pub items: Vec<T>,
    /// The number of rows of the whole list.
    pub total: u64,
}
