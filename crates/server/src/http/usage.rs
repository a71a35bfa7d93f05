//! Counting a request for the key that it came with, also where that key was refused.

use std::sync::OnceLock;

use app::keys::Caller;
use app::{AppError, Ctx};
use axum::response::Response;
use domain::Timestamp;
use domain::ids::KeyId;

use super::Problem;

/// Marks an answer that is not counted as use of its key: reading the key's use must not change it.
#[derive(Debug, Clone, Copy)]
pub struct NotCounted;

/// What is to be counted of one request. It stands outside of what the deadline cuts off, so that a request that took too
/// long is counted like any other.
pub(super) struct Meter {
    began: Timestamp,
    key_id: OnceLock<KeyId>,
}

impl Meter {
    /// Begins to measure.
    pub(super) fn start(ctx: &Ctx) -> Self {
        Self { began: ctx.now(), key_id: OnceLock::new() }
    }

    /// Notes whose request it is, as authentication found it; a key that is not known here is nobody's.
    pub(super) fn identify(&self, found: Result<Caller, AppError>) -> Result<Caller, AppError> {
        let key_id = match &found {
            Ok(caller) => Some(caller.key.id),
            Err(refusal) => refusal.key_id,
        };
        if let Some(key_id) = key_id {
            self.key_id.get_or_init(|| key_id);
        }
        found
    }

    /// Counts the request as it was answered.
    pub(super) fn record(self, ctx: &Ctx, response: &Response) {
        let Some(key_id) = self.key_id.into_inner() else { return };
        if response.extensions().get::<NotCounted>().is_some() {
            return;
        }
        let now = ctx.now();
        let code = response.extensions().get::<Problem>().map(Problem::code);
        // The machine's clock may be set back meanwhile.
        let latency_ms = u64::try_from(now.since_ms(self.began)).unwrap_or(0);
        ctx.usage.record(key_id, code, latency_ms, now);
    }
}
