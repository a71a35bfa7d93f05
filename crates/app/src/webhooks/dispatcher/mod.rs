//! The dispatcher: posts the events of every key's queue in order, each until it is delivered or
//! given up.
//!
//! Use cases and workers write events and queue them in the transaction that causes them. The API
//! queues replays. The dispatcher of any process claims queues that are due and not held, and works
//! through each in its own task: load the head, post it, write the result.
//!
//! A hold has an end and a number (epoch). Writes under an older number than the queue's are
//! ignored, and an attempt begins only if the hold lasts longer than the attempt can. So two
//! attempts of one key never overlap, even across processes. A queue is released when nothing in it
//! is due.
//!
//! States that a crash can leave:
//! - After the claim: the queue is held by a dead process, and due again when the hold ends.
//! - After the post: the receiver has the event, but it is still queued. It is posted again with
//!   the same id. The same happens if the result cannot be written although that is tried several
//!   times.
//! - After the write: the next head is found when the hold ends.
//!
//! A slow receiver delays only its own key and occupies one task.

mod attempt;
mod queue;
mod span;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::Timestamp;
use store::webhooks::QueueHold;
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;

use super::sender::WebhookSender;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The name under which dispatchers announce that they run.
pub const SIGN: &str = "dispatcher";
/// The time for which a sign counts. Three signs may fail before nobody seems to dispatch.
const SIGN_MS: i64 = 15_000;
/// The maximum number of queues claimed per tick, to keep the transaction short.
const AT_ONCE: usize = 100;
/// The time that a shutdown waits for running attempts: the longest attempt plus time to write it.
const DRAIN: Duration = Duration::from_millis(10_500);
pub struct Dispatcher {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

/// State shared by the tasks of one dispatcher.
struct Shared {
    sender: Arc<WebhookSender>,
    /// One permit per queue that may be held.
    slots: Arc<Semaphore>,
    stopping: AtomicBool,
}

impl Shared {
    fn new(sender: Arc<WebhookSender>, slots: u32) -> Self {
        let slots = Arc::new(Semaphore::new(usize::try_from(slots).unwrap_or(Semaphore::MAX_PERMITS)));
        Self { sender, slots, stopping: AtomicBool::new(false) }
    }

    /// Returns whether a task must release its queue although more of it is due.
    fn must_yield(&self, served: u32, served_ms: i64) -> bool {
        let has_had_its_share = served >= queue::FAIR_SHARE || served_ms >= queue::FAIR_SHARE_MS;
        self.stopping.load(Ordering::Relaxed) || (has_had_its_share && self.slots.available_permits() == 0)
    }
}

impl Dispatcher {
    pub fn new(sender: Arc<WebhookSender>, max_in_flight: u32) -> Self {
        Self { shared: Arc::new(Shared::new(sender, max_in_flight)), tasks: TaskTracker::new() }
    }
}

#[async_trait]
impl Worker for Dispatcher {
    fn name(&self) -> &'static str {
        "dispatcher"
    }

    fn signal<'a>(&self, ctx: &'a Ctx) -> Option<&'a Notify> {
        Some(ctx.store.events_written())
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        if ctx.process.dispatching.must_beat(ctx.now()) {
            announce(ctx).await?;
        }
        let free = self.shared.slots.available_permits().min(AT_ONCE);
        // Claim only as many queues as there are free slots: a claimed queue without a slot would
        // wait for its hold to end.
        let claimed = if free > 0 { claim(ctx, free).await? } else { Vec::new() };
        let progress = if claimed.len() == AT_ONCE { Progress::More } else { Progress::Idle };
        for hold in claimed {
            // Only this method takes permits, so at least as many are left as were free above.
            let Ok(slot) = Arc::clone(&self.shared.slots).try_acquire_owned() else { break };
            let (ctx, shared) = (ctx.clone(), Arc::clone(&self.shared));
            // A task per queue, so that a slow receiver does not delay other queues or the next
            // tick.
            self.tasks.spawn(async move {
                queue::work_through(&ctx, &shared, hold).await;
                drop(slot);
            });
        }
        Ok(progress)
    }

    async fn release(&self, _: &Ctx) -> Result<(), AppError> {
        // Running attempts get time to be written. Otherwise each of them would be posted a second
        // time.
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.tasks.close();
        if tokio::time::timeout(DRAIN, self.tasks.wait()).await.is_err() {
            tracing::warn!(queues = self.tasks.len(), "could not release webhook queues: their holds expire");
        }
        Ok(())
    }
}

/// Posts everything that is due now, including what becomes due by it. For tests and tools that run
/// the work step by step. Returns the number of queues worked through.
pub async fn dispatch_due(ctx: &Ctx, sender: &Arc<WebhookSender>) -> Result<usize, AppError> {
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

/// Announces in the database that a dispatcher runs, because readiness is asked in another process.
async fn announce(ctx: &Ctx) -> Result<(), AppError> {
    let (owner, until) = (ctx.uuid().to_string(), ctx.now().plus_ms(SIGN_MS));
    let announced = ctx
        .store
        .write((owner, until), |tx, (owner, until)| {
            Box::pin(store::leases::announce(tx, SIGN, owner, *until))
        })
        .await;
    Ok(announced?)
}

/// A held queue and the end of its hold.
struct Hold {
    held: QueueHold,
    until: Timestamp,
}

/// Claims at most `limit` due queues. Most calls find none, so a reader checks first and keeps the
/// writer free.
async fn claim(ctx: &Ctx, limit: usize) -> Result<Vec<Hold>, AppError> {
    let now = ctx.now();
    let any = ctx.store.read(now, |tx, now| Box::pin(store::webhooks::has_due(tx, *now))).await?;
    if !any {
        return Ok(Vec::new());
    }
    let until = now.plus_ms(ctx.config.webhooks.hold_ms);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let claimed = ctx
        .store
        .write((now, until, limit), |tx, (now, until, limit)| {
            Box::pin(store::webhooks::claim_due(tx, *now, *until, *limit))
        })
        .await?;
    Ok(claimed.into_iter().map(|held| Hold { held, until }).collect())
}
