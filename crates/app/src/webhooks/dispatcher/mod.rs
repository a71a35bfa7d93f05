//! The dispatcher: posts the events of every key's queue, one after the other, each until it is delivered or given up.
//!
//! Use cases and workers write events and queue them in the transaction that makes them happen; the routes queue replays. A
//! dispatcher of any process claims queues that are due and that nobody holds, and works through each in a task of its own:
//! find the head, post it, write what became of it. The routes read what it writes.
//!
//! A hold has an end and a number. A queue is let go when nothing in it is due; what is written under an older number than
//! the queue's is not written at all, and an attempt only begins while its hold lasts for longer than the attempt can. So
//! two attempts of one key never overlap, over however many processes.
//!
//! A crash leaves, after the claim: a queue that is held by nobody alive, and due again when the hold ends; after the post:
//! an event that the receiver has and the queue still holds, so that it is posted again under the same id; after the write:
//! the next head, which is found when the hold ends. A receiver that is slow or down costs its own key and one task.

mod attempt;
mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use domain::Timestamp;
use store::StoreError;
use store::webhooks::Held;
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;

use super::sender::Sender;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The most queues that one tick claims, so that its transaction stays short.
const AT_ONCE: usize = 100;
/// How long a stop waits for the attempts under way: as long as one can take, and a moment to write it.
const DRAIN: Duration = Duration::from_millis(10_500);
/// A dispatcher that has not looked for longer than this is not at work.
const STALE_MS: i64 = 10_000;
/// Stands for "never" in [`Pulse`].
const NEVER: i64 = i64::MIN;

/// When the dispatcher of this process last looked for due queues.
#[derive(Debug)]
pub struct Pulse(AtomicI64);

impl Default for Pulse {
    fn default() -> Self {
        Self(AtomicI64::new(NEVER))
    }
}

impl Pulse {
    fn beat(&self, now: Timestamp) {
        self.0.store(now.ms(), Ordering::Relaxed);
    }

    /// Whether the dispatcher is at work, as far as one was started here.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        let last_ms = self.0.load(Ordering::Relaxed);
        last_ms == NEVER || now.since_ms(Timestamp::from_ms(last_ms)) <= STALE_MS
    }
}

/// The dispatcher's worker.
pub struct Dispatcher {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

/// What the tasks of one dispatcher share.
struct Shared {
    sender: Arc<Sender>,
    /// One permit for each queue that may be held.
    slots: Arc<Semaphore>,
    stopping: AtomicBool,
}

impl Shared {
    fn new(sender: Arc<Sender>, slots: u32) -> Self {
        let slots = Arc::new(Semaphore::new(usize::try_from(slots).unwrap_or(Semaphore::MAX_PERMITS)));
        Self { sender, slots, stopping: AtomicBool::new(false) }
    }

    /// Whether a task that has just ended an attempt is to give its queue back although more is due in it.
    fn must_yield(&self, served: u32) -> bool {
        self.stopping.load(Ordering::Relaxed)
            || (served >= queue::FAIR_SHARE && self.slots.available_permits() == 0)
    }
}

impl Dispatcher {
    /// Nothing under way yet.
    pub fn new(sender: Arc<Sender>, max_in_flight: u32) -> Self {
        Self { shared: Arc::new(Shared::new(sender, max_in_flight)), tasks: TaskTracker::new() }
    }
}

impl Worker for Dispatcher {
    fn name(&self) -> &'static str {
        "dispatcher"
    }

    fn signal<'a>(&self, ctx: &'a Ctx) -> Option<&'a Notify> {
        Some(ctx.store.events_written())
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let free = self.shared.slots.available_permits().min(AT_ONCE);
        let claimed = if free > 0 { claim(ctx, free).await? } else { Vec::new() };
        ctx.dispatching.beat(ctx.now());
        let progress = if claimed.len() == AT_ONCE { Progress::More } else { Progress::Idle };
        for hold in claimed {
            // Only this tick takes permits, so that as many are left as were free.
            let Ok(slot) = Arc::clone(&self.shared.slots).try_acquire_owned() else { break };
            let (ctx, shared) = (ctx.clone(), Arc::clone(&self.shared));
            self.tasks.spawn(async move {
                queue::work_through(&ctx, &shared, hold).await;
                drop(slot);
            });
        }
        Ok(progress)
    }

    async fn release(&self, _: &Ctx) -> Result<(), AppError> {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.tasks.close();
        if tokio::time::timeout(DRAIN, self.tasks.wait()).await.is_err() {
            tracing::warn!(
                queues = self.tasks.len(),
                "webhook queues were not let go; their holds end by themselves"
            );
        }
        Ok(())
    }
}

/// Posts all that is due now, and what becomes due by it, to its end: for whoever steps the work by hand. How many queues
/// were worked through.
///
/// # Errors
/// Where no queue could be claimed.
pub async fn dispatch_due(ctx: &Ctx, sender: &Arc<Sender>) -> Result<usize, AppError> {
    let shared = Shared::new(Arc::clone(sender), ctx.config.webhooks.max_in_flight);
    let mut worked = 0;
    loop {
        let claimed = claim(ctx, AT_ONCE).await?;
        if claimed.is_empty() {
            return Ok(worked);
        }
        worked += claimed.len();
        let tasks = claimed.into_iter().map(|hold| queue::work_through(ctx, &shared, hold));
        futures::future::join_all(tasks).await;
    }
}

/// A queue that is held, and until when.
struct Hold {
    held: Held,
    until: Timestamp,
}

/// Claims at most `limit` queues that are due. Most looks find nothing: a reader keeps the writer free of them.
async fn claim(ctx: &Ctx, limit: usize) -> Result<Vec<Hold>, AppError> {
    let now = ctx.now();
    let any: Result<bool, StoreError> =
        ctx.store.read(now, |tx, now| Box::pin(store::webhooks::has_due(tx, *now))).await;
    if !any? {
        return Ok(Vec::new());
    }
    let until = now.plus_ms(ctx.config.webhooks.hold_ms);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let claimed: Result<Vec<Held>, StoreError> = ctx
        .store
        .write((now, until, limit), |tx, (now, until, limit)| {
            Box::pin(store::webhooks::claim_due(tx, *now, *until, *limit))
        })
        .await;
    Ok(claimed?.into_iter().map(|held| Hold { held, until }).collect())
}
