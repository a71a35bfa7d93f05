//! Lists of threads, groups, featured markets and an account's positions. Their lengths follow from
//! the way in which the database is filled.

use std::time::Instant;

use domain::ids::MarketId;
use domain::thread::ThreadStatus;
use domain::{Timestamp, Wad};
use store::public::{
    Order, PageRange, PartnerFilter, SitemapPageKind, ThreadFilter, ThreadSort, count_places, list_chapters,
    list_featured, list_open_positions, list_partners, list_places, list_threads,
};
use store::search::MOST_FOUND;
use store::sized::{self, FURTHER_CHAPTERS, FURTHER_PARTNERS};
use store::{Store, StoreError, params};

use crate::sized::{NOW, size, told};

/// Rows per page. Small, because a small database has few threads.
const ROWS: u32 = 5;

/// A list of threads, and a predicate for the numbers of the threads in it.
type Threads = (&'static str, ThreadFilter, fn(u32) -> bool);

fn threads() -> Vec<Threads> {
    let all = ThreadFilter::default;
    let text = |text: &str| ThreadFilter { text: Some(text.to_owned()), ..all() };
    let tags =
        |tags: &[&str]| ThreadFilter { tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), ..all() };
    let when = |status| ThreadFilter { when: Some((status, NOW)), ..all() };
    // Threads start an hour after one another, beginning 555.5 hours ago, and never end.
    let has_begun = |n: u32| n % 1_009 <= 555;
    vec![
        ("active", when(ThreadStatus::Active), has_begun),
        ("upcoming", when(ThreadStatus::Upcoming), |n| n % 1_009 > 555),
        ("closed", when(ThreadStatus::Closed), |_| false),
        ("a category", ThreadFilter { category: Some("category3".to_owned()), ..all() }, |n| n % 7 == 3),
        ("no category", ThreadFilter { category: Some("category".to_owned()), ..all() }, |_| false),
        ("a tag", tags(&["tag3"]), |n| n % 11 == 3),
        ("two tags", tags(&["tag3", "tag10"]), |n| [3, 10].contains(&(n % 11))),
        ("a tag's beginning", tags(&["tag"]), |_| false),
        (
            "a category with a tag, active",
            ThreadFilter { category: Some("category3".to_owned()), ..with_tag_and_status() },
            |n| n % 7 == 3 && n % 11 == 3 && n % 1_009 <= 555,
        ),
        ("an organization", ThreadFilter { organization_id: sized::organization(1), ..all() }, |n| {
            n % 20 == 1
        }),
        ("a partner", ThreadFilter { partner_id: sized::partner(1), ..all() }, |n| n % 20 == 1),
        ("the word of all", text("thread"), |_| true),
        ("a rare word's beginning", text("group w5"), |n| n % 97 == 5 || n % 97 / 10 == 5),
        (
            "a rare word with a category",
            ThreadFilter { category: Some("category5".to_owned()), ..text("w5") },
            |n| n % 7 == 5 && (n % 97 == 5 || n % 97 / 10 == 5),
        ),
        ("a word of none", text("thread nowhere"), |_| false),
    ]
}

fn with_tag_and_status() -> ThreadFilter {
    ThreadFilter {
        tags: vec!["tag3".to_owned()],
        when: Some((ThreadStatus::Active, NOW)),
        ..ThreadFilter::default()
    }
}

/// The first and the last page of every list of threads have the expected length.
pub async fn thread_lists(store: &Store) {
    for (name, filter, is_in) in threads() {
        let number = (0..size().markets.div_ceil(50)).filter(|n| is_in(*n)).count() as u64;
        let number = if filter.text.is_some() { number.min(u64::from(MOST_FOUND)) } else { number };
        let last = u32::try_from(number.saturating_sub(1) / u64::from(ROWS)).unwrap() * ROWS;
        for sort in [ThreadSort::CreatedAt, ThreadSort::StartTime, ThreadSort::TotalVolume] {
            for (place, offset) in [("first", 0), ("last", last)] {
                let began = Instant::now();
                let extent = PageRange { limit: ROWS, offset };
                let read: Result<_, StoreError> = store
                    .read((filter.clone(), sort), move |tx, (filter, sort)| {
                        Box::pin(list_threads(tx, filter, *sort, Order::Desc, extent))
                    })
                    .await;
                told(store, &format!("threads, {name}, by {sort:?}, {place} page (at {offset})"), began);
                let listed = read.unwrap();
                let rows = (number - u64::from(offset)).min(u64::from(ROWS));
                assert_eq!((listed.total, listed.items.len() as u64), (number, rows), "{name} {sort:?}");
                assert!(listed.items.iter().all(|row| row.totals.markets == 50), "{name} {sort:?}");
            }
        }
    }
}

/// An organization's partners and a thread's chapters, with their totals.
pub async fn group_lists(store: &Store) {
    let organization_id = sized::organization(0).unwrap();
    let all = u64::from(FURTHER_PARTNERS) + 1;
    for (active, number) in [(None, all), (Some(true), 1), (Some(false), all - 1)] {
        let last = u32::try_from((number - 1) / 100 * 100).unwrap();
        for (place, offset) in [("first", 0), ("last", last)] {
            let began = Instant::now();
            let extent = PageRange { limit: 100, offset };
            let read: Result<_, StoreError> = store
                .read(PartnerFilter { organization_id, active }, move |tx, filter| {
                    Box::pin(list_partners(tx, filter, extent))
                })
                .await;
            told(store, &format!("partners, active {active:?}, {place} page (at {offset})"), began);
            let listed = read.unwrap();
            let rows = (number - u64::from(offset)).min(100);
            assert_eq!((listed.total, listed.items.len() as u64), (number, rows), "active {active:?}");
            // The first organization owns every twentieth thread. The others own nothing.
            let threads = u64::from(size().markets.div_ceil(50).div_ceil(20));
            for row in listed.items {
                let owned = if row.partner.active { threads } else { 0 };
                assert_eq!((row.threads, row.totals.markets), (owned, 50 * owned), "{}", row.partner.name);
            }
        }
    }
    for (number, chapters) in [(0, 1 + FURTHER_CHAPTERS as usize), (1, 1)] {
        let began = Instant::now();
        let read: Result<_, StoreError> =
            store.read(sized::thread(number).unwrap(), |tx, id| Box::pin(list_chapters(tx, *id))).await;
        told(store, &format!("{chapters} chapters"), began);
        let rows = read.unwrap();
        assert_eq!(rows.len(), chapters);
        assert!(rows.is_sorted_by_key(|row| row.chapter.position));
        assert_eq!(rows.iter().map(|row| row.totals.markets).sum::<u64>(), 50);
        // Five of the first fifty markets are resolved and one is frozen.
        if number == 0 {
            assert_eq!((rows[0].totals.markets, rows[0].open_markets), (50, 44));
        }
    }
}

/// Featured markets are limited to 200, in the operator's order, without settled ones.
pub async fn featured(store: &Store) {
    let began = Instant::now();
    let read: Result<_, StoreError> = store.read((), |tx, ()| Box::pin(list_featured(tx, NOW))).await;
    told(store, "featured", began);
    let shown: Vec<MarketId> = read.unwrap().into_iter().map(|row| row.market.id).collect();
    let is_settled = |number: &u32| number % 10 == 5 || number % 100 == 50;
    let first: Vec<MarketId> = (0..size().markets.min(300))
        .filter(|number| !is_settled(number))
        .take(200)
        .map(|number| sized::market(number).unwrap())
        .collect();
    assert_eq!(shown, first);
}

/// The pages of an account's open positions contain each of them once, in order.
pub async fn positions(store: &Store) {
    const HELD: &str = "SELECT COUNT(*) FROM positions WHERE account = $1 AND tokens_wad <> '0'";
    let account = sized::account(7);
    let held: Result<_, StoreError> = store
        .read(account, |tx, account| {
            Box::pin(async move { tx.find(HELD, &params![*account], |row| row.only()).await })
        })
        .await;
    let held: u64 = held.unwrap().unwrap();
    let mut walked: Vec<(MarketId, u8)> = Vec::new();
    loop {
        let began = Instant::now();
        let read: Result<_, StoreError> = store
            .read((account, walked.last().copied()), |tx, (account, after)| {
                Box::pin(list_open_positions(tx, *account, *after, ROWS))
            })
            .await;
        let page = read.unwrap();
        let is_last = page.len() < ROWS as usize;
        if walked.is_empty() || is_last {
            told(store, &format!("open positions behind {} of {held}", walked.len()), began);
        }
        assert!(page.iter().all(|position| position.tokens > Wad::ZERO));
        walked.extend(page.into_iter().map(|it| (it.market_id, it.outcome_index)));
        if is_last {
            break;
        }
    }
    assert_eq!(walked.len() as u64, held);
    assert!(held > u64::from(ROWS) && walked.is_sorted_by(|a, b| a < b));
}

/// The parts of a sitemap contain every page once, sorted by id.
pub async fn places(store: &Store) {
    let counted: Result<_, StoreError> = store.read((), |tx, ()| Box::pin(count_places(tx))).await;
    let (threads, markets) = counted.unwrap();
    assert_eq!((threads, markets), (u64::from(size().markets.div_ceil(50)), u64::from(size().markets)));
    for (kind, number) in [(SitemapPageKind::Thread, threads), (SitemapPageKind::Market, markets)] {
        let most = u32::try_from(number.div_ceil(3)).unwrap();
        let mut walked = Vec::new();
        for part in 0..4 {
            let began = Instant::now();
            let read: Result<_, StoreError> =
                store.read((), move |tx, ()| Box::pin(list_places(tx, kind, most, part))).await;
            told(store, &format!("part {part} of the pages of each {kind:?}"), began);
            walked.extend(read.unwrap());
        }
        assert_eq!(walked.len() as u64, number);
        assert!(walked.is_sorted_by(|a, b| a.id < b.id) && walked.iter().all(|it| it.changed_at > EPOCH));
    }
}

const EPOCH: Timestamp = Timestamp::from_s(0);
