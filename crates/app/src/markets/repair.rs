//! Repairing a market: what was read of its last blocks is replaced by what the chain says of them now, in one transaction,
//! so that nothing is seen half done. The repair counts only if the market then equals the hub's own state; otherwise
//! nothing is written.
//!
//! It works beside a running sync, which it excludes for the length of its transaction.

use alloy_primitives::B256;
use chain::{BlockEvents, ChainError, MarketOnChain};
use domain::ids::MarketId;
use domain::{ErrorCode, Timestamp};
use store::markets::{AsOf, Market};
use store::quarantine;
use store::sync::SyncBlock;
use store::traders::Deeds;
use store::{StoreError, Tx};

use super::apply::{Fold, Selection};
use super::on_chain::MarketRows;
use super::reading::fold_all;
use super::rebuild::{Life, rebuild};
use super::sync;
use crate::{AppError, Ctx};

/// Ranges up to this length are read block by block, with every check; longer ones by their logs.
const MOST_CHECKED_BLOCKS: u64 = 4_096;
/// How many blocks are read at once.
const BLOCKS: u64 = 1_000;
/// How many movements are read at once.
const PAGE: u32 = 1_000;
/// How far before the first event that could not be applied the missing one is looked for first.
const LOOK_BACK_BLOCKS: u64 = 1_024;

/// A market that equals the chain again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repaired {
    /// The market.
    pub market_id: MarketId,
    /// Events of blocks from this one on were replaced.
    pub from_block: u64,
    /// How many movements these blocks had before.
    pub movements_before: u64,
    /// How many they have now.
    pub movements_after: u64,
}

/// Replaces what was read of a market from block `from` on. Without `from`, first the latest blocks are tried and then the
/// market's whole life.
pub async fn repair(ctx: &Ctx, market_id: MarketId, from: Option<u64>) -> Result<Repaired, AppError> {
    let Target { market, created_in, quarantined_from, last } = Target::read(ctx, market_id).await?;
    if let Some(from) = from {
        return repair_from(ctx, &market, from, &last).await;
    }
    let suspected = quarantined_from.unwrap_or(last.number);
    let recent = suspected.saturating_sub(LOOK_BACK_BLOCKS).max(created_in);
    match repair_from(ctx, &market, recent, &last).await {
        Err(error) if recent > created_in && error.code == ErrorCode::InternalError => {
            tracing::info!(market.id = %market_id, %error, "the latest blocks do not repair the market; all are read again");
            repair_from(ctx, &market, created_in, &last).await
        }
        repaired => repaired,
    }
}

struct Target {
    market: Market,
    created_in: u64,
    quarantined_from: Option<u64>,
    last: SyncBlock,
}

impl Target {
    async fn read(ctx: &Ctx, market_id: MarketId) -> Result<Self, AppError> {
        let read: Result<_, StoreError> = ctx
            .store
            .read(market_id, |tx, id| {
                Box::pin(async move {
                    let market = store::markets::find(tx, *id).await?;
                    let created_in = store::market_statuses::find_first_block(tx, *id).await?;
                    let quarantine = quarantine::find(tx, *id).await?;
                    Ok((market, created_in, quarantine, store::sync::find_last(tx, None).await?))
                })
            })
            .await;
        let (market, created_in, quarantine, last) = read?;
        let market = market.filter(|market| market.chain_market_id.is_some());
        let market = market.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
        let last = last.ok_or_else(|| not_now("the chain was not read yet"))?;
        let quarantined_from = quarantine.map(|quarantine| quarantine.block_number);
        Ok(Self { market, created_in: created_in.unwrap_or_default(), quarantined_from, last })
    }
}

struct Input {
    market: Market,
    number: u64,
    /// The block below those that are replaced.
    stands: AsOf,
    last: SyncBlock,
    blocks: Vec<BlockEvents>,
    on_chain: MarketOnChain,
    now: Timestamp,
}

async fn repair_from(ctx: &Ctx, market: &Market, from: u64, last: &SyncBlock) -> Result<Repaired, AppError> {
    let number = market.chain_market_id.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
    let hash: B256 =
        last.hash.parse().map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
    let stands = match from.checked_sub(1) {
        None => AsOf { block: 0, time: Timestamp::from_ms(0) },
        Some(below) => {
            let block = ctx.chain.block(below).await?;
            let block = block.ok_or_else(|| not_now("the node does not have the block to start from"))?;
            AsOf { block: below, time: Timestamp::from_s(block.timestamp_s) }
        }
    };
    let blocks = gather(ctx, number, from, last.number).await?;
    let on_chain = ctx.chain.market_at(number, hash).await?;
    let is_canonical = ctx.chain.block(last.number).await?.is_some_and(|block| block.hash == hash);
    if !is_canonical {
        return Err(not_now("the chain has changed while it was read"));
    }
    let (market, last) = (market.clone(), last.clone());
    let input = Input { market, number, stands, last, blocks, on_chain, now: ctx.now() };
    ctx.store.write(input, |tx, input| Box::pin(replace(tx, input))).await
}

/// The blocks of `from..=to` in which the hub has logged something of this market.
async fn gather(ctx: &Ctx, number: u64, from: u64, to: u64) -> Result<Vec<BlockEvents>, AppError> {
    let is_checked = to.saturating_sub(from) < MOST_CHECKED_BLOCKS;
    let mut found: Vec<BlockEvents> = Vec::new();
    let mut next = from;
    while next <= to {
        let until = to.min(next + BLOCKS - 1);
        if is_checked {
            found.extend(ctx.chain.read_blocks(next, until, &[]).await?.blocks);
        } else {
            found.extend(ctx.chain.read_logs(next, until).await?);
        }
        found.retain_mut(|block| {
            block.events.retain(|event| event.kind.market_id() == Some(number));
            !block.events.is_empty()
        });
        next = until + 1;
    }
    Ok(found)
}

async fn replace(tx: &mut Tx, input: &Input) -> Result<Repaired, AppError> {
    let Input { market, number, stands, last, blocks, on_chain, now } = input;
    let id = market.id;
    store::leases::exclude(tx, sync::LEASE).await?;
    if store::sync::find_last(tx, None).await?.as_ref() != Some(last) {
        return Err(not_now("the chain was read further meanwhile"));
    }
    store::traders::lock(tx).await?;
    store::markets::lock(tx, id).await?;
    let (deeds, movements_before) = take_back(tx, id, stands.block).await?;
    let life = Life::after(tx, market, stands.block).await?;
    rebuild(tx, id, Some(&life), *stands).await?;
    let only = Selection { only: Some(*number), ..Selection::default() };
    let mut fold = Fold::new(market.chain_id, only, deeds);
    fold_all(&mut fold, tx, blocks).await?;
    fold.write(tx).await?;
    let rows = MarketRows::read(tx, id).await?.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
    let differences = rows.differences(on_chain);
    if !differences.is_empty() {
        let detail = format!("read again, the market still differs: {}", differences.join("; "));
        return Err(AppError::new(ErrorCode::InternalError).detail(detail));
    }
    quarantine::release(tx, id).await?;
    quarantine::count_up(tx, "repaired_markets", 1).await?;
    if let Some(settled) = store::sync::find_settled(tx).await? {
        crate::trades::settle_market(tx, id, stands.block + 1, settled, *now).await?;
        crate::redemptions::settle(tx, stands.block + 1, settled, *now).await?;
    }
    let movements_after =
        blocks.iter().flat_map(|block| &block.events).filter(|e| e.kind.moves_position()).count();
    Ok(Repaired {
        market_id: id,
        from_block: stands.block + 1,
        movements_before,
        movements_after: movements_after as u64,
    })
}

/// Deletes a market's movements and statuses of blocks after `block`. Returns what has to be taken from the sums for them,
/// and how many movements there were.
async fn take_back(tx: &mut Tx, id: MarketId, block: u64) -> Result<(Deeds, u64), AppError> {
    let mut deeds = Deeds::default();
    let mut taken = 0;
    let mut after = store::movements::Movement::id_at(block, u32::MAX);
    loop {
        let movements = store::movements::list_of_market(tx, id, &after, PAGE).await?;
        let Some(last) = movements.last() else { break };
        after.clone_from(&last.id);
        taken += movements.len() as u64;
        movements.iter().for_each(|movement| deeds.take_back(movement));
    }
    store::movements::delete_of_market_after(tx, id, block).await?;
    store::market_statuses::delete_of_market_after(tx, id, block).await?;
    Ok((deeds, taken))
}

fn not_now(detail: &str) -> AppError {
    ChainError::Inconsistent(detail.to_owned()).into()
}
