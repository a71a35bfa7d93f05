//! Sums over markets and movements: what lists, threads, trending markets and leaderboards show.
//!
//! They are kept in the transactions that write the movements and the markets, and follow from these alone: `store::listed`
//! and `store::traders` say how. Here is what makes them again where they are missing, and what compares them with a fresh
//! computation.

mod remake;
mod verify;

use std::sync::atomic::{AtomicI64, Ordering};

use domain::Timestamp;
use store::leases::Lease;
use store::traders::{BUCKET_MS, Deeds};
use store::{StoreError, Tx};

pub use remake::{catch_up, rebuild};
pub use verify::{Difference, Verified, verify};

use crate::{AppError, Ctx, lease};

/// How many movements are read at once.
const PAGE: u32 = 1_000;

/// The windows of trending markets, as the sync moves them on.
#[derive(Debug, Default)]
pub struct Windows {
    /// The five minutes in which this process moved them last. It only saves writes.
    slot: AtomicI64,
}

impl Windows {
    /// Moves the windows on once in each five minutes.
    pub async fn advance(&self, ctx: &Ctx, lease: &Lease) -> Result<(), AppError> {
        let now = ctx.now();
        let due = now.ms().div_euclid(BUCKET_MS);
        if self.slot.load(Ordering::Relaxed) == due {
            return Ok(());
        }
        let moved: Result<(), AppError> = ctx
            .store
            .write((lease.clone(), now), |tx, (lease, now): &(Lease, Timestamp)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    Ok(store::traders::advance(tx, *now).await?)
                })
            })
            .await;
        moved?;
        self.slot.store(due, Ordering::Relaxed);
        Ok(())
    }
}

/// What the blocks after `fork` have added to sums, to be taken from them once their movements are deleted.
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
