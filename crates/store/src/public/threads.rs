//! Threads and lists of threads.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
pub use domain::thread::ThreadStatus as ThreadWhen;

use super::clauses::Clauses;
use super::markets::found;
use super::{Listed, Order, PageRange};
use crate::catalog::Thread;
use crate::listed::Totals;
use crate::record::{Record, record};
use crate::search::{self, SearchKind};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    /// A thread with its totals.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ThreadRow {
        pub thread: Thread = ..,
        pub created_at: Timestamp = "created_at_ms",
        pub updated_at: Timestamp = "updated_at_ms",
        /// The totals over its markets on chain.
        pub totals: Totals = ..,
    }
}

/// A filter for lists of threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadFilter {
    /// Threads that are in this state at this time.
    pub when: Option<(ThreadWhen, Timestamp)>,
    pub category: Option<String>,
    /// Threads with any of these tags.
    pub tags: Vec<String>,
    pub organization_id: Option<OrganizationId>,
    pub partner_id: Option<PartnerId>,
    /// Threads that contain every word of this text, best match first. The sort parameter is then
    /// ignored.
    pub text: Option<String>,
}

/// The sort key of a list of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadSort {
    /// Creation time.
    #[default]
    CreatedAt,
    /// Start time. Threads without a start sort before all others.
    StartTime,
    /// USDC traded on the thread's markets.
    TotalVolume,
}

impl ThreadSort {
    const fn key(self) -> &'static str {
        match self {
            Self::CreatedAt => "t.created_at_ms",
            Self::StartTime => "COALESCE(t.start_time_ms, 0)",
            Self::TotalVolume => {
                "COALESCE((SELECT s.volume_usdc_atomic FROM totals s
                WHERE s.scope = 'thread' AND s.scope_id = t.id), 0)"
            }
        }
    }
}

/// The maximum number of tags that a list can be filtered by.
pub const MAX_TAGS: usize = 20;

impl ThreadFilter {
    fn clauses(&self, clauses: &mut Clauses) {
        if let Some(id) = self.organization_id {
            clauses.and("t.organization_id = ?", params![id]);
        }
        if let Some(id) = self.partner_id {
            clauses.and("t.partner_id = ?", params![id]);
        }
        if let Some((when, now)) = self.when {
            let condition = match when {
                ThreadWhen::Active => {
                    "COALESCE(t.start_time_ms, 0) <= ? AND (t.end_time_ms IS NULL OR t.end_time_ms > ?)"
                }
                ThreadWhen::Upcoming => {
                    "t.start_time_ms > ? AND (t.end_time_ms IS NULL OR t.end_time_ms > ?)"
                }
                ThreadWhen::Closed => "t.end_time_ms <= ? AND t.end_time_ms <= ?",
            };
            // Both placeholders get the same time, so that all three conditions bind two values.
            clauses.and(condition, params![now, now]);
        }
        if let Some(category) = &self.category {
            clauses.and("t.category = ?", [category.clone().into()]);
        }
        if !self.tags.is_empty() {
            // Tags are stored as a JSON list of strings. A tag is in the list if its JSON text
            // follows a comma, or the opening bracket, which is replaced by a comma here. Quotes
            // within a tag are escaped, so they cannot end it early.
            let any: Vec<String> = self
                .tags
                .iter()
                .take(MAX_TAGS)
                .map(|tag| {
                    let tag = clauses.bind(format!(",{}", serde_json::Value::from(tag.as_str())).into());
                    format!("LENGTH(REPLACE(',' || SUBSTR(t.tags, 2), {tag}, '')) < LENGTH(t.tags)")
                })
                .collect();
            clauses.and(&format!("({})", any.join(" OR ")), []);
        }
    }
}

/// Lists threads.
pub async fn list_threads(
    tx: &mut Tx,
    filter: &ThreadFilter,
    sort: ThreadSort,
    order: Order,
    extent: PageRange,
) -> Result<Listed<ThreadRow>, StoreError> {
    let words = match &filter.text {
        Some(text) => Some(search::asked(tx, SearchKind::Thread, text).await?),
        None => None,
    };
    let (sql, bound) = page(filter, words.as_deref(), sort, order, extent);
    let rows = tx.list_shaped(&sql, &bound, |row| Ok((row.get("place")?, ThreadRow::from_row(row)?)));
    let mut rows: Vec<(i64, ThreadRow)> = rows.await?;
    rows.sort_unstable_by_key(|(place, _)| *place);
    let items: Vec<ThreadRow> = rows.into_iter().map(|(_, row)| row).collect();
    Ok(Listed { total: total(tx, filter, words.as_deref(), extent, items.len()).await?, items })
}

/// Builds the query for a page of threads with their totals.
pub(super) fn page(
    filter: &ThreadFilter,
    words: Option<&[String]>,
    sort: ThreadSort,
    order: Order,
    extent: PageRange,
) -> (String, Vec<SqlValue<'static>>) {
    let mut clauses = Clauses::default();
    let chosen = chosen(filter, words, &mut clauses);
    let (key, order) = match words {
        Some(_) => ("f.score", "DESC"),
        None => (sort.key(), order.as_sql()),
    };
    let (limit, offset) = (clauses.bind(extent.limit.into()), clauses.bind(extent.offset.into()));
    let sql = format!(
        "SELECT {}, place FROM (SELECT id AS thread_id,
        ROW_NUMBER() OVER (ORDER BY sort_key {order}, id {order}) AS place
        FROM (SELECT t.id AS id, {key} AS sort_key {chosen} ORDER BY sort_key {order}, id {order}
        LIMIT {limit} OFFSET {offset}) page) p CROSS JOIN threads t
        LEFT JOIN totals s ON s.scope = 'thread' AND s.scope_id = t.id WHERE t.id = p.thread_id",
        ThreadRow::COLUMNS
    );
    (sql, clauses.bound)
}

/// Builds the FROM and WHERE clauses of a filter.
fn chosen(filter: &ThreadFilter, words: Option<&[String]>, clauses: &mut Clauses) -> String {
    let from = match words {
        Some(words) => {
            let found = found(clauses, SearchKind::Thread, words);
            format!("FROM ({found}) f CROSS JOIN threads t WHERE t.id = f.id")
        }
        None => "FROM threads t WHERE 1 = 1".to_owned(),
    };
    filter.clauses(clauses);
    format!("{from}{}", clauses.sql())
}

async fn total(
    tx: &mut Tx,
    filter: &ThreadFilter,
    words: Option<&[String]>,
    extent: PageRange,
    rows: usize,
) -> Result<u64, StoreError> {
    // A page that is not full is the last one, so the total follows from its offset.
    if rows > 0 && rows < extent.limit as usize {
        return Ok(u64::from(extent.offset) + rows as u64);
    }
    let mut clauses = Clauses::default();
    let sql = format!("SELECT COUNT(*) AS count {}", chosen(filter, words, &mut clauses));
    let counted = tx.list_shaped(&sql, &clauses.bound, |row| row.only()).await?;
    Ok(counted.first().copied().unwrap_or_default())
}

pub async fn get_thread(tx: &mut Tx, id: ThreadId) -> Result<Option<ThreadRow>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        ThreadRow::COLUMNS,
        " FROM threads t LEFT JOIN totals s ON s.scope = 'thread' AND s.scope_id = t.id WHERE t.id = $1"
    );
    tx.find(SQL, &params![id], ThreadRow::from_row).await
}

/// Counts the threads of an organization or a partner.
pub(super) async fn count_of(
    tx: &mut Tx,
    organization_id: Option<OrganizationId>,
    partner_id: Option<PartnerId>,
) -> Result<u64, StoreError> {
    let mut clauses = Clauses::default();
    let filter = ThreadFilter { organization_id, partner_id, ..ThreadFilter::default() };
    let sql = format!("SELECT COUNT(*) AS count {}", chosen(&filter, None, &mut clauses));
    let bound: &[SqlValue<'_>] = &clauses.bound;
    let counted = tx.list_shaped(&sql, bound, |row| row.only()).await?;
    Ok(counted.first().copied().unwrap_or_default())
}
