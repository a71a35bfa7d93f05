//! The span of an attempt, in the trace of what its event reports.

use domain::ids::{CorrelationId, KeyId};
use serde::Deserialize;
use store::webhooks::{Attempt, Job};

use crate::Ctx;
use crate::traces::TracedAttempt;

/// The member of an event's body that names its trace.
#[derive(Debug, Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    data: Data<'b>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'b> {
    correlation_id: Option<&'b str>,
}

/// Records an attempt, if traces are recorded and its event has one.
pub(super) fn record(ctx: &Ctx, key_id: KeyId, job: &Job, attempt: &Attempt) {
    let traces = &ctx.process.traces;
    if !traces.is_on() {
        return;
    }
    let Some(correlation_id) = correlation_id_of(&job.body) else { return };
    traces.webhook_attempt(&TracedAttempt {
        correlation_id,
        trade_id: job.trade_id,
        key_id,
        event_id: job.event_id,
        event: job.kind.as_str(),
        number: job.attempts + 1,
        at: attempt.at,
        duration_ms: attempt.duration_ms,
        status: attempt.status_code,
        failure: attempt.failure_code.as_deref(),
    });
}

/// Returns the trace that an event's body names. The queue's row does not have it.
fn correlation_id_of(body: &str) -> Option<CorrelationId> {
    let body: Body<'_> = serde_json::from_str(body).ok()?;
    body.data.correlation_id?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_an_event_is_read_from_its_body() {
        let of = |data: &str| correlation_id_of(&format!("{{\"id\":\"x\",\"data\":{data}}}"));
        assert_eq!(of(r#"{"correlationId":"000000000000000000000000000000ab"}"#), Some(CorrelationId(0xab)));
        for other in [r#"{"correlationId":"ab"}"#, r#"{"correlationId":null}"#, "{}", "1"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
