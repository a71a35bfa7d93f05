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
use store::quarantine::{self, Quarantine};
use store::sync::SyncBlock;

use super::apply::MarketFault;
use super::on_chain::MarketRows;
use super::reading::quarantine_market;
use super::repair::repair;
use crate::lease::LeaseHolder;
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
        if self.lease.claim(ctx).await?.is_none() {
            return Ok(Progress::Idle);
        }
        repair_due(ctx).await?;
        trades::repair_stuck(ctx, ctx.now().plus_ms(-STUCK_AFTER_MS), STUCK).await?;
        self.compare_next(ctx).await?;
        Ok(Progress::Idle)
    }
}

impl Reconciler {
    /// A reconciler. `owner` names this process in leases.
    pub fn new(owner: String) -> Self {
        let lease = LeaseHolder::new("reconciler".to_owned(), owner);
        Self { lease, after: Mutex::new(None), round_began_ms: AtomicI64::new(i64::MIN) }
    }

    /// Compares the next markets of this round.
    async fn compare_next(&self, ctx: &Ctx) -> Result<(), AppError> {
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
        for id in &ids {
            match check_market(ctx, *id).await {
                // Something about this market; the others are not to wait for it.
                Err(error) if error.code == ErrorCode::InternalError => {
                    tracing::error!(market.id = %id, %error, cause = ?error.source, "a market was not compared with the chain");
                }
                checked => drop(checked?),
            }
        }
        let is_last = ids.len() < MARKETS as usize;
        *self.after.lock() = if is_last { None } else { ids.last().copied() };
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
            if check_market(ctx, id).await? {
                differed.push(id);
            }
        }
    }
}

/// Compares a market with the chain; one that differs is repaired or put in quarantine. Whether it differed.
async fn check_market(ctx: &Ctx, id: MarketId) -> Result<bool, AppError> {
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
            quarantine_drifted(ctx, id, last.number, &format!("{detail} ({error})")).await?;
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
async fn repair_due(ctx: &Ctx) -> Result<(), AppError> {
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
                let input = (quarantine.market_id, error.to_string(), next);
                let noted: Result<(), StoreError> = ctx
                    .store
                    .write(input, |tx, (id, detail, next)| {
                        Box::pin(quarantine::note_failed_repair(tx, *id, detail, *next))
                    })
                    .await;
                noted?;
            }
        }
    }
    Ok(())
}

/// How long after its `attempts`-th failure a repair is tried again: 2 s, 4 s, 8 s, ... 10 min.
fn pause_ms(attempts: u32) -> i64 {
    2_000i64.saturating_mul(1 << attempts.min(30)).min(LONGEST_PAUSE_MS)
}

/// Puts a market in quarantine that differs from the chain.
pub async fn quarantine_drifted(
    ctx: &Ctx,
    market_id: MarketId,
    block_number: u64,
    detail: &str,
) -> Result<(), AppError> {
    let fault = MarketFault { market_id, block_number, reason: "drift", detail: detail.to_owned() };
    ctx.store
        .write((fault, ctx.now()), |tx, (fault, now): &(MarketFault, Timestamp)| {
            Box::pin(async move { quarantine_market(tx, fault, *now).await.map(drop) })
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
