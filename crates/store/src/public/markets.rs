//! Lists of markets.

use std::collections::HashMap;

use domain::Timestamp;
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};

use super::clauses::{Clauses, literals};
use super::{Listed, Order, PageRange};
use crate::engine::dialect;
use crate::listed::{ListStatus, Scope, ScopeKind};
use crate::markets::{Market, Outcome};
use crate::record::{Record, record};
use crate::search::{self, MOST_FOUND, SearchKind};
use crate::{Engine, SqlValue, StoreError, Tx, params};

/// A market of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMarket {
    pub market: Market,
    /// The outcomes, in order.
    pub outcomes: Vec<Outcome>,
    /// The status in lists, which distinguishes cancelled markets that have paid every refund.
    pub status: ListStatus,
    /// The number of accounts that have traded on it.
    pub participants: u64,
}

/// A filter for lists of markets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarketFilter {
    /// Allowed statuses. Empty means all.
    pub statuses: Vec<ListStatus>,
    /// Excludes markets that were resolved earlier. Markets that are not resolved are unaffected.
    pub resolved_after: Option<Timestamp>,
    /// Excludes markets that were resolved later. Markets that are not resolved are unaffected.
    pub resolved_before: Option<Timestamp>,
    pub category: Option<String>,
    pub thread_id: Option<ThreadId>,
    pub organization_id: Option<OrganizationId>,
    pub partner_id: Option<PartnerId>,
    pub chapter_id: Option<String>,
    /// Markets that contain every word of this text, best match first. The sort parameter is then
    /// ignored.
    pub text: Option<String>,
}

/// The sort key of a list of markets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MarketSort {
    /// Creation time.
    #[default]
    CreatedAt,
    /// USDC traded.
    TotalVolume,
    /// The displayed probability of outcome 0, in parts per million.
    CurrentProbability,
    /// The question, case-insensitive, by code points.
    Title,
    /// The time at which trading ends.
    EndTime,
}

impl MarketSort {
    const fn column(self) -> &'static str {
        match self {
            Self::CreatedAt => "created_at_ms",
            Self::TotalVolume => "volume_usdc_atomic",
            Self::CurrentProbability => "probability_ppm",
            Self::Title => "title_key",
            Self::EndTime => "end_time_ms",
        }
    }
}

impl MarketFilter {
    pub(super) fn statuses(&self) -> &[ListStatus] {
        if self.statuses.is_empty() { &ListStatus::ALL } else { &self.statuses }
    }

    fn scopes(&self) -> Vec<Scope> {
        let ids = [
            (ScopeKind::Category, self.category.clone()),
            (ScopeKind::Thread, self.thread_id.map(|id| id.to_string())),
            (ScopeKind::Organization, self.organization_id.map(|id| id.to_string())),
            (ScopeKind::Partner, self.partner_id.map(|id| id.to_string())),
            (ScopeKind::Chapter, self.chapter_id.clone()),
        ];
        ids.into_iter().filter_map(|(kind, id)| id.map(|id| (kind, id))).collect()
    }

    fn has_resolved_bounds(&self) -> bool {
        self.resolved_after.is_some() || self.resolved_before.is_some()
    }

    /// Adds all conditions except the statuses and the text.
    fn clauses(&self, clauses: &mut Clauses) {
        for (kind, id) in self.scopes() {
            let condition = match kind {
                ScopeKind::All => continue,
                ScopeKind::Category => "category = ?",
                ScopeKind::Thread => "thread_id = ?",
                ScopeKind::Organization => "organization_id = ?",
                ScopeKind::Partner => "partner_id = ?",
                ScopeKind::Chapter => "chapter_id = ?",
            };
            clauses.and(condition, [SqlValue::from(id)]);
        }
        if let Some(after) = self.resolved_after {
            clauses.and("(list_status <> 'RESOLVED' OR resolved_at_ms >= ?)", params![after]);
        }
        if let Some(before) = self.resolved_before {
            clauses.and("(list_status <> 'RESOLVED' OR resolved_at_ms <= ?)", params![before]);
        }
    }
}

/// Lists markets on chain.
pub async fn list_markets(
    tx: &mut Tx,
    filter: &MarketFilter,
    sort: MarketSort,
    order: Order,
    extent: PageRange,
) -> Result<Listed<ListedMarket>, StoreError> {
    if let Some(text) = &filter.text {
        let words = search::asked(tx, SearchKind::Market, text).await?;
        return search_markets(tx, filter, &words, extent).await;
    }
    let (sql, bound) = page(tx.engine(), filter, sort, order, extent);
    let items = rows_of(tx, &sql, &bound).await?;
    Ok(Listed { total: total(tx, filter, extent, items.len()).await?, items })
}

/// Lists the markets that contain all of these words, best match first. One statement finds the page
/// and the total, because most of its cost is in the candidates, which both need.
async fn search_markets(
    tx: &mut Tx,
    filter: &MarketFilter,
    words: &[String],
    extent: PageRange,
) -> Result<Listed<ListedMarket>, StoreError> {
    let (sql, bound) = found_page(filter, words, extent);
    let found = tx.list_shaped(&sql, &bound, |row| Ok((row.get("market_id")?, row.get("total")?))).await?;
    let found: Vec<(MarketId, u64)> = found;
    let total = match found.first() {
        Some((_, total)) => *total,
        None if extent.offset == 0 => 0,
        // A page beyond the last one has no row that shows the total.
        None => count_found(tx, filter, words).await?,
    };
    let ids: Vec<MarketId> = found.into_iter().map(|(id, _)| id).collect();
    let mut items = rows_with_ids(tx, &ids).await?;
    let place: HashMap<MarketId, usize> = ids.into_iter().zip(0..).collect();
    items.sort_unstable_by_key(|item| place.get(&item.market.id).copied());
    Ok(Listed { total, items })
}

/// The maximum number of featured markets that are listed.
const MOST_FEATURED: u32 = 200;

/// Lists the featured markets that have not ended at `now`, in the operator's order, then by id.
pub async fn list_featured(tx: &mut Tx, now: Timestamp) -> Result<Vec<ListedMarket>, StoreError> {
    // Few markets are featured. The expressions keep the planner from the indexes on status and end.
    let page = "SELECT id AS market_id, ROW_NUMBER() OVER (ORDER BY featured_position, id) AS place FROM
        (SELECT id, featured_position FROM markets WHERE featured_position IS NOT NULL AND chain_market_id IS NOT NULL
        AND status || '' IN ('OPEN', 'FROZEN') AND end_time_ms + 0 > $1 ORDER BY featured_position, id LIMIT $2) page";
    rows_of(tx, page, &params![now, MOST_FEATURED]).await
}

/// Returns the market with this id if it is on chain.
pub async fn get_market(tx: &mut Tx, id: MarketId) -> Result<Option<ListedMarket>, StoreError> {
    let page = "SELECT market_id, 1 AS place FROM listed_markets WHERE market_id = $1";
    Ok(rows_of(tx, page, &params![id]).await?.pop())
}

/// Returns the markets with these ids, in no particular order, with one statement.
pub(super) async fn rows_with_ids(tx: &mut Tx, ids: &[MarketId]) -> Result<Vec<ListedMarket>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut clauses = Clauses::default();
    let places: Vec<String> = ids.iter().map(|id| clauses.bind((*id).into())).collect();
    let places = places.join(", ");
    let page = format!("SELECT market_id, 1 AS place FROM listed_markets WHERE market_id IN ({places})");
    rows_of(tx, &page, &clauses.bound).await
}

/// Loads the rows of a page, given as a query of `market_id` and `place`.
pub(super) async fn rows_of(
    tx: &mut Tx,
    page: &str,
    bound: &[SqlValue<'_>],
) -> Result<Vec<ListedMarket>, StoreError> {
    // SQLite never reorders a CROSS JOIN, so the page stays the outer loop. A market's columns are
    // decoded only from the row of its first outcome.
    let sql = format!(
        "SELECT o.*, m.*, {} FROM ({page}) p CROSS JOIN listed_markets l
        CROSS JOIN (SELECT {} FROM markets) m CROSS JOIN (SELECT {} FROM outcomes) o
        WHERE l.market_id = p.market_id AND m.id = l.market_id AND o.market_id = l.market_id",
        Placed::COLUMNS,
        Market::COLUMNS,
        Outcome::COLUMNS
    );
    let rows = tx.list_shaped(&sql, bound, |row| {
        let mut columns = row.columns();
        let outcome = Outcome::read(&mut columns)?;
        let first = if outcome.index == 0 {
            Some((Market::read(&mut columns)?, Placed::read(&mut columns)?))
        } else {
            None
        };
        Ok((first, outcome))
    });
    let mut of_market: HashMap<MarketId, Vec<Outcome>> = HashMap::new();
    let mut markets = Vec::new();
    for (first, outcome) in rows.await? {
        markets.extend(first);
        of_market.entry(outcome.market_id).or_default().push(outcome);
    }
    // The statement has no ORDER BY, so its rows come in any order.
    markets.sort_unstable_by_key(|(_, placed)| placed.place);
    let listed = |(market, Placed { status, participants, .. }): (Market, Placed)| {
        let mut outcomes = of_market.remove(&market.id).unwrap_or_default();
        outcomes.sort_unstable_by_key(|outcome| outcome.index);
        ListedMarket { market, outcomes, status, participants }
    };
    Ok(markets.into_iter().map(listed).collect())
}

record! {
    /// A market's place in a page, and what only its list row has.
    struct Placed {
        place: i64,
        status: ListStatus = "list_status",
        participants: u64,
    }
}

/// Builds the query for the ids of a page: a UNION with one branch per status, each in the order of
/// an index. A branch with its own LIMIT ends where the page does.
pub(super) fn page(
    engine: Engine,
    filter: &MarketFilter,
    sort: MarketSort,
    order: Order,
    extent: PageRange,
) -> (String, Vec<SqlValue<'static>>) {
    // A scope is small, so its index is better than that of the sort key.
    let is_sorted_apart = !filter.scopes().is_empty() && sort != MarketSort::CreatedAt;
    let sign = if is_sorted_apart { dialect::ignoring_index(engine) } else { "" };
    let (column, order) = (sort.column(), order.as_sql());
    let sorted = format!("ORDER BY sort_key {order}, market_id {order}");
    let mut clauses = Clauses::default();
    filter.clauses(&mut clauses);
    let statuses = filter.statuses();
    let reach = (dialect::limits_branches(engine) && statuses.len() > 1)
        .then(|| clauses.bind((i64::from(extent.limit) + i64::from(extent.offset)).into()));
    let branch = |status: &ListStatus| {
        let status = status.as_str();
        let conditions = clauses.sql();
        let all = format!(
            "SELECT market_id, {sign}{column} AS sort_key FROM listed_markets WHERE list_status = '{status}'{conditions}"
        );
        reach.as_ref().map_or(all.clone(), |reach| format!("({all} {sorted} LIMIT {reach})"))
    };
    let branches: Vec<String> = statuses.iter().map(branch).collect();
    let branches = branches.join(" UNION ALL ");
    let (limit, offset) = (clauses.bind(extent.limit.into()), clauses.bind(extent.offset.into()));
    let sql = format!(
        "SELECT market_id, ROW_NUMBER() OVER ({sorted}) AS place FROM ({branches} {sorted} LIMIT {limit} OFFSET {offset}) page"
    );
    (sql, clauses.bound)
}

/// Builds a query of `id` and `score` for the rows that contain all of these words. The rarest word
/// must come first.
pub(super) fn found(clauses: &mut Clauses, kind: SearchKind, words: &[String]) -> String {
    let Some((rarest, others)) = words.split_first() else {
        return "SELECT '' AS id, 0 AS score".to_owned();
    };
    let kind = kind.as_str();
    let mut bind =
        |word: &String| (clauses.bind(word.clone().into()), clauses.bind(search::beyond(word).into()));
    let score = |(number, (word, beyond)): (usize, (String, String))| {
        format!(
            ", (SELECT MAX(CASE WHEN term = {word} THEN 2 * weight ELSE weight END) FROM search_terms
            WHERE kind = '{kind}' AND id = r.id AND term >= {word} AND term < {beyond}) AS score{number}"
        )
    };
    let scores: String = others.iter().map(&mut bind).enumerate().map(score).collect();
    let (word, beyond) = bind(rarest);
    // Both parts have a LIMIT, which bounds the cost of very common words.
    let looked_at = format!(
        "SELECT id, MAX(score) AS score FROM (
        SELECT * FROM (SELECT id, 2 * weight AS score FROM search_terms WHERE kind = '{kind}' AND term = {word}
        ORDER BY id DESC LIMIT {MOST_FOUND}) whole UNION ALL
        SELECT * FROM (SELECT id, weight AS score FROM search_terms WHERE kind = '{kind}' AND term > {word}
        AND term < {beyond} ORDER BY term, id LIMIT {MOST_FOUND}) longer) looked_at GROUP BY id"
    );
    let numbers = 0..others.len();
    let sum: String = numbers.clone().map(|number| format!(" + score{number}")).collect();
    let all: String = numbers.map(|number| format!(" AND score{number} IS NOT NULL")).collect();
    // The LIMIT, which is never reached, keeps SQLite from merging the queries. It would then look up
    // each score once more for every use of it.
    let most = 2 * MOST_FOUND;
    format!(
        "SELECT id, score{sum} AS score FROM (SELECT r.id AS id, r.score AS score{scores} FROM ({looked_at}) r
        LIMIT {most}) scored WHERE 1 = 1{all}"
    )
}

pub(super) fn found_page(
    filter: &MarketFilter,
    words: &[String],
    extent: PageRange,
) -> (String, Vec<SqlValue<'static>>) {
    let mut clauses = Clauses::default();
    let chosen = found_markets(filter, words, &mut clauses);
    let (limit, offset) = (clauses.bind(extent.limit.into()), clauses.bind(extent.offset.into()));
    let sql = format!(
        "SELECT market_id, COUNT(*) OVER () AS total {chosen}
        ORDER BY score DESC, market_id DESC LIMIT {limit} OFFSET {offset}"
    );
    (sql, clauses.bound)
}

async fn count_found(tx: &mut Tx, filter: &MarketFilter, words: &[String]) -> Result<u64, StoreError> {
    let mut clauses = Clauses::default();
    let chosen = found_markets(filter, words, &mut clauses);
    count_rows(tx, &chosen, &clauses.bound).await
}

async fn count_rows(tx: &mut Tx, chosen: &str, bound: &[SqlValue<'_>]) -> Result<u64, StoreError> {
    let sql = format!("SELECT COUNT(*) AS count {chosen}");
    let counted = tx.list_shaped(&sql, bound, |row| row.only()).await?;
    Ok(counted.first().copied().unwrap_or_default())
}

/// Builds the FROM and WHERE clauses for markets of the filter that contain all words.
fn found_markets(filter: &MarketFilter, words: &[String], clauses: &mut Clauses) -> String {
    let found = found(clauses, SearchKind::Market, words);
    filter.clauses(clauses);
    let (conditions, statuses) = (clauses.sql(), literals(filter.statuses().iter().map(|s| s.as_str())));
    format!(
        "FROM ({found}) f CROSS JOIN listed_markets WHERE market_id = f.id AND list_status IN ({statuses}){conditions}"
    )
}

async fn total(
    tx: &mut Tx,
    filter: &MarketFilter,
    extent: PageRange,
    rows: usize,
) -> Result<u64, StoreError> {
    // A page that is not full is the last one, so the total follows from its offset.
    if rows > 0 && rows < extent.limit as usize {
        return Ok(u64::from(extent.offset) + rows as u64);
    }
    let scopes = filter.scopes();
    // The totals table has counts for at most one scope, and none for a range of resolution times.
    if scopes.len() <= 1 && !filter.has_resolved_bounds() {
        let scope = scopes.into_iter().next().unwrap_or((ScopeKind::All, String::new()));
        return crate::listed::count(tx, &scope, filter.statuses()).await;
    }
    let mut clauses = Clauses::default();
    filter.clauses(&mut clauses);
    let statuses = literals(filter.statuses().iter().map(|status| status.as_str()));
    let chosen = format!("FROM listed_markets WHERE list_status IN ({statuses}){}", clauses.sql());
    count_rows(tx, &chosen, &clauses.bound).await
}
