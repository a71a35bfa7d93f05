//! Runs workers: retries failed ticks after a pause, cancels ticks that hang, and replaces workers
//! that panic.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::OptionFuture;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, interval, timeout};

use super::{Progress, Worker};
use crate::traces::{TickTrace, within};
use crate::{AppError, Ctx, lease};

/// The delay before a worker restarts after a panic: the first delay and the maximum.
const FIRST_RESTART: Duration = Duration::from_secs(1);
const LAST_RESTART: Duration = Duration::from_secs(30);
/// After running this long without a panic, a worker's restart delay is reset.
const HEALTHY: Duration = Duration::from_secs(60);
/// The delay after a failed tick: the first delay and the maximum. With 4 s, everything resumes
/// within 5 s after a fault ends.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(4);

/// Runs a worker until `stop` is true, and creates a new one with `make` after each panic.
///
/// While there is more work, the worker ticks at once. Otherwise it waits for its signal or for
/// `pause`.
pub async fn supervise<W: Worker>(
    make: impl Fn() -> W + Send + Sync,
    ctx: Ctx,
    pause: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let label = make().label();
    let mut restart = FIRST_RESTART;
    while !*stop.borrow() {
        ctx.process.workers.start(&label);
        let began = Instant::now();
        let life = async { run(&make(), &ctx, pause, stop.clone()).await };
        // A new worker replaces the panicked one, so no state that the panic left inconsistent is
        // used again.
        let Err(panic) = AssertUnwindSafe(life).catch_unwind().await else { return };
        if began.elapsed() >= HEALTHY {
            restart = FIRST_RESTART;
        }
        let (panic, restart_in_ms) = (message(panic.as_ref()), restart.as_millis());
        tracing::error!(worker = label, panic, restart_in_ms, "a worker panicked: restarting it");
        ctx.process.workers.panics(&label, ctx.now());
        // Spawned, not awaited: an unresponsive database must not delay the restart.
        tokio::spawn(count_panic(ctx.clone()));
        drop(timeout(restart, stop.wait_for(|stop| *stop)).await);
        restart = (2 * restart).min(LAST_RESTART);
    }
}

/// Ticks until `stop` is true.
///
/// The signal is enabled before the tick, so that a notification during the tick is not lost. A
/// running tick is not interrupted by `stop`.
async fn run<W: Worker>(worker: &W, ctx: &Ctx, pause: Duration, mut stop: watch::Receiver<bool>) {
    let label = worker.label();
    let mut timer = interval(pause);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut retry = FIRST_RETRY;
    while !*stop.borrow() {
        let mut signal = std::pin::pin!(worker.signal(ctx).map(Notify::notified));
        if let Some(signal) = signal.as_mut().as_pin_mut() {
            signal.enable();
        }
        let mut moved = std::pin::pin!(ctx.wake.clock.notified());
        moved.as_mut().enable();
        match tick(worker, &label, ctx).await {
            Ok(Progress::More) => {
                retry = FIRST_RETRY;
                continue;
            }
            Ok(Progress::Idle) => retry = FIRST_RETRY,
            Err(error) => {
                tracing::warn!(worker = label, %error, cause = ?error.source, "tick failed");
                drop(timeout(retry, stop.wait_for(|stop| *stop)).await);
                retry = (2 * retry).min(LAST_RETRY);
                continue;
            }
        }
        timer.reset();
        tokio::select! {
            Some(()) = OptionFuture::from(signal.as_pin_mut()) => {}
            () = moved => {}
            _ = timer.tick() => {}
            _ = stop.changed() => {}
        }
    }
    if let Err(error) = worker.release(ctx).await {
        tracing::warn!(worker = label, %error, cause = ?error.source, "could not release a lease: it expires");
    }
}

/// Runs one tick and records its result. A lease lost to another process is not a failure.
async fn tick<W: Worker>(worker: &W, label: &str, ctx: &Ctx) -> Result<Progress, AppError> {
    ctx.process.workers.tick_begins(label, ctx.now());
    let trace = ctx.process.traces.tick(ctx.now());
    let work = within(trace.as_ref().map(TickTrace::open), worker.tick(ctx));
    let ticked = match timeout(worker.longest_tick(), work).await {
        Ok(ticked) => ticked,
        Err(_) => Err(AppError::new(domain::ErrorCode::DependencyUnavailable)
            .detail(format!("The tick did not end within {} s.", worker.longest_tick().as_secs()))),
    };
    if let Some(trace) = trace {
        let failure = ticked.as_ref().err().filter(|error| !lease::is_lost(error));
        trace.ended(label, failure.map(|error| error.code));
    }
    match ticked {
        Ok(progress) => {
            ctx.process.workers.tick_succeeds(label);
            Ok(progress)
        }
        Err(error) if lease::is_lost(&error) => {
            tracing::info!(worker = label, %error, "another process continues the work");
            ctx.process.workers.tick_succeeds(label);
            Ok(Progress::Idle)
        }
        Err(error) => {
            ctx.process.workers.tick_fails(label, ctx.now());
            Err(error)
        }
    }
}

/// Counts a panic in the database for the operator, if the database responds.
async fn count_panic(ctx: Ctx) {
    let counted =
        ctx.store.write((), |tx, ()| Box::pin(store::quarantine::count_up(tx, "worker_panics", 1))).await;
    if let Err(error) = counted {
        tracing::warn!(%error, "could not count the panic of a worker");
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
