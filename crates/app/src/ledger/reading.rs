//! Reads consecutive blocks and writes their events, together with the sync's new position, in one
//! transaction. A market whose events cannot be applied is quarantined in the same transaction, and
//! the others continue.

use std::collections::BTreeSet;

use chain::{BlockEvents, Blocks, ChainError};
use domain::{ErrorCode, Timestamp};
use store::Tx;
use store::leases::Lease;
use store::quarantine::{self, Quarantine};
use store::sync::SyncBlock;
use store::traders::Deeds;

use super::apply::{ApplyError, Fold, Ignored, MarketFault, Selection};
use super::sync::settle_up_to;
use crate::{AppError, Ctx, lease, lost_data};

/// The delay between a market's quarantine and the first repair attempt.
const FIRST_REPAIR_MS: i64 = 1_000;

/// Blocks that were read, with what to write for them.
pub struct Reading {
    /// The last block that was read before. `None` on the first reading.
    after: Option<SyncBlock>,
    blocks: Vec<BlockEvents>,
    noted: Vec<SyncBlock>,
    chain_id: u64,
}

impl Reading {
    /// Reads the blocks `from..=to`, which must follow `after`. Blocks from `recent_from` on also
    /// store a digest of their logs, because they are read again before they are settled.
    pub async fn of(
        ctx: &Ctx,
        from: u64,
        to: u64,
        after: Option<SyncBlock>,
        recent_from: u64,
        skipped: &[u64],
    ) -> Result<Self, AppError> {
        let Blocks { parent_hash, blocks } = ctx.chain.read_blocks(from, to, skipped).await?;
        // The node's blocks must build on the last block read; otherwise events of two branches
        // would mix.
        if let Some(after) = &after
            && parent_hash != after.hash
        {
            let detail = format!("block {from} does not follow block {}", after.number);
            return Err(ChainError::Inconsistent(detail).into());
        }
        let noted = blocks.iter().map(|block| SyncBlock {
            number: block.number,
            hash: block.hash,
            at: Timestamp::from_s(block.timestamp_s),
            logs_digest: block
                .logs_digest
                .filter(|_| block.number >= recent_from)
                .map(|digest| digest.to_string()),
        });
        Ok(Self { after, noted: noted.collect(), blocks, chain_id: ctx.chain.chain_id() })
    }

    /// Returns the number of events.
    pub fn events(&self) -> usize {
        self.blocks.iter().map(|block| block.events.len()).sum()
    }

    /// Writes the reading, and settles trades of blocks up to `settle_to`.
    pub async fn write(
        self,
        ctx: &Ctx,
        lease: &Lease,
        settle_to: Option<u64>,
        keep_blocks: u64,
    ) -> Result<(), AppError> {
        let now = ctx.now();
        ctx.store
            .try_write((self, lease.clone(), settle_to, keep_blocks, now), |tx, input| {
                Box::pin(async move {
                    let (reading, held, settle_to, keep_blocks, now) = input;
                    lease::check(tx, held).await?;
                    // Checking the lease is not enough: the operator can take blocks back without
                    // it, which also moves the position.
                    if store::sync::find_last(tx, None).await? != reading.after {
                        let detail = "another process has already read these blocks".to_owned();
                        return Err(ChainError::Inconsistent(detail).into());
                    }
                    reading.apply(tx, *now).await?;
                    let last = reading.noted.last().map_or(0, |block| block.number);
                    store::sync::put(tx, &reading.noted, last.saturating_sub(*keep_blocks)).await?;
                    match settle_to {
                        Some(settle_to) => settle_up_to(tx, *settle_to, *now).await,
                        None => Ok(()),
                    }
                })
            })
            .await
    }

    async fn apply(&self, tx: &mut Tx, now: Timestamp) -> Result<(), AppError> {
        if self.events() == 0 {
            return Ok(());
        }
        self.look_for_lost_data(tx, now).await?;
        store::traders::lock(tx).await?;
        let held_back = quarantine::list_numbers(tx, self.chain_id).await?;
        let mut held_back: BTreeSet<u64> = held_back.into_iter().collect();
        // Each round excludes one more market, so the loop ends. Nothing of a failed fold has been
        // written.
        loop {
            let selection = Selection { only: None, held_back: held_back.clone() };
            let mut fold = Fold::new(self.chain_id, selection, Deeds::default());
            match fold_all(&mut fold, tx, &self.blocks).await {
                Ok(()) => {
                    let ignored = fold.write(tx).await?;
                    return count_ignored(tx, ignored).await;
                }
                Err(ApplyError::Market(fault)) => {
                    held_back.insert(quarantine_market(tx, &fault, now).await?);
                }
                Err(ApplyError::Other(error)) => return Err(error),
            }
        }
    }
}

impl Reading {
    /// Opens a recovery if the chain decided trades that were not signed according to the database.
    /// The blocks are applied anyway, because positions follow the chain no matter who signed.
    async fn look_for_lost_data(&self, tx: &mut Tx, now: Timestamp) -> Result<(), AppError> {
        let decisions = lost_data::decisions_in(&self.blocks);
        let from_block = self.after.as_ref().map_or(0, |after| after.number + 1);
        if !decisions.is_empty()
            && let Some(opening) = lost_data::evidence(tx, &decisions, from_block).await?
        {
            lost_data::open(tx, &opening, now).await?;
        }
        Ok(())
    }
}

pub async fn fold_all(fold: &mut Fold, tx: &mut Tx, blocks: &[BlockEvents]) -> Result<(), ApplyError> {
    for block in blocks {
        let at = Timestamp::from_s(block.timestamp_s);
        for event in &block.events {
            fold.event(tx, event, at).await?;
        }
    }
    Ok(())
}

/// Quarantines a market. Returns its number on chain.
pub async fn quarantine_market(tx: &mut Tx, fault: &MarketFault, now: Timestamp) -> Result<u64, AppError> {
    let MarketFault { market_id, block_number, reason, detail } = fault;
    tracing::error!(market.id = %market_id, block = block_number, reason, detail, "quarantined a market");
    let quarantine = Quarantine {
        market_id: *market_id,
        block_number: *block_number,
        reason: (*reason).to_owned(),
        detail: detail.clone(),
        quarantined_at: now,
        repair_attempts: 0,
        next_repair_at: now.plus_ms(FIRST_REPAIR_MS),
    };
    quarantine::insert(tx, &quarantine).await?;
    quarantine::count_up(tx, "quarantined_markets", 1).await?;
    let market = store::markets::find(tx, *market_id).await?;
    let number = market.and_then(|market| market.chain_market_id);
    number.ok_or_else(|| AppError::new(ErrorCode::InternalError).detail("The market is not on chain."))
}

async fn count_ignored(tx: &mut Tx, ignored: Ignored) -> Result<(), AppError> {
    let Ignored { undecodable, empty_transfers, held_back } = ignored;
    quarantine::count_up(tx, "undecodable_logs", undecodable).await?;
    quarantine::count_up(tx, "empty_transfers", empty_transfers).await?;
    Ok(quarantine::count_up(tx, "held_back_events", held_back).await?)
}
