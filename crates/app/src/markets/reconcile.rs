//! The reconciler: compares markets with the chain, round and round, and looks into trades that should have ended with
//! their batch. It repairs what differs and can be proved, and puts the rest in quarantine.
//!
//! It writes through [`repair`] and the quarantine only, in transactions that exclude the sync. A crash leaves a market as
//! it was or repaired; the next round finds it again.

use std::sync::atomic::{AtomicI64, Ordering};

use alloy_primitives::B256;
use domain::ids::MarketId;
use domain::time::MINUTE_MS;
use domain::{ErrorCode, Timestamp};
use parking_lot::Mutex;
use store::StoreError;
use store::leases::Lease;
use store::quarantine::{self, Quarantine};
use store::sync::SyncBlock;

use super::apply::MarketFault;
use super::on_chain::MarketRows;
use super::reading::quarantine_market;
use super::repair::repair;
use crate::lease::{self, LeaseHolder, Turn};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx, trades};

/// Markets of one tick.
const MARKETS: u32 = 20;
/// Quarantined markets whose repair is tried in one tick.
const REPAIRS: u32 = 5;
/// A trade whose batch ended so long ago should have ended, too.
const STUCK_AFTER_MS: i64 = 5_000;
/// Such trades that are looked into in one tick.
const STUCK: u32 = 20;
/// A round over all markets begins at most this often.
const ROUND_MS: i64 = MINUTE_MS;
/// The longest time between two tries to repair a market.
const LONGEST_PAUSE_MS: i64 = 10 * MINUTE_MS;

/// The reconciler's worker.
pub struct Reconciler {
    lease: LeaseHolder,
    /// The market after which this round goes on.
    after: Mutex<Option<MarketId>>,
    round_began_ms: AtomicI64,
}

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
    /// A reconciler. `owner` names this process in leases.
    pub fn new(owner: String) -> Self {
        let lease = LeaseHolder::new("reconciler".to_owned(), owner);
        Self { lease, after: Mutex::new(None), round_began_ms: AtomicI64::new(i64::MIN) }
    }

    async fn work(&self, ctx: &Ctx, lease: &Lease) -> Result<Progress, AppError> {
        repair_due(ctx, lease).await?;
        trades::repair_stuck(ctx, ctx.now().plus_ms(-STUCK_AFTER_MS), STUCK).await?;
        self.compare_next(ctx, lease).await?;
        Ok(Progress::Idle)
    }

    /// Compares the next markets of this round, as many as a turn has time for and one at least.
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
        let ids: Result<Vec<MarketId>, StoreError> =
            ctx.store.read(after, |tx, after| Box::pin(store::markets::list_ids(tx, *after, MARKETS))).await;
        let ids = ids?;
        let is_last_page = ids.len() < MARKETS as usize;
        for (index, id) in ids.iter().enumerate() {
            if index > 0 && turn.is_over() {
                return Ok(());
            }
            match check_market(ctx, *id, Some(lease)).await {
                // Something about this market; the others are not to wait for it.
                Err(error) if error.code == ErrorCode::InternalError => {
                    tracing::error!(market.id = %id, %error, cause = ?error.source, "a market was not compared with the chain");
                }
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

/// Compares every market once, as the worker does over a round. Returns those that differed.
pub async fn reconcile_all(ctx: &Ctx) -> Result<Vec<MarketId>, AppError> {
    let mut after = None;
    let mut differed = Vec::new();
    loop {
        let ids: Result<Vec<MarketId>, StoreError> =
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

/// Compares the market with this number on the hub with the chain, as the worker does. Whether it differed.
pub async fn compare_with_chain(ctx: &Ctx, number: u64) -> Result<bool, AppError> {
    let market: Result<Option<MarketId>, StoreError> = ctx
        .store
        .read((ctx.chain.chain_id(), number), |tx, (chain_id, number)| {
            Box::pin(async move {
                Ok(store::markets::find_by_chain_id(tx, *chain_id, *number).await?.map(|market| market.id))
            })
        })
        .await;
    match market? {
        Some(id) => check_market(ctx, id, None).await,
        None => Ok(false),
    }
}

/// Compares a market with the chain; one that differs is repaired or put in quarantine. Whether it differed.
async fn check_market(ctx: &Ctx, id: MarketId, lease: Option<&Lease>) -> Result<bool, AppError> {
    let Some((last, differences)) = differences(ctx, id).await? else { return Ok(false) };
    if differences.is_empty() {
        return Ok(false);
    }
    let detail = differences.join("; ");
    tracing::error!(market.id = %id, block = last.number, detail, "a market differs from the chain");
    count(ctx, "drifted_markets").await?;
    match repair(ctx, id, None).await {
        Ok(repaired) => {
            tracing::warn!(market.id = %id, from = repaired.from_block, "a market was repaired from the chain");
        }
        Err(error) if error.code == ErrorCode::InternalError => {
            quarantine_drifted(ctx, lease, id, last.number, &format!("{detail} ({error})")).await?;
        }
        Err(error) => return Err(error),
    }
    Ok(true)
}

/// What differs between a market's rows and the chain after the last block read. `None` if that cannot be said now: the
/// market is not on chain or in quarantine, or the sync has gone on meanwhile.
async fn differences(ctx: &Ctx, id: MarketId) -> Result<Option<(SyncBlock, Vec<String>)>, AppError> {
    let Some((last, rows)) = read(ctx, id).await? else { return Ok(None) };
    let number = rows.market.chain_market_id.filter(|_| rows.market.quarantined_at.is_none());
    let Some(number) = number.filter(|_| rows.market.chain_id == ctx.chain.chain_id()) else {
        return Ok(None);
    };
    let hash: B256 =
        last.hash.parse().map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
    let on_chain = ctx.chain.market_at(number, hash).await?;
    let differences = rows.differences(&on_chain);
    if differences.is_empty() || read(ctx, id).await?.is_some_and(|again| again == (last.clone(), rows)) {
        return Ok(Some((last, differences)));
    }
    Ok(None)
}

async fn read(ctx: &Ctx, id: MarketId) -> Result<Option<(SyncBlock, MarketRows)>, AppError> {
    let read: Result<_, StoreError> = ctx
        .store
        .read(id, |tx, id| {
            Box::pin(async move {
                let before = store::sync::find_last(tx, None).await?;
                let rows = MarketRows::read(tx, *id).await?;
                let after = store::sync::find_last(tx, None).await?;
                Ok(before.filter(|before| after.as_ref() == Some(before)).zip(rows))
            })
        })
        .await;
    Ok(read?)
}

/// Tries the repairs that are due.
async fn repair_due(ctx: &Ctx, lease: &Lease) -> Result<(), AppError> {
    let now = ctx.now();
    let due: Result<Vec<Quarantine>, StoreError> =
        ctx.store.read(now, |tx, now| Box::pin(quarantine::list_due(tx, *now, REPAIRS))).await;
    for quarantine in due? {
        match repair(ctx, quarantine.market_id, None).await {
            Ok(repaired) => {
                tracing::warn!(market.id = %quarantine.market_id, from = repaired.from_block, "a market left its quarantine");
            }
            Err(error) => {
                tracing::warn!(market.id = %quarantine.market_id, %error, "a market stays in quarantine");
                let next = now.plus_ms(pause_ms(quarantine.repair_attempts));
                let input = (lease.clone(), quarantine.market_id, error.to_string(), next);
                ctx.store
                    .write(input, |tx, (lease, id, detail, next)| {
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

/// How long after its `attempts`-th failure a repair is tried again: 2 s, 4 s, 8 s, ... 10 min.
fn pause_ms(attempts: u32) -> i64 {
    2_000i64.saturating_mul(1 << attempts.min(30)).min(LONGEST_PAUSE_MS)
}

/// Puts a market in quarantine that differs from the chain. A worker names the lease under which it found that out.
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
        .write(input, |tx, (lease, fault, now): &(Option<Lease>, MarketFault, Timestamp)| {
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
    let counted: Result<(), StoreError> =
        ctx.store.write(name, |tx, name| Box::pin(quarantine::count_up(tx, name, 1))).await;
    Ok(counted?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_are_tried_after_two_seconds_and_then_ever_less_often() {
        let pauses: Vec<i64> = (0..4).map(pause_ms).collect();
        assert_eq!(pauses, [2_000, 4_000, 8_000, 16_000]);
        assert_eq!((pause_ms(20), pause_ms(63), pause_ms(200)), (600_000, 600_000, 600_000));
    }
}
