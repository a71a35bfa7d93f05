//! The status of the service, for people.

use app::health::{Check, Degradation, readiness};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http_kit::{NamedQuery, NoParameters, Problem, Shared};
use presentation::amounts;

use super::shell::{Reader, Section, Shell, cached};

/// A part of the service and its state.
#[derive(Debug)]
struct PartLine {
    name: &'static str,
    is_ok: bool,
    latency_ms: i64,
}

#[derive(Debug, Template)]
#[template(path = "site/status.html")]
struct StatusPage {
    shell: Shell,
    is_ready: bool,
    parts: Vec<PartLine>,
    problems: Vec<Degradation>,
    version: &'static str,
    at: String,
    at_iso: String,
}

/// `GET /status`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    query: NamedQuery<NoParameters>,
) -> Result<Response, Problem> {
    let read = async || {
        let state = readiness(&app.ctx).await;
        let is_ready = state.is_ready();
        let now = app.ctx.now();
        let part = |name, check: Check| PartLine { name, is_ok: check.ok, latency_ms: check.latency_ms };
        let page = StatusPage {
            shell: Shell::new(&reader, Section::None, "Status"),
            is_ready,
            parts: vec![
                part("Database", state.database),
                part("Chain", state.chain),
                part("Rate limits", state.rate_limiter),
                part("Webhooks", state.webhooks),
            ],
            problems: state.degraded,
            version: env!("CARGO_PKG_VERSION"),
            at: amounts::minute(now),
            at_iso: now.to_string(),
        };
        Ok((page, None))
    };
    cached(&app, &reader, &query.name, read).await
}
