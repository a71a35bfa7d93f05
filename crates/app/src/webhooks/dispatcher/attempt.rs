//! One delivery attempt: signs, posts and evaluates it.

use bytes::Bytes;
use domain::Timestamp;
use domain::ids::KeyId;
use domain::trade::{Status, TraceEvent};
use domain::version::VERSIONS;
use domain::webhook::{
    AttemptOutcome, Breaker, Cause, Delivery, DeliveryProgress, RetryDecision, decide_retry, due,
    signing_secrets,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use store::webhooks::{Attempt, AttemptResult, Job};

use crate::webhooks::secret;
use crate::webhooks::sender::{Endpoint, WebhookSender};
use crate::{AppError, Ctx};

/// The failure code of an event whose key has no URL any more.
const NO_ENDPOINT: &str = "NO_ENDPOINT";

/// An attempt and its consequences.
pub(super) struct Attempted {
    pub attempt: Attempt,
    pub ending: AttemptResult,
    pub breaker: Breaker,
    /// The next time that the queue is due, if it is not empty.
    pub due_at: Timestamp,
}

/// Makes the due attempt for the head of a queue.
pub(super) async fn make(
    ctx: &Ctx,
    sender: &WebhookSender,
    key_id: KeyId,
    job: &Job,
    breaker: Breaker,
) -> Attempted {
    let at = ctx.now();
    let Some(url) = &job.url else { return nowhere(job, breaker, at) };
    let (outcome, answer_head) = match headers(ctx, key_id, job, at) {
        Ok(headers) => {
            let endpoint = Endpoint { user_id: job.user_id, tier: job.tier, key_id, url };
            let posted = sender.post(ctx.budgets(), endpoint, headers, Bytes::from(job.body.clone())).await;
            (posted.outcome.at(ctx.now()), posted.answer_head)
        }
        Err(error) => {
            tracing::error!(key.id = %key_id, cause = ?error.source, "could not decrypt a webhook secret");
            (AttemptOutcome::Unsigned, None)
        }
    };
    let attempt = Attempt {
        at,
        duration_ms: u32::try_from(ctx.now().since_ms(at).max(0)).unwrap_or(u32::MAX),
        status_code: match outcome {
            AttemptOutcome::Answered { status, .. } => Some(status),
            _ => None,
        },
        failure_code: outcome.failure_code().map(str::to_owned),
        error_message: outcome.error_message(),
        answer_head,
        replay: job.replay,
    };
    follow(ctx, job, breaker, attempt, outcome)
}

/// Computes the consequences of an attempt that has just ended.
fn follow(ctx: &Ctx, job: &Job, breaker: Breaker, attempt: Attempt, outcome: AttemptOutcome) -> Attempted {
    let now = ctx.now();
    let progress = DeliveryProgress { attempts: job.attempts + 1, began_at: job.began_at };
    let breaker = breaker.after(!outcome.is_endpoint_failure(), now);
    let (ending, at) = match decide_retry(outcome, progress, now, u64::from_be_bytes(ctx.random())) {
        RetryDecision::Delivered => (AttemptResult::Delivered, now),
        RetryDecision::Retry { at } => (AttemptResult::Retry, at),
        RetryDecision::Failed => (AttemptResult::Failed, now),
    };
    let due_at = due(at, breaker.admits(now));
    Attempted { attempt, ending, breaker, due_at }
}

/// The attempt of an event without a URL. It fails permanently and does not count against the
/// receiver.
fn nowhere(job: &Job, breaker: Breaker, at: Timestamp) -> Attempted {
    let attempt = Attempt {
        at,
        duration_ms: 0,
        status_code: None,
        failure_code: Some(NO_ENDPOINT.to_owned()),
        error_message: Some("The key no longer has a webhook URL.".to_owned()),
        answer_head: None,
        replay: job.replay,
    };
    Attempted { attempt, ending: AttemptResult::Failed, breaker, due_at: at }
}

/// Builds the signed headers of an attempt at the time `at`.
fn headers(ctx: &Ctx, key_id: KeyId, job: &Job, at: Timestamp) -> Result<HeaderMap, AppError> {
    let open = |sealed: &str| secret::unseal(ctx, key_id, sealed);
    let current = open(&job.secret_sealed)?;
    // An unreadable previous secret must not stop the delivery: receivers that know the current one
    // can verify it.
    let previous = job.previous_secret_sealed.as_ref().filter(|(_, until)| at < *until);
    let previous = previous.and_then(|(sealed, until)| match open(sealed) {
        Ok(secret) => Some((secret, *until)),
        Err(error) => {
            tracing::error!(key.id = %key_id, cause = ?error.source, "could not decrypt a previous webhook secret");
            None
        }
    });
    let cause = if job.replay == 0 { Cause::Event } else { Cause::Redelivery };
    let previous = previous.as_ref().map(|(secret, until)| (secret, *until));
    let delivery = Delivery {
        event_id: &job.event_id.to_string(),
        api_version: VERSIONS.current,
        body: job.body.as_bytes(),
        secrets: &signing_secrets(&current, previous, cause, at),
        at,
    };
    let mut headers = HeaderMap::new();
    for (name, value) in delivery.headers() {
        headers
            .insert(HeaderName::from_static(name), HeaderValue::try_from(value).map_err(AppError::internal)?);
    }
    Ok(headers)
}

/// Returns the trace event of an attempt. Its status is a placeholder: the trade's own status is
/// set when it is written.
pub(super) fn trace(job: &Job, attempt: &Attempt, ending: AttemptResult) -> TraceEvent {
    let kind = match ending {
        AttemptResult::Delivered => "webhook.delivered",
        AttemptResult::Retry => "webhook.attempt-failed",
        AttemptResult::Failed => "webhook.failed",
    };
    let told = TraceEvent::of_webhook(kind, job.event_id, job.kind, Status::Pending, attempt.ended_at())
        .with("attempt", job.attempts + 1)
        .with("durationMs", attempt.duration_ms);
    let told = if job.replay == 0 { told } else { told.with("replay", job.replay) };
    let told = match attempt.status_code {
        Some(status) => told.with("statusCode", status),
        None => told,
    };
    match &attempt.failure_code {
        Some(code) => told.with("failureCode", code.as_str()),
        None => told,
    }
}
