//! The sync: reads the contracts' events into the tables, once and in the chain's order, and
//! settles trades from final events. It follows the chain through reorganizations by taking back
//! the events of abandoned blocks.
//!
//! Only the sync writes `movements`, `positions`, `candles`, the statistics in `store::traders`,
//! `intent_failures`, `sync_blocks` and the chain's part of `markets` and `outcomes`. It ends
//! trades, and adds settled markets to `announcements` and `payout_scans` for further processing.
//!
//! Everything of one reading is written in one transaction, together with the last block read. So a
//! crash leaves the whole reading or nothing, and the next tick continues after that block.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chain::{Block, ChainError};
use domain::Timestamp;
use domain::ids::MarketId;
use domain::market::MarketStatus;
use futures::{StreamExt, TryStreamExt, stream};
use store::StoreError;
use store::leases::Lease;
use store::market_statuses::StatusChange;
use store::markets::{ChangeBlock, Market};
use store::sync::SyncBlock;
use tokio::sync::Notify;

use super::apply::ApplyError;
use super::reading::{Reading, quarantine_market};
use super::rebuild::{Life, rebuild};
use super::{aggregates, candles, settle_redemptions, settle_trades};
use crate::finality::final_block;
use crate::lease::{self, LeaseHolder, Turn};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The lease that permits writing movements.
pub const LEASE: &str = "sync";
/// The number of blocks to remember for finding a fork.
const KEEP_BLOCKS: u64 = 10_000;
/// Blocks that are at most this deep when they are read are read again before they are settled. The
/// depth is at least twice the required confirmations.
const REREAD_DEPTH: u64 = 64;
/// The number of blocks to read again concurrently.
const REREAD_AT_ONCE: usize = 16;
/// The maximum number of recorded blocks to settle in one transaction.
const SETTLED_AT_ONCE: u32 = 256;
const FEWEST_BLOCKS: u64 = 16;
const MOST_BLOCKS: u64 = 4_096;
/// After a reading with more events than this, the next one is shorter. With less than a quarter of
/// it, the next one is longer.
const MANY_EVENTS: usize = 2_000;
/// The maximum number of markets to close in one transaction.
const CLOSED_AT_ONCE: u32 = 100;

pub struct Sync {
    first_block: u64,
    blocks_at_once: AtomicU64,
    windows: aggregates::TrendingWindows,
    lease: LeaseHolder,
}

#[async_trait]
impl Worker for Sync {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn signal<'a>(&self, ctx: &'a Ctx) -> Option<&'a Notify> {
        Some(&ctx.wake.sync)
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        Ok(self.step(ctx).await?.unwrap_or(Progress::Idle))
    }
}

impl Sync {
    /// Creates the worker. On an empty database it starts at `first_block`. `owner` identifies this
    /// process in leases.
    pub fn new(owner: String, first_block: u64) -> Self {
        let lease = LeaseHolder::new(LEASE.to_owned(), owner);
        let windows = aggregates::TrendingWindows::default();
        Self { first_block, blocks_at_once: AtomicU64::new(64), windows, lease }
    }

    /// Does a bounded amount of work. Returns `None` while another process holds the lease.
    pub async fn step(&self, ctx: &Ctx) -> Result<Option<Progress>, AppError> {
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(None) };
        self.lease.keep(ctx, &lease, self.work(ctx, &lease)).await.map(Some)
    }

    async fn work(&self, ctx: &Ctx, lease: &Lease) -> Result<Progress, AppError> {
        let turn = Turn::begin(ctx);
        close_markets(ctx, lease).await?;
        let more_candles = candles::catch_up(ctx, lease).await?;
        let more_aggregates = aggregates::catch_up(ctx, lease).await?;
        self.windows.advance(ctx, lease).await?;
        let progress = self.follow(ctx, lease, turn).await?;
        Ok(if more_candles || more_aggregates { Progress::More } else { progress })
    }

    /// Reads the next blocks or takes back reorganized ones, then settles what has become final.
    ///
    /// A node that lacks a block which was read before is behind, so the sync waits. Only a
    /// different hash at a known height is a reorganization.
    async fn follow(&self, ctx: &Ctx, lease: &Lease, turn: Turn) -> Result<Progress, AppError> {
        let Place { last, skipped } = Place::read(ctx).await?;
        ctx.chain.want_height(last.as_ref().map_or(0, |last| last.number));
        let head = ctx.chain.head().await?;
        if let Some(last) = &last
            && !is_canonical(ctx, last).await?
        {
            take_back(ctx, lease, last).await?;
            return Ok(Progress::More);
        }
        let from = last.as_ref().map_or(self.first_block, |last| last.number + 1);
        if from > head.number {
            return settle_deeper(ctx, lease, &head, turn).await;
        }
        let at_once = self.blocks_at_once.load(Ordering::Relaxed);
        // Assume failure: a reading that fails, or is cancelled because the node is too slow, is
        // followed by a shorter one. A successful reading adapts the length below.
        self.blocks_at_once.store((at_once / 2).max(FEWEST_BLOCKS), Ordering::Relaxed);
        let to = head.number.min(from + at_once - 1);
        let recent_from = head.number.saturating_sub(REREAD_DEPTH.max(2 * ctx.confirmations()));
        let reading = Reading::of(ctx, from, to, last, recent_from, &skipped).await?;
        if !turn.is_over() {
            self.adapt(at_once, reading.events());
        }
        // The embedded chain cannot contradict itself, so its blocks are settled in the same
        // transaction.
        if ctx.chain.is_embedded() {
            let settle_to = final_block(ctx, head.number).await?.map(|block| block.min(to));
            reading.write(ctx, lease, settle_to, KEEP_BLOCKS).await?;
            return Ok(if to < head.number { Progress::More } else { Progress::Idle });
        }
        // Never settle what was read just now: recent blocks are read a second time first.
        reading.write(ctx, lease, None, KEEP_BLOCKS).await?;
        let progress = settle_deeper(ctx, lease, &head, turn).await?;
        Ok(if to < head.number { Progress::More } else { progress })
    }

    fn adapt(&self, at_once: u64, events: usize) {
        let next = if events > MANY_EVENTS {
            at_once / 2
        } else if events < MANY_EVENTS / 4 {
            at_once * 2
        } else {
            at_once
        };
        self.blocks_at_once.store(next.clamp(FEWEST_BLOCKS, MOST_BLOCKS), Ordering::Relaxed);
    }
}

/// The sync's position: the last block read, and the later blocks that the operator has excluded.
struct Place {
    last: Option<SyncBlock>,
    skipped: Vec<u64>,
}

impl Place {
    async fn read(ctx: &Ctx) -> Result<Self, AppError> {
        Ok(ctx
            .store
            .read((), |tx, ()| {
                Box::pin(async move {
                    let last = store::sync::find_last(tx, None).await?;
                    let next = last.as_ref().map_or(0, |last| last.number + 1);
                    let skipped = store::quarantine::list_skipped_blocks(tx, next, i64::MAX as u64).await?;
                    Ok(Self { last, skipped })
                })
            })
            .await?)
    }
}

/// Settles blocks that have become final since they were read. They are first read again. If a
/// block's logs differ from the first reading, it is taken back and read again by the sync.
///
/// If a slow node cannot answer for all blocks within a turn, only the verified ones are settled,
/// and the others in the next tick.
async fn settle_deeper(ctx: &Ctx, lease: &Lease, head: &Block, turn: Turn) -> Result<Progress, AppError> {
    let Some(final_block) = final_block(ctx, head.number).await? else { return Ok(Progress::Idle) };
    let unsettled = ctx.store.read(final_block, |tx, to| Box::pin(Unsettled::read(tx, *to))).await;
    let Some(mut unsettled) = unsettled? else { return Ok(Progress::Idle) };
    let mut read_again = None;
    for blocks in unsettled.to_read_again.chunks(REREAD_AT_ONCE) {
        if let Some(last) = read_again.filter(|_| turn.is_over()) {
            (unsettled.last, unsettled.is_all) = (SyncBlock::clone(last), false);
            break;
        }
        if let Some(block) = find_different(ctx, blocks).await? {
            tracing::error!(block, "the node returned two different versions of a block: reading it again");
            take_back_to(ctx, Some(lease), block.saturating_sub(1)).await?;
            return Ok(Progress::More);
        }
        read_again = blocks.last();
    }
    // Only the last block: its hash commits to all blocks before it.
    check_agreement(ctx, &unsettled.last).await?;
    let now = ctx.now();
    ctx.store
        .try_write((lease.clone(), unsettled.last.clone(), now), |tx, (lease, last, now)| {
            Box::pin(async move {
                lease::check(tx, lease).await?;
                // A reorganization may have replaced the block while it was verified.
                if store::sync::find_last(tx, Some(last.number)).await?.as_ref() != Some(last) {
                    let detail = "a block was read again while it was being settled".to_owned();
                    return Err(ChainError::Inconsistent(detail).into());
                }
                settle_up_to(tx, last.number, *now).await
            })
        })
        .await?;
    Ok(if unsettled.is_all { Progress::Idle } else { Progress::More })
}

/// Returns the first block that the node now reads differently.
async fn find_different(ctx: &Ctx, blocks: &[SyncBlock]) -> Result<Option<u64>, AppError> {
    let differs = async |block: SyncBlock| {
        let digest = ctx.chain.logs_digest(block.number, block.hash).await?;
        let is_different = digest.map(|digest| digest.to_string()) != block.logs_digest;
        Ok::<_, AppError>(is_different.then_some(block.number))
    };
    let read = stream::iter(blocks.to_vec()).map(differs).buffered(REREAD_AT_ONCE);
    let different: Vec<Option<u64>> = read.try_collect().await?;
    Ok(different.into_iter().flatten().next())
}

/// Checks that the configured number of nodes agrees on a block that is about to be settled.
async fn check_agreement(ctx: &Ctx, block: &SyncBlock) -> Result<(), AppError> {
    let agreed = ctx.chain.agreed_hash(block.number).await?;
    if agreed == Some(block.hash) {
        return Ok(());
    }
    let detail = format!("the nodes do not agree on block {}", block.number);
    Err(ChainError::Inconsistent(detail).into())
}

struct Unsettled {
    last: SyncBlock,
    to_read_again: Vec<SyncBlock>,
    is_all: bool,
}

impl Unsettled {
    async fn read(tx: &mut store::Tx, final_block: u64) -> Result<Option<Self>, StoreError> {
        let from = store::sync::find_settled(tx).await?.map_or(0, |settled| settled + 1);
        if from > final_block {
            return Ok(None);
        }
        let blocks = store::sync::list(tx, from, final_block, SETTLED_AT_ONCE).await?;
        let is_all = blocks.len() < SETTLED_AT_ONCE as usize;
        // The embedded chain and old blocks are only recorded in part. Settling the last recorded
        // block settles all blocks up to it.
        let Some(last) = blocks.last().cloned() else { return Ok(None) };
        let to_read_again = blocks.into_iter().filter(|block| block.logs_digest.is_some()).collect();
        Ok(Some(Self { last, to_read_again, is_all }))
    }
}

/// Settles the trades and redemptions of final blocks up to `final_block`. Blocks that were settled
/// before are skipped.
pub(super) async fn settle_up_to(
    tx: &mut store::Tx,
    final_block: u64,
    now: Timestamp,
) -> Result<(), AppError> {
    let from = store::sync::find_settled(tx).await?.map_or(0, |settled| settled + 1);
    if from > final_block {
        return Ok(());
    }
    settle_trades::settle(tx, from, final_block, now).await?;
    settle_redemptions::settle(tx, from, final_block, now).await?;
    // In the same transaction, so that each event settles its trade once.
    Ok(store::sync::put_settled(tx, final_block).await?)
}

/// Returns whether the chain still has the block.
///
/// # Errors
/// `Inconsistent` if the node has no block at this height, because it is behind.
async fn is_canonical(ctx: &Ctx, block: &SyncBlock) -> Result<bool, AppError> {
    match ctx.chain.block(block.number).await? {
        Some(on_chain) => Ok(on_chain.hash == block.hash),
        None => {
            let detail = format!("the node does not have block {}, which was read before", block.number);
            Err(ChainError::Inconsistent(detail).into())
        }
    }
}

/// Handles a reorganization: finds the last common block, and takes back everything after it.
///
/// Settled blocks are never taken back here. Instead nothing is read until the node has the settled
/// blocks again, or the operator decides.
async fn take_back(ctx: &Ctx, lease: &Lease, last: &SyncBlock) -> Result<(), AppError> {
    // A node that switched to another chain must not be mistaken for a reorganization.
    ctx.chain.confirm().await?;
    let settled = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
    let fork = find_fork(ctx, last).await?.map_or(0, |block| block.number);
    if let Some(settled) = settled?.filter(|settled| fork < *settled) {
        tracing::error!(fork, settled, "the node's chain differs from the settled one: reading has stopped");
        let detail = format!("block {settled} is settled, but the node's chain differs from block {fork} on");
        return Err(ChainError::Inconsistent(detail).into());
    }
    tracing::warn!(
        fork,
        last = last.number,
        "the chain was reorganised: reverting the events after the fork"
    );
    take_back_to(ctx, Some(lease), fork).await?;
    ctx.process.metrics.reorganized();
    Ok(())
}

/// Takes back everything that was read after block `fork`, and recomputes what it had changed.
/// Without a lease (operator command), settled blocks are taken back too.
pub async fn take_back_to(ctx: &Ctx, lease: Option<&Lease>, fork: u64) -> Result<(), AppError> {
    let stands = ctx.store.read(fork, |tx, fork| Box::pin(store::sync::find_last(tx, Some(*fork)))).await;
    let stands = stands?.map_or(ChangeBlock { block: 0, time: Timestamp::from_ms(0) }, |block| ChangeBlock {
        block: block.number,
        time: block.at,
    });
    let chain_id = ctx.chain.chain_id();
    let touched = ctx
        .store
        .read((chain_id, stands.block), |tx, (chain_id, fork)| {
            Box::pin(store::markets::list_changed_after(tx, *chain_id, *fork))
        })
        .await;
    let mut lives = Vec::new();
    for market in touched? {
        let mut life = Life::now(ctx, &market).await?;
        // The clock froze this market, and the record of it may be taken back too. Set it to open,
        // so that `close_markets` freezes and records it again.
        let by_the_clock = market.frozen_at == Some(market.end_time) && market.end_time <= ctx.now();
        if let Some(life) = life.as_mut().filter(|life| by_the_clock && life.status == MarketStatus::Frozen) {
            life.status = MarketStatus::Open;
        }
        lives.push((market.id, life));
    }
    let input = TakeBack { lease: lease.cloned(), stands, lives, now: ctx.now() };
    ctx.store.try_write(input, |tx, input| Box::pin(input.write(tx))).await
}

/// Returns the newest recorded block that the chain still has. `None` if it has none.
///
/// # Errors
/// `Inconsistent` if the node lacks a block of that height.
pub async fn find_fork(ctx: &Ctx, last: &SyncBlock) -> Result<Option<SyncBlock>, AppError> {
    let mut candidate = Some(last.clone());
    while let Some(block) = candidate {
        if is_canonical(ctx, &block).await? {
            return Ok(Some(block));
        }
        candidate = noted_before(ctx, block.number).await?;
    }
    Ok(None)
}

async fn noted_before(ctx: &Ctx, number: u64) -> Result<Option<SyncBlock>, AppError> {
    let Some(before) = number.checked_sub(1) else { return Ok(None) };
    Ok(ctx.store.read(before, |tx, before| Box::pin(store::sync::find_last(tx, Some(*before)))).await?)
}

/// The input of the transaction that takes blocks back.
struct TakeBack {
    lease: Option<Lease>,
    stands: ChangeBlock,
    lives: Vec<(MarketId, Option<Life>)>,
    now: Timestamp,
}

impl TakeBack {
    async fn write(&self, tx: &mut store::Tx) -> Result<(), AppError> {
        let Self { lease, stands, lives, now } = self;
        match lease {
            Some(lease) => lease::check(tx, lease).await?,
            None => {
                store::leases::exclude(tx, LEASE).await?;
                // Trades that have ended stay as they are. The new blocks settle the others.
                store::sync::put_settled(tx, stands.block).await?;
            }
        }
        store::traders::lock(tx).await?;
        let deeds = aggregates::taken_back(tx, stands.block).await?;
        store::movements::delete_after(tx, stands.block).await?;
        store::market_statuses::delete_after(tx, stands.block).await?;
        deeds.write(tx).await?;
        store::sync::delete_after(tx, stands.block).await?;
        store::quarantine::release_after(tx, stands.block).await?;
        for (id, life) in lives {
            match rebuild(tx, *id, Some(life.as_ref().unwrap_or(&Life::NONE)), *stands).await {
                Ok(()) => {}
                Err(ApplyError::Market(fault)) => drop(quarantine_market(tx, &fault, *now).await?),
                Err(ApplyError::Other(error)) => return Err(error),
            }
            // The chain no longer has the market, so it may be created again.
            if life.is_none() {
                store::markets::clear_created(tx, *id).await?;
            }
        }
        Ok(())
    }
}

/// Freezes markets whose end time has passed. The contract stops trading by itself at that time,
/// without an event.
async fn close_markets(ctx: &Ctx, lease: &Lease) -> Result<(), AppError> {
    let now = ctx.now();
    loop {
        let over = ctx
            .store
            .read(now, |tx, now| Box::pin(store::markets::list_past_end(tx, *now, CLOSED_AT_ONCE)))
            .await;
        let over = over?;
        let is_all = over.len() < CLOSED_AT_ONCE as usize;
        if !over.is_empty() {
            ctx.store
                .try_write((lease.clone(), over), |tx, (lease, over)| Box::pin(close(tx, lease, over)))
                .await?;
        }
        if is_all {
            return Ok(());
        }
    }
}

async fn close(tx: &mut store::Tx, lease: &Lease, over: &[Market]) -> Result<(), AppError> {
    lease::check(tx, lease).await?;
    store::traders::lock(tx).await?;
    // Status changes are ordered by position on chain, so this one is placed after the last block
    // read.
    let last = store::sync::find_last(tx, None).await?.map_or(0, |last| last.number);
    for market in over {
        let mut market = market.clone();
        market.status = MarketStatus::Frozen;
        market.frozen_at = Some(market.end_time);
        store::markets::put_state(tx, &market, &[]).await?;
        let change = StatusChange::by_the_clock(market.id, last, market.status, market.end_time);
        store::market_statuses::put(tx, &[change]).await?;
    }
    Ok(())
}
