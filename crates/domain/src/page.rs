//! The pages of a list.

use crate::Timestamp;

/// The maximum number of rows per page.
pub const MAX_PAGE: u32 = 100;

/// The row after which the next page starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePosition {
    /// The sort key of the last returned row.
    pub created_at: Timestamp,
    /// The id of the last returned row, which breaks ties.
    pub id: String,
}

/// The requested page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// 1 to [`MAX_PAGE`].
    pub limit: u32,
    /// Starts after this row; `None` starts with the newest row.
    pub after: Option<PagePosition>,
}
