//! Counts requests for their API key, including requests with a rejected key, and logs rejected
//! requests and writes.

use std::sync::OnceLock;

use app::caller::Caller;
use app::{AppError, Ctx};
use axum::response::Response;
use domain::Timestamp;
use domain::ids::{KeyId, TradeId};
use store::requests::LoggedRequest;

use super::{Problem, RequestId, Route, Surface};

/// Marks a response that does not count as use of its key: reading the usage must not change it.
#[derive(Debug, Clone, Copy)]
pub struct NotCounted;

/// Marks the response of a request that created or confirmed this trade, for the log of requests.
#[derive(Debug, Clone, Copy)]
pub struct TradeWritten(pub TradeId);

/// Marks the response of a POST request that wrote nothing: a success is not logged.
#[derive(Debug, Clone, Copy)]
pub struct OnlyRead;

/// Marks the response of a request that must be logged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Logged {
    key_id: KeyId,
    route: &'static Route,
    latency_ms: u64,
}

/// Measures one request. It lives outside the deadline, so that a request that times out is counted
/// too.
pub(super) struct Meter {
    began: Timestamp,
    key_id: OnceLock<KeyId>,
}

impl Meter {
    pub(super) fn start(ctx: &Ctx) -> Self {
        Self { began: ctx.now(), key_id: OnceLock::new() }
    }

    /// Records the key that authentication found. Requests with an unknown key are not counted.
    pub(super) fn identify(&self, found: Result<Caller, AppError>) -> Result<Caller, AppError> {
        let key_id = match &found {
            Ok(caller) => Some(caller.key.id),
            Err(refusal) => refusal.key_id,
        };
        if let Some(key_id) = key_id {
            // `OnceLock`, because the meter is shared with the checks by reference.
            self.key_id.get_or_init(|| key_id);
        }
        found
    }

    /// Counts the request with the outcome of its response. Marks the response if it must be logged.
    pub(super) fn record(self, ctx: &Ctx, route: &'static Route, response: &mut Response) {
        let Some(key_id) = self.key_id.into_inner() else { return };
        if response.extensions().get::<NotCounted>().is_some() {
            return;
        }
        let now = ctx.now();
        let code = response.extensions().get::<Problem>().map(Problem::code);
        // The system clock may have been set back since the start.
        let latency_ms = u64::try_from(now.since_ms(self.began)).unwrap_or(0);
        ctx.process.usage.record(key_id, code, latency_ms, now);
        let is_write = route.is_write() && response.extensions().get::<OnlyRead>().is_none();
        if code.is_some() || is_write {
            response.extensions_mut().insert(Logged { key_id, route, latency_ms });
        }
    }
}

impl Logged {
    /// Logs the request with its final response.
    pub(super) fn note(self, ctx: &Ctx, surface: Surface, id: RequestId, response: &Response) {
        let problem = response.extensions().get::<Problem>();
        let status = problem.map_or_else(|| response.status(), |problem| problem.status(surface));
        ctx.process.requests.add(LoggedRequest {
            id: id.to_string(),
            key_id: self.key_id,
            at: ctx.now(),
            route: self.route.name(),
            status: status.as_u16(),
            code: problem.map(Problem::code),
            latency_ms: u32::try_from(self.latency_ms).unwrap_or(u32::MAX),
            trade_id: response.extensions().get::<TradeWritten>().map(|written| written.0),
        });
    }
}
