//! The loop that every worker runs in. A worker does a bounded piece of work a tick and keeps no state between ticks
//! that a crash could lose: normal work and recovery are the same tick.

use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::{Notify, watch};

use crate::{AppError, Ctx};

/// What a tick found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There may be more to do at once.
    More,
    /// Nothing more for now.
    Idle,
}

/// A piece of work that is done over and over.
pub trait Worker: Send + Sync {
    /// Its name in logs.
    fn name(&self) -> &'static str;

    /// The signal that there is work; `None` where the timer alone wakes it.
    fn signal<'a>(&self, _: &'a Ctx) -> Option<&'a Notify> {
        None
    }

    /// Does a bounded batch.
    fn tick(&self, ctx: &Ctx) -> impl Future<Output = Result<Progress, AppError>> + Send;

    /// Gives up what it holds, so that another process takes the work over at once. Most hold nothing.
    fn release(&self, _: &Ctx) -> impl Future<Output = Result<(), AppError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Ticks until `stop` turns true: at once while there is more, then on the signal or after `pause`.
///
/// The signal is armed before the tick, so that what arrives while it runs is not slept over. A tick that has begun runs
/// to its end.
pub async fn run<W: Worker>(worker: W, ctx: Ctx, pause: Duration, mut stop: watch::Receiver<bool>) {
    let mut timer = tokio::time::interval(pause);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !*stop.borrow() {
        let mut signal = std::pin::pin!(worker.signal(&ctx).map(Notify::notified));
        if let Some(signal) = signal.as_mut().as_pin_mut() {
            signal.enable();
        }
        match worker.tick(&ctx).await {
            Ok(Progress::More) => continue,
            Ok(Progress::Idle) => {}
            Err(error) => {
                tracing::warn!(worker = worker.name(), %error, cause = ?error.source, "tick failed")
            }
        }
        timer.reset();
        tokio::select! {
            Some(()) = OptionFuture::from(signal.as_pin_mut()) => {}
            _ = timer.tick() => {}
            _ = stop.changed() => {}
        }
    }
    if let Err(error) = worker.release(&ctx).await {
        tracing::warn!(worker = worker.name(), %error, cause = ?error.source, "a lease was not given up; it ends by itself");
    }
}
