//! Works through one held queue: posts its heads one after the other while they are due.

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use domain::trade::TraceEvent;
use domain::webhook::{Admission, Breaker};
use store::webhooks::{AttemptResult, Finished, Job, QueueHold, Recorded};
use store::{StoreError, Tx};
use tokio::time::{MissedTickBehavior, interval};

use super::attempt::{self, Attempted};
use super::span;
use super::{Hold, Shared};
use crate::metrics::AttemptOutcome;
use crate::{AppError, Ctx};

/// The number of events posted from one queue before it yields to queues that wait for a slot.
pub(super) const FAIR_SHARE: u32 = 64;
/// The time after which a queue yields to them, however few events were posted. A receiver that takes
/// its time would otherwise keep a slot for ten minutes.
pub(super) const FAIR_SHARE_MS: i64 = 5_000;
/// An attempt begins only if its hold lasts longer than this: ten seconds for the attempt and one
/// to write it.
const LEAST_HOLD_MS: i64 = 11_000;
/// The number of times that the write of an attempt is tried, and the interval between two tries.
const WRITE_TRIES: u32 = 5;
const WRITE_INTERVAL: Duration = Duration::from_millis(250);

/// Works through a held queue until nothing in it is due. Errors are logged, and the hold ends by
/// itself with the head unchanged.
pub(super) async fn work_through(ctx: &Ctx, shared: &Shared, hold: Hold) {
    let key_id = hold.held.key_id;
    if let Err(error) = try_work_through(ctx, shared, hold).await {
        tracing::warn!(key.id = %key_id, %error, cause = ?error.source, "could not work through a webhook queue: its hold expires");
    }
}

async fn try_work_through(ctx: &Ctx, shared: &Shared, hold: Hold) -> Result<(), AppError> {
    let Hold { held, mut until } = hold;
    let mut next = ctx.store.read(held, |tx, held| Box::pin(store::webhooks::find_job(tx, *held))).await?;
    let (began, mut served) = (ctx.now(), 0);
    while let Some(job) = next {
        let breaker = breaker_of(&job, held);
        let now = ctx.now();
        // The receiver's breaker is open: release the queue until the breaker allows the next
        // attempt.
        if let Admission::Wait { until } = breaker.admits(now) {
            return postpone(ctx, held, until).await;
        }
        if until.since_ms(now) <= LEAST_HOLD_MS {
            break;
        }
        let attempted = attempt::make(ctx, &shared.sender, held.key_id, &job, breaker).await;
        served += 1;
        let now = ctx.now();
        // The attempt's transaction also releases the queue. Otherwise events queued in between
        // would wait for the hold's end.
        let goes_on = attempted.due_at <= now && !shared.must_yield(served, now.since_ms(began));
        until = if goes_on { now.plus_ms(ctx.config.webhooks.hold_ms) } else { Timestamp::from_ms(0) };
        match finish(ctx, held, job, attempted, until).await? {
            Written::Next(job) => next = Some(*job),
            Written::LetGo => return Ok(()),
            Written::Lost => {
                tracing::info!(key.id = %held.key_id, "another process acquired a webhook queue during an attempt");
                return Ok(());
            }
        }
    }
    Ok(ctx.store.write(held, |tx, held| Box::pin(store::webhooks::let_go(tx, *held))).await?)
}

/// Parses the stored breaker. An unreadable one is replaced by a fresh breaker, so that it cannot
/// block the queue.
fn breaker_of(job: &Job, held: QueueHold) -> Breaker {
    if job.breaker.is_empty() {
        return Breaker::default();
    }
    job.breaker.parse().unwrap_or_else(|error| {
        tracing::error!(key.id = %held.key_id, %error, "could not parse the breaker of a webhook receiver: using a closed one");
        Breaker::default()
    })
}

async fn postpone(ctx: &Ctx, held: QueueHold, until: Timestamp) -> Result<(), AppError> {
    Ok(ctx
        .store
        .write((held, until), |tx, (held, until)| Box::pin(store::webhooks::postpone(tx, *held, *until)))
        .await?)
}

/// The result of writing an attempt.
enum Written {
    /// The queue is still held; this is its next head.
    Next(Box<Job>),
    /// The queue was released.
    LetGo,
    /// Another process holds the queue; nothing was written.
    Lost,
}

struct Writing {
    held: QueueHold,
    job: Job,
    finished: Finished,
    trace: Option<TraceEvent>,
}

/// Writes an attempt and its consequences, and takes the next head or releases the queue, in one
/// transaction. An attempt that is not written is made again after the hold, so that the receiver
/// gets the event twice. A temporary failure of the database is therefore retried.
async fn finish(
    ctx: &Ctx,
    held: QueueHold,
    job: Job,
    attempted: Attempted,
    held_until: Timestamp,
) -> Result<Written, AppError> {
    let Attempted { attempt, ending, breaker, due_at } = attempted;
    ctx.process.metrics.webhook_attempt(outcome_of(ending));
    span::record(ctx, held.key_id, &job, &attempt);
    let trace = job.trade_id.map(|_| attempt::trace(&job, &attempt, ending));
    let finished = Finished { attempt, ending, breaker: breaker.to_string(), due_at, held_until };
    let writing = Arc::new(Writing { held, job, finished, trace });
    let mut pause = interval(WRITE_INTERVAL);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut tries_left = WRITE_TRIES;
    loop {
        pause.tick().await;
        tries_left -= 1;
        match ctx.store.write(Arc::clone(&writing), |tx, writing| Box::pin(write(tx, writing))).await {
            Err(error) if error.is_unavailable() && tries_left > 0 => {
                tracing::debug!(key.id = %held.key_id, %error, "could not write a webhook attempt: trying again");
            }
            written => return Ok(written?),
        }
    }
}

/// Returns the outcome as metrics name it.
const fn outcome_of(ending: AttemptResult) -> AttemptOutcome {
    match ending {
        AttemptResult::Delivered => AttemptOutcome::Delivered,
        AttemptResult::Retry => AttemptOutcome::Retry,
        AttemptResult::Failed => AttemptOutcome::Failed,
    }
}

async fn write(tx: &mut Tx, writing: &Writing) -> Result<Written, StoreError> {
    let Writing { held, job, finished, trace } = writing;
    // Lock the trade's row before the queue's. Transitions of a trade lock in the same order, which
    // prevents deadlocks.
    let status = match job.trade_id {
        Some(id) => store::trades::lock(tx, id).await?,
        None => None,
    };
    let recorded = store::webhooks::finish(tx, *held, job, finished).await?;
    if recorded == Recorded::Lost {
        return Ok(Written::Lost);
    }
    if recorded == Recorded::Now
        && let (Some(id), Some(_), Some(event)) = (job.trade_id, status, trace)
    {
        store::trades::append_trace(tx, id, |status| TraceEvent { status, ..event.clone() }).await?;
    }
    if finished.ending != AttemptResult::Retry && finished.held_until.ms() > 0 {
        if let Some(next) = store::webhooks::find_job(tx, *held).await? {
            return Ok(Written::Next(Box::new(next)));
        }
        store::webhooks::let_go(tx, *held).await?;
    }
    Ok(Written::LetGo)
}
