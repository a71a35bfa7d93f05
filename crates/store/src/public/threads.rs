//! Threads and lists of them.

use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
pub use domain::thread::ThreadStatus as ThreadWhen;

use super::clauses::Clauses;
use super::markets::found;
use super::{Extent, Listed, Order};
use crate::catalog::Thread;
use crate::listed::{ScopeKind, Totals};
use crate::search::{self, Kind};
use crate::{Row, StoreError, Tx, Value, params};

/// A thread with its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRow {
    /// The thread.
    pub thread: Thread,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its row was changed last.
    pub updated_at: Timestamp,
    /// The sums over its markets on chain.
    pub totals: Totals,
}

/// What a list of threads is narrowed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadFilter {
    /// Threads that stand so at this instant.
    pub when: Option<(ThreadWhen, Timestamp)>,
    /// Threads of this category.
    pub category: Option<String>,
    /// Threads with any of these tags.
    pub tags: Vec<String>,
    /// Threads of this organization.
    pub organization_id: Option<OrganizationId>,
    /// Threads of this partner.
    pub partner_id: Option<PartnerId>,
    /// Threads that have every word of this text, the best match first: the sort is passed over.
    pub text: Option<String>,
}

/// What a list of threads is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadSort {
    /// When they were made.
    #[default]
    CreatedAt,
    /// When they start; one without a start before all others.
    StartTime,
    /// USDC traded on their markets.
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

/// The most tags that a list is narrowed by.
const MAX_TAGS: usize = 20;

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
            clauses.and(condition, params![now, now]);
        }
        if let Some(category) = &self.category {
            clauses.and("t.category = ?", [category.clone().into()]);
        }
        if !self.tags.is_empty() {
            // Tags are a JSON list of texts: one is in it where its JSON stands behind a comma, or behind the bracket, here a
            // comma too. Quotes within a text have a backslash before them.
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

const COLUMNS: &str =
    "t.id, t.organization_id, t.partner_id, t.title, t.description, t.image, t.background_image,
    t.category, t.tags, t.start_time_ms, t.end_time_ms, t.created_at_ms, t.updated_at_ms";

fn from_row(row: &Row<'_>) -> Result<ThreadRow, StoreError> {
    Ok(ThreadRow {
        thread: Thread {
            id: row.parse(0)?,
            organization_id: row.opt_parse(1)?,
            partner_id: row.opt_parse(2)?,
            title: row.text(3)?,
            description: row.opt_text(4)?,
            image: row.opt_text(5)?,
            background_image: row.opt_text(6)?,
            category: row.opt_text(7)?,
            tags: row.texts(8)?,
            start_time: row.opt_timestamp(9)?,
            end_time: row.opt_timestamp(10)?,
        },
        created_at: row.timestamp(11)?,
        updated_at: row.timestamp(12)?,
        totals: Totals::default(),
    })
}

/// Threads.
pub async fn list_threads(
    tx: &mut Tx,
    filter: &ThreadFilter,
    sort: ThreadSort,
    order: Order,
    extent: Extent,
) -> Result<Listed<ThreadRow>, StoreError> {
    let words = match &filter.text {
        Some(text) => Some(search::asked(tx, Kind::Thread, text).await?),
        None => None,
    };
    let (sql, bound) = page(filter, words.as_deref(), sort, order, extent);
    let rows = tx.list_shaped(&sql, &bound, |row| {
        let totals =
            Totals { markets: row.number(14)?, volume: row.usdc(15)?, participants: row.number(16)? };
        Ok((row.int(13)?, ThreadRow { totals, ..from_row(row)? }))
    });
    let mut rows = rows.await?;
    rows.sort_unstable_by_key(|(place, _)| *place);
    let items: Vec<ThreadRow> = rows.into_iter().map(|(_, row)| row).collect();
    Ok(Listed { total: total(tx, filter, words.as_deref(), extent, items.len()).await?, items })
}

/// A page with the sums of its threads.
pub(super) fn page(
    filter: &ThreadFilter,
    words: Option<&[String]>,
    sort: ThreadSort,
    order: Order,
    extent: Extent,
) -> (String, Vec<Value<'static>>) {
    let mut clauses = Clauses::default();
    let chosen = chosen(filter, words, &mut clauses);
    let (key, order) = match words {
        Some(_) => ("f.score", "DESC"),
        None => (sort.key(), order.as_sql()),
    };
    let (limit, offset) = (clauses.bind(extent.limit.into()), clauses.bind(extent.offset.into()));
    let sql = format!(
        "SELECT {COLUMNS}, p.place, COALESCE(s.open_markets + s.frozen_markets + s.resolved_markets + s.cancelled_markets
        + s.refunded_markets, 0), COALESCE(s.volume_usdc_atomic, 0), COALESCE(s.participants, 0) FROM (SELECT id,
        ROW_NUMBER() OVER (ORDER BY sort_key {order}, id {order}) AS place
        FROM (SELECT t.id AS id, {key} AS sort_key {chosen} ORDER BY sort_key {order}, id {order}
        LIMIT {limit} OFFSET {offset}) page) p CROSS JOIN threads t
        LEFT JOIN totals s ON s.scope = 'thread' AND s.scope_id = t.id WHERE t.id = p.id"
    );
    (sql, clauses.bound)
}

/// From where and which.
fn chosen(filter: &ThreadFilter, words: Option<&[String]>, clauses: &mut Clauses) -> String {
    let from = match words {
        Some(words) => {
            let found = found(clauses, Kind::Thread, words);
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
    extent: Extent,
    rows: usize,
) -> Result<u64, StoreError> {
    if rows > 0 && rows < extent.limit as usize {
        return Ok(u64::from(extent.offset) + rows as u64);
    }
    let mut clauses = Clauses::default();
    let sql = format!("SELECT COUNT(*) {}", chosen(filter, words, &mut clauses));
    let counted = tx.list_shaped(&sql, &clauses.bound, |row| row.number(0)).await?;
    Ok(counted.first().copied().unwrap_or_default())
}

async fn totals_of(tx: &mut Tx, id: ThreadId) -> Result<Totals, StoreError> {
    crate::listed::find_totals(tx, ScopeKind::Thread, &id.to_string()).await
}

/// The thread with this id.
pub async fn get_thread(tx: &mut Tx, id: ThreadId) -> Result<Option<ThreadRow>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM threads t WHERE t.id = $1");
    let Some(row) = tx.find(SQL, &params![id], from_row).await? else { return Ok(None) };
    Ok(Some(ThreadRow { totals: totals_of(tx, id).await?, ..row }))
}

/// How many threads an organization or a partner has.
pub(super) async fn count_of(
    tx: &mut Tx,
    organization_id: Option<OrganizationId>,
    partner_id: Option<PartnerId>,
) -> Result<u64, StoreError> {
    let mut clauses = Clauses::default();
    let filter = ThreadFilter { organization_id, partner_id, ..ThreadFilter::default() };
    let sql = format!("SELECT COUNT(*) {}", chosen(&filter, None, &mut clauses));
    let bound: &[Value<'_>] = &clauses.bound;
    let counted = tx.list_shaped(&sql, bound, |row| row.number(0)).await?;
    Ok(counted.first().copied().unwrap_or_default())
}
