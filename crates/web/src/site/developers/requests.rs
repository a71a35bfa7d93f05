//! Rejected requests and writes of a person's keys.

use app::keys::list_own;
use app::request_log::{Found, MOST_PER_MINUTE, search};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ids::KeyId;
use domain::page::PagePosition;
use http_kit::{Pagination, Paging, Parameters, Problem, Query, RawQuery, Shared};
use presentation::amounts;
use presentation::links::percent_encode;
use store::keys::Key;
use store::requests::{LoggedRequest, RequestFilter};

use crate::site::session::to_sign_in;
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The longest id that is looked up.
const MOST_TEXT: usize = 100;

/// The parameters `key`, `q` and `cursor`.
#[derive(Debug)]
pub struct RequestsQuery {
    key: Option<KeyId>,
    text: String,
    paging: Paging,
}

impl Parameters for RequestsQuery {
    const NAMES: &'static [&'static str] = &["key", "q", "cursor"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        // A form sends the empty value for all keys.
        let key = given.with("key", "must be the id of a key", |text| {
            if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
        });
        let short = |text: &str| (text.len() <= MOST_TEXT).then(|| text.trim().to_owned());
        let text = given.with("q", "must be an id of at most 100 characters", short);
        Some(Self { key: key.flatten(), text: text.unwrap_or_default(), paging: given.paging()? })
    }
}

/// A request in the list.
#[derive(Debug)]
struct RequestLine {
    id: String,
    at: String,
    route: String,
    status: u16,
    badge: &'static str,
    code: Option<&'static str>,
    latency_ms: u32,
    /// The key's id and name. The name is empty if the key is revoked.
    key: (String, String),
    trade: Option<String>,
}

impl RequestLine {
    fn new(request: &LoggedRequest, keys: &[Key]) -> Self {
        let key = keys.iter().find(|key| key.id == request.key_id);
        Self {
            id: request.id.clone(),
            at: amounts::minute(request.at),
            route: request.route.clone(),
            status: request.status,
            badge: if request.status < 400 { "is-good" } else { "is-bad" },
            code: request.code.map(domain::ErrorCode::as_str),
            latency_ms: request.latency_ms,
            key: (request.key_id.to_string(), key.map(|key| key.name.clone()).unwrap_or_default()),
            trade: request.trade_id.map(|id| id.to_string()),
        }
    }
}

/// A key that the list can be restricted to.
#[derive(Debug)]
struct KeyChoice {
    id: String,
    name: String,
    is_chosen: bool,
}

#[derive(Debug, Template)]
#[template(path = "site/developers/requests.html")]
struct RequestsPage {
    shell: Shell,
    keys: Vec<KeyChoice>,
    text: String,
    is_filtered: bool,
    requests: Vec<RequestLine>,
    /// The trade and the event with the id that was looked up.
    trade: Option<String>,
    event: Option<String>,
    most_per_minute: u32,
    next: Option<String>,
}

/// `GET /developers/requests`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    Query(query): Query<RequestsQuery>,
) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let keys = list_own(&app.ctx, person.user_id()).await?;
    let RequestsQuery { key, text, paging } = query;
    let (found, pagination) = if text.is_empty() {
        let filter = key.map_or(RequestFilter::All, RequestFilter::OfKey);
        let input = (person.user_id(), filter, paging.page.clone());
        let rows = app.ctx.store.read(input, |tx, (user_id, filter, page)| {
            Box::pin(store::requests::list(tx, *user_id, filter, page))
        });
        let rows = rows.await.map_err(app::AppError::from)?;
        let (requests, pagination) = paging.cut(&app.cursor, rows, |request| PagePosition {
            created_at: request.at,
            id: request.id.clone(),
        });
        (Found { requests, trade: None, event: None }, pagination)
    } else {
        let found = search(&app.ctx, person.user_id(), &text).await?;
        (found, Pagination { cursor: None, has_more: false, limit: paging.page.limit })
    };
    let choice = |of: &Key| KeyChoice {
        id: of.id.to_string(),
        name: of.name.clone(),
        is_chosen: Some(of.id) == key && text.is_empty(),
    };
    let chosen = key.map(|key| format!("key={key}&")).unwrap_or_default();
    let page = RequestsPage {
        shell: Shell::new(&reader, Section::None, "Requests"),
        requests: found.requests.iter().map(|request| RequestLine::new(request, &keys)).collect(),
        keys: keys.iter().map(choice).collect(),
        is_filtered: key.is_some() || !text.is_empty(),
        text,
        trade: found.trade.map(|id| id.to_string()),
        event: found.event.map(|id| id.to_string()),
        most_per_minute: MOST_PER_MINUTE,
        next: pagination
            .cursor
            .map(|cursor| format!("/developers/requests?{chosen}cursor={}", percent_encode(&cursor))),
    };
    Ok(answer(render(&page)?))
}
