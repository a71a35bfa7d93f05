//! The notifications of a person: the events of the feed, in words.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::event::EventKind;
use domain::ids::{MarketId, TradeId};
use domain::{Timestamp, Usdc};
use http_kit::{Parameters, Problem, Query, RawQuery, Shared, number};
use presentation::amounts;
use serde::Deserialize;
use store::StoreError;
use store::events::FeedEvent;

use super::session::to_sign_in;
use super::shell::{Reader, Section, Shell, answer, render};
use super::traders::Names;

/// The number of notifications on a page.
const SHOWN: usize = 25;

/// The events that a person wants to know of.
const KINDS: [EventKind; 7] = [
    EventKind::ConfirmationRequired,
    EventKind::TradeCompleted,
    EventKind::TradeFailed,
    EventKind::TradeRejected,
    EventKind::RedemptionCompleted,
    EventKind::MarketResolved,
    EventKind::PositionClaimable,
];

/// The parameter `before`: the number of the last event of the page before.
#[derive(Debug)]
pub struct NotificationsQuery {
    before: Option<u64>,
}

impl Parameters for NotificationsQuery {
    const NAMES: &'static [&'static str] = &["before"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self { before: given.with("before", "must be a number", number) })
    }
}

/// The members of an event that its notification names.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    created_at: String,
    data: Data,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    trade_id: Option<TradeId>,
    market_id: Option<MarketId>,
    outcome_index: Option<u8>,
    side: Option<String>,
    /// The payment of a claim, in atomic units of USDC, or the amount of a trade.
    amount: Option<String>,
    error_message: Option<String>,
}

#[derive(Debug)]
struct NotificationLine {
    what: String,
    badge: (&'static str, &'static str),
    url: String,
    question: String,
    at: String,
    at_iso: String,
}

#[derive(Debug, Template)]
#[template(path = "site/notifications.html")]
struct NotificationsPage {
    shell: Shell,
    lines: Vec<NotificationLine>,
    next: Option<String>,
}

/// `GET /notifications`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    Query(query): Query<NotificationsQuery>,
) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let input = (person.user_id(), query.before.unwrap_or(u64::MAX));
    let read: Result<Vec<FeedEvent>, StoreError> = app
        .ctx
        .store
        .read(input, |tx, (user_id, before)| {
            Box::pin(store::events::list_newest(tx, *user_id, *before, &KINDS, SHOWN as u32 + 1))
        })
        .await;
    let mut events = read?;
    let has_more = events.len() > SHOWN;
    events.truncate(SHOWN);
    // An event that a later version wrote may have other members: it is left out.
    let parsed: Vec<(&FeedEvent, Body)> =
        events.iter().filter_map(|event| Some((event, serde_json::from_str(&event.body).ok()?))).collect();
    let names = Names::read(&app, parsed.iter().filter_map(|(_, body)| body.data.market_id)).await?;
    let lines = parsed.iter().map(|(event, body)| NotificationLine::new(event.kind, body, &names));
    let page = NotificationsPage {
        shell: Shell::new(&reader, Section::None, "Notifications"),
        lines: lines.collect(),
        next: events.last().filter(|_| has_more).map(|last| format!("/notifications?before={}", last.seq)),
    };
    Ok(answer(render(&page)?))
}

impl NotificationLine {
    fn new(kind: EventKind, body: &Body, names: &Names) -> Self {
        let Data { trade_id, market_id, outcome_index, side, amount, error_message } = &body.data;
        let outcome =
            || market_id.zip(*outcome_index).map_or_else(String::new, |(id, index)| names.outcome(id, index));
        let is_sale = side.as_deref() == Some("sell");
        let trade = || format!("{} of {}", if is_sale { "sale" } else { "purchase" }, outcome());
        let why = error_message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
        let paid = amount.as_deref().and_then(|amount| amount.parse().ok()).map(Usdc::from_atomic);
        let (what, badge) = match kind {
            EventKind::ConfirmationRequired => (format!("Confirm your {}", trade()), ("is-wait", "Waiting")),
            EventKind::TradeCompleted => (format!("Your {} is done", trade()), ("is-good", "Done")),
            EventKind::TradeRejected | EventKind::TradeFailed => {
                (format!("Your {} was not executed{why}", trade()), ("is-bad", "Not executed"))
            }
            EventKind::RedemptionCompleted => {
                let paid = amounts::dollars(paid.unwrap_or_default());
                (format!("{paid} was paid for {}", outcome()), ("is-good", "Paid"))
            }
            EventKind::PositionClaimable => {
                (format!("You can claim your winnings for {}", outcome()), ("is-info", "To claim"))
            }
            _ => ("A market in which you hold tokens has ended".to_owned(), ("is-info", "Ended")),
        };
        let url = match (trade_id, kind, market_id) {
            (Some(id), ..) => format!("/trades/{id}"),
            (None, EventKind::PositionClaimable, _) => "/portfolio".to_owned(),
            (None, _, Some(id)) => format!("/markets/{id}"),
            (None, _, None) => "/portfolio".to_owned(),
        };
        let at = body.created_at.parse::<Timestamp>().map(amounts::minute).unwrap_or_default();
        let question = market_id.map_or_else(String::new, |id| names.question(id));
        Self { what, badge, url, question, at, at_iso: body.created_at.clone() }
    }
}
