//! Lists of markets.

use std::collections::HashMap;

use domain::Timestamp;
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};

use super::clauses::{Clauses, literals};
use super::{Extent, Listed, Order};
use crate::listed::{ListStatus, Scope, ScopeKind};
use crate::markets::{COLUMNS, Market, OUTCOME, OUTCOME_COLUMNS, Outcome, from_row, outcome_from};
use crate::search::{self, Kind, MOST_FOUND};
use crate::{Engine, Row, StoreError, Tx, Value, params};

/// A market of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMarket {
    /// The market.
    pub market: Market,
    /// Its outcomes in their order.
    pub outcomes: Vec<Outcome>,
    /// Where it stands, with cancelled markets that have paid every refund told apart.
    pub status: ListStatus,
    /// The accounts that have traded on it.
    pub participants: u64,
}

/// What a list of markets is narrowed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarketFilter {
    /// Markets in one of these statuses; all where empty.
    pub statuses: Vec<ListStatus>,
    /// Resolved markets only of this instant and later; the others are not touched by it.
    pub resolved_after: Option<Timestamp>,
    /// Resolved markets only of this instant and earlier; the others are not touched by it.
    pub resolved_before: Option<Timestamp>,
    /// Markets of this category.
    pub category: Option<String>,
    /// Markets of this thread.
    pub thread_id: Option<ThreadId>,
    /// Markets of this organization.
    pub organization_id: Option<OrganizationId>,
    /// Markets of this partner.
    pub partner_id: Option<PartnerId>,
    /// Markets of this chapter.
    pub chapter_id: Option<String>,
    /// Markets that have every word of this text, the best match first: the sort is passed over.
    pub text: Option<String>,
}

/// What a list of markets is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MarketSort {
    /// When they were made.
    #[default]
    CreatedAt,
    /// USDC traded.
    TotalVolume,
    /// The probability of outcome 0 as it is shown, in millionths.
    CurrentProbability,
    /// The question, whatever its case, by code points.
    Title,
    /// When trading ends.
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

    /// All but the statuses and the text.
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
            clauses.and(condition, [Value::from(id)]);
        }
        if let Some(after) = self.resolved_after {
            clauses.and("(list_status <> 'RESOLVED' OR resolved_at_ms >= ?)", params![after]);
        }
        if let Some(before) = self.resolved_before {
            clauses.and("(list_status <> 'RESOLVED' OR resolved_at_ms <= ?)", params![before]);
        }
    }
}

/// Markets on chain.
pub async fn list_markets(
    tx: &mut Tx,
    filter: &MarketFilter,
    sort: MarketSort,
    order: Order,
    extent: Extent,
) -> Result<Listed<ListedMarket>, StoreError> {
    let words = match &filter.text {
        Some(text) => Some(search::asked(tx, Kind::Market, text).await?),
        None => None,
    };
    let (sql, bound) = match &words {
        Some(words) => found_page(filter, words, extent),
        None => page(tx.engine(), filter, sort, order, extent),
    };
    let items = rows_of(tx, &sql, &bound).await?;
    Ok(Listed { total: total(tx, filter, words.as_deref(), extent, items.len()).await?, items })
}

/// The most featured markets.
const MOST_FEATURED: u32 = 200;

/// The featured markets, in the operator's order; ties by id.
pub async fn list_featured(tx: &mut Tx) -> Result<Vec<ListedMarket>, StoreError> {
    let page = "SELECT id AS market_id, ROW_NUMBER() OVER (ORDER BY featured_position, id) AS place FROM
        (SELECT id, featured_position FROM markets WHERE featured_position IS NOT NULL AND chain_market_id IS NOT NULL
        ORDER BY featured_position, id LIMIT $1) page";
    rows_of(tx, page, &params![MOST_FEATURED]).await
}

/// The market with this id, if it is on chain.
pub async fn get_market(tx: &mut Tx, id: MarketId) -> Result<Option<ListedMarket>, StoreError> {
    let page = "SELECT market_id, 1 AS place FROM listed_markets WHERE market_id = $1";
    Ok(rows_of(tx, page, &params![id]).await?.pop())
}

/// These markets, in no order that counts. One statement for all of them.
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

/// The rows of a page: a query of `market_id` and `place`.
pub(super) async fn rows_of(
    tx: &mut Tx,
    page: &str,
    bound: &[Value<'_>],
) -> Result<Vec<ListedMarket>, StoreError> {
    // The crossings keep the page outermost. A market's columns are read with its first outcome alone.
    let sql = format!(
        "SELECT m.*, o.*, l.list_status, l.participants, p.place FROM ({page}) p CROSS JOIN listed_markets l
        CROSS JOIN (SELECT {COLUMNS} FROM markets) m CROSS JOIN (SELECT {OUTCOME_COLUMNS} FROM outcomes) o
        WHERE l.market_id = p.market_id AND m.id = l.market_id AND o.market_id = l.market_id"
    );
    let rows = tx.list_shaped(&sql, bound, |row| {
        let outcome = outcome_from(row, OUTCOME)?;
        let first = if outcome.index == 0 { Some((from_row(row)?, place_from(row)?)) } else { None };
        Ok((first, outcome))
    });
    let mut of_market: HashMap<MarketId, Vec<Outcome>> = HashMap::new();
    let mut markets = Vec::new();
    for (first, outcome) in rows.await? {
        markets.extend(first);
        of_market.entry(outcome.market_id).or_default().push(outcome);
    }
    markets.sort_unstable_by_key(|(_, (place, ..))| *place);
    let listed = |(market, (_, status, participants)): (Market, (i64, ListStatus, u64))| {
        let mut outcomes = of_market.remove(&market.id).unwrap_or_default();
        outcomes.sort_unstable_by_key(|outcome| outcome.index);
        ListedMarket { market, outcomes, status, participants }
    };
    Ok(markets.into_iter().map(listed).collect())
}

fn place_from(row: &Row<'_>) -> Result<(i64, ListStatus, u64), StoreError> {
    const STATUS: usize = OUTCOME + 7;
    let word = row.str(STATUS)?;
    let status = ListStatus::ALL.into_iter().find(|status| status.as_str() == word);
    let status = status.ok_or_else(|| row.corrupt(STATUS, "not a status of lists"))?;
    Ok((row.int(STATUS + 2)?, status, row.number(STATUS + 1)?))
}

/// The ids of a page. Each status has a branch, in the order of an index.
///
/// SQLite merges the branches as they come. PostgreSQL merges none that a status narrows, and sorts everything instead: there
/// each branch ends where the page does.
pub(super) fn page(
    engine: Engine,
    filter: &MarketFilter,
    sort: MarketSort,
    order: Order,
    extent: Extent,
) -> (String, Vec<Value<'static>>) {
    // SQLite keeps no figures of how rare a scope is, and would walk the index of the sort past all markets to find a
    // thread's fifty. A sign before the column leaves it the index of the scope.
    let is_sorted_apart =
        engine == Engine::Sqlite && !filter.scopes().is_empty() && sort != MarketSort::CreatedAt;
    let sign = if is_sorted_apart { "+" } else { "" };
    let (column, order) = (sort.column(), order.as_sql());
    let sorted = format!("ORDER BY sort_key {order}, market_id {order}");
    let mut clauses = Clauses::default();
    filter.clauses(&mut clauses);
    let statuses = filter.statuses();
    let reach = (engine == Engine::Postgres && statuses.len() > 1)
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

/// What has all of these words, the rarest of which comes first, as a query of `id` and `score`.
pub(super) fn found(clauses: &mut Clauses, kind: Kind, words: &[String]) -> String {
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
    format!(
        "SELECT id, score{sum} AS score FROM (SELECT r.id AS id, r.score AS score{scores} FROM ({looked_at}) r) scored
        WHERE 1 = 1{all}"
    )
}

pub(super) fn found_page(
    filter: &MarketFilter,
    words: &[String],
    extent: Extent,
) -> (String, Vec<Value<'static>>) {
    let mut clauses = Clauses::default();
    let chosen = found_markets(filter, words, &mut clauses);
    let (limit, offset) = (clauses.bind(extent.limit.into()), clauses.bind(extent.offset.into()));
    let sql = format!(
        "SELECT market_id, ROW_NUMBER() OVER (ORDER BY score DESC, market_id DESC) AS place FROM
        (SELECT market_id, score {chosen} ORDER BY score DESC, market_id DESC LIMIT {limit} OFFSET {offset}) page"
    );
    (sql, clauses.bound)
}

/// From where and which: what has all words among the markets of the filter.
fn found_markets(filter: &MarketFilter, words: &[String], clauses: &mut Clauses) -> String {
    let found = found(clauses, Kind::Market, words);
    filter.clauses(clauses);
    let (conditions, statuses) = (clauses.sql(), literals(filter.statuses().iter().map(|s| s.as_str())));
    format!(
        "FROM ({found}) f CROSS JOIN listed_markets WHERE market_id = f.id AND list_status IN ({statuses}){conditions}"
    )
}

async fn total(
    tx: &mut Tx,
    filter: &MarketFilter,
    words: Option<&[String]>,
    extent: Extent,
    rows: usize,
) -> Result<u64, StoreError> {
    // A page that is not full is the last one, and says how many there are.
    if rows > 0 && rows < extent.limit as usize {
        return Ok(u64::from(extent.offset) + rows as u64);
    }
    let mut clauses = Clauses::default();
    let chosen = match words {
        Some(words) => found_markets(filter, words, &mut clauses),
        None => {
            let scopes = filter.scopes();
            if scopes.len() <= 1 && !filter.has_resolved_bounds() {
                let scope = scopes.into_iter().next().unwrap_or((ScopeKind::All, String::new()));
                return crate::listed::count(tx, &scope, filter.statuses()).await;
            }
            filter.clauses(&mut clauses);
            let statuses = literals(filter.statuses().iter().map(|status| status.as_str()));
            format!("FROM listed_markets WHERE list_status IN ({statuses}){}", clauses.sql())
        }
    };
    let sql = format!("SELECT COUNT(*) {chosen}");
    let counted = tx.list_shaped(&sql, &clauses.bound, |row| row.number(0)).await?;
    Ok(counted.first().copied().unwrap_or_default())
}
