//! Kill switches, webhooks that wait, and quarantined markets.

use app::kill_switches::TRADING;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http_kit::{Problem, Shared};
use presentation::amounts;
use store::kill_switches::KillSwitch;
use store::operations::{WaitingWebhooks, list_waiting_webhooks};
use store::quarantine::Quarantine;

use super::overview::age;
use super::{Admin, Area};
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The maximum number of rows. These lists have no pages: longer ones are an outage.
const MOST: u32 = 200;

/// A switch that was ever set.
#[derive(Debug)]
struct SwitchLine {
    name: String,
    is_off: bool,
    since: String,
    by: String,
    reason: String,
}

impl SwitchLine {
    fn new(switch: KillSwitch) -> Self {
        Self {
            is_off: switch.thrown_at.is_some(),
            since: amounts::minute(switch.thrown_at.unwrap_or(switch.changed_at)),
            name: switch.name,
            by: switch.changed_by,
            reason: switch.reason.unwrap_or_default(),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/admin/switches.html")]
struct SwitchesPage {
    shell: Shell,
    area: Area,
    is_halted: bool,
    switches: Vec<SwitchLine>,
    routes: Vec<String>,
}

/// `GET /admin/switches`.
pub async fn switches(State(app): State<Shared>, _: Admin, reader: Reader) -> Result<Response, Problem> {
    let listed = app.ctx.store.read((), |tx, ()| Box::pin(store::kill_switches::list(tx))).await?;
    let page = SwitchesPage {
        shell: Shell::new(&reader, Section::None, "Kill switches"),
        area: Area::Switches,
        is_halted: listed.iter().any(|switch| switch.name == TRADING && switch.thrown_at.is_some()),
        switches: listed.into_iter().map(SwitchLine::new).collect(),
        routes: app.switchable_routes.clone(),
    };
    Ok(answer(render(&page)?))
}

/// A key whose webhooks wait.
#[derive(Debug)]
struct ReceiverLine {
    key: String,
    user: String,
    name: String,
    url: String,
    waiting: u64,
    attempts: u64,
    oldest: String,
    next: String,
    is_open: bool,
}

impl ReceiverLine {
    fn new(row: WaitingWebhooks, now: domain::Timestamp) -> Self {
        Self {
            key: row.key_id.to_string(),
            user: row.user_id.to_string(),
            name: row.key_name,
            url: row.url.unwrap_or_default(),
            waiting: row.waiting,
            attempts: row.attempts,
            oldest: row.oldest.map(|at| age(at, now)).unwrap_or_default(),
            next: match row.due_at {
                Some(at) if at > now => amounts::minute(at),
                _ => "now".to_owned(),
            },
            is_open: !row.breaker.is_empty(),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/admin/webhooks.html")]
struct WebhooksPage {
    shell: Shell,
    area: Area,
    receivers: Vec<ReceiverLine>,
    /// The list is cut.
    has_more: bool,
}

/// `GET /admin/webhooks`.
pub async fn webhooks(State(app): State<Shared>, _: Admin, reader: Reader) -> Result<Response, Problem> {
    let rows = app.ctx.store.read((), |tx, ()| Box::pin(list_waiting_webhooks(tx, MOST))).await?;
    let now = app.ctx.now();
    let page = WebhooksPage {
        shell: Shell::new(&reader, Section::None, "Waiting webhooks"),
        area: Area::Webhooks,
        has_more: rows.len() >= MOST as usize,
        receivers: rows.into_iter().map(|row| ReceiverLine::new(row, now)).collect(),
    };
    Ok(answer(render(&page)?))
}

/// A quarantined market.
#[derive(Debug)]
struct QuarantineLine {
    market: String,
    since: String,
    block: u64,
    reason: String,
    detail: String,
    attempts: u32,
    next: String,
}

impl QuarantineLine {
    fn new(row: Quarantine) -> Self {
        Self {
            market: row.market_id.to_string(),
            since: amounts::minute(row.quarantined_at),
            block: row.block_number,
            reason: row.reason,
            detail: row.detail,
            attempts: row.repair_attempts,
            next: amounts::minute(row.next_repair_at),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/admin/quarantine.html")]
struct QuarantinePage {
    shell: Shell,
    area: Area,
    markets: Vec<QuarantineLine>,
}

/// `GET /admin/quarantine`.
pub async fn quarantine(State(app): State<Shared>, _: Admin, reader: Reader) -> Result<Response, Problem> {
    let rows = app.ctx.store.read((), |tx, ()| Box::pin(store::quarantine::list(tx, MOST))).await?;
    let page = QuarantinePage {
        shell: Shell::new(&reader, Section::None, "Quarantine"),
        area: Area::Quarantine,
        markets: rows.into_iter().map(QuarantineLine::new).collect(),
    };
    Ok(answer(render(&page)?))
}
