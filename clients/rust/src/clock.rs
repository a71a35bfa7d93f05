//! Time and chance, which tests replace.

use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;

/// The source of time and chance.
pub trait Clock: Send + Sync {
    /// The present.
    fn now(&self) -> SystemTime;
    /// Waits.
    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()>;
    /// A random number.
    fn random(&self) -> u32;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is given")]
impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn random(&self) -> u32 {
        // Chance only spreads retries: without it they are still correct.
        getrandom::u32().unwrap_or_default()
    }
}
