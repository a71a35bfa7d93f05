//! The reconciler: continuously compares markets with the chain, and checks trades that should have
//! ended with their batch. It repairs provable differences and quarantines the other markets.
//!
//! It only writes through [`repair_market`] and the quarantine, in transactions that exclude the sync.
//! After a crash a market is either unchanged or repaired, and the next round checks it again.

use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use domain::ids::MarketId;
use domain::time::MINUTE_MS;
use domain::{ErrorCode, Timestamp};
use parking_lot::Mutex;
use store::leases::Lease;
use store::quarantine;
use store::sync::SyncBlock;

use super::apply::MarketFault;
use super::on_chain::MarketRows;
use super::reading::quarantine_market;
use super::repair_markets::repair_market;
use super::repair_trades::repair_stuck;
use crate::lease::{self, LeaseHolder, Turn};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The name of the reconciler's lease. The process that holds it runs the upkeep.
pub const LEASE: &str = "reconciler";
/// The number of markets per page.
const MARKETS: u32 = 20;
/// The maximum number of repair attempts per tick.
const REPAIRS: u32 = 5;
/// A trade that is still executing this long after its batch ended counts as stuck.
const STUCK_AFTER_MS: i64 = 5_000;
/// The maximum number of stuck trades per tick.
const STUCK: u32 = 20;
/// The minimum time between the starts of two rounds over all markets.
const ROUND_MS: i64 = MINUTE_MS;
/// The longest delay between two repair attempts of a market.
const LONGEST_PAUSE_MS: i64 = 10 * MINUTE_MS;

pub struct Reconciler {
    lease: LeaseHolder,
    /// The last compared market of the current round. `None` between rounds.
    after: Mutex<Option<MarketId>>,
    round_began_ms: AtomicI64,
}

#[async_trait]
impl Worker for Reconciler {
    fn name(&self) -> &'static str {
        "reconciler"
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(Progress::Idle) };
        self.lease.keep(ctx, &lease, self.work(ctx, &lease)).await
    }
}

impl Reconciler {
    /// Creates the worker. `owner` identifies this process in leases.
    pub fn new(owner: String) -> Self {
        let lease = LeaseHolder::new(LEASE.to_owned(), owner);
        Self { lease, after: Mutex::new(None), round_began_ms: AtomicI64::new(i64::MIN) }
    }

    async fn work(&self, ctx: &Ctx, lease: &Lease) -> Result<Progress, AppError> {
        repair_due(ctx, lease).await?;
        repair_stuck(ctx, ctx.now().plus_ms(-STUCK_AFTER_MS), STUCK).await?;
        self.compare_next(ctx, lease).await?;
        Ok(Progress::Idle)
    }

    /// Compares the next markets of this round: at least one, and as many as a turn has time for.
    async fn compare_next(&self, ctx: &Ctx, lease: &Lease) -> Result<(), AppError> {
        let turn = Turn::begin(ctx);
        let after = *self.after.lock();
        let now = ctx.now().ms();
        if after.is_none() {
            if now.saturating_sub(self.round_began_ms.load(Ordering::Relaxed)) < ROUND_MS {
                return Ok(());
            }
            self.round_began_ms.store(now, Ordering::Relaxed);
        }
        let ids =
            ctx.store.read(after, |tx, after| Box::pin(store::markets::list_ids(tx, *after, MARKETS))).await;
        let ids = ids?;
        let is_last_page = ids.len() < MARKETS as usize;
        for (index, id) in ids.iter().enumerate() {
            if index > 0 && turn.is_over() {
                return Ok(());
            }
            match check_market(ctx, *id, Some(lease)).await {
                // An error of this market only: do not let the others wait.
                Err(error) if error.code == ErrorCode::InternalError => {
                    tracing::error!(market.id = %id, %error, cause = ?error.source, "could not compare a market with the chain");
                }
                // Other errors, such as an unavailable node, end the tick and leave `after` where
                // it is.
                checked => drop(checked?),
            }
            *self.after.lock() = Some(*id);
        }
        if is_last_page {
            *self.after.lock() = None;
        }
        Ok(())
    }
}

/// Compares every market once, like one round of the worker. Returns those that differed.
pub async fn reconcile_all(ctx: &Ctx) -> Result<Vec<MarketId>, AppError> {
    let mut after = None;
    let mut differed = Vec::new();
    loop {
        let ids =
            ctx.store.read(after, |tx, after| Box::pin(store::markets::list_ids(tx, *after, MARKETS))).await;
        let ids = ids?;
        let Some(last) = ids.last() else { return Ok(differed) };
        after = Some(*last);
        for id in ids {
            if check_market(ctx, id, None).await? {
                differed.push(id);
            }
        }
    }
}

/// Compares the market with this number on chain. Returns whether it differed.
pub async fn compare_with_chain(ctx: &Ctx, number: u64) -> Result<bool, AppError> {
    let market = ctx
        .store
        .read((ctx.chain.chain_id(), number), |tx, (chain_id, number)| {
            Box::pin(async move {
                Ok(store::markets::find_by_chain_id(tx, *chain_id, *number).await?.map(|market| market.id))
            })
        })
        .await?;
    match market {
        Some(id) => check_market(ctx, id, None).await,
        None => Ok(false),
    }
}

/// Compares a market with the chain. Repairs or quarantines it if it differs. Returns whether it
/// did.
async fn check_market(ctx: &Ctx, id: MarketId, lease: Option<&Lease>) -> Result<bool, AppError> {
    let Some((last, differences)) = differences(ctx, id).await? else { return Ok(false) };
    if differences.is_empty() {
        return Ok(false);
    }
    let detail = differences.join("; ");
    tracing::error!(market.id = %id, block = last.number, detail, "a market differs from the chain");
    count(ctx, "drifted_markets").await?;
    match repair_market(ctx, id, None).await {
        Ok(repaired) => {
            tracing::warn!(market.id = %id, from = repaired.from_block, "repaired a market from the chain");
        }
        Err(error) if error.code == ErrorCode::InternalError => {
            quarantine_drifted(ctx, lease, id, last.number, &format!("{detail} ({error})")).await?;
        }
        Err(error) => return Err(error),
    }
    Ok(true)
}

/// Returns the differences between a market's rows and the chain after the last block read.
///
/// `None` if they cannot be compared now: the market is not on chain or is quarantined, or the sync
/// has advanced in between.
async fn differences(ctx: &Ctx, id: MarketId) -> Result<Option<(SyncBlock, Vec<String>)>, AppError> {
    let Some((last, rows)) = read(ctx, id).await? else { return Ok(None) };
    let number = rows.market.chain_market_id.filter(|_| rows.market.quarantined_at.is_none());
    let Some(number) = number.filter(|_| rows.market.chain_id == ctx.chain.chain_id()) else {
        return Ok(None);
    };
    let on_chain = ctx.chain.market_at(number, last.hash).await?;
    let differences = rows.differences(&on_chain);
    // The chain was read after the rows. Only a second, equal read proves that both are of the same
    // block.
    if differences.is_empty() || read(ctx, id).await?.is_some_and(|again| again == (last.clone(), rows)) {
        return Ok(Some((last, differences)));
    }
    Ok(None)
}

async fn read(ctx: &Ctx, id: MarketId) -> Result<Option<(SyncBlock, MarketRows)>, AppError> {
    Ok(ctx
        .store
        .read(id, |tx, id| {
            Box::pin(async move {
                // Read before and after: the rows belong to this block only if the sync did not
                // advance in between.
                let before = store::sync::find_last(tx, None).await?;
                let rows = MarketRows::read(tx, *id).await?;
                let after = store::sync::find_last(tx, None).await?;
                Ok(before.filter(|before| after.as_ref() == Some(before)).zip(rows))
            })
        })
        .await?)
}

/// Attempts the repairs that are due.
async fn repair_due(ctx: &Ctx, lease: &Lease) -> Result<(), AppError> {
    let now = ctx.now();
    let due = ctx.store.read(now, |tx, now| Box::pin(quarantine::list_due(tx, *now, REPAIRS))).await?;
    for quarantine in due {
        match repair_market(ctx, quarantine.market_id, None).await {
            Ok(repaired) => {
                tracing::warn!(market.id = %quarantine.market_id, from = repaired.from_block, "released a market from quarantine");
            }
            Err(error) => {
                tracing::warn!(market.id = %quarantine.market_id, %error, "a market remains in quarantine");
                let next = now.plus_ms(pause_ms(quarantine.repair_attempts));
                let input = (lease.clone(), quarantine.market_id, error.to_string(), next);
                ctx.store
                    .try_write(input, |tx, (lease, id, detail, next)| {
                        Box::pin(async move {
                            lease::check(tx, lease).await?;
                            Ok::<_, AppError>(quarantine::note_failed_repair(tx, *id, detail, *next).await?)
                        })
                    })
                    .await?;
            }
        }
    }
    Ok(())
}

/// Returns the delay after the given number of failed repairs: 2 s, 4 s, 8 s, ... 10 min.
fn pause_ms(attempts: u32) -> i64 {
    2_000i64.saturating_mul(1 << attempts.min(30)).min(LONGEST_PAUSE_MS)
}

/// Quarantines a market that differs from the chain. A worker passes its lease, which is checked in
/// the transaction.
pub async fn quarantine_drifted(
    ctx: &Ctx,
    lease: Option<&Lease>,
    market_id: MarketId,
    block_number: u64,
    detail: &str,
) -> Result<(), AppError> {
    let fault = MarketFault { market_id, block_number, reason: "drift", detail: detail.to_owned() };
    let input = (lease.cloned(), fault, ctx.now());
    ctx.store
        .try_write(input, |tx, (lease, fault, now): &(Option<Lease>, MarketFault, Timestamp)| {
            Box::pin(async move {
                if let Some(lease) = lease {
                    lease::check(tx, lease).await?;
                }
                quarantine_market(tx, fault, *now).await.map(drop)
            })
        })
        .await
}

async fn count(ctx: &Ctx, name: &'static str) -> Result<(), AppError> {
    Ok(ctx.store.write(name, |tx, name| Box::pin(quarantine::count_up(tx, name, 1))).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_are_retried_after_two_seconds_and_then_less_often() {
        let pauses: Vec<i64> = (0..4).map(pause_ms).collect();
        assert_eq!(pauses, [2_000, 4_000, 8_000, 16_000]);
        assert_eq!((pause_ms(20), pause_ms(63), pause_ms(200)), (600_000, 600_000, 600_000));
    }
}
