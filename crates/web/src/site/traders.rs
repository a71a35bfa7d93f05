//! The page of an account: what is public on chain.

use std::collections::{BTreeSet, HashMap};

use alloy_primitives::Address;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ids::MarketId;
use domain::{Usdc, UsdcDelta};
use http_kit::{NamedQuery, NoParameters, PathId, Problem, Shared};
use presentation::{amounts, find_market};
use store::StoreError;
use store::movements::{Movement, MovementKind};
use store::public::{OpenPosition, list_movements, list_open_positions};

use super::market::value_at;
use super::shell::{Reader, Section, Shell, cached};

const MOST_POSITIONS: u32 = 50;
const MOST_MOVEMENTS: u32 = 25;

/// An account in a table.
#[derive(Debug, Clone)]
pub struct Account {
    pub address: String,
    pub short: String,
    /// The name that the account's user chose to show.
    pub name: Option<String>,
    /// The first two digits, and the color behind them.
    pub initials: String,
    pub colour: u8,
}

impl Account {
    pub fn new(address: Address) -> Self {
        let hex = format!("{address:#x}");
        Self {
            short: amounts::short_address(address),
            name: None,
            initials: hex.get(2..4).unwrap_or_default().to_owned(),
            colour: address.as_slice().first().copied().unwrap_or_default() % 8,
            address: hex,
        }
    }
}

/// A trade, or another movement, in a table.
#[derive(Debug)]
pub struct TradeLine {
    pub account: Account,
    pub verb: &'static str,
    pub outcome: String,
    pub amount: String,
    pub tokens: String,
    pub price: Option<String>,
    pub at: String,
    pub at_iso: String,
    pub tx_hash: String,
}

impl TradeLine {
    pub fn new(movement: &Movement, outcome: &str) -> Self {
        Self {
            account: Account::new(movement.account),
            verb: verb_of(movement.kind),
            outcome: outcome.to_owned(),
            amount: amounts::dollars(movement.usdc),
            tokens: amounts::tokens(movement.tokens),
            price: match movement.kind {
                MovementKind::Transfer => None,
                _ => amounts::price(movement.usdc, movement.tokens),
            },
            at: amounts::minute(movement.created_at),
            at_iso: movement.created_at.to_string(),
            tx_hash: format!("{:#x}", movement.tx_hash),
        }
    }
}

/// Returns the verb of a movement's kind.
pub const fn verb_of(kind: MovementKind) -> &'static str {
    match kind {
        MovementKind::Buy => "Bought",
        MovementKind::Sell => "Sold",
        MovementKind::Redeem => "Claimed",
        MovementKind::Transfer => "Sent",
        MovementKind::Split => "Split into",
        MovementKind::Merge => "Merged",
    }
}

/// The questions and outcomes of the markets that a page names, by id.
#[derive(Debug, Default)]
pub struct Names(HashMap<MarketId, (String, Vec<String>)>);

impl Names {
    /// Reads the markets with these ids. Missing ones are left out.
    pub async fn read(app: &Shared, ids: impl Iterator<Item = MarketId>) -> Result<Self, Problem> {
        let mut names = HashMap::new();
        for id in ids.collect::<BTreeSet<_>>() {
            if let Some((market, outcomes)) = find_market(&app.ctx, &id.to_string()).await? {
                names.insert(id, (market.question, outcomes.into_iter().map(|it| it.label).collect()));
            }
        }
        Ok(Self(names))
    }

    pub fn question(&self, id: MarketId) -> String {
        self.0.get(&id).map(|(question, _)| question.clone()).unwrap_or_default()
    }

    /// Returns the outcome's label. If the market is missing, its number.
    pub fn outcome(&self, id: MarketId, index: u8) -> String {
        let label = self.0.get(&id).and_then(|(_, labels)| labels.get(usize::from(index)).cloned());
        label.unwrap_or_else(|| format!("Outcome {index}"))
    }
}

/// A movement with its market.
#[derive(Debug)]
struct HistoryLine {
    market_id: String,
    question: String,
    line: TradeLine,
}

/// An open position.
#[derive(Debug)]
struct PositionLine {
    market_id: String,
    question: String,
    outcome: String,
    tokens: String,
    value: String,
    profit: String,
    is_loss: bool,
}

#[derive(Debug, Template)]
#[template(path = "site/trader.html")]
struct TraderPage {
    shell: Shell,
    account: Account,
    profit: String,
    is_loss: bool,
    realized: String,
    volume: String,
    trades: String,
    positions: Vec<PositionLine>,
    history: Vec<HistoryLine>,
}

/// `GET /traders/{address}`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    PathId(address): PathId,
    query: NamedQuery<NoParameters>,
) -> Result<Response, Problem> {
    let address: Address = address.parse().map_err(|_| Problem::not_found())?;
    let read = async || {
        let (leader, unrealized) = app::leaderboard::of_account(&app.ctx.for_public(), address)
            .await?
            .ok_or_else(Problem::not_found)?;
        let (positions, movements) = read_rows(&app, address).await?;
        let ids = positions.iter().map(|it| it.market_id).chain(movements.iter().map(|it| it.market_id));
        let names = Names::read(&app, ids).await?;
        let total = UsdcDelta(leader.realized_pnl.0.saturating_add(unrealized.0));
        let name = app::leaderboard::name_of(&app.ctx.for_public(), address).await?;
        let account = Account { name, ..Account::new(address) };
        let title = account.name.clone().unwrap_or_else(|| format!("Trader {}", account.short));
        let page = TraderPage {
            shell: Shell::new(&reader, Section::Leaderboard, title),
            account,
            profit: amounts::profit(total),
            is_loss: total.0 < 0,
            realized: amounts::profit(leader.realized_pnl),
            volume: amounts::dollars(leader.volume),
            trades: amounts::grouped(leader.trade_count),
            positions: positions
                .iter()
                .filter(|position| position.is_open())
                .map(|position| PositionLine::new(position, &names))
                .collect(),
            history: movements.iter().map(|movement| HistoryLine::new(movement, &names)).collect(),
        };
        Ok((page, None))
    };
    cached(&app, &reader, &query.name, read).await
}

async fn read_rows(app: &Shared, address: Address) -> Result<(Vec<OpenPosition>, Vec<Movement>), StoreError> {
    app.ctx
        .store
        .read(address, |tx, address| {
            Box::pin(async move {
                let positions = list_open_positions(tx, *address, None, MOST_POSITIONS).await?;
                Ok((positions, list_movements(tx, *address, MOST_MOVEMENTS).await?))
            })
        })
        .await
}

impl HistoryLine {
    fn new(movement: &Movement, names: &Names) -> Self {
        let id = movement.market_id;
        Self {
            market_id: id.to_string(),
            question: names.question(id),
            line: TradeLine::new(movement, &names.outcome(id, movement.outcome_index)),
        }
    }
}

impl PositionLine {
    fn new(position: &OpenPosition, names: &Names) -> Self {
        let value = value_of(position);
        let profit = UsdcDelta::between(value, position.cost_basis);
        Self {
            market_id: position.market_id.to_string(),
            question: names.question(position.market_id),
            outcome: names.outcome(position.market_id, position.outcome_index),
            tokens: amounts::tokens(position.tokens),
            value: amounts::dollars(value),
            profit: amounts::profit(profit),
            is_loss: profit.0 < 0,
        }
    }
}

/// Returns the position's value at its current price or payout, rounded down.
fn value_of(position: &OpenPosition) -> Usdc {
    let payouts = position.payouts.as_deref().unwrap_or_default();
    let price = match payouts.get(usize::from(position.outcome_index)) {
        Some(payout) => presentation::numbers::price(*payout),
        None => presentation::numbers::probability(position.quantity, position.cost, position.liquidity),
    };
    value_at(position.tokens, presentation::market_face::ppm(price))
}
