//! The list of markets, with the filters and sort keys of `GET /api/markets` in its address.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::search::{MAX_ASKED, words};
use http_kit::{NamedQuery, Parameters, Problem, RawQuery, Shared};
use presentation::links::percent_encode;
use presentation::{MarketTile, amounts, next_end};
use store::StoreError;
use store::listed::{ListStatus, list_categories};
use store::public::{Listed, ListedMarket, MarketFilter, MarketSort, Order, PageRange, list_markets};

use super::home::{MOST_CATEGORIES, pairs};
use super::shell::{Reader, Section, Shell, cached};

/// Maximum length of a search text, in bytes.
const MAX_TEXT: usize = 200;

/// The values of `status` with their labels. The first one is the default.
const STATUSES: &[(&str, &[ListStatus])] = &[
    ("active", &[ListStatus::Open]),
    ("paused", &[ListStatus::Frozen]),
    ("resolved", &[ListStatus::Resolved]),
    ("cancelled", &[ListStatus::Cancelled, ListStatus::Refunded]),
    ("any", &[]),
];
const STATUS_LABELS: [&str; 5] = ["Open", "Trading stopped", "Resolved", "Cancelled", "Any status"];

/// The values of `sort`. The first one is the default.
const SORTS: &[(&str, (MarketSort, Order))] = &[
    ("volume", (MarketSort::TotalVolume, Order::Desc)),
    ("newest", (MarketSort::CreatedAt, Order::Desc)),
    ("ending", (MarketSort::EndTime, Order::Asc)),
    ("likeliest", (MarketSort::CurrentProbability, Order::Desc)),
    ("title", (MarketSort::Title, Order::Asc)),
];
const SORT_LABELS: [&str; 5] = ["Most traded", "Newest", "Ending soon", "Likeliest", "Title"];

const VIEWS: &[(&str, bool)] = &[("cards", false), ("table", true)];

/// The parameters of the list.
#[derive(Debug, Clone)]
pub struct MarketsQuery {
    status: usize,
    sort: usize,
    is_table: bool,
    category: Option<String>,
    text: Option<String>,
    window: PageRange,
}

impl Parameters for MarketsQuery {
    const NAMES: &'static [&'static str] = &["status", "sort", "view", "category", "q", "offset"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let place = |words: usize| (0..words).collect::<Vec<_>>();
        let statuses: Vec<_> = STATUSES.iter().map(|(word, _)| *word).zip(place(STATUSES.len())).collect();
        let sorts: Vec<_> = SORTS.iter().map(|(word, _)| *word).zip(place(SORTS.len())).collect();
        let (status, sort) = (asked.word("status", &statuses), asked.word("sort", &sorts));
        let (is_table, category, text) =
            (asked.word("view", VIEWS), asked.text("category"), search_text(asked));
        let window = asked.extent();
        Some(Self { status: status?, sort: sort?, is_table: is_table?, category, text, window: window? })
    }
}

/// Reads the search text `q`. An empty field of a form means no search.
pub fn search_text(asked: &mut RawQuery<'_>) -> Option<String> {
    let detail = "must have at most 200 bytes and six different words";
    asked.with("q", detail, |text| {
        (text.len() <= MAX_TEXT && words(text).len() <= MAX_ASKED).then(|| text.to_owned())
    })
}

impl MarketsQuery {
    fn filter(&self) -> MarketFilter {
        let statuses = STATUSES.get(self.status).map(|(_, statuses)| statuses.to_vec()).unwrap_or_default();
        MarketFilter {
            statuses,
            category: self.category.clone(),
            text: self.text.clone(),
            ..MarketFilter::default()
        }
    }

    fn order(&self) -> (MarketSort, Order) {
        SORTS.get(self.sort).map(|(_, order)| *order).unwrap_or_default()
    }

    /// Returns the address of the same list with other values.
    fn address(&self, category: Option<&str>, is_table: bool, offset: u32) -> String {
        let word = |words: &[&'static str], place: usize| words.get(place).copied().unwrap_or_default();
        let statuses: Vec<_> = STATUSES.iter().map(|(word, _)| *word).collect();
        let sorts: Vec<_> = SORTS.iter().map(|(word, _)| *word).collect();
        let mut pairs = Vec::new();
        let mut add = |name: &str, value: &str| pairs.push(format!("{name}={}", percent_encode(value)));
        if let Some(category) = category {
            add("category", category);
        }
        if self.status > 0 {
            add("status", word(&statuses, self.status));
        }
        if self.sort > 0 {
            add("sort", word(&sorts, self.sort));
        }
        if let Some(text) = &self.text {
            add("q", text);
        }
        if is_table {
            add("view", "table");
        }
        if offset > 0 {
            add("offset", &offset.to_string());
        }
        if pairs.is_empty() { "/markets".to_owned() } else { format!("/markets?{}", pairs.join("&")) }
    }
}

/// A choice of a filter.
#[derive(Debug)]
pub struct Choice {
    pub value: &'static str,
    pub label: &'static str,
    pub is_chosen: bool,
}

fn choices<T>(words: &'static [(&'static str, T)], labels: &[&'static str], chosen: usize) -> Vec<Choice> {
    let pairs = words.iter().zip(labels).enumerate();
    pairs.map(|(place, ((value, _), label))| Choice { value, label, is_chosen: place == chosen }).collect()
}

/// A link to a part or another view of the list.
#[derive(Debug)]
pub struct ListLink {
    pub label: String,
    pub url: String,
    pub is_current: bool,
}

#[derive(Debug, Template)]
#[template(path = "site/markets.html")]
struct MarketsPage {
    shell: Shell,
    heading: String,
    categories: Vec<ListLink>,
    views: [ListLink; 2],
    statuses: Vec<Choice>,
    sorts: Vec<Choice>,
    category: Option<String>,
    is_table: bool,
    tiles: Vec<MarketTile>,
    total: String,
    previous: Option<String>,
    next: Option<String>,
}

/// `GET /markets`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    query: NamedQuery<MarketsQuery>,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: chosen, name } = query;
    let read = async || {
        let (listed, categories) = read_rows(&app, &chosen).await?;
        let now = app.ctx.now();
        let until = next_end(listed.items.iter().map(|listed| &listed.market), now);
        let total = listed.total;
        let tiles = MarketTile::read_all(&app.ctx, &pairs(listed.items), now).await?;
        Ok((MarketsPage::new(&app, &reader, &chosen, categories, tiles, total), until))
    };
    cached(&app, &reader, &name, read).await
}

async fn read_rows(
    app: &Shared,
    chosen: &MarketsQuery,
) -> Result<(Listed<ListedMarket>, Vec<String>), StoreError> {
    let input = (chosen.filter(), chosen.order(), chosen.window);
    app.ctx
        .store
        .read(input, |tx, (filter, (sort, order), window)| {
            Box::pin(async move {
                let listed = list_markets(tx, filter, *sort, *order, *window).await?;
                Ok((listed, list_categories(tx, MOST_CATEGORIES).await?))
            })
        })
        .await
}

impl MarketsPage {
    fn new(
        app: &Shared,
        reader: &Reader,
        chosen: &MarketsQuery,
        categories: Vec<String>,
        tiles: Vec<MarketTile>,
        total: u64,
    ) -> Self {
        let heading = match (&chosen.text, &chosen.category) {
            (Some(text), _) => format!("Markets about {text}"),
            (None, Some(category)) => format!("Markets: {category}"),
            (None, None) => "Markets".to_owned(),
        };
        let current = chosen.category.as_deref();
        let mut links = vec![ListLink {
            label: "All".to_owned(),
            url: chosen.address(None, chosen.is_table, 0),
            is_current: current.is_none(),
        }];
        links.extend(categories.into_iter().map(|category| ListLink {
            url: chosen.address(Some(&category), chosen.is_table, 0),
            is_current: current == Some(category.as_str()),
            label: category,
        }));
        let view = |label: &str, is_table| ListLink {
            label: label.to_owned(),
            url: chosen.address(current, is_table, 0),
            is_current: chosen.is_table == is_table,
        };
        let PageRange { limit, offset } = chosen.window;
        let at = |offset| chosen.address(current, chosen.is_table, offset);
        let path = if chosen.text.is_none() { at(0) } else { String::new() };
        let mut shell = Shell::new(reader, Section::Markets, heading.clone())
            .described("Open prediction markets with their prices, volumes and rules.");
        if !path.is_empty() {
            shell = shell.listed_at(app, &path);
        }
        shell.search = chosen.text.clone().unwrap_or_default();
        Self {
            shell,
            heading,
            categories: links,
            views: [view("Cards", false), view("Table", true)],
            statuses: choices(STATUSES, &STATUS_LABELS, chosen.status),
            sorts: choices(SORTS, &SORT_LABELS, chosen.sort),
            category: chosen.category.clone(),
            is_table: chosen.is_table,
            tiles,
            total: amounts::count(total, "market"),
            previous: (offset > 0).then(|| at(offset.saturating_sub(limit))),
            next: (u64::from(offset) + u64::from(limit) < total).then(|| at(offset.saturating_add(limit))),
        }
    }
}
