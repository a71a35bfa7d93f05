//! The sync: reads the contracts' events into the tables, once and in the chain's order, and settles trades from those that
//! are final. It follows the chain through reorganisations: what an abandoned block said is taken back.
//!
//! It alone writes `movements`, `positions`, `candles`, what `store::traders` keeps, `intent_failures`, `sync_blocks` and the chain's part of `markets`
//! and `outcomes`; it ends trades, and a market that it settles it notes in `announcements` and `payout_scans` as still to be gone through. Everything of one reading is written in one transaction with the note of how far was
//! read, so a crash leaves the whole reading or none of it, and the next tick goes on from the note.

use std::sync::atomic::{AtomicU64, Ordering};

use chain::{Block, MarketStatus as OnChain};
use domain::Timestamp;
use domain::market::MarketStatus;
use store::StoreError;
use store::leases::Lease;
use store::market_statuses::StatusChange;
use store::markets::{AsOf, Market};
use store::sync::SyncBlock;
use tokio::sync::Notify;

use super::apply::Reading;
use super::candles::{self, Remade};
use super::reference_of;
use crate::aggregates;
use crate::lease::{self, LeaseHolder};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// How many read blocks are remembered for finding a fork.
const KEEP_BLOCKS: u64 = 10_000;
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
        close_markets(ctx, &lease).await?;
        let more_candles = candles::catch_up(ctx, &lease).await?;
        let more_aggregates = aggregates::catch_up(ctx, &lease).await?;
        self.windows.advance(ctx, &lease).await?;
        let progress = self.follow(ctx, &lease).await?;
        Ok(if more_candles || more_aggregates { Progress::More } else { progress })
    }
}

impl Sync {
    /// A sync that starts at `first_block` on an empty database. `owner` names this process in leases.
    pub fn new(owner: String, first_block: u64) -> Self {
        let lease = LeaseHolder::new("sync".to_owned(), owner);
        let windows = aggregates::Windows::default();
        Self { first_block, blocks_at_once: AtomicU64::new(64), windows, lease }
    }

    /// Reads the next blocks, or takes back those that the chain has left.
    async fn follow(&self, ctx: &Ctx, lease: &Lease) -> Result<Progress, AppError> {
        let last: Result<_, StoreError> =
            ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
        let last = last?;
        let head = ctx.chain.head().await?;
        if let Some(last) = &last
            && !is_canonical(ctx, last).await?
        {
            take_back(ctx, lease, last).await?;
            return Ok(Progress::More);
        }
        let from = last.as_ref().map_or(self.first_block, |last| last.number + 1);
        if from > head.number {
            return self.settle_deeper(ctx, lease, &head).await;
        }
        let at_once = self.blocks_at_once.load(Ordering::Relaxed);
        let to = head.number.min(from + at_once - 1);
        let reading = Reading::of(ctx, from, to, last).await?;
        let events = reading.len();
        let next = if events > MANY_EVENTS {
            at_once / 2
        } else if events < MANY_EVENTS / 4 {
            at_once * 2
        } else {
            at_once
        };
        self.blocks_at_once.store(next.clamp(FEWEST_BLOCKS, MOST_BLOCKS), Ordering::Relaxed);
        let final_block = (head.number + 1).checked_sub(ctx.config.confirmations).map(|block| block.min(to));
        reading.write(ctx, lease, final_block, KEEP_BLOCKS).await?;
        Ok(if to < head.number { Progress::More } else { Progress::Idle })
    }

    /// Nothing new to read: blocks read before may have become final meanwhile.
    async fn settle_deeper(&self, ctx: &Ctx, lease: &Lease, head: &Block) -> Result<Progress, AppError> {
        let Some(final_block) = (head.number + 1).checked_sub(ctx.config.confirmations) else {
            return Ok(Progress::Idle);
        };
        let settled: Result<_, StoreError> =
            ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
        if settled?.is_none_or(|settled| settled < final_block) {
            let now = ctx.now();
            ctx.store
                .write((lease.clone(), final_block, now), |tx, (lease, final_block, now)| {
                    Box::pin(async move {
                        lease::check(tx, lease).await?;
                        settle_up_to(tx, *final_block, *now).await
                    })
                })
                .await?;
        }
        Ok(Progress::Idle)
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

async fn is_canonical(ctx: &Ctx, block: &SyncBlock) -> Result<bool, AppError> {
    let on_chain = ctx.chain.block(block.number).await?;
    Ok(on_chain.is_some_and(|on_chain| on_chain.hash.to_string() == block.hash))
}

/// The chain has left the branch that was read: finds the last block that both have, takes back what came after it, and
/// computes again what it had changed.
async fn take_back(ctx: &Ctx, lease: &Lease, last: &SyncBlock) -> Result<(), AppError> {
    let mut below = last.number;
    let from_the_first = AsOf { block: 0, time: Timestamp::from_ms(0) };
    let stands = loop {
        let Some(before) = below.checked_sub(1) else { break from_the_first };
        let candidate: Result<_, StoreError> =
            ctx.store.read(before, |tx, before| Box::pin(store::sync::find_last(tx, Some(*before)))).await;
        let Some(candidate) = candidate? else { break from_the_first };
        let on_chain = ctx.chain.block(candidate.number).await?;
        if on_chain.is_some_and(|block| block.hash.to_string() == candidate.hash) {
            break AsOf { block: candidate.number, time: candidate.at };
        }
        below = candidate.number;
    };
    let fork = stands.block;
    tracing::warn!(
        fork,
        last = last.number,
        "the chain was reorganised; events after the fork are taken back"
    );
    let chain_id = ctx.chain.chain_id();
    let touched: Result<_, StoreError> = ctx
        .store
        .read((chain_id, fork), |tx, (chain_id, fork)| {
            Box::pin(store::markets::list_changed_after(tx, *chain_id, *fork))
        })
        .await;
    let mut lives = Vec::new();
    for market in touched? {
        let mut life = life_of(ctx, &market).await?;
        // The note of its end may be taken back with the blocks: the market is closed, and noted, again.
        let by_the_clock = market.frozen_at == Some(market.end_time) && market.end_time <= ctx.now();
        if let Some(life) = life.as_mut().filter(|life| by_the_clock && life.status == MarketStatus::Frozen) {
            life.status = MarketStatus::Open;
        }
        lives.push((market.id, life));
    }
    ctx.store
        .write((lease.clone(), stands, lives), |tx, (lease, stands, lives)| {
            Box::pin(async move {
                lease::check(tx, lease).await?;
                store::traders::lock(tx).await?;
                let fork = &stands.block;
                let deeds = aggregates::taken_back(tx, *fork).await?;
                store::movements::delete_after(tx, *fork).await?;
                store::market_statuses::delete_after(tx, *fork).await?;
                deeds.write(tx).await?;
                store::sync::delete_after(tx, *fork).await?;
                if store::sync::find_settled(tx).await?.is_some_and(|settled| settled > *fork) {
                    tracing::error!(fork, "the chain was reorganised deeper than what was said to be final");
                    // What was said of trades stands; those that the new blocks decide are settled from them.
                    store::sync::put_settled(tx, *fork).await?;
                }
                for (id, life) in lives {
                    rebuild(tx, *id, Some(life.as_ref().unwrap_or(&Life::NONE)), *stands).await?;
                    if life.is_none() {
                        store::markets::clear_created(tx, *id).await?;
                    }
                }
                Ok(())
            })
        })
        .await
}

/// What the chain says of a market's life now.
#[derive(Debug, Clone)]
pub struct Life {
    status: MarketStatus,
    payouts: Option<Vec<domain::Wad>>,
    refund_scale: Option<domain::Wad>,
}

impl Life {
    /// Of a market that is not on chain.
    const NONE: Self = Self { status: MarketStatus::Frozen, payouts: None, refund_scale: None };
}

/// `None` where the chain has no such market, or has it under another number: made again, on another branch.
async fn life_of(ctx: &Ctx, market: &Market) -> Result<Option<Life>, AppError> {
    let found = ctx.chain.market_of(reference_of(market.id)).await?;
    let Some(number) = found.filter(|number| market.chain_market_id == Some(*number)) else {
        return Ok(None);
    };
    let status = match ctx.chain.market(number).await?.status {
        OnChain::Open => MarketStatus::Open,
        OnChain::Resolved => MarketStatus::Resolved,
        OnChain::Cancelled => MarketStatus::Cancelled,
        OnChain::None | OnChain::Listed | OnChain::Frozen => MarketStatus::Frozen,
    };
    if !matches!(status, MarketStatus::Resolved | MarketStatus::Cancelled) {
        return Ok(Some(Life { status, payouts: None, refund_scale: None }));
    }
    let resolution = ctx.chain.resolution(number).await?;
    let payouts = resolution.payouts_wad.into_iter().map(domain::Wad).collect();
    Ok(Some(Life { status, payouts: Some(payouts), refund_scale: Some(domain::Wad(resolution.scale_wad)) }))
}

/// Computes a market's state and positions again from its movements, and its candles from the block `stands` on: what they
/// say of the time before is not touched.
pub async fn rebuild(
    tx: &mut store::Tx,
    id: domain::ids::MarketId,
    life: Option<&Life>,
    stands: AsOf,
) -> Result<(), AppError> {
    let Some(mut market) = store::markets::find(tx, id).await? else { return Ok(()) };
    let mut outcomes = store::markets::outcomes(tx, id).await?;
    super::apply::reset(&mut market, &mut outcomes);
    if let Some(life) = life {
        market.status = life.status;
        market.payouts.clone_from(&life.payouts);
        market.refund_scale = life.refund_scale;
        let settled = matches!(life.status, MarketStatus::Resolved | MarketStatus::Cancelled);
        market.resolved_at = market.resolved_at.filter(|_| settled);
        market.resolution_tx_hash = market.resolution_tx_hash.filter(|_| settled);
        market.frozen_at = market.frozen_at.filter(|_| life.status == MarketStatus::Frozen);
    }
    market.as_of_block = stands.block;
    store::movements::delete_positions(tx, id).await?;
    let mut positions = super::apply::Positions::default();
    let mut candles = Remade::begin(tx, id, stands.time).await?;
    let mut after = String::new();
    loop {
        let movements = store::movements::list_of_market(tx, id, &after, 1_000).await?;
        let Some(last) = movements.last() else { break };
        after.clone_from(&last.id);
        for movement in &movements {
            super::apply::add_to_market(&mut market, &mut outcomes, movement);
            candles.add(&market, &outcomes, movement);
            positions.add(tx, movement).await?;
        }
    }
    // Before the market: where it stands in lists may depend on what is still owed to positions.
    positions.write(tx).await?;
    store::markets::put_state(tx, &market, &outcomes).await?;
    Ok(candles.write(tx, id).await?)
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
