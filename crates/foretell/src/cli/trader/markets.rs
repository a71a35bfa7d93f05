//! `foretell markets` and `foretell quote`.

use clap::Args;
use foretell_client::types::{Market, MarketQuery, Side};
use foretell_client::{NewQuote, Pages, Usdc, Wad};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::TraderError;
use super::printer::{Column, Unit};
use super::{Session, TraderOptions};

const MARKETS: &[Column] = &[
    ("id", "id", Unit::Text),
    ("status", "status", Unit::Text),
    ("outcome 0", "outcomes.0.label", Unit::Text),
    ("price", "outcomes.0.price", Unit::Text),
    ("ends", "endTime", Unit::Text),
    ("question", "question", Unit::Text),
];

const OUTCOMES: &[Column] = &[
    ("outcome", "index", Unit::Text),
    ("label", "label", Unit::Text),
    ("price", "price", Unit::Text),
    ("tokens", "supply", Unit::Tokens),
];

const QUOTE: &[Column] = &[
    ("action", "action", Unit::Text),
    ("tokens", "tokensOut", Unit::Tokens),
    ("USDC paid", "usdcIn", Unit::Usdc),
    ("USDC received", "usdcOut", Unit::Usdc),
    ("fee", "fee", Unit::Usdc),
    ("price", "effectivePrice", Unit::Text),
    ("price before", "priceBefore", Unit::Text),
    ("price after", "priceAfter", Unit::Text),
];

#[derive(Debug, Args)]
pub struct MarketsArgs {
    /// The id of the market to show
    market: Option<String>,
    /// Only these statuses: OPEN, FROZEN, RESOLVED, CANCELLED
    #[arg(long, value_name = "STATUSES")]
    status: Option<String>,
    /// Only questions that contain this text
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only this category
    #[arg(long)]
    category: Option<String>,
    /// Maximum number of markets to list
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    pub options: TraderOptions,
}

#[derive(Debug, Args)]
pub struct QuoteArgs {
    /// The id of the market
    market: String,
    /// The outcome: its index, or its label
    outcome: String,
    /// USDC to spend, fee included; with --sell tokens to give
    amount: String,
    /// Quote a sell
    #[arg(long)]
    sell: bool,
    #[command(flatten)]
    pub options: TraderOptions,
}

pub async fn run(args: &MarketsArgs, session: &Session) -> Result<(), TraderError> {
    let markets = &session.client.markets;
    if let Some(id) = &args.market {
        let market = markets.get(id).await?;
        session.printer.note(&format!("{} ({}, ends {})", market.question, market.status, market.end_time));
        let outcomes = market.json()["outcomes"].as_array().cloned().unwrap_or_default();
        return match session.printer.is_json() {
            true => session.printer.print_one(market.json(), &[]),
            false => session.printer.print_list(&outcomes, OUTCOMES),
        };
    }
    let query = MarketQuery {
        status: args.status.clone(),
        text: args.search.clone(),
        category: args.category.clone(),
        ..MarketQuery::default()
    };
    let records =
        read_up_to(args.limit, |limit| markets.list(&MarketQuery { limit, ..query.clone() })).await?;
    session.printer.print_list(&records, MARKETS)
}

pub async fn quote(args: &QuoteArgs, session: &Session) -> Result<(), TraderError> {
    let market = session.client.markets.get(&args.market).await?;
    let outcome = find_outcome(&market, &args.outcome)?;
    let malformed = |error: foretell_client::AmountError| TraderError::Argument(error.to_string());
    let trade = if args.sell {
        NewQuote::sell(outcome, &Wad::parse(&args.amount).map_err(malformed)?)
    } else {
        NewQuote::buy(outcome, &Usdc::parse(&args.amount).map_err(malformed)?)
    };
    let quote = session.client.markets.quote(&market.id, &trade).await?;
    let is_shown = |column: &&Column| match quote.action {
        Side::Sell => column.1 != "usdcIn",
        _ => column.1 != "usdcOut",
    };
    session.printer.print_one(quote.json(), &QUOTE.iter().filter(is_shown).copied().collect::<Vec<_>>())
}

/// Returns the index of an outcome that is named by its index or its label.
pub fn find_outcome(market: &Market, name: &str) -> Result<u32, TraderError> {
    let label = |label: &str| label.to_lowercase() == name.to_lowercase();
    let named =
        market.outcomes.iter().find(|outcome| label(&outcome.label) || outcome.index.to_string() == name);
    named.map(|outcome| outcome.index).ok_or_else(|| {
        let outcomes = market.outcomes.iter().map(|outcome| format!("{} ({})", outcome.index, outcome.label));
        let outcomes = outcomes.collect::<Vec<_>>().join(", ");
        TraderError::Argument(format!("the market has no outcome {name}: it has {outcomes}"))
    })
}

/// The largest page of the API.
const MAX_PAGE: usize = 100;

/// Reads at most `count` records of a list. `list` gets the size of its pages.
pub async fn read_up_to<T: DeserializeOwned>(
    count: usize,
    list: impl Fn(Option<u32>) -> Pages<T>,
) -> Result<Vec<Value>, TraderError> {
    let mut pages = list(u32::try_from(count.clamp(1, MAX_PAGE)).ok());
    let mut records = Vec::new();
    while records.len() < count
        && let Some(page) = pages.next_page().await?
    {
        records.extend(page.json);
    }
    records.truncate(count);
    Ok(records)
}
