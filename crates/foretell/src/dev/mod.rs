//! Features that exist only in development: a clock that can be advanced, and the demonstration.

mod content;
mod file;
mod seed;
mod simulate;

use std::sync::Arc;

use app::AppError;
use app::entropy::Entropy;
use app::test_clock::MovableTime;
use async_trait::async_trait;
use domain::time::SystemClock;
use embedded_chain::EmbeddedNode;

pub use file::{DevFile, DevKey, DevMarket, DevUser, OWNERS_FILE, read_sample_users, write_owners};
pub use seed::seed;
pub use simulate::simulate;

/// Returns a random number below `sides`.
fn roll(dice: &dyn Entropy, sides: usize) -> usize {
    let mut bytes = [0; 8];
    dice.fill(&mut bytes);
    (u64::from_be_bytes(bytes) % sides.max(1) as u64) as usize
}

/// The time of the service and of its embedded chain.
pub struct DevTime {
    pub clock: Arc<SystemClock>,
    pub node: Arc<EmbeddedNode>,
}

#[async_trait]
impl MovableTime for DevTime {
    async fn advance(&self, ms: i64) -> Result<(), AppError> {
        self.clock.advance(ms);
        // Mine a block with the new time, so that the contracts see it too.
        self.node.mine().map(drop).map_err(|error| AppError::internal(format!("{error:?}")))
    }
}
