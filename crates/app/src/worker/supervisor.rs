//! Running workers: a tick that fails is repeated after a pause, a tick that does not end is cut off, and a worker that panics
//! is replaced by a new one.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::OptionFuture;
use store::StoreError;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, interval, timeout};

use super::{Progress, Worker};
use crate::{AppError, Ctx, lease};

/// How long after a panic a new worker starts: at first, and at most.
const FIRST_RESTART: Duration = Duration::from_secs(1);
const LAST_RESTART: Duration = Duration::from_secs(30);
/// A worker that has worked for so long before it panicked is restarted as if it was the first time.
const HEALTHY: Duration = Duration::from_secs(60);
/// How long after a failed tick the next one follows: at first, and at most. Everything goes on within 5 s after a fault ends.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(4);

/// Runs the workers that `make` makes, one after the other, until `stop` turns true: the first one, and a new one each time
/// that one has panicked. A worker ticks at once while there is more, then on its signal or after `pause`.
pub async fn supervise<W: Worker>(
    make: impl Fn() -> W + Send + Sync,
    ctx: Ctx,
    pause: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let label = make().label();
    let mut restart = FIRST_RESTART;
    while !*stop.borrow() {
        ctx.workers.start(&label);
        let began = Instant::now();
        let life = async { run(&make(), &ctx, pause, stop.clone()).await };
        let Err(panic) = AssertUnwindSafe(life).catch_unwind().await else { return };
        if began.elapsed() >= HEALTHY {
            restart = FIRST_RESTART;
        }
        let (panic, restart_in_ms) = (message(panic.as_ref()), restart.as_millis());
        tracing::error!(worker = label, panic, restart_in_ms, "a worker panicked; it is restarted");
        ctx.workers.panics(&label, ctx.now());
        // Not awaited: a database that does not answer must not delay the restart.
        tokio::spawn(count_panic(ctx.clone()));
        drop(timeout(restart, stop.wait_for(|stop| *stop)).await);
        restart = (2 * restart).min(LAST_RESTART);
    }
}

/// Ticks until `stop` turns true.
///
/// The signal is armed before the tick, so that what arrives while it runs is not slept over. A tick that has begun runs
/// to its end.
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
            _ = timer.tick() => {}
            _ = stop.changed() => {}
        }
    }
    if let Err(error) = worker.release(ctx).await {
        tracing::warn!(worker = label, %error, cause = ?error.source, "a lease was not given up; it ends by itself");
    }
}

/// One tick, and what it says of the worker. A lease that another process has taken is no fault.
async fn tick<W: Worker>(worker: &W, label: &str, ctx: &Ctx) -> Result<Progress, AppError> {
    ctx.workers.tick_begins(label, ctx.now());
    let ticked = match timeout(worker.longest_tick(), worker.tick(ctx)).await {
        Ok(ticked) => ticked,
        Err(_) => Err(AppError::new(domain::ErrorCode::DependencyUnavailable)
            .detail(format!("The tick did not end within {} s.", worker.longest_tick().as_secs()))),
    };
    match ticked {
        Ok(progress) => {
            ctx.workers.tick_succeeds(label);
            Ok(progress)
        }
        Err(error) if lease::is_lost(&error) => {
            tracing::info!(worker = label, %error, "another process goes on with the work");
            ctx.workers.tick_succeeds(label);
            Ok(Progress::Idle)
        }
        Err(error) => {
            ctx.workers.tick_fails(label, ctx.now());
            Err(error)
        }
    }
}

/// Counts a panic for the operator, if the database answers.
async fn count_panic(ctx: Ctx) {
    let counted: Result<(), StoreError> =
        ctx.store.write((), |tx, ()| Box::pin(store::quarantine::count_up(tx, "worker_panics", 1))).await;
    if let Err(error) = counted {
        tracing::warn!(%error, "a worker's panic was not counted");
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
