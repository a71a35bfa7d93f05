//! The loop and the supervision of background workers.
//!
//! A worker does a bounded amount of work per tick. It keeps no state between ticks that a crash
//! could lose, so normal work and crash recovery are the same code.

mod supervisor;

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

pub use supervisor::supervise;

use crate::{AppError, Ctx};

/// The result of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There may be more work right now.
    More,
    /// Nothing to do for now.
    Idle,
}

/// A task that is repeated in ticks.
///
/// Its futures are boxed, so that a worker is compiled in its own crate. The compiler generates the
/// code of an unboxed future in every crate that awaits it.
#[async_trait]
pub trait Worker: Send + Sync {
    /// The worker's name in logs.
    fn name(&self) -> &'static str;

    /// A name that is unique in this process.
    fn label(&self) -> String {
        self.name().to_owned()
    }

    /// The tick timeout. A tick that takes longer is assumed to hang, and is cancelled.
    fn longest_tick(&self) -> Duration {
        Duration::from_secs(120)
    }

    /// The signal for new work. `None` if only the timer wakes the worker.
    fn signal<'a>(&self, _: &'a Ctx) -> Option<&'a Notify> {
        None
    }

    /// Does a bounded amount of work.
    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError>;

    /// Releases what the worker holds (leases), so that another process can take over at once. Most
    /// workers hold nothing.
    async fn release(&self, _: &Ctx) -> Result<(), AppError> {
        Ok(())
    }
}
