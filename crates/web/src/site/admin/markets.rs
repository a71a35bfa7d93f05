//! The list of markets, and the form of a new one.

use app::AppError;
use app::admin::{AdminRequest, MarketTerms, NewTerms, find, request_of};
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::Usdc;
use domain::ids::{AdminActId, MarketId};
use domain::market::MarketStatus;
use domain::page::{Page, PagePosition};
use domain::time::DAY_MS;
use http_kit::{Parameters, Problem, Query, RawQuery, Shared, Surface};
use presentation::links::percent_encode;
use presentation::{amounts, numbers};
use store::markets::{Market, MarketListFilter, Outcome};

use super::acts::field_errors;
use super::{Admin, Area, ROWS};
use crate::site::form_body::FormFields;
use crate::site::shell::{Reader, Section, Shell, answer, render};

const STATUSES: [(&str, &str); 5] = [
    ("", "Any status"),
    ("OPEN", "Open"),
    ("FROZEN", "Frozen"),
    ("RESOLVED", "Resolved"),
    ("CANCELLED", "Cancelled"),
];

/// The filters of the list.
#[derive(Debug, Clone, Default)]
pub struct MarketsQuery {
    status: Option<MarketStatus>,
    text: Option<String>,
    category: Option<String>,
    /// The last market of the previous page.
    after: Option<MarketId>,
}

impl Parameters for MarketsQuery {
    const NAMES: &'static [&'static str] = &["status", "q", "category", "after"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self {
            status: asked.parsed("status", "must be a status of markets"),
            text: asked.text("q"),
            category: asked.text("category"),
            after: asked.parsed("after", "must be the id of a market"),
        })
    }
}

/// A market of the list.
#[derive(Debug)]
struct MarketLine {
    id: String,
    question: String,
    status: (&'static str, &'static str),
    category: String,
    volume: String,
    ends: String,
    is_quarantined: bool,
}

/// Returns a status in words, with its class.
pub const fn status_of(status: MarketStatus) -> (&'static str, &'static str) {
    match status {
        MarketStatus::Open => ("Open", "is-open"),
        MarketStatus::Frozen => ("Frozen", "is-wait"),
        MarketStatus::Resolved => ("Resolved", "is-good"),
        MarketStatus::Cancelled => ("Cancelled", "is-bad"),
    }
}

impl MarketLine {
    fn new((market, _): &(Market, Vec<Outcome>)) -> Self {
        Self {
            id: market.id.to_string(),
            question: market.question.clone(),
            status: status_of(market.status),
            category: market.category.clone().unwrap_or_default(),
            volume: amounts::dollars(market.volume),
            ends: amounts::minute(market.end_time),
            is_quarantined: market.quarantined_at.is_some(),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/admin/markets.html")]
struct MarketsPage {
    shell: Shell,
    area: Area,
    statuses: [(&'static str, &'static str); 5],
    status: &'static str,
    text: String,
    category: String,
    lines: Vec<MarketLine>,
    next: Option<String>,
}

/// `GET /admin/markets`.
pub async fn list(
    State(app): State<Shared>,
    _: Admin,
    reader: Reader,
    Query(asked): Query<MarketsQuery>,
) -> Result<Response, Problem> {
    let input = asked.clone();
    let rows = app.ctx.store.read(input, |tx, asked| {
        Box::pin(async move {
            let filter = MarketListFilter {
                statuses: asked.status.into_iter().collect(),
                category: asked.category.clone(),
                text: asked.text.clone(),
                ..MarketListFilter::default()
            };
            let last = match asked.after {
                Some(id) => store::markets::find(tx, id).await?,
                None => None,
            };
            let after =
                last.map(|last| PagePosition { created_at: last.created_at, id: last.id.to_string() });
            store::markets::list(tx, &filter, &Page { limit: ROWS, after }).await
        })
    });
    let mut rows = rows.await?;
    let has_more = rows.len() > ROWS as usize;
    rows.truncate(ROWS as usize);
    let next = rows.last().filter(|_| has_more).map(|(last, _)| asked.address(last.id));
    let page = MarketsPage {
        shell: Shell::new(&reader, Section::None, "Markets"),
        area: Area::Markets,
        statuses: STATUSES,
        status: asked.status.map(MarketStatus::as_str).unwrap_or_default(),
        text: asked.text.unwrap_or_default(),
        category: asked.category.unwrap_or_default(),
        lines: rows.iter().map(MarketLine::new).collect(),
        next,
    };
    Ok(answer(render(&page)?))
}

impl MarketsQuery {
    /// Returns the address of the page after this market.
    fn address(&self, after: MarketId) -> String {
        let pairs = [
            ("status", self.status.map(|status| status.as_str().to_owned())),
            ("q", self.text.clone()),
            ("category", self.category.clone()),
        ];
        let sent = pairs.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
        let sent: String = sent.map(|(name, value)| format!("{name}={}&", percent_encode(&value))).collect();
        format!("/admin/markets?{sent}after={after}")
    }
}

/// The values of the form, as texts.
#[derive(Debug, Default)]
struct NewForm {
    /// The id of an interrupted creation.
    id: String,
    question: String,
    outcomes: String,
    odds: String,
    liquidity: String,
    fee: String,
    end_time: String,
    description: String,
    category: String,
    tags: String,
    source_url: String,
    thread: String,
    chapter: String,
    featured: String,
}

#[derive(Debug, Template)]
#[template(path = "site/admin/new_market.html")]
struct NewMarketPage {
    shell: Shell,
    area: Area,
    form: NewForm,
    /// The reason why the last attempt cannot be prepared, with its fields.
    error: Option<(String, Vec<(String, String)>)>,
}

/// The act whose values the form begins with.
#[derive(Debug)]
pub struct NewQuery {
    from: Option<AdminActId>,
}

impl Parameters for NewQuery {
    const NAMES: &'static [&'static str] = &["from"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self { from: asked.parsed("from", "must be the id of an act") })
    }
}

/// `GET /admin/markets/new`.
pub async fn new(
    State(app): State<Shared>,
    Admin(person): Admin,
    reader: Reader,
    Query(asked): Query<NewQuery>,
) -> Result<Response, Problem> {
    let form = match asked.from {
        None => NewForm {
            outcomes: "Yes\nNo".to_owned(),
            liquidity: "1000".to_owned(),
            fee: "1".to_owned(),
            end_time: minute_field(app.ctx.now().plus_ms(30 * DAY_MS)),
            ..NewForm::default()
        },
        Some(id) => match request_of(&find(&app.ctx, &person, id).await?)? {
            AdminRequest::CreateMarket(terms) => NewForm::of(terms),
            _ => return Err(Problem::not_found()),
        },
    };
    Ok(answer(render(&NewMarketPage::new(&reader, form, None))?))
}

/// Returns the value of a field for a date and a time.
fn minute_field(at: domain::Timestamp) -> String {
    at.to_string().get(..16).unwrap_or_default().to_owned()
}

/// Formats a share as the form accepts it.
fn percentage(share: alloy_primitives::U256) -> String {
    numbers::decimal(&share, 16)
}

impl NewMarketPage {
    fn new(reader: &Reader, form: NewForm, error: Option<&AppError>) -> Self {
        Self {
            shell: Shell::new(reader, Section::None, "Create a market"),
            area: Area::Markets,
            form,
            error: error.map(|error| (error.detail.clone(), field_errors(error))),
        }
    }
}

impl NewForm {
    fn of(MarketTerms { id, terms }: MarketTerms) -> Self {
        let NewTerms {
            question,
            outcomes,
            opening_odds,
            liquidity_usdc_atomic,
            fee_bps,
            end_time,
            description,
            category,
            tags,
            source_url,
            thread_id,
            chapter_id,
            featured_position,
        } = terms;
        let odds: Vec<String> = opening_odds.into_iter().map(percentage).collect();
        Self {
            id: id.to_string(),
            question,
            outcomes: outcomes.join("\n"),
            odds: odds.join(", "),
            liquidity: Usdc::from_atomic(liquidity_usdc_atomic).to_decimal(),
            fee: numbers::decimal(&fee_bps, 2),
            end_time: end_time.to_string(),
            description: description.unwrap_or_default(),
            category: category.unwrap_or_default(),
            tags: tags.join(", "),
            source_url: source_url.unwrap_or_default(),
            thread: thread_id.map(|id| id.to_string()).unwrap_or_default(),
            chapter: chapter_id.unwrap_or_default(),
            featured: featured_position.map(|place| place.to_string()).unwrap_or_default(),
        }
    }

    fn sent(fields: &FormFields) -> Self {
        let get = |name| fields.get(name).to_owned();
        Self {
            id: get("market"),
            question: get("question"),
            outcomes: get("outcomes"),
            odds: get("odds"),
            liquidity: get("liquidity"),
            fee: get("fee"),
            end_time: get("end_time"),
            description: get("description"),
            category: get("category"),
            tags: get("tags"),
            source_url: get("source_url"),
            thread: get("thread"),
            chapter: get("chapter"),
            featured: get("featured"),
        }
    }
}

/// Returns the form again with its values and its errors. `None` for other forms.
pub fn again(reader: &Reader, fields: &FormFields, error: &AppError) -> Option<Result<Response, Problem>> {
    (fields.get("act") == "create-market").then(|| {
        let page = NewMarketPage::new(reader, NewForm::sent(fields), Some(error));
        let status = Problem::new(error.code).status(Surface::Web);
        Ok((status, answer(render(&page)?)).into_response())
    })
}

#[cfg(test)]
mod tests {
    use domain::Wad;

    use super::*;

    #[test]
    fn the_form_shows_exact_percentages() {
        assert_eq!(percentage(Wad::ONE.0 / alloy_primitives::U256::from(8)), "12.5");
        assert_eq!(percentage(Wad::ONE.0), "100");
    }
}
