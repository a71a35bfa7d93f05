//! Which way the engines take through the tables for each list, on a database with a hundredth of the whole size.
//!
//! What may be sorted: the page's own rows, to number them; where a scope or a text narrows the list, the markets of that
//! scope or text, for there is an index of each scope by creation alone; and threads, of which there are a fiftieth of the
//! markets. What may be read whole: threads, for the same reason, and the accounts of a leaderboard's spans.
//!
//! PostgreSQL reads small tables whole for good reason, so here it may not; what it then still reads whole or sorts, it
//! cannot help.

use domain::Timestamp;

use super::markets::{found_page, page};
use super::{Extent, MarketFilter, MarketSort, Order, ThreadFilter, ThreadSort, Window, threads, trending};
use crate::listed::ListStatus;
use crate::sized::{self, Size};
use crate::{Engine, Store, StoreError, Value, params};

const NOW: Timestamp = Timestamp::from_s(1_790_000_000);
const SORTS: [MarketSort; 5] = [
    MarketSort::CreatedAt,
    MarketSort::TotalVolume,
    MarketSort::CurrentProbability,
    MarketSort::Title,
    MarketSort::EndTime,
];
/// Tables of which no list may read everything.
const BIG: [&str; 8] = [
    "listed_markets",
    "markets",
    "outcomes",
    "movements",
    "traders",
    "participants",
    "search_terms",
    "trending_markets",
];

fn open() -> MarketFilter {
    MarketFilter { statuses: vec![ListStatus::Open], ..MarketFilter::default() }
}

/// The lists that nothing but statuses narrows.
fn wide() -> Vec<(&'static str, MarketFilter)> {
    let all = MarketFilter { statuses: vec![ListStatus::Open, ListStatus::Resolved], ..open() };
    let every = MarketFilter { statuses: Vec::new(), ..open() };
    vec![("open", open()), ("all", all), ("every status", every)]
}

/// The lists that a scope narrows.
fn scoped() -> Vec<(&'static str, MarketFilter)> {
    let thread = MarketFilter { thread_id: sized::thread(1), ..MarketFilter::default() };
    let organization = MarketFilter { organization_id: sized::organization(1), ..MarketFilter::default() };
    vec![
        ("thread", thread),
        ("organization", organization),
        ("category", MarketFilter { category: Some("category3".to_owned()), ..open() }),
    ]
}

/// A line for each step, the outermost first.
async fn plan(store: &Store, sql: String, bound: Vec<Value<'static>>) -> Vec<String> {
    let explained: Result<Vec<String>, StoreError> = store
        .write((sql, bound), |tx, (sql, bound)| {
            Box::pin(async move {
                match tx.engine() {
                    Engine::Sqlite => {
                        tx.list_shaped(&format!("EXPLAIN QUERY PLAN {sql}"), bound, |row| row.text(3)).await
                    }
                    Engine::Postgres => {
                        tx.batch("SET LOCAL enable_seqscan = off").await?;
                        tx.list_shaped(&format!("EXPLAIN (COSTS OFF) {sql}"), bound, |row| row.text(0)).await
                    }
                }
            })
        })
        .await;
    explained.unwrap()
}

/// Steps that read a big table whole.
fn whole_reads(steps: &[String]) -> Vec<&String> {
    let reads_whole = |step: &&String| {
        BIG.iter().any(|table| {
            let sequential = step.contains(&format!("Seq Scan on {table}"));
            let scan = step.trim() == format!("SCAN {table}");
            sequential || scan
        })
    };
    steps.iter().filter(reads_whole).collect()
}

fn sorts(steps: &[String]) -> usize {
    let is_sort = |step: &&String| {
        let step = step.trim().trim_start_matches("->").trim();
        step == "Sort" || step.contains("TEMP B-TREE FOR ORDER BY")
    };
    steps.iter().filter(is_sort).count()
}

fn extent() -> Extent {
    Extent { limit: 50, offset: 100 }
}

crate::on_each_engine! {
    async fn a_list_of_all_markets_walks_the_index_of_its_sort(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        for (name, filter) in wide() {
            for sort in SORTS {
                for order in [Order::Asc, Order::Desc] {
                    let (sql, bound) = page(store.engine(), &filter, sort, order, extent());
                    let steps = plan(&store, sql, bound).await;
                    let told = format!("{name} {sort:?} {order:?}\n{}", steps.join("\n"));
                    assert!(whole_reads(&steps).is_empty(), "{told}");
                    // PostgreSQL sorts what its branches give, which is no more than the page's end.
                    let branches = usize::from(store.engine() == Engine::Postgres && filter.statuses.len() != 1);
                    assert!(sorts(&steps) <= 1.max(branches), "{told}");
                    // A branch without an end of its own is read and sorted whole. Of the few markets of a rare status any
                    // way is a good one.
                    if branches > 0 {
                        let ends = steps.iter().filter(|step| step.trim_start_matches([' ', '-', '>']) == "Limit");
                        assert_eq!(ends.count(), filter.statuses().len() + 1, "{told}");
                        assert!(!steps.iter().any(|step| step.contains("Recheck Cond: (list_status = 'OPEN'")), "{told}");
                    }
                }
            }
        }
    }

    async fn a_scope_is_read_through_its_own_index(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        for (name, filter) in scoped() {
            for sort in SORTS {
                let (sql, bound) = page(store.engine(), &filter, sort, Order::Desc, extent());
                let steps = plan(&store, sql, bound).await;
                let told = format!("{name} {sort:?}\n{}", steps.join("\n"));
                assert!(whole_reads(&steps).is_empty(), "{told}");
                // PostgreSQL knows how many rows a scope has, and may take another way.
                let own = steps.iter().any(|step| step.contains(&format!("listed_{name}")));
                assert!(own || store.engine() == Engine::Postgres, "{told}");
            }
        }
    }

    async fn what_is_searched_and_ranked_is_found_by_indexes(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        for words in [&["w99", "case"][..], &["w"], &["case", "will", "to", "pass"]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let (sql, bound) = found_page(&open(), &words, extent());
            let steps = plan(&store, sql, bound).await;
            assert!(whole_reads(&steps).is_empty(), "{words:?}\n{}", steps.join("\n"));
        }
        let bound = params![Window::OneDay.ms(), "", 200i64].to_vec();
        let steps = plan(&store, trending::FIGURES.to_owned(), bound).await;
        assert!(whole_reads(&steps).is_empty(), "{}", steps.join("\n"));
        for sort in [ThreadSort::CreatedAt, ThreadSort::StartTime, ThreadSort::TotalVolume] {
            let filter = ThreadFilter::default();
            let (sql, bound) = threads::page(&filter, None, sort, Order::Desc, extent());
            let steps = plan(&store, sql, bound).await;
            assert!(whole_reads(&steps).is_empty(), "{sort:?}\n{}", steps.join("\n"));
        }
    }
}
