//! The first and last page of every public list, on a large database.
//!
//! By default the database has a hundredth of the full size. `FORETELL_SIZED_DIVISOR=1` creates the
//! full size, 100,000 markets with five million trades. Any value prints the times.

use std::collections::BTreeSet;
use std::time::Instant;

use domain::candle::Interval;
use domain::ids::MarketId;
use domain::time::DAY_MS;
use domain::{Timestamp, Usdc};
use store::listed::{ListStatus, ScopeKind, find_totals};
use store::public::{
    LeaderSort, MarketFilter, MarketSort, Order, PageRange, RankingWindow, ThreadFilter, ThreadSort,
    Timeframe, list_leaders, list_markets, list_threads, list_trending,
};
use store::search::MOST_FOUND;
use store::sized::{self, Size};
use store::traders::kept;
use store::{Store, StoreError};

use crate::sized_lists;

pub const NOW: Timestamp = Timestamp::from_s(1_790_000_000);
const SORTS: [MarketSort; 5] = [
    MarketSort::CreatedAt,
    MarketSort::TotalVolume,
    MarketSort::CurrentProbability,
    MarketSort::Title,
    MarketSort::EndTime,
];

fn divisor() -> Option<u32> {
    std::env::var("FORETELL_SIZED_DIVISOR").ok().and_then(|text| text.parse().ok())
}

pub fn size() -> Size {
    Size::WHOLE.divided_by(divisor().unwrap_or(100))
}

pub fn told(store: &Store, what: &str, began: Instant) {
    if divisor().is_some() {
        println!("| {:?} | {what} | {} us |", store.engine(), began.elapsed().as_micros());
    }
}

/// The peak memory of this process, in MB.
fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1_000
}

fn filters() -> Vec<(&'static str, MarketFilter)> {
    let open = MarketFilter { statuses: vec![ListStatus::Open], ..MarketFilter::default() };
    vec![
        ("open", open.clone()),
        ("all", MarketFilter { statuses: vec![ListStatus::Open, ListStatus::Resolved], ..open.clone() }),
        ("a category", MarketFilter { category: Some("category3".to_owned()), ..open.clone() }),
        ("a thread", MarketFilter { thread_id: sized::thread(1), ..MarketFilter::default() }),
        (
            "an organization",
            MarketFilter { organization_id: sized::organization(1), ..MarketFilter::default() },
        ),
        (
            "resolved since",
            MarketFilter {
                statuses: vec![ListStatus::Resolved],
                resolved_after: Some(NOW.plus_ms(-DAY_MS)),
                ..open.clone()
            },
        ),
        ("the words w99 case", MarketFilter { text: Some("w99 case".to_owned()), ..open.clone() }),
        ("the word of all, case", MarketFilter { text: Some("case".to_owned()), ..open.clone() }),
        ("three words of all", MarketFilter { text: Some("will come pass".to_owned()), ..open.clone() }),
        ("the letter w", MarketFilter { text: Some("w".to_owned()), ..open }),
    ]
}

async fn page(
    store: &Store,
    filter: &MarketFilter,
    (sort, order): (MarketSort, Order),
    offset: u32,
) -> (Vec<MarketId>, u64) {
    let extent = PageRange { limit: 50, offset };
    let read: Result<_, StoreError> = store
        .read((filter.clone(), sort, order, extent), |tx, (filter, sort, order, extent)| {
            Box::pin(list_markets(tx, filter, *sort, *order, *extent))
        })
        .await;
    let listed = read.unwrap();
    (listed.items.into_iter().map(|item| item.market.id).collect(), listed.total)
}

async fn market_lists(store: &Store) {
    for (name, filter) in filters() {
        for sort in SORTS {
            let (_, total) = page(store, &filter, (sort, Order::Desc), 0).await;
            let last = u32::try_from(total.saturating_sub(1) / 50 * 50).unwrap();
            for order in [Order::Desc, Order::Asc] {
                for (place, offset) in [("first", 0), ("last", last)] {
                    let began = Instant::now();
                    let (rows, of) = page(store, &filter, (sort, order), offset).await;
                    told(
                        store,
                        &format!("markets, {name}, by {sort:?}, {order:?}, {place} page (at {offset})"),
                        began,
                    );
                    assert_eq!(of, total, "{name} {sort:?}");
                    let expected = if place == "last" { total - u64::from(last) } else { total.min(50) };
                    assert_eq!(rows.len() as u64, expected, "{name} {sort:?} at {offset}");
                }
            }
        }
    }
}

async fn other_lists(store: &Store) {
    for sort in [ThreadSort::CreatedAt, ThreadSort::StartTime, ThreadSort::TotalVolume] {
        let threads = u64::from(size().markets / 50);
        for offset in [0, size().markets / 50 - 20] {
            let began = Instant::now();
            let read: Result<_, StoreError> = store
                .read((sort, PageRange { limit: 20, offset }), |tx, (sort, extent)| {
                    let (sort, extent) = (*sort, *extent);
                    Box::pin(async move {
                        list_threads(tx, &ThreadFilter::default(), sort, Order::Desc, extent).await
                    })
                })
                .await;
            told(store, &format!("threads by {sort:?} at {offset}"), began);
            let listed = read.unwrap();
            assert_eq!((listed.items.len(), listed.total), (20, threads));
            assert!(
                listed.items.iter().all(|row| row.totals.markets == 50 && row.totals.volume > Usdc::ZERO)
            );
        }
    }
    for window in RankingWindow::ALL {
        let began = Instant::now();
        let read: Result<_, StoreError> =
            store.read(window, |tx, window| Box::pin(list_trending(tx, *window, None, 200))).await;
        told(store, &format!("trending, 200 of {window:?}"), began);
        let ranked = read.unwrap();
        assert!(!ranked.is_empty() && ranked.is_sorted_by(|a, b| a.score_e4 >= b.score_e4));
    }
    for timeframe in [Timeframe::OneDay, Timeframe::SevenDays, Timeframe::ThirtyDays, Timeframe::All] {
        for sort in [LeaderSort::Realized, LeaderSort::Volume] {
            let began = Instant::now();
            let read: Result<_, StoreError> = store
                .read((timeframe, sort), |tx, (timeframe, sort)| {
                    Box::pin(list_leaders(tx, *timeframe, *sort, 50, NOW))
                })
                .await;
            told(store, &format!("leaderboard of {timeframe:?} by {sort:?}"), began);
            assert_eq!(read.unwrap().len(), 50);
        }
    }
}

async fn history(store: &Store) {
    for interval in Interval::STORED {
        let began = Instant::now();
        let read: Result<_, StoreError> = store
            .read((sized::market(0).unwrap(), interval), |tx, (market, interval)| {
                let from = NOW.plus_ms(-1_000 * interval.ms());
                Box::pin(store::candles::list(tx, *market, *interval, from, NOW))
            })
            .await;
        told(store, &format!("1,000 intervals of {} of the busiest market", interval.as_str()), began);
        assert!(!read.unwrap().is_empty());
    }
}

/// Counts the markets with a number of several digits that begins with four, up to the search's
/// limit of candidates.
fn longer_numbers(markets: u32) -> u64 {
    let begins_so = |n: &u32| n.to_string().len() > 1 && n.to_string().starts_with('4');
    (0..markets).filter(begins_so).count().min(MOST_FOUND as usize) as u64
}

store::on_each_engine! {
    async fn the_filled_index_rows_match_their_markets(store: Store) {
        sized::fill(&store, Size::SMALL, NOW).await.unwrap();
        for number in 0..Size::SMALL.markets {
            let misplaced: Result<_, StoreError> = store
                .read(sized::market(number).unwrap(), |tx, id| Box::pin(kept::misplaced(tx, *id)))
                .await;
            assert_eq!(misplaced.unwrap(), None);
        }
        let again = sized::fill(&store, Size::SMALL, NOW).await;
        assert!(again.is_err(), "a database is filled once");
    }

    async fn pages_cover_the_whole_list_in_both_directions(store: Store) {
        sized::fill(&store, Size { markets: 230, trades: 1_000 }, NOW).await.unwrap();
        for (name, filter) in filters() {
            for sort in SORTS {
                let walk = async |order| {
                    let mut walked = Vec::new();
                    for offset in (0..300).step_by(50) {
                        walked.extend(page(&store, &filter, (sort, order), offset).await.0);
                    }
                    walked
                };
                let (walked, mut backwards) = (walk(Order::Desc).await, walk(Order::Asc).await);
                let (_, total) = page(&store, &filter, (sort, Order::Desc), 100_000).await;
                assert_eq!(total, walked.len() as u64, "{name} {sort:?}");
                let different: BTreeSet<_> = walked.iter().collect();
                assert_eq!(different.len(), walked.len(), "{name} {sort:?}");
                // Search results are sorted by score, whatever the order parameter.
                if filter.text.is_none() {
                    backwards.reverse();
                }
                assert_eq!(walked, backwards, "{name} {sort:?}");
            }
        }
    }

    async fn a_search_reads_only_the_newest_matches_of_its_rarest_word(store: Store) {
        let size = Size { markets: 2 * MOST_FOUND + 500, trades: 10 };
        sized::fill(&store, size, NOW).await.unwrap();
        let search = async |text: &str| {
            let filter = MarketFilter { text: Some(text.to_owned()), ..MarketFilter::default() };
            page(&store, &filter, (MarketSort::CreatedAt, Order::Desc), 0).await
        };
        let newest: Vec<_> = (0..50).map(|n| sized::market(size.markets - 1 - n).unwrap()).collect();
        for common in ["case", "case will", "will come to pass in case"] {
            assert_eq!(search(common).await, (newest.clone(), u64::from(MOST_FOUND)), "{common}");
        }
        // Many numbers begin with 4, and one is exactly 4.
        assert_eq!(search("4").await.1, 1 + longer_numbers(size.markets));
        assert_eq!(search("4").await.0[0], sized::market(4).unwrap());
        // All rows with the rare word are candidates, whichever word comes first. Rows with only a
        // longer word come last.
        let begins_so = |n: &u32| [99, 990, 991, 992, 993, 994, 995, 996].contains(&(n % 997));
        let all = (0..size.markets).filter(begins_so).count() as u64;
        let newest = (0..size.markets).rev().find(|n| n % 997 == 99).and_then(sized::market);
        for rare in ["w99 case", "case w99", "will w99 come to pass"] {
            let (found, total) = search(rare).await;
            assert_eq!((found.first().copied(), total), (newest, all), "{rare}");
        }
        assert_eq!(search("case nowhere").await, (Vec::new(), 0));
    }

    async fn public_lists_answer_first_and_last_pages_of_large_data(store: Store) {
        let began = Instant::now();
        sized::fill(&store, size(), NOW).await.unwrap();
        told(&store, &format!("filling in {} markets and {} trades", size().markets, size().trades), began);
        let filled_mb = peak_memory_mb();
        let all: Result<_, StoreError> =
            store.read((), |tx, ()| Box::pin(find_totals(tx, ScopeKind::All, ""))).await;
        assert_eq!(all.unwrap().markets, u64::from(size().markets));
        market_lists(&store).await;
        other_lists(&store).await;
        sized_lists::thread_lists(&store).await;
        sized_lists::group_lists(&store).await;
        sized_lists::featured(&store).await;
        sized_lists::positions(&store).await;
        sized_lists::places(&store).await;
        history(&store).await;
        if divisor().is_some() {
            println!("{:?}: {filled_mb} MB at most while filling, {} MB at the end", store.engine(), peak_memory_mb());
        }
    }
}
