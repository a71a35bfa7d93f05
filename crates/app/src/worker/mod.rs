//! The loop that every worker runs in, and its supervision. A worker does a bounded piece of work a tick and keeps no state
//! between ticks that a crash could lose: normal work and recovery are the same tick.

mod registry;
mod supervisor;

use std::time::Duration;

use tokio::sync::Notify;

pub use registry::{WorkerRegistry, WorkerStatus};
pub use supervisor::supervise;

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

    /// The name that tells it from the others of its kind in this process.
    fn label(&self) -> String {
        self.name().to_owned()
    }

    /// A tick that takes longer waits for something that never comes, and is cut off.
    fn longest_tick(&self) -> Duration {
        Duration::from_secs(120)
    }

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
