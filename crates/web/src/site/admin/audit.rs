//! The audit log.

use app::audit_log::{self, Entry, Filter};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use http_kit::{Parameters, Problem, Query, RawQuery, Shared, number};
use presentation::amounts;
use presentation::links::percent_encode;

use super::{Admin, Area, ROWS};
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The filters of the log.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    actor: Option<String>,
    action: Option<String>,
    subject: Option<String>,
    since: Option<Timestamp>,
    /// Entries with lower numbers.
    before: Option<i64>,
}

impl Parameters for AuditQuery {
    const NAMES: &'static [&'static str] = &["actor", "action", "subject", "since", "before"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self {
            actor: asked.text("actor"),
            action: asked.text("action"),
            subject: asked.text("subject"),
            since: asked.with("since", "must be a date such as 2027-01-31", day_of),
            before: asked.with("before", "must be the number of an entry", number),
        })
    }
}

/// Reads a day, or an instant.
fn day_of(text: &str) -> Option<Timestamp> {
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).ok()
}

/// An entry of the log.
#[derive(Debug)]
struct EntryLine {
    seq: i64,
    at: String,
    at_iso: String,
    actor: String,
    via: String,
    host: String,
    action: String,
    subject: String,
    phase: String,
    before: Option<String>,
    after: Option<String>,
}

impl EntryLine {
    fn new(entry: Entry) -> Self {
        Self {
            seq: entry.seq,
            at: amounts::minute(entry.at),
            at_iso: entry.at.to_string(),
            actor: entry.actor,
            via: entry.os_user,
            host: entry.host,
            action: entry.action,
            subject: entry.subject,
            phase: entry.phase,
            before: entry.before,
            after: entry.after,
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/admin/audit.html")]
struct AuditPage {
    shell: Shell,
    area: Area,
    actor: String,
    action: String,
    subject: String,
    since: String,
    entries: Vec<EntryLine>,
    next: Option<String>,
}

/// `GET /admin/audit`.
pub async fn page(
    State(app): State<Shared>,
    _: Admin,
    reader: Reader,
    Query(asked): Query<AuditQuery>,
) -> Result<Response, Problem> {
    let filter = Filter {
        since: asked.since,
        actor: asked.actor.clone(),
        action: asked.action.clone(),
        subject: asked.subject.clone(),
    };
    let before = asked.before.unwrap_or(i64::MAX);
    let mut entries = audit_log::list(&app.ctx, filter, before, ROWS + 1).await?;
    let has_more = entries.len() > ROWS as usize;
    entries.truncate(ROWS as usize);
    let next = entries.last().filter(|_| has_more).map(|last| asked.address(last.seq));
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let page = AuditPage {
        shell: Shell::new(&reader, Section::None, "Audit log"),
        area: Area::Audit,
        actor: text(&asked.actor),
        action: text(&asked.action),
        subject: text(&asked.subject),
        since: asked.since.map(day).unwrap_or_default(),
        entries: entries.into_iter().map(EntryLine::new).collect(),
        next,
    };
    Ok(answer(render(&page)?))
}

/// Formats a day as the filter accepts it.
fn day(at: Timestamp) -> String {
    at.to_string().get(..10).unwrap_or_default().to_owned()
}

impl AuditQuery {
    /// Returns the address of the page before this entry.
    fn address(&self, before: i64) -> String {
        let pairs = [
            ("actor", self.actor.clone()),
            ("action", self.action.clone()),
            ("subject", self.subject.clone()),
            ("since", self.since.map(day)),
        ];
        let sent = pairs.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
        let sent: String = sent.map(|(name, value)| format!("{name}={}&", percent_encode(&value))).collect();
        format!("/admin/audit?{sent}before={before}")
    }
}
