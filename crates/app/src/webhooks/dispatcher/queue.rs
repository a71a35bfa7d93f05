//! One held queue: its heads, one after the other, while they are due.

use domain::Timestamp;
use domain::trade::TraceEvent;
use domain::webhook::{Admission, Breaker};
use store::webhooks::{Ending, Finished, Held, Job};
use store::{StoreError, Tx};

use super::attempt::{self, Attempted};
use super::{Hold, Shared};
use crate::{AppError, Ctx};

/// So many events of one queue are posted before others that wait for a slot come first.
pub(super) const FAIR_SHARE: u32 = 64;
/// An attempt begins only while its hold lasts for longer than this: the attempt's ten seconds, and one to write it.
const LEAST_HOLD_MS: i64 = 11_000;

/// Works through a held queue until nothing in it is due. What goes wrong is logged, and the hold ends by itself: the
/// head stays where it is.
pub(super) async fn work_through(ctx: &Ctx, shared: &Shared, hold: Hold) {
    let key_id = hold.held.key_id;
    if let Err(error) = try_work_through(ctx, shared, hold).await {
        tracing::warn!(key.id = %key_id, %error, cause = ?error.source, "a webhook queue was left to the end of its hold");
    }
}

async fn try_work_through(ctx: &Ctx, shared: &Shared, hold: Hold) -> Result<(), AppError> {
    let Hold { held, mut until } = hold;
    let found: Result<Option<Job>, StoreError> =
        ctx.store.read(held, |tx, held| Box::pin(store::webhooks::find_job(tx, *held))).await;
    let mut next = found?;
    let mut served = 0;
    while let Some(job) = next {
        let breaker = breaker_of(&job, held);
        let now = ctx.now();
        if let Admission::Wait { until } = breaker.admits(now) {
            return postpone(ctx, held, until).await;
        }
        if until.since_ms(now) <= LEAST_HOLD_MS {
            break;
        }
        let attempted = attempt::make(ctx, &shared.sender, held.key_id, &job, breaker).await;
        served += 1;
        let now = ctx.now();
        // Letting go is part of writing the attempt, so that what is queued meanwhile never waits for the hold's end.
        let goes_on = attempted.due_at <= now && !shared.must_yield(served);
        until = if goes_on { now.plus_ms(ctx.config.webhooks.hold_ms) } else { Timestamp::from_ms(0) };
        match finish(ctx, held, job, attempted, until).await? {
            Written::Next(job) => next = Some(*job),
            Written::LetGo => return Ok(()),
            Written::Lost => {
                tracing::info!(key.id = %held.key_id, "a webhook queue was taken over while an attempt was under way");
                return Ok(());
            }
        }
    }
    let let_go: Result<(), StoreError> =
        ctx.store.write(held, |tx, held| Box::pin(store::webhooks::let_go(tx, *held))).await;
    Ok(let_go?)
}

/// A text that is no breaker is a receiver of which nothing is known.
fn breaker_of(job: &Job, held: Held) -> Breaker {
    if job.breaker.is_empty() {
        return Breaker::default();
    }
    job.breaker.parse().unwrap_or_else(|error| {
        tracing::error!(key.id = %held.key_id, %error, "a receiver's health cannot be read; it begins anew");
        Breaker::default()
    })
}

async fn postpone(ctx: &Ctx, held: Held, until: Timestamp) -> Result<(), AppError> {
    let postponed: Result<(), StoreError> = ctx
        .store
        .write((held, until), |tx, (held, until)| Box::pin(store::webhooks::postpone(tx, *held, *until)))
        .await;
    Ok(postponed?)
}

/// What follows from writing an attempt.
enum Written {
    /// The queue is still held, and this is its head.
    Next(Box<Job>),
    /// The queue was given back.
    LetGo,
    /// Another sender has the queue: nothing was written.
    Lost,
}

struct Writing {
    held: Held,
    job: Job,
    finished: Finished,
    trace: Option<TraceEvent>,
}

/// Writes an attempt and what follows from it, and takes the next head or gives the queue back, all at once.
async fn finish(
    ctx: &Ctx,
    held: Held,
    job: Job,
    attempted: Attempted,
    held_until: Timestamp,
) -> Result<Written, AppError> {
    let Attempted { attempt, ending, breaker, due_at } = attempted;
    let trace = job.trade_id.map(|_| attempt::trace(&job, &attempt, ending));
    let finished = Finished { attempt, ending, breaker: breaker.to_string(), due_at, held_until };
    let writing = Writing { held, job, finished, trace };
    let written: Result<Written, StoreError> =
        ctx.store.write(writing, |tx, writing| Box::pin(write(tx, writing))).await;
    Ok(written?)
}

async fn write(tx: &mut Tx, writing: &Writing) -> Result<Written, StoreError> {
    let Writing { held, job, finished, trace } = writing;
    // The trade's row before the queue's, in the order in which a move of the trade takes them.
    let status = match job.trade_id {
        Some(id) => store::trades::lock(tx, id).await?,
        None => None,
    };
    if !store::webhooks::finish(tx, *held, job, finished).await? {
        return Ok(Written::Lost);
    }
    if let (Some(id), Some(_), Some(event)) = (job.trade_id, status, trace) {
        store::trades::append_trace(tx, id, |status| TraceEvent { status, ..event.clone() }).await?;
    }
    if finished.ending != Ending::Retry && finished.held_until.ms() > 0 {
        if let Some(next) = store::webhooks::find_job(tx, *held).await? {
            return Ok(Written::Next(Box::new(next)));
        }
        store::webhooks::let_go(tx, *held).await?;
    }
    Ok(Written::LetGo)
}
