//! The sync: reads the contracts' events into the tables, once and in the chain's order, and settles trades from those that
//! are final. It follows the chain through reorganisations: what an abandoned block said is taken back.
//!
//! It alone writes `movements`, `positions`, `candles`, what `store::traders` keeps, `intent_failures`, `sync_blocks` and the chain's part of `markets`
//! and `outcomes`; it ends trades, and a market that it settles it notes in `announcements` and `payout_scans` as still to be gone through. Everything of one reading is written in one transaction with the note of how far was
//! read, so a crash leaves the whole reading or none of it, and the next tick goes on from the note.

use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::B256;
use chain::{Block, ChainError};
use domain::ids::MarketId;
use domain::market::MarketStatus;
use domain::{ErrorCode, Timestamp};
use futures::{StreamExt, TryStreamExt, stream};
use store::StoreError;
use store::leases::Lease;
use store::market_statuses::StatusChange;
use store::markets::{AsOf, Market};
use store::sync::SyncBlock;
use tokio::sync::Notify;

use super::apply::ApplyError;
use super::candles;
use super::reading::{Reading, quarantine_market};
use super::rebuild::{Life, rebuild};
use crate::aggregates;
use crate::finality::final_block;
use crate::lease::{self, LeaseHolder, Turn};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The lease under which movements are written.
pub const LEASE: &str = "sync";
/// How many read blocks are remembered for finding a fork.
const KEEP_BLOCKS: u64 = 10_000;
/// Blocks that are not deeper than this when they are read are read again before they are settled, and so are those that
/// are not twice as deep as finality asks.
const REREAD_DEPTH: u64 = 64;
/// Blocks that are read again at the same time.
const REREAD_AT_ONCE: usize = 16;
/// The most noted blocks that are settled in one transaction.
const SETTLED_AT_ONCE: u32 = 256;
const FEWEST_BLOCKS: u64 = 16;
const MOST_BLOCKS: u64 = 4_096;
/// A reading with more events than this is followed by a shorter one, with a quarter of it by a longer one.
const MANY_EVENTS: usize = 2_000;
/// The most markets that are noted as over in one transaction.
const CLOSED_AT_ONCE: u32 = 100;

/// The sync's worker.
pub struct Sync {
    first_block: u64,
    blocks_at_once: AtomicU64,
    windows: aggregates::Windows,
    lease: LeaseHolder,
}

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
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(Progress::Idle) };
        self.lease.keep(ctx, &lease, self.work(ctx, &lease)).await
    }
}

impl Sync {
    /// A sync that starts at `first_block` on an empty database. `owner` names this process in leases.
    pub fn new(owner: String, first_block: u64) -> Self {
        let lease = LeaseHolder::new(LEASE.to_owned(), owner);
        let windows = aggregates::Windows::default();
        Self { first_block, blocks_at_once: AtomicU64::new(64), windows, lease }
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

    /// Reads the next blocks, or takes back those that the chain has left, and settles what has become final.
    ///
    /// A node that does not have what was read before is behind, and waited for. Only another hash at a known height is a
    /// reorganisation.
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
        // A reading that fails, or that is cut off because the node is too slow for it, is followed by a shorter one.
        self.blocks_at_once.store((at_once / 2).max(FEWEST_BLOCKS), Ordering::Relaxed);
        let to = head.number.min(from + at_once - 1);
        let recent_from = head.number.saturating_sub(REREAD_DEPTH.max(2 * ctx.confirmations()));
        let reading = Reading::of(ctx, from, to, last, recent_from, &skipped).await?;
        if !turn.is_over() {
            self.adapt(at_once, reading.events());
        }
        if ctx.chain.is_embedded() {
            let settle_to = final_block(ctx, head.number).await?.map(|block| block.min(to));
            reading.write(ctx, lease, settle_to, KEEP_BLOCKS).await?;
            return Ok(if to < head.number { Progress::More } else { Progress::Idle });
        }
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

/// How far the chain was read, and the blocks after that whose events the operator has told the sync not to read.
struct Place {
    last: Option<SyncBlock>,
    skipped: Vec<u64>,
}

impl Place {
    async fn read(ctx: &Ctx) -> Result<Self, AppError> {
        let read: Result<Self, StoreError> = ctx
            .store
            .read((), |tx, ()| {
                Box::pin(async move {
                    let last = store::sync::find_last(tx, None).await?;
                    let next = last.as_ref().map_or(0, |last| last.number + 1);
                    let skipped = store::quarantine::list_skipped_blocks(tx, next, i64::MAX as u64).await?;
                    Ok(Self { last, skipped })
                })
            })
            .await;
        Ok(read?)
    }
}

/// Blocks that were read before may have become final meanwhile. They are read again first: if a block's logs are not what
/// was read of it, it is taken back and read anew.
///
/// A slow node answers only for some of them within a turn: these are settled, the others at the next tick.
async fn settle_deeper(ctx: &Ctx, lease: &Lease, head: &Block, turn: Turn) -> Result<Progress, AppError> {
    let Some(final_block) = final_block(ctx, head.number).await? else { return Ok(Progress::Idle) };
    let unsettled: Result<Option<Unsettled>, StoreError> =
        ctx.store.read(final_block, |tx, to| Box::pin(Unsettled::read(tx, *to))).await;
    let Some(mut unsettled) = unsettled? else { return Ok(Progress::Idle) };
    let mut read_again = None;
    for blocks in unsettled.to_read_again.chunks(REREAD_AT_ONCE) {
        if let Some(last) = read_again.filter(|_| turn.is_over()) {
            (unsettled.last, unsettled.is_all) = (SyncBlock::clone(last), false);
            break;
        }
        if let Some(block) = find_different(ctx, blocks).await? {
            tracing::error!(block, "the node has given two different readings of a block; it is read anew");
            take_back_to(ctx, Some(lease), block.saturating_sub(1)).await?;
            return Ok(Progress::More);
        }
        read_again = blocks.last();
    }
    check_agreement(ctx, &unsettled.last).await?;
    let now = ctx.now();
    ctx.store
        .write((lease.clone(), unsettled.last.clone(), now), |tx, (lease, last, now)| {
            Box::pin(async move {
                lease::check(tx, lease).await?;
                if store::sync::find_last(tx, Some(last.number)).await?.as_ref() != Some(last) {
                    let detail = "a block was read anew while it was settled".to_owned();
                    return Err(ChainError::Inconsistent(detail).into());
                }
                settle_up_to(tx, last.number, *now).await
            })
        })
        .await?;
    Ok(if unsettled.is_all { Progress::Idle } else { Progress::More })
}

/// The first of these blocks that the node gives another reading of than before.
async fn find_different(ctx: &Ctx, blocks: &[SyncBlock]) -> Result<Option<u64>, AppError> {
    let differs = async |block: SyncBlock| {
        let digest = ctx.chain.logs_digest(block.number, parse_hash(&block.hash)?).await?;
        let is_different = digest.map(|digest| digest.to_string()) != block.logs_digest;
        Ok::<_, AppError>(is_different.then_some(block.number))
    };
    let read = stream::iter(blocks.to_vec()).map(differs).buffered(REREAD_AT_ONCE);
    let different: Vec<Option<u64>> = read.try_collect().await?;
    Ok(different.into_iter().flatten().next())
}

/// Whether as many nodes as are configured to agree on a block that is about to be settled.
async fn check_agreement(ctx: &Ctx, block: &SyncBlock) -> Result<(), AppError> {
    let agreed = ctx.chain.agreed_hash(block.number).await?;
    if agreed.is_some_and(|hash| hash.to_string() == block.hash) {
        return Ok(());
    }
    let detail = format!("the nodes do not agree on block {}", block.number);
    Err(ChainError::Inconsistent(detail).into())
}

/// The final blocks that are not settled.
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
        // Of the embedded chain, and of old blocks, only some are noted: all that were read up to this one are settled.
        let Some(last) = blocks.last().cloned() else { return Ok(None) };
        let to_read_again = blocks.into_iter().filter(|block| block.logs_digest.is_some()).collect();
        Ok(Some(Self { last, to_read_again, is_all }))
    }
}

/// Settles the trades and redemptions of the final blocks that were not settled before.
pub(super) async fn settle_up_to(
    tx: &mut store::Tx,
    final_block: u64,
    now: Timestamp,
) -> Result<(), AppError> {
    let from = store::sync::find_settled(tx).await?.map_or(0, |settled| settled + 1);
    if from > final_block {
        return Ok(());
    }
    crate::trades::settle(tx, from, final_block, now).await?;
    crate::redemptions::settle(tx, from, final_block, now).await?;
    Ok(store::sync::put_settled(tx, final_block).await?)
}

/// Whether the chain still has the block.
///
/// # Errors
/// `Inconsistent` if the node has no block of this height: it is behind.
async fn is_canonical(ctx: &Ctx, block: &SyncBlock) -> Result<bool, AppError> {
    match ctx.chain.block(block.number).await? {
        Some(on_chain) => Ok(on_chain.hash.to_string() == block.hash),
        None => {
            let detail = format!("the node does not have block {}, which was read before", block.number);
            Err(ChainError::Inconsistent(detail).into())
        }
    }
}

/// The hash of the last block that was read, if any was.
pub async fn last_read_block(ctx: &Ctx) -> Result<Option<B256>, AppError> {
    let last: Result<Option<SyncBlock>, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
    last?.map(|last| parse_hash(&last.hash)).transpose()
}

fn parse_hash(text: &str) -> Result<B256, AppError> {
    text.parse().map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))
}

/// The chain has left the branch that was read: finds the last block that both have, and takes back what came after it.
/// What was settled is never taken back: then nothing more is read until the node shows the settled blocks again, or the
/// operator has decided.
async fn take_back(ctx: &Ctx, lease: &Lease, last: &SyncBlock) -> Result<(), AppError> {
    // A node that now answers for another chain shows no reorganization of this one.
    ctx.chain.confirm().await?;
    let settled: Result<Option<u64>, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
    let fork = find_fork(ctx, last).await?.map_or(0, |block| block.number);
    if let Some(settled) = settled?.filter(|settled| fork < *settled) {
        tracing::error!(
            fork,
            settled,
            "the node shows another chain than the one that was settled; nothing is read"
        );
        let detail =
            format!("block {settled} is settled, and the node shows another chain from block {fork} on");
        return Err(ChainError::Inconsistent(detail).into());
    }
    tracing::warn!(
        fork,
        last = last.number,
        "the chain was reorganised; events after the fork are taken back"
    );
    take_back_to(ctx, Some(lease), fork).await
}

/// Takes back everything that was read of blocks after `fork`, and computes again what it had changed. Without a lease,
/// as the operator does it, also what was settled.
pub async fn take_back_to(ctx: &Ctx, lease: Option<&Lease>, fork: u64) -> Result<(), AppError> {
    let stands: Result<Option<SyncBlock>, StoreError> =
        ctx.store.read(fork, |tx, fork| Box::pin(store::sync::find_last(tx, Some(*fork)))).await;
    let stands = stands?.map_or(AsOf { block: 0, time: Timestamp::from_ms(0) }, |block| AsOf {
        block: block.number,
        time: block.at,
    });
    let chain_id = ctx.chain.chain_id();
    let touched: Result<_, StoreError> = ctx
        .store
        .read((chain_id, stands.block), |tx, (chain_id, fork)| {
            Box::pin(store::markets::list_changed_after(tx, *chain_id, *fork))
        })
        .await;
    let mut lives = Vec::new();
    for market in touched? {
        let mut life = Life::now(ctx, &market).await?;
        // The note of its end may be taken back with the blocks: the market is closed, and noted, again.
        let by_the_clock = market.frozen_at == Some(market.end_time) && market.end_time <= ctx.now();
        if let Some(life) = life.as_mut().filter(|life| by_the_clock && life.status == MarketStatus::Frozen) {
            life.status = MarketStatus::Open;
        }
        lives.push((market.id, life));
    }
    let input = TakeBack { lease: lease.cloned(), stands, lives, now: ctx.now() };
    ctx.store.write(input, |tx, input| Box::pin(input.write(tx))).await
}

/// The newest noted block that the chain still has; `None` if it has none of them.
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
    let noted: Result<_, StoreError> =
        ctx.store.read(before, |tx, before| Box::pin(store::sync::find_last(tx, Some(*before)))).await;
    Ok(noted?)
}

/// What is computed again once the blocks after `stands` are taken back.
struct TakeBack {
    lease: Option<Lease>,
    stands: AsOf,
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
                // What was said of trades stands; those that the new blocks decide are settled from them.
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
            if life.is_none() {
                store::markets::clear_created(tx, *id).await?;
            }
        }
        Ok(())
    }
}

/// Markets whose time is over have stopped trading on chain by themselves; no event says so. All of them are noted, so many
/// at once.
async fn close_markets(ctx: &Ctx, lease: &Lease) -> Result<(), AppError> {
    let now = ctx.now();
    loop {
        let over: Result<Vec<_>, StoreError> = ctx
            .store
            .read(now, |tx, now| Box::pin(store::markets::list_past_end(tx, *now, CLOSED_AT_ONCE)))
            .await;
        let over = over?;
        let is_all = over.len() < CLOSED_AT_ONCE as usize;
        if !over.is_empty() {
            ctx.store
                .write((lease.clone(), over), |tx, (lease, over)| Box::pin(close(tx, lease, over)))
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
