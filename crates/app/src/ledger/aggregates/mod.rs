//! Aggregates over markets and movements, shown in lists, threads, trending markets and
//! leaderboards.
//!
//! They are updated in the transactions that write the movements and markets (see `store::listed`
//! and `store::traders`), and depend only on these. This module rebuilds missing aggregates and
//! verifies them against a fresh computation.

mod remake;
mod verify;

use std::sync::atomic::{AtomicI64, Ordering};

use domain::Timestamp;
use store::leases::Lease;
use store::traders::{BUCKET_MS, Deeds};
use store::{StoreError, Tx};

pub use remake::{catch_up, rebuild};
pub use verify::{AggregatesVerification, Difference, verify};

use crate::{AppError, Ctx, lease};

/// The number of movements per page.
const PAGE: u32 = 1_000;

/// The time windows of trending markets, which the sync advances.
#[derive(Debug, Default)]
pub struct TrendingWindows {
    /// The five-minute slot of this process's last update. It only avoids unnecessary writes.
    slot: AtomicI64,
}

impl TrendingWindows {
    /// Advances the windows once per five minutes.
    pub async fn advance(&self, ctx: &Ctx, lease: &Lease) -> Result<(), AppError> {
        let now = ctx.now();
        let due = now.ms().div_euclid(BUCKET_MS);
        if self.slot.load(Ordering::Relaxed) == due {
            return Ok(());
        }
        let moved: Result<(), AppError> = ctx
            .store
            .try_write((lease.clone(), now), |tx, (lease, now): &(Lease, Timestamp)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    Ok(store::traders::advance(tx, *now).await?)
                })
            })
            .await;
        moved?;
        // Only after the commit, so that a failed update is retried in the next tick.
        self.slot.store(due, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns what the blocks after `fork` added to the aggregates, to be subtracted once their
/// movements are deleted.
pub async fn taken_back(tx: &mut Tx, fork: u64) -> Result<Deeds, StoreError> {
    let mut deeds = Deeds::default();
    let mut after = String::new();
    loop {
        let movements = store::movements::list_after(tx, fork, &after, PAGE).await?;
        let Some(last) = movements.last() else { return Ok(deeds) };
        after.clone_from(&last.id);
        movements.iter().for_each(|movement| deeds.take_back(movement));
    }
}
