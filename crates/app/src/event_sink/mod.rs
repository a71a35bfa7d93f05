//! The event sink: publishes the events of all users to a stream of a message broker.
//!
//! One process at a time publishes, under a lease. It stores a user's position only after the broker
//! has acknowledged the events up to it, so after a crash some events are published again, which the
//! broker recognizes by their ids. A broker that is gone stops only the sink.

mod publisher;
mod round;
mod search;

use std::sync::Arc;

use async_trait::async_trait;
use domain::Timestamp;
use parking_lot::Mutex;
use store::leases::Lease;

pub use publisher::{Acknowledgement, EventPublisher, OutgoingEvent, PublishError, StreamState};

use crate::lease::{self, LeaseHolder, Turn};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};
use round::Round;
use search::Sweep;

/// The name of the worker and of its lease.
const NAME: &str = "event sink";
/// The pause after a failure: the first one and the maximum.
const FIRST_RETRY_MS: i64 = 250;
const LAST_RETRY_MS: i64 = 5_000;

/// The worker that publishes events.
pub struct EventSink {
    lease: LeaseHolder,
    publisher: Arc<dyn EventPublisher>,
    state: Mutex<SinkState>,
}

#[derive(Debug, Clone, Copy)]
struct SinkState {
    sweep: Sweep,
    /// The end of the pause after a failure, and its length.
    retry: Option<(Timestamp, i64)>,
    /// The time of the oldest event that may be unpublished.
    oldest: Option<Timestamp>,
}

/// The result of a step.
enum Step {
    Done(Progress),
    Failed(PublishError),
}

impl EventSink {
    /// Creates the worker. `owner` identifies this process in leases.
    pub fn new(publisher: Arc<dyn EventPublisher>, owner: String) -> Self {
        let state = SinkState { sweep: Sweep::begin(0), retry: None, oldest: None };
        Self { lease: LeaseHolder::new(NAME.to_owned(), owner), publisher, state: Mutex::new(state) }
    }

    async fn step(&self, ctx: &Ctx, lease: &Lease) -> Result<Step, AppError> {
        let mut sweep = self.state.lock().sweep.under(lease.epoch);
        let backlog = search::find(ctx, self.publisher.stream(), &mut sweep).await?;
        match self.publisher.open().await {
            Ok(StreamState::Present) => {}
            // The backlog was found with the positions in the stream that is missing.
            Ok(StreamState::Missing) => return self.create_stream(ctx, lease).await,
            Err(failure) => {
                self.measure(ctx, round::find_oldest(ctx, &backlog.users).await?);
                return Ok(Step::Failed(failure));
            }
        }
        let round = Round {
            ctx,
            lease,
            publisher: self.publisher.as_ref(),
            generation: backlog.generation,
            turn: Turn::begin(ctx),
        };
        let mut users = backlog.users;
        // At least one round, however short a turn is.
        while !users.is_empty() {
            let result = round.run(users).await?;
            self.measure(ctx, result.oldest);
            if let Some(failure) = result.failure {
                return Ok(Step::Failed(failure));
            }
            users = result.behind;
            if round.turn.is_over() {
                break;
            }
        }
        if !users.is_empty() {
            sweep.leave_behind();
        }
        let has_more = backlog.has_more || !users.is_empty();
        {
            let mut state = self.state.lock();
            if state.retry.is_some() {
                tracing::info!("publishing events again");
            }
            *state = SinkState { sweep, retry: None, oldest: state.oldest.filter(|_| has_more) };
        }
        self.measure(ctx, None);
        Ok(Step::Done(if has_more { Progress::More } else { Progress::Idle }))
    }

    /// Creates the stream, which then gets everything that is stored.
    async fn create_stream(&self, ctx: &Ctx, lease: &Lease) -> Result<Step, AppError> {
        let stream = self.publisher.stream();
        let input = (lease.clone(), stream.to_owned());
        // Before the stream exists: a process that dies in between finds it missing again.
        let forgotten = ctx
            .store
            .try_write(input, |tx, (lease, stream)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    Ok::<_, AppError>(store::sink_positions::delete_all(tx, stream).await?)
                })
            })
            .await?;
        if let Err(failure) = self.publisher.create().await {
            return Ok(Step::Failed(failure));
        }
        tracing::info!(stream, forgotten, "created the stream: publishing all stored events");
        self.state.lock().sweep = Sweep::begin(lease.epoch);
        Ok(Step::Done(Progress::More))
    }

    /// Pauses after a failure, longer each time.
    async fn back_off(&self, ctx: &Ctx, lease: &Lease, failure: &PublishError) {
        // A message that waits in the client must not arrive after its repetition.
        self.publisher.close().await;
        let retry_in_ms = {
            let mut state = self.state.lock();
            let pause_ms =
                state.retry.map_or(FIRST_RETRY_MS, |(_, pause_ms)| (2 * pause_ms).min(LAST_RETRY_MS));
            state.retry = Some((ctx.now().plus_ms(pause_ms), pause_ms));
            // Users may be behind for longer than a step looks back.
            state.sweep = Sweep::begin(lease.epoch);
            pause_ms
        };
        ctx.process.metrics.sink_failed();
        tracing::warn!(worker = NAME, error = %failure, retry_in_ms, "could not publish events");
    }

    /// Records the lag. `oldest` is the time of the oldest event of a round.
    fn measure(&self, ctx: &Ctx, oldest: Option<Timestamp>) {
        let mut state = self.state.lock();
        state.oldest = [state.oldest, oldest].into_iter().flatten().min();
        ctx.process.metrics.sink_lag(state.oldest.map_or(0, |oldest| ctx.now().since_ms(oldest)));
    }
}

#[async_trait]
impl Worker for EventSink {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let Some(lease) = self.lease.claim(ctx).await? else {
            self.publisher.close().await;
            ctx.process.metrics.sink_lag(0);
            return Ok(Progress::Idle);
        };
        let retry = self.state.lock().retry;
        if retry.is_some_and(|(at, _)| ctx.now() < at) {
            return Ok(Progress::Idle);
        }
        match self.lease.keep(ctx, &lease, self.step(ctx, &lease)).await? {
            Step::Done(progress) => Ok(progress),
            // No failed tick: readiness does not depend on the broker.
            Step::Failed(failure) => {
                self.back_off(ctx, &lease, &failure).await;
                Ok(Progress::Idle)
            }
        }
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.publisher.close().await;
        self.lease.release(ctx).await
    }
}
