//! The webhook events of a person's keys, and every attempt to deliver them.

use std::str::FromStr;

use app::people;
use app::sessions::Person;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::EventId;
use domain::page::PagePosition;
use domain::time::DAY_MS;
use domain::webhook::{DeliveryStatus, MAX_REPLAYS};
use http_kit::{Paging, Parameters, PathId, Problem, Query, RawQuery, Shared};
use presentation::amounts;
use store::webhooks::{Attempt, Delivery, DeliveryFilter};

use super::allowed;
use crate::site::session::{Member, see, to_sign_in};
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The parameters `status`, `kind`, `from` and `to` (days, both inclusive), and `cursor`.
#[derive(Debug)]
pub struct EventsQuery {
    filter: DeliveryFilter,
    paging: Paging,
}

impl Parameters for EventsQuery {
    const NAMES: &'static [&'static str] = &["status", "kind", "from", "to", "cursor"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        let filter = DeliveryFilter {
            status: choice(given, "status", "must be pending, delivered, failed, retrying or none"),
            kind: choice(given, "kind", "must be a kind of event"),
            from: day(given, "from"),
            to: day(given, "to").map(|day| day.plus_ms(DAY_MS)),
        };
        Some(Self { filter, paging: given.paging()? })
    }
}

/// Reads a parameter of a form, which sends the empty value for no choice.
fn optional<T>(
    given: &mut RawQuery<'_>,
    name: &str,
    detail: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let parse = |text: &str| if text.is_empty() { Some(None) } else { parse(text).map(Some) };
    given.with(name, detail, parse).flatten()
}

fn choice<T: FromStr>(given: &mut RawQuery<'_>, name: &str, detail: &str) -> Option<T> {
    optional(given, name, detail, |text| text.parse().ok())
}

/// Reads the start of a day in UTC.
fn day(given: &mut RawQuery<'_>, name: &str) -> Option<Timestamp> {
    let midnight = |text: &str| format!("{text}T00:00:00Z").parse().ok();
    optional(given, name, "must be a day such as 2026-12-16", midnight)
}

/// Returns the days of a filter as a form writes them.
fn days_of(filter: &DeliveryFilter) -> [String; 2] {
    let last = filter.to.map(|to| to.plus_ms(-DAY_MS));
    [filter.from, last].map(|at| at.map_or_else(String::new, |at| at.to_string().chars().take(10).collect()))
}

/// An event in the list.
#[derive(Debug)]
struct EventLine {
    id: String,
    kind: String,
    at: String,
    status: (&'static str, &'static str),
    attempts: String,
    /// The last response or failure.
    last: String,
}

impl EventLine {
    fn new(event: &Delivery) -> Self {
        let failure = event.last_failure_code.clone();
        let code = event.last_status_code.map(|code| code.to_string());
        Self {
            id: event.event_id.to_string(),
            kind: event.kind.to_string(),
            at: amounts::minute(event.emitted_at),
            status: words_of(event.status),
            attempts: amounts::count(u64::from(event.attempts), "attempt"),
            last: failure.or(code).unwrap_or_default(),
        }
    }
}

const fn words_of(status: DeliveryStatus) -> (&'static str, &'static str) {
    match status {
        DeliveryStatus::Pending => ("Waiting", "is-wait"),
        DeliveryStatus::Retrying => ("Retrying", "is-wait"),
        DeliveryStatus::Delivered => ("Delivered", "is-good"),
        DeliveryStatus::Failed => ("Failed", "is-bad"),
        DeliveryStatus::None => ("Not sent", "is-wait"),
    }
}

#[derive(Debug, Template)]
#[template(path = "site/developers/webhooks.html")]
struct EventsPage {
    shell: Shell,
    /// The values and labels of the form's choices.
    statuses: Vec<Choice>,
    kinds: Vec<Choice>,
    from: String,
    to: String,
    events: Vec<EventLine>,
    next: Option<String>,
}

/// A choice of the form.
#[derive(Debug)]
struct Choice {
    value: &'static str,
    label: &'static str,
    is_chosen: bool,
}

impl Choice {
    fn new<T: PartialEq>(value: &'static str, label: &'static str, of: T, chosen: Option<T>) -> Self {
        Self { value, label, is_chosen: chosen.is_some_and(|chosen| chosen == of) }
    }
}

/// `GET /developers/webhooks`.
pub async fn list(
    State(app): State<Shared>,
    reader: Reader,
    Query(query): Query<EventsQuery>,
) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let EventsQuery { filter, paging } = query;
    let input = (person.user_id(), filter, paging.page.clone());
    let rows = app.ctx.store.read(input, |tx, (user_id, filter, page)| {
        Box::pin(store::webhooks::list(tx, *user_id, filter, page))
    });
    let rows = rows.await.map_err(app::AppError::from)?;
    let (rows, pagination) = paging.cut(&app.cursor, rows, |event| PagePosition {
        created_at: event.emitted_at,
        id: event.event_id.to_string(),
    });
    let [from, to] = days_of(&filter);
    let next = pagination.cursor.map(|cursor| {
        let status = filter.status.map_or("", DeliveryStatus::as_str);
        let kind = filter.kind.map_or("", EventKind::as_str);
        format!("/developers/webhooks?status={status}&kind={kind}&from={from}&to={to}&cursor={cursor}")
    });
    let statuses = DeliveryStatus::ALL.iter();
    let statuses = statuses.map(|it| Choice::new(it.as_str(), words_of(*it).0, *it, filter.status));
    let kinds = EventKind::ALL.iter().map(|it| Choice::new(it.as_str(), it.as_str(), *it, filter.kind));
    let page = EventsPage {
        shell: Shell::new(&reader, Section::None, "Webhook events"),
        statuses: statuses.collect(),
        kinds: kinds.collect(),
        from,
        to,
        events: rows.iter().map(EventLine::new).collect(),
        next,
    };
    Ok(answer(render(&page)?))
}

/// An attempt to deliver an event.
#[derive(Debug)]
struct AttemptLine {
    at: String,
    is_delivered: bool,
    /// The status of the response, or the failure.
    result: String,
    duration_ms: u32,
    message: Option<String>,
    answer: Option<String>,
    replay: u32,
}

impl AttemptLine {
    fn new(attempt: &Attempt) -> Self {
        let code = attempt.status_code.map(|code| format!("HTTP {code}"));
        Self {
            at: amounts::minute(attempt.at),
            is_delivered: attempt.failure_code.is_none(),
            result: code.or_else(|| attempt.failure_code.clone()).unwrap_or_default(),
            duration_ms: attempt.duration_ms,
            message: attempt.error_message.clone(),
            answer: attempt.answer_head.clone().filter(|text| !text.is_empty()),
            replay: attempt.replay,
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/developers/webhook.html")]
struct EventPage {
    shell: Shell,
    event: EventLine,
    key_id: String,
    trade: Option<String>,
    attempts: Vec<AttemptLine>,
    payload: String,
    replays: u32,
    most_replays: u32,
}

/// `GET /developers/webhooks/{id}`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let (event, body, attempts) = find(&app, person, &id).await?;
    let page = EventPage {
        shell: Shell::new(&reader, Section::None, "Webhook event"),
        key_id: event.key_id.to_string(),
        trade: event.trade_id.map(|id| id.to_string()),
        attempts: attempts.iter().map(AttemptLine::new).collect(),
        payload: readable(&body),
        replays: event.replays,
        most_replays: MAX_REPLAYS,
        event: EventLine::new(&event),
    };
    Ok(answer(render(&page)?))
}

async fn find(app: &Shared, person: &Person, id: &str) -> Result<(Delivery, String, Vec<Attempt>), Problem> {
    let id: EventId = id.parse().map_err(|_| Problem::not_found())?;
    let read = app.ctx.store.read((person.user_id(), id), |tx, (user_id, id)| {
        Box::pin(async move {
            let Some(event) = store::webhooks::find(tx, *user_id, *id).await? else { return Ok(None) };
            let body = store::webhooks::find_body(tx, *user_id, *id).await?;
            Ok::<_, store::StoreError>(Some((event, body, store::webhooks::list_attempts(tx, *id).await?)))
        })
    });
    let (event, body, attempts) = read.await.map_err(app::AppError::from)?.ok_or_else(Problem::not_found)?;
    Ok((event, body.unwrap_or_default(), attempts))
}

/// Returns JSON with line breaks.
fn readable(body: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(body);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| body.to_owned())
}

/// `POST /developers/webhooks/{id}/redeliver`.
pub async fn redeliver_event(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id: EventId = id.parse().map_err(|_| Problem::not_found())?;
    allowed(&app, people::redeliver_event(&app.ctx, &person, id).await)?;
    see(&format!("/developers/webhooks/{id}"))
}
