//! Tests of the query plans of all lists, and of queries that workers run continuously, on a
//! database of a hundredth of the full size.
//!
//! Some sorts are allowed: of the page's own rows, to number them; of the markets of a scope or
//! text, because each scope has an index only by creation; and of threads, because there are fifty
//! times fewer of them than markets. Full scans are allowed for threads, for the same reason, and
//! for the accounts of a leaderboard's spans.
//!
//! For lists with several statements, a test runs the list and explains every statement that it
//! ran, so that no statement is forgotten.
//!
//! PostgreSQL reasonably scans small tables, so sequential scans are disabled here. Remaining scans
//! and sorts are ones that it cannot avoid.

use alloy_primitives::{B256, U256};
use domain::Timestamp;
use futures::future::BoxFuture;

use super::markets::{found_page, page};
use super::{
    LeaderSort, MarketFilter, MarketSort, Order, PageRange, PartnerFilter, RankingWindow, SitemapPageKind,
    ThreadFilter, ThreadSort, ThreadWhen, Timeframe, count_places, find_transaction, get_partner,
    list_chapters, list_featured, list_leaders, list_open_positions, list_partners, list_places,
    list_threads, threads, trending,
};
use crate::listed::ListStatus;
use crate::sized::{self, Size};
use crate::{Engine, SqlValue, Store, StoreError, Tx, params};

const NOW: Timestamp = Timestamp::from_s(1_790_000_000);
const SORTS: [MarketSort; 5] = [
    MarketSort::CreatedAt,
    MarketSort::TotalVolume,
    MarketSort::CurrentProbability,
    MarketSort::Title,
    MarketSort::EndTime,
];
/// Tables that no list may scan fully.
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

/// Tables that lists read.
const ALL: [&str; 20] = [
    "chapters",
    "leaderboard",
    "leaderboard_spans",
    "listed_markets",
    "market_buckets",
    "markets",
    "movements",
    "organizations",
    "outcomes",
    "participants",
    "partners",
    "positions",
    "search_terms",
    "threads",
    "totals",
    "traders",
    "trending_markets",
    "trending_windows",
    "accounts",
    "users",
];
const THREAD_SORTS: [ThreadSort; 3] = [ThreadSort::CreatedAt, ThreadSort::StartTime, ThreadSort::TotalVolume];

fn open() -> MarketFilter {
    MarketFilter { statuses: vec![ListStatus::Open], ..MarketFilter::default() }
}

/// Lists that are filtered only by status.
fn wide() -> Vec<(&'static str, MarketFilter)> {
    let all = MarketFilter { statuses: vec![ListStatus::Open, ListStatus::Resolved], ..open() };
    let every = MarketFilter { statuses: Vec::new(), ..open() };
    vec![("open", open()), ("all", all), ("every status", every)]
}

/// Lists that are filtered by a scope.
fn scoped() -> Vec<(&'static str, MarketFilter)> {
    let thread = MarketFilter { thread_id: sized::thread(1), ..MarketFilter::default() };
    let organization = MarketFilter { organization_id: sized::organization(1), ..MarketFilter::default() };
    vec![
        ("thread", thread),
        ("organization", organization),
        ("category", MarketFilter { category: Some("category3".to_owned()), ..open() }),
    ]
}

/// Returns the steps of the query plan, outermost first.
async fn explain(tx: &mut Tx, sql: &str, bound: &[SqlValue<'_>]) -> Result<Vec<String>, StoreError> {
    match tx.engine() {
        Engine::Sqlite => {
            tx.list_shaped(&format!("EXPLAIN QUERY PLAN {sql}"), bound, |row| row.get("detail")).await
        }
        Engine::Postgres => {
            tx.batch("SET LOCAL enable_seqscan = off").await?;
            tx.list_shaped(&format!("EXPLAIN (COSTS OFF) {sql}"), bound, |row| row.get("QUERY PLAN")).await
        }
    }
}

/// Explains a statement in its own unit of work.
async fn plan(store: &Store, sql: String, bound: Vec<SqlValue<'static>>) -> Vec<String> {
    let explained = store.write((sql, bound), |tx, (sql, bound)| Box::pin(explain(tx, sql, bound))).await;
    explained.unwrap()
}

/// A statement that a read ran, and the steps of its plan.
struct Ran {
    sql: String,
    steps: Vec<String>,
}

impl Ran {
    /// Tables that a step scans fully, in no particular order.
    fn whole_reads(&self) -> Vec<&str> {
        let words: Vec<&str> = self.sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let is_query = |name: &str| {
            let begins = |step: &String| {
                ["CO-ROUTINE", "MATERIALIZE"].into_iter().any(|word| step.trim() == format!("{word} {name}"))
            };
            self.steps.iter().any(begins)
        };
        let table_of = |name: &str| {
            let named = words.windows(2).find(|pair| pair[1] == name && ALL.contains(&pair[0]));
            ALL.into_iter().find(|table| *table == named.map_or(name, |pair| pair[0]))
        };
        let counts = self.sql.starts_with("SELECT COUNT(*)");
        let whole = self.steps.iter().filter_map(|step| {
            let scanned = match step.split_once("Seq Scan on ") {
                Some((_, rest)) => rest,
                // An index scan stops at the end of the page, but a count scans all of it.
                None => {
                    step.trim().strip_prefix("SCAN ").filter(|rest| counts || !rest.contains(" USING "))?
                }
            };
            let name = scanned.split(' ').next().filter(|name| !is_query(name))?;
            table_of(name)
        });
        whole.collect()
    }

    fn uses(&self, index: &str) -> bool {
        self.steps.iter().any(|step| step.split([' ', '(']).any(|word| word == index))
    }

    fn told(&self) -> String {
        format!("{}\n{}", self.sql, self.steps.join("\n"))
    }
}

/// Runs a read and explains every statement that it ran.
async fn ran<I: Send + Sync + 'static, T: Send + 'static>(
    store: &Store,
    input: I,
    read: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, StoreError>> + Send + Sync + 'static,
) -> Vec<Ran> {
    let ran = store
        .write((input, read), |tx, (input, read)| {
            Box::pin(async move {
                tx.record();
                read(tx, input).await?;
                let mut ran = Vec::new();
                for (sql, bound) in tx.take_recorded() {
                    ran.push(Ran { steps: explain(tx, &sql, &bound).await?, sql });
                }
                Ok(ran)
            })
        })
        .await;
    ran.unwrap()
}

/// Asserts the number of statements, that they fully scan only the tables in `whole`, and that each
/// of `indexes` is used.
fn assert_ways(what: &str, ran: &[Ran], statements: usize, whole: &[&str], indexes: &[&str]) {
    let told = ran.iter().map(Ran::told).collect::<Vec<_>>().join("\n");
    assert_eq!(ran.len(), statements, "{what}\n{told}");
    for ran in ran {
        let read = ran.whole_reads();
        assert!(read.iter().all(|table| whole.contains(table)), "{what} reads {read:?}\n{}", ran.told());
    }
    for index in indexes {
        assert!(ran.iter().any(|ran| ran.uses(index)), "{what} without {index}\n{told}");
    }
}

async fn ran_threads(store: &Store, filter: ThreadFilter, sort: ThreadSort) -> Vec<Ran> {
    ran(store, (filter, sort), |tx, (filter, sort)| {
        // A limit of 1 makes the first page full, so that the total is counted as well.
        Box::pin(list_threads(tx, filter, *sort, Order::Desc, PageRange { limit: 1, offset: 0 }))
    })
    .await
}

/// Returns the steps that scan a big table fully.
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

fn extent() -> PageRange {
    PageRange { limit: 50, offset: 100 }
}

crate::on_each_engine! {
    async fn frequent_queries_cost_the_same_with_more_markets(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        let past = ran(&store, NOW, |tx, now| Box::pin(crate::markets::list_past_end(tx, *now, 100))).await;
        assert_ways("markets past their end", &past, 1, &[], &["markets_open_end"]);
        let told = ran(&store, 1, |tx, chain| Box::pin(crate::redemptions::list_unannounced(tx, *chain, 10))).await;
        assert_ways("results to tell", &told, 1, &[], &["announcements_open"]);
        let paid = ran(&store, 1, |tx, chain| Box::pin(crate::redemptions::list_unscanned(tx, *chain, 10))).await;
        assert_ways("positions to pay", &paid, 1, &[], &["payout_scans_open"]);
    }

    async fn the_list_of_all_markets_uses_the_index_of_its_sort(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        for (name, filter) in wide() {
            for sort in SORTS {
                for order in [Order::Asc, Order::Desc] {
                    let (sql, bound) = page(store.engine(), &filter, sort, order, extent());
                    let steps = plan(&store, sql, bound).await;
                    let told = format!("{name} {sort:?} {order:?}\n{}", steps.join("\n"));
                    assert!(whole_reads(&steps).is_empty(), "{told}");
                    // PostgreSQL sorts the rows of its branches, which are no more than the end of
                    // the page.
                    let branches = usize::from(store.engine() == Engine::Postgres && filter.statuses.len() != 1);
                    assert!(sorts(&steps) <= 1.max(branches), "{told}");
                    // A branch without its own LIMIT is read and sorted fully. For the few markets
                    // of a rare status any plan is good.
                    if branches > 0 {
                        let ends = steps.iter().filter(|step| step.trim_start_matches([' ', '-', '>']) == "Limit");
                        assert_eq!(ends.count(), filter.statuses().len() + 1, "{told}");
                        assert!(!steps.iter().any(|step| step.contains("Recheck Cond: (list_status = 'OPEN'")), "{told}");
                    }
                }
            }
        }
    }

    async fn each_scope_is_read_through_its_own_index(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        for (name, filter) in scoped() {
            for sort in SORTS {
                let (sql, bound) = page(store.engine(), &filter, sort, Order::Desc, extent());
                let steps = plan(&store, sql, bound).await;
                let told = format!("{name} {sort:?}\n{}", steps.join("\n"));
                assert!(whole_reads(&steps).is_empty(), "{told}");
                // PostgreSQL has statistics about scopes and may choose another plan.
                let own = steps.iter().any(|step| step.contains(&format!("listed_{name}")));
                assert!(own || store.engine() == Engine::Postgres, "{told}");
            }
        }
    }

    async fn searches_and_rankings_use_indexes(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        for words in [&["w99", "case"][..], &["w"], &["case", "will", "to", "pass"]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let (sql, bound) = found_page(&open(), &words, extent());
            let steps = plan(&store, sql, bound).await;
            assert!(whole_reads(&steps).is_empty(), "{words:?}\n{}", steps.join("\n"));
        }
        let bound = params![RankingWindow::OneDay.ms(), "", 200i64].to_vec();
        let steps = plan(&store, trending::FIGURES.to_owned(), bound).await;
        assert!(whole_reads(&steps).is_empty(), "{}", steps.join("\n"));
        for sort in [ThreadSort::CreatedAt, ThreadSort::StartTime, ThreadSort::TotalVolume] {
            let filter = ThreadFilter::default();
            let (sql, bound) = threads::page(&filter, None, sort, Order::Desc, extent());
            let steps = plan(&store, sql, bound).await;
            assert!(whole_reads(&steps).is_empty(), "{sort:?}\n{}", steps.join("\n"));
        }
    }

    async fn the_number_of_statements_does_not_depend_on_the_page_size(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        let organization_id = sized::organization(0).unwrap();
        for (active, limit) in [(None, 1), (None, 100), (Some(true), 100), (Some(false), 100)] {
            let filter = PartnerFilter { organization_id, active };
            let ran = ran(&store, (filter, limit), |tx, (filter, limit)| {
                Box::pin(list_partners(tx, filter, PageRange { limit: *limit, offset: 0 }))
            })
            .await;
            let what = format!("{limit} partners, active {active:?}");
            assert_ways(&what, &ran, 2, &[], &["partners_organization", "threads_partner"]);
        }
        let one = ran(&store, sized::partner(1).unwrap(), |tx, id| Box::pin(get_partner(tx, *id))).await;
        assert_ways("a partner", &one, 1, &[], &["threads_partner"]);
        for number in [0, 1] {
            let thread = sized::thread(number).unwrap();
            let ran = ran(&store, thread, |tx, id| Box::pin(list_chapters(tx, *id))).await;
            assert_ways("chapters", &ran, 1, &[], &["chapters_thread"]);
        }
    }

    async fn featured_and_ranked_rows_come_from_the_ends_of_indexes(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        let featured = ran(&store, (), |tx, ()| Box::pin(list_featured(tx, NOW))).await;
        assert_ways("featured", &featured, 1, &[], &["markets_featured"]);
        let leaders = async |timeframe, sort| {
            ran(&store, (timeframe, sort), |tx, (timeframe, sort)| {
                Box::pin(list_leaders(tx, *timeframe, *sort, 50, NOW))
            })
            .await
        };
        for (sort, index) in
            [(LeaderSort::Realized, "leaderboard_profit"), (LeaderSort::Volume, "leaderboard_volume")]
        {
            assert_ways("leaders", &leaders(Timeframe::All, sort).await, 1, &[], &[index]);
            for timeframe in [Timeframe::OneDay, Timeframe::SevenDays, Timeframe::ThirtyDays] {
                let ran = leaders(timeframe, sort).await;
                assert_ways(&format!("leaders of {timeframe:?}"), &ran, 1, &["leaderboard_spans"], &[]);
            }
        }
    }

    async fn transactions_positions_and_sitemap_parts_use_indexes(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        for hash in [B256::from(U256::from(7)), B256::repeat_byte(0xff)] {
            let found = ran(&store, hash, |tx, hash| Box::pin(find_transaction(tx, *hash))).await;
            assert_ways("a transaction", &found, 2, &[], &["movements_tx", "markets_resolution_tx"]);
        }
        for after in [None, sized::market(500).map(|market| (market, 0))] {
            let positions = ran(&store, after, |tx, after| {
                Box::pin(async move { list_open_positions(tx, sized::account(3), *after, 50).await })
            })
            .await;
            assert_ways("positions", &positions, 1, &[], &[]);
        }
        let counts = ran(&store, (), |tx, ()| Box::pin(count_places(tx))).await;
        assert_ways("how many places", &counts, 2, &["threads"], &[]);
        for part in [0, 4] {
            for kind in [SitemapPageKind::Thread, SitemapPageKind::Market] {
                let places = ran(&store, (kind, part), |tx, (kind, part)| {
                    Box::pin(list_places(tx, *kind, 100, *part))
                })
                .await;
                assert_ways(&format!("part {part} of {kind:?}"), &places, 1, &[], &[]);
                // Earlier pages must be skipped within the index, without reading their rows.
                let is_narrow = |step: &String| {
                    step.contains("USING COVERING INDEX") || step.contains("Index Only Scan using")
                };
                assert!(places[0].steps.iter().any(is_narrow), "{kind:?}\n{}", places[0].told());
            }
        }
    }

    async fn threads_of_an_owner_or_category_use_its_index(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        let whose = [
            (
                "threads_organization",
                ThreadFilter { organization_id: sized::organization(1), ..ThreadFilter::default() },
            ),
            ("threads_partner", ThreadFilter { partner_id: sized::partner(1), ..ThreadFilter::default() }),
            (
                "threads_category",
                ThreadFilter { category: Some("category3".to_owned()), ..ThreadFilter::default() },
            ),
        ];
        for (index, filter) in whose {
            for sort in THREAD_SORTS {
                let ran = ran_threads(&store, filter.clone(), sort).await;
                assert_ways(&format!("{index} by {sort:?}"), &ran, 2, &[], &[index]);
            }
            let of = ThreadFilter { when: Some((ThreadWhen::Active, NOW)), ..filter };
            let ran = ran_threads(&store, of, ThreadSort::CreatedAt).await;
            assert_ways(&format!("active of {index}"), &ran, 2, &[], &[]);
        }
    }

    async fn no_thread_list_scans_another_table(store: Store) {
        sized::fill(&store, Size::WHOLE.divided_by(100), NOW).await.unwrap();
        let mut filters = vec![
            ThreadFilter::default(),
            ThreadFilter { tags: vec!["tag3".to_owned(), "tag4".to_owned()], ..ThreadFilter::default() },
        ];
        for when in [ThreadWhen::Active, ThreadWhen::Upcoming, ThreadWhen::Closed] {
            filters.push(ThreadFilter { when: Some((when, NOW)), ..ThreadFilter::default() });
        }
        for filter in filters {
            for sort in THREAD_SORTS {
                let ran = ran_threads(&store, filter.clone(), sort).await;
                assert_ways(&format!("{filter:?} by {sort:?}"), &ran, 2, &["threads"], &[]);
            }
        }
        for words in ["thread", "thread w33", "group of thread", "t"] {
            let filter = ThreadFilter { text: Some(words.to_owned()), ..ThreadFilter::default() };
            let ran = ran_threads(&store, filter, ThreadSort::CreatedAt).await;
            let told = ran.iter().map(Ran::told).collect::<Vec<_>>().join("\n");
            // One query for the frequency of each word, one for the page, one for the total.
            assert!(ran.len() <= 2 + words.split(' ').count(), "{words}\n{told}");
            assert!(ran.iter().all(|ran| ran.whole_reads().is_empty()), "{words}\n{told}");
        }
    }
}
