//! Repairs a market: replaces its events of recent blocks by what the chain has now, in one
//! transaction. The transaction only commits if the market then equals the contract's state.
//!
//! The sync may be running. The transaction excludes it by locking its lease.

use chain::{BlockEvents, ChainError, MarketOnChain};
use domain::ids::MarketId;
use domain::{ErrorCode, Timestamp};
use store::Tx;
use store::markets::{ChangeBlock, Market};
use store::quarantine;
use store::sync::SyncBlock;
use store::traders::Deeds;

use super::apply::{Fold, Selection};
use super::on_chain::MarketRows;
use super::reading::fold_all;
use super::rebuild::{Life, rebuild};
use super::{settle_redemptions, settle_trades, sync};
use crate::{AppError, Ctx};

/// Ranges up to this many blocks are read block by block and fully verified. Longer ranges are read
/// by their logs.
const MOST_CHECKED_BLOCKS: u64 = 4_096;
/// The number of blocks per request.
const BLOCKS: u64 = 1_000;
/// The number of movements per page.
const PAGE: u32 = 1_000;
/// The first attempt starts this many blocks before the first event that could not be applied,
/// because an earlier event may be missing.
const LOOK_BACK_BLOCKS: u64 = 1_024;

/// The result of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repaired {
    pub market_id: MarketId,
    /// The first block whose events were replaced.
    pub from_block: u64,
    /// The number of movements of these blocks before the repair.
    pub movements_before: u64,
    /// The number of movements after the repair.
    pub movements_after: u64,
}

/// Replaces a market's events from block `from` on. Without `from`, tries the latest blocks first,
/// then the market's whole life.
pub async fn repair_market(ctx: &Ctx, market_id: MarketId, from: Option<u64>) -> Result<Repaired, AppError> {
    let Target { market, created_in, quarantined_from, last } = Target::read(ctx, market_id).await?;
    if let Some(from) = from {
        return repair_from(ctx, &market, from, &last).await;
    }
    let suspected = quarantined_from.unwrap_or(last.number);
    let recent = suspected.saturating_sub(LOOK_BACK_BLOCKS).max(created_in);
    match repair_from(ctx, &market, recent, &last).await {
        Err(error) if recent > created_in && error.code == ErrorCode::InternalError => {
            tracing::info!(market.id = %market_id, %error, "the latest blocks do not repair the market: reading all of its blocks again");
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
        let read = ctx
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
        let last = last.ok_or_else(|| not_now("no block of the chain has been read yet"))?;
        let quarantined_from = quarantine.map(|quarantine| quarantine.block_number);
        Ok(Self { market, created_in: created_in.unwrap_or_default(), quarantined_from, last })
    }
}

struct Input {
    market: Market,
    number: u64,
    /// The last block that is not replaced.
    stands: ChangeBlock,
    last: SyncBlock,
    blocks: Vec<BlockEvents>,
    on_chain: MarketOnChain,
    now: Timestamp,
}

async fn repair_from(ctx: &Ctx, market: &Market, from: u64, last: &SyncBlock) -> Result<Repaired, AppError> {
    let number = market.chain_market_id.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
    let stands = match from.checked_sub(1) {
        None => ChangeBlock { block: 0, time: Timestamp::from_ms(0) },
        Some(below) => {
            let block = ctx.chain.block(below).await?;
            let block = block.ok_or_else(|| not_now("the node does not have the block to start from"))?;
            ChangeBlock { block: below, time: Timestamp::from_s(block.timestamp_s) }
        }
    };
    let blocks = gather(ctx, number, from, last.number).await?;
    let on_chain = ctx.chain.market_at(number, last.hash).await?;
    // Checked after all reads: the logs were requested by number, and a reorganization may have
    // changed them.
    let is_canonical = ctx.chain.block(last.number).await?.is_some_and(|block| block.hash == last.hash);
    if !is_canonical {
        return Err(not_now("the chain changed while it was being read"));
    }
    let (market, last) = (market.clone(), last.clone());
    let input = Input { market, number, stands, last, blocks, on_chain, now: ctx.now() };
    ctx.store.try_write(input, |tx, input| Box::pin(replace(tx, input))).await
}

/// Returns the blocks of `from..=to` that have events of this market, with only these events.
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
    // The sync must not write while its rows are replaced, and must not have advanced since the
    // chain was read.
    store::leases::exclude(tx, sync::LEASE).await?;
    if store::sync::find_last(tx, None).await?.as_ref() != Some(last) {
        return Err(not_now("another process read further blocks in the meantime"));
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
    // The proof that the repair worked. An error rolls everything back.
    let differences = rows.differences(on_chain);
    if !differences.is_empty() {
        let detail =
            format!("after reading its blocks again, the market still differs: {}", differences.join("; "));
        return Err(AppError::new(ErrorCode::InternalError).detail(detail));
    }
    quarantine::release(tx, id).await?;
    quarantine::count_up(tx, "repaired_markets", 1).await?;
    // Events that were missing may have decided trades and redemptions in blocks that are already
    // settled.
    if let Some(settled) = store::sync::find_settled(tx).await? {
        settle_trades::settle_market(tx, id, stands.block + 1, settled, *now).await?;
        settle_redemptions::settle(tx, stands.block + 1, settled, *now).await?;
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

/// Deletes a market's movements and statuses after `block`. Returns the statistics to subtract, and
/// the number of movements.
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
