//! A person's trades, claims, deposits and withdrawals, and the export of trades.

use app::AppError;
use app::portfolio::{export_trades, list_deposits};
use app::sessions::Person;
use askama::Template;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use domain::ids::MarketId;
use domain::page::{Page, PagePosition};
use domain::redemption::RedemptionStatus;
use domain::trade::State as TradeState;
use domain::{Timestamp, Usdc};
use http_kit::{Paging, Parameters, PathId, Problem, Query, RawQuery, Shared};
use presentation::{amounts, find_market};
use serde::Serialize;
use store::StoreError;
use store::cash_flows::CashFlow;
use store::redemptions::{Redemption, RedemptionListFilter};
use store::trades::{Trade, TradeListFilter};

use super::markets::ListLink;
use super::session::{Member, problem_of, to_sign_in};
use super::shell::{Reader, Section, Shell, answer, render};
use super::trading::{badge_of, heading_of};

/// The maximum number of trades in an export. A year with more is exported by the API.
const MAX_EXPORTED: usize = 10_000;

/// The kinds of the list. The first one is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Trades,
    Claims,
    Cash,
}

const KINDS: &[(&str, Kind)] = &[("trades", Kind::Trades), ("claims", Kind::Claims), ("cash", Kind::Cash)];

impl Kind {
    const fn path(self) -> &'static str {
        match self {
            Self::Trades => "/portfolio/history",
            Self::Claims => "/portfolio/history?kind=claims",
            Self::Cash => "/portfolio/history?kind=cash",
        }
    }

    /// Returns the path of the page behind a cursor. Its other parameters must be those of the first page.
    fn path_of_page(self, cursor: &str) -> String {
        let separator = if self == Self::Trades { '?' } else { '&' };
        format!("{}{separator}cursor={cursor}", self.path())
    }
}

/// The parameters `kind` and `cursor`.
#[derive(Debug)]
pub struct HistoryQuery {
    kind: Kind,
    paging: Paging,
}

impl Parameters for HistoryQuery {
    const NAMES: &'static [&'static str] = &["kind", "cursor"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        let kind = given.word("kind", KINDS);
        Some(Self { kind: kind?, paging: given.paging()? })
    }
}

/// A trade, a claim, a deposit or a withdrawal.
#[derive(Debug)]
struct HistoryLine {
    /// The receipt. Claims have none.
    url: Option<String>,
    what: String,
    /// The other side of a deposit or withdrawal.
    counterparty: Option<String>,
    market_id: String,
    question: String,
    badge: (&'static str, &'static str),
    fee: String,
    at: String,
}

#[derive(Debug, Template)]
#[template(path = "site/history.html")]
struct HistoryPage {
    shell: Shell,
    kinds: Vec<ListLink>,
    is_cash: bool,
    lines: Vec<HistoryLine>,
    next: Option<String>,
    /// The years that can be exported, the newest one first.
    years: Vec<i64>,
    needs_step_up: bool,
}

/// `GET /portfolio/history`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    Query(query): Query<HistoryQuery>,
) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let HistoryQuery { kind, paging } = query;
    let (lines, cursor) = match kind {
        Kind::Trades => {
            let rows = list_trades(&app, person, &paging.page).await?;
            let (rows, pagination) = paging.cut(&app.cursor, rows, trade_position);
            let mut lines = Vec::with_capacity(rows.len());
            for trade in &rows {
                lines.push(line_of_trade(&app, trade).await?);
            }
            (lines, pagination.cursor)
        }
        Kind::Claims => {
            let rows = list_claims(&app, person, &paging.page).await?;
            let (rows, pagination) = paging.cut(&app.cursor, rows, |claim| PagePosition {
                created_at: claim.created_at,
                id: claim.id.to_string(),
            });
            let mut lines = Vec::with_capacity(rows.len());
            for claim in &rows {
                lines.push(line_of_claim(&app, claim).await?);
            }
            (lines, pagination.cursor)
        }
        Kind::Cash => {
            let rows = list_deposits(&app.ctx, person.user_id(), &paging.page).await?;
            let (rows, pagination) = paging
                .cut(&app.cursor, rows, |flow| PagePosition { created_at: flow.at, id: flow.id.clone() });
            (rows.iter().map(line_of_flow).collect(), pagination.cursor)
        }
    };
    let link = |label: &str, of: Kind| ListLink {
        label: label.to_owned(),
        url: of.path().to_owned(),
        is_current: of == kind,
    };
    let now = app.ctx.now();
    let page = HistoryPage {
        shell: Shell::new(&reader, Section::None, "History"),
        kinds: vec![link("Trades", Kind::Trades), link("Claims", Kind::Claims), link("Cash", Kind::Cash)],
        is_cash: kind == Kind::Cash,
        lines,
        next: cursor.map(|cursor| kind.path_of_page(&cursor)),
        years: (year_of(person.user().created_at)..=year_of(now)).rev().collect(),
        needs_step_up: person.require_step_up(now).is_err(),
    };
    Ok(answer(render(&page)?))
}

async fn list_trades(app: &Shared, person: &Person, page: &Page) -> Result<Vec<Trade>, AppError> {
    let input = (person.user_id(), TradeListFilter::default(), page.clone());
    let listed: Result<_, StoreError> = app
        .ctx
        .store
        .read(input, |tx, (user_id, filter, page)| Box::pin(store::trades::list(tx, *user_id, filter, page)))
        .await;
    Ok(listed?.into_iter().map(|(trade, _)| trade).collect())
}

async fn list_claims(app: &Shared, person: &Person, page: &Page) -> Result<Vec<Redemption>, AppError> {
    let input = (person.user_id(), RedemptionListFilter::default(), page.clone());
    let listed = app.ctx.store.read(input, |tx, (user_id, filter, page)| {
        Box::pin(store::redemptions::list(tx, *user_id, filter, page))
    });
    Ok(listed.await?)
}

fn trade_position(trade: &Trade) -> PagePosition {
    PagePosition { created_at: trade.created_at, id: trade.id.to_string() }
}

/// Returns the question of a market, and the label of an outcome.
async fn names_of(app: &Shared, market_id: MarketId, outcome: u8) -> Result<(String, String), AppError> {
    let Some((market, outcomes)) = find_market(&app.ctx, &market_id.to_string()).await? else {
        return Ok(Default::default());
    };
    let label = outcomes.get(usize::from(outcome)).map(|outcome| outcome.label.clone());
    Ok((market.question, label.unwrap_or_default()))
}

async fn line_of_trade(app: &Shared, trade: &Trade) -> Result<HistoryLine, AppError> {
    let (question, outcome) = names_of(app, trade.market_id, trade.outcome_index).await?;
    let fee = match &trade.state {
        TradeState::Completed(settlement) => amounts::dollars(settlement.fee),
        _ => String::new(),
    };
    Ok(HistoryLine {
        url: Some(format!("/trades/{}", trade.id)),
        what: heading_of(trade, &outcome),
        counterparty: None,
        market_id: trade.market_id.to_string(),
        question,
        badge: badge_of(trade.state.status()),
        fee,
        at: amounts::minute(trade.created_at),
    })
}

async fn line_of_claim(app: &Shared, claim: &Redemption) -> Result<HistoryLine, AppError> {
    let (question, outcome) = names_of(app, claim.market_id, claim.outcome_index).await?;
    let (badge, amount) = match claim.status {
        RedemptionStatus::Completed => (("is-good", "Paid"), claim.paid),
        RedemptionStatus::Failed => (("is-bad", "Not paid"), claim.expected),
        RedemptionStatus::Pending | RedemptionStatus::Executing => {
            (("is-wait", "Being paid"), claim.expected)
        }
    };
    Ok(HistoryLine {
        url: None,
        what: format!("Claimed {} for {outcome}", amounts::dollars(amount)),
        counterparty: None,
        market_id: claim.market_id.to_string(),
        question,
        badge,
        fee: String::new(),
        at: amounts::minute(claim.created_at),
    })
}

fn line_of_flow(flow: &CashFlow) -> HistoryLine {
    let amount = amounts::dollars(Usdc::from_atomic(flow.usdc.0.unsigned_abs()));
    let (what, badge) = match flow.usdc.0 < 0 {
        true => (format!("Withdrew {amount}"), ("is-good", "Sent")),
        false => (format!("Deposited {amount}"), ("is-good", "Received")),
    };
    HistoryLine {
        url: Some(format!("/tx/{:#x}", flow.tx_hash)),
        what,
        // Test money comes from nobody.
        counterparty: Some(flow.counterparty).filter(|it| !it.is_zero()).map(|it| it.to_string()),
        market_id: String::new(),
        question: String::new(),
        badge,
        fee: String::new(),
        at: amounts::minute(flow.at),
    }
}

/// The year of an instant, in UTC.
fn year_of(at: Timestamp) -> i64 {
    at.to_string().get(..4).and_then(|year| year.parse().ok()).unwrap_or_default()
}

/// A trade of the export. Amounts are exact.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportedTrade {
    id: String,
    created_at: String,
    status: String,
    side: String,
    market_id: String,
    question: String,
    outcome: String,
    /// Empty if the trade was not executed.
    usdc: String,
    tokens: String,
    fee_usdc: String,
    tx_hash: String,
}

const COLUMNS: [&str; 11] = [
    "id",
    "createdAt",
    "status",
    "side",
    "marketId",
    "question",
    "outcome",
    "usdc",
    "tokens",
    "feeUsdc",
    "txHash",
];

impl ExportedTrade {
    fn new(trade: &Trade, question: String, outcome: String) -> Self {
        let settlement = match &trade.state {
            TradeState::Completed(settlement) => Some(settlement),
            _ => None,
        };
        let text = |value: Option<String>| value.unwrap_or_default();
        Self {
            id: trade.id.to_string(),
            created_at: trade.created_at.to_string(),
            status: trade.state.status().to_string(),
            side: trade.side.to_string(),
            market_id: trade.market_id.to_string(),
            question,
            outcome,
            usdc: text(settlement.map(|it| it.usdc.to_decimal())),
            tokens: text(settlement.map(|it| presentation::numbers::decimal(&it.tokens.0, 18))),
            fee_usdc: text(settlement.map(|it| it.fee.to_decimal())),
            tx_hash: text(settlement.map(|it| format!("{:#x}", it.tx_hash))),
        }
    }

    fn cells(&self) -> [&str; 11] {
        [
            &self.id,
            &self.created_at,
            &self.status,
            &self.side,
            &self.market_id,
            &self.question,
            &self.outcome,
            &self.usdc,
            &self.tokens,
            &self.fee_usdc,
            &self.tx_hash,
        ]
    }
}

/// `GET /portfolio/history/{year}.csv` and `.json`: the trades of a year. Needs a fresh confirmation,
/// because the file says everything about a person's money.
pub async fn export(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(file): PathId,
) -> Result<Response, Problem> {
    let (year, format) = file.split_once('.').ok_or_else(Problem::not_found)?;
    let bounds = bounds_of(year).ok_or_else(Problem::not_found)?;
    let trades = export_trades(&app.ctx, &person, bounds, MAX_EXPORTED).await;
    let mut exported = Vec::new();
    for trade in trades.map_err(|error| problem_of(error, app.ctx.now()))? {
        let (question, outcome) = names_of(&app, trade.market_id, trade.outcome_index).await?;
        exported.push(ExportedTrade::new(&trade, question, outcome));
    }
    let (kind, body) = match format {
        "csv" => ("text/csv; charset=utf-8", csv_of(&exported)),
        "json" => ("application/json", serde_json::to_string(&exported).map_err(AppError::internal)?),
        _ => return Err(Problem::not_found()),
    };
    let name = format!("attachment; filename=\"foretell-{year}.{format}\"");
    let headers: [(HeaderName, HeaderValue); 3] = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_DISPOSITION, HeaderValue::try_from(name).map_err(AppError::internal)?),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}

/// Returns the first instants of a year and of the next one.
fn bounds_of(year: &str) -> Option<(Timestamp, Timestamp)> {
    let year: u16 = year.parse().ok().filter(|year| (2000..=9998).contains(year))?;
    let first = |year: u16| format!("{year}-01-01T00:00:00.000Z").parse().ok();
    Some((first(year)?, first(year + 1)?))
}

/// Returns rows as CSV (RFC 4180). A text that a spreadsheet would run as a formula gets an apostrophe.
fn csv_of(rows: &[ExportedTrade]) -> String {
    let mut csv = COLUMNS.join(",") + "\r\n";
    for row in rows {
        let cells = row.cells().map(|cell| {
            let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            format!("\"{}{}\"", if is_formula { "'" } else { "" }, cell.replace('"', "\"\""))
        });
        csv.push_str(&cells.join(","));
        csv.push_str("\r\n");
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(question: &str) -> ExportedTrade {
        let text = String::new;
        ExportedTrade {
            id: text(),
            created_at: text(),
            status: text(),
            side: text(),
            market_id: text(),
            question: question.to_owned(),
            outcome: text(),
            usdc: "12.5".to_owned(),
            tokens: text(),
            fee_usdc: text(),
            tx_hash: text(),
        }
    }

    #[test]
    fn texts_of_a_csv_file_are_quoted_and_never_formulas() {
        let csv = csv_of(&[row("Will \"it\", rain?"), row("=HYPERLINK(\"x\")")]);
        let lines: Vec<&str> = csv.split("\r\n").collect();
        assert_eq!(lines[0].split(',').count(), COLUMNS.len());
        assert!(lines[1].contains("\"Will \"\"it\"\", rain?\"") && lines[1].contains("\"12.5\""), "{csv}");
        assert!(lines[2].contains("\"'=HYPERLINK(\"\"x\"\")\""), "{csv}");
    }

    #[test]
    fn a_year_has_bounds_in_utc() {
        let (begin, end) = bounds_of("2026").unwrap();
        assert_eq!((year_of(begin), year_of(end), year_of(end.plus_ms(-1))), (2026, 2027, 2026));
        assert!(["", "26", "20261", "x", "-2026"].iter().all(|year| bounds_of(year).is_none()));
    }
}
