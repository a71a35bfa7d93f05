//! The clock of a development service, which clients may move forward to test what time does: held
//! trades that expire, webhooks that are retried, markets that close.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use domain::Timestamp;
use tokio::sync::Mutex;

use crate::{AppError, Ctx};

/// The latest time that the clock may be moved to: 2100-01-01. Intents store their deadlines in 32
/// bits of seconds, which end six years later.
pub const LATEST: Timestamp = Timestamp::from_s(4_102_444_800);

/// The time of the service and of its chain.
#[async_trait]
pub trait MovableTime: Send + Sync {
    /// Moves both forward.
    async fn advance(&self, ms: i64) -> Result<(), AppError>;
}

/// A clock that only moves forward.
pub struct TestClock {
    time: Arc<dyn MovableTime>,
    /// Held during a move, so that simultaneous moves add up.
    moving: Mutex<()>,
}

impl fmt::Debug for TestClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClock").finish_non_exhaustive()
    }
}

/// A movement of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMove {
    /// By this many seconds.
    By(u64),
    To(Timestamp),
}

impl TestClock {
    pub fn new(time: Arc<dyn MovableTime>) -> Self {
        Self { time, moving: Mutex::new(()) }
    }

    /// Moves the clock and wakes all workers, which may have due work now. Returns the new time.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for a move back, or beyond [`LATEST`].
    pub async fn make_move(&self, ctx: &Ctx, to: ClockMove) -> Result<Timestamp, AppError> {
        let _moving = self.moving.lock().await;
        let now = ctx.now();
        let (pointer, target) = match to {
            ClockMove::By(seconds) => {
                let ms = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
                ("/advanceSeconds", now.plus_ms(ms))
            }
            ClockMove::To(target) => ("/now", target),
        };
        if target > LATEST {
            let requirement = format!("must not move the clock beyond {LATEST}");
            return Err(AppError::field(pointer, &requirement));
        }
        if target < now {
            let requirement = format!("must not be before the service's time, which is {now}");
            return Err(AppError::field(pointer, &requirement));
        }
        self.time.advance(target.since_ms(now)).await?;
        ctx.wake.clock.notify_waiters();
        Ok(ctx.now())
    }
}
