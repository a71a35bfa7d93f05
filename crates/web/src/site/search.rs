//! Search over markets and threads.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http_kit::{NamedQuery, Parameters, Problem, RawQuery, Shared};
use presentation::links::percent_encode;
use presentation::{MarketTile, next_end};
use store::StoreError;
use store::listed::list_categories;
use store::public::{
    Listed, ListedMarket, MarketFilter, MarketSort, Order, PageRange, ThreadFilter, ThreadRow, ThreadSort,
    list_markets, list_threads,
};

use super::home::{MOST_CATEGORIES, ThreadLine, pairs};
use super::markets::search_text;
use super::shell::{Reader, Section, Shell, cached};

const MOST_MARKETS: u32 = 12;
const MOST_THREADS: u32 = 6;

/// The parameter `q`.
#[derive(Debug)]
pub struct SearchQuery(Option<String>);

impl Parameters for SearchQuery {
    const NAMES: &'static [&'static str] = &["q"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self(search_text(asked)))
    }
}

#[derive(Debug, Template)]
#[template(path = "site/search.html")]
struct SearchPage {
    shell: Shell,
    text: String,
    tiles: Vec<MarketTile>,
    total: u64,
    all: String,
    threads: Vec<ThreadLine>,
    categories: Vec<String>,
}

/// The lists of one search.
type Found = (Listed<ListedMarket>, Listed<ThreadRow>, Vec<String>);

/// `GET /search`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    query: NamedQuery<SearchQuery>,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: SearchQuery(text), name } = query;
    let read = async || {
        let (markets, threads, categories) = find(&app, text.clone()).await?;
        let now = app.ctx.now();
        let until = next_end(markets.items.iter().map(|listed| &listed.market), now);
        let text = text.unwrap_or_default();
        let mut shell = Shell::new(&reader, Section::None, format!("Search: {text}"));
        shell.search.clone_from(&text);
        let page = SearchPage {
            shell,
            all: format!("/markets?status=any&q={}", percent_encode(&text)),
            text,
            total: markets.total,
            tiles: MarketTile::read_all(&app.ctx, &pairs(markets.items), now).await?,
            threads: threads.items.into_iter().map(ThreadLine::new).collect(),
            categories,
        };
        Ok((page, until))
    };
    cached(&app, &reader, &name, read).await
}

/// Searches markets and threads. Without a text, nothing is found.
async fn find(app: &Shared, text: Option<String>) -> Result<Found, StoreError> {
    app.ctx
        .store
        .for_public()
        .read(text, |tx, text| {
            Box::pin(async move {
                let categories = list_categories(tx, MOST_CATEGORIES).await?;
                let Some(text) = text else {
                    let (markets, threads) =
                        (Listed { items: vec![], total: 0 }, Listed { items: vec![], total: 0 });
                    return Ok((markets, threads, categories));
                };
                let extent = |limit| PageRange { limit, offset: 0 };
                let markets = MarketFilter { text: Some(text.clone()), ..MarketFilter::default() };
                let threads = ThreadFilter { text: Some(text.clone()), ..ThreadFilter::default() };
                let (by, order) = (MarketSort::TotalVolume, Order::Desc);
                Ok((
                    list_markets(tx, &markets, by, order, extent(MOST_MARKETS)).await?,
                    list_threads(tx, &threads, ThreadSort::TotalVolume, order, extent(MOST_THREADS)).await?,
                    categories,
                ))
            })
        })
        .await
}
