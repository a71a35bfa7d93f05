//! The home page.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use http_kit::{NamedQuery, NoParameters, Problem, Shared};
use presentation::{MarketTile, amounts, next_end};
use store::StoreError;
use store::listed::{ListStatus, list_categories};
use store::markets::{Market, Outcome};
use store::public::{
    ListedMarket, MarketFilter, MarketSort, Order, PageRange, RankingWindow, ThreadFilter, ThreadRow,
    ThreadSort, list_featured, list_markets, list_threads, list_trending,
};

use super::shell::{Reader, Section, Shell, cached};

const MOST_FEATURED: usize = 6;
const MOST_TRENDING: u32 = 9;
const MOST_LISTED: u32 = 5;
/// Number of shown categories.
pub const MOST_CATEGORIES: u32 = 12;

#[derive(Debug, Template)]
#[template(path = "site/home.html")]
struct HomePage {
    shell: Shell,
    categories: Vec<String>,
    featured: Vec<MarketTile>,
    trending: Vec<MarketTile>,
    ending: Vec<MarketTile>,
    threads: Vec<ThreadLine>,
}

/// A thread in a list.
#[derive(Debug)]
pub struct ThreadLine {
    pub id: String,
    pub title: String,
    pub category: Option<String>,
    pub markets: String,
    pub volume: String,
}

impl ThreadLine {
    pub fn new(row: ThreadRow) -> Self {
        let ThreadRow { thread, totals, .. } = row;
        Self {
            id: thread.id.to_string(),
            title: thread.title,
            category: thread.category,
            markets: amounts::count(totals.markets, "market"),
            volume: presentation::market_face::dollars(totals.volume),
        }
    }
}

/// The rows of the page, read in one snapshot of the database.
struct Rows {
    categories: Vec<String>,
    featured: Vec<ListedMarket>,
    trending: Vec<ListedMarket>,
    ending: Vec<ListedMarket>,
    threads: Vec<ThreadRow>,
}

/// `GET /`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    query: NamedQuery<NoParameters>,
) -> Result<Response, Problem> {
    let read = async || {
        let rows = read_rows(&app).await?;
        let now = app.ctx.now();
        let mut featured = pairs(rows.featured);
        featured.truncate(MOST_FEATURED);
        let is_new =
            |pair: &(Market, Vec<Outcome>)| featured.iter().all(|(market, _)| market.id != pair.0.id);
        let trending: Vec<_> = pairs(rows.trending).into_iter().filter(is_new).collect();
        let ending = pairs(rows.ending);
        let until = soonest_end(&[&featured, &trending, &ending], now);
        let shell = Shell::new(&reader, Section::None, "Prediction markets on real questions")
            .described(
                "Trade on the outcome of real events. Every rule, price and trade is on a public chain.",
            )
            .listed_at(&app, "/");
        let page = HomePage {
            shell,
            categories: rows.categories,
            featured: MarketTile::read_all(&app.ctx, &featured, now).await?,
            trending: MarketTile::read_all(&app.ctx, &trending, now).await?,
            ending: ending.iter().map(|(market, outcomes)| MarketTile::new(market, outcomes, now)).collect(),
            threads: rows.threads.into_iter().map(ThreadLine::new).collect(),
        };
        Ok((page, until))
    };
    cached(&app, &reader, &query.name, read).await
}

async fn read_rows(app: &Shared) -> Result<Rows, StoreError> {
    let now = app.ctx.now();
    app.ctx
        .store
        .read(now, |tx, now| {
            Box::pin(async move {
                let extent = PageRange { limit: MOST_LISTED, offset: 0 };
                let open = MarketFilter { statuses: vec![ListStatus::Open], ..MarketFilter::default() };
                let trending = list_trending(tx, RankingWindow::OneDay, None, MOST_TRENDING).await?;
                let active = ThreadFilter {
                    when: Some((store::public::ThreadWhen::Active, *now)),
                    ..ThreadFilter::default()
                };
                Ok(Rows {
                    categories: list_categories(tx, MOST_CATEGORIES).await?,
                    featured: list_featured(tx, *now).await?,
                    trending: trending.into_iter().map(|market| market.listed).collect(),
                    ending: list_markets(tx, &open, MarketSort::EndTime, Order::Asc, extent).await?.items,
                    threads: list_threads(tx, &active, ThreadSort::TotalVolume, Order::Desc, extent)
                        .await?
                        .items,
                })
            })
        })
        .await
}

/// Returns the markets with their outcomes.
pub fn pairs(listed: Vec<ListedMarket>) -> Vec<(Market, Vec<Outcome>)> {
    listed.into_iter().map(|listed| (listed.market, listed.outcomes)).collect()
}

/// Returns when the first of the open markets of these lists ends.
fn soonest_end(lists: &[&[(Market, Vec<Outcome>)]], now: Timestamp) -> Option<Timestamp> {
    next_end(lists.iter().flat_map(|list| list.iter()).map(|(market, _)| market), now)
}
