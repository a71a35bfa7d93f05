//! A clock that only the test advances.

use std::sync::mpsc;
use std::time::Duration;

/// Holds the paused clock. Otherwise tokio would advance it whenever all tasks wait for sockets.
pub struct StoppedClock {
    _held: mpsc::Sender<()>,
}

impl StoppedClock {
    /// For tests that start with a paused clock.
    pub fn new() -> Self {
        let (held, release) = mpsc::channel();
        // The runtime does not skip time while a blocking task runs.
        tokio::task::spawn_blocking(move || release.recv());
        Self { _held: held }
    }

    /// Advances time in steps of half a second, and runs what is due after each step.
    pub async fn pass(&self, duration: Duration) {
        let step = Duration::from_millis(500);
        let mut left = duration;
        while !left.is_zero() {
            tokio::time::advance(step.min(left)).await;
            left = left.saturating_sub(step);
        }
    }
}
