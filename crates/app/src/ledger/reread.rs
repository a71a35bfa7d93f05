//! Reads blocks again at the operator's request, and repairs differences to the tables.

use std::collections::BTreeSet;

use alloy_primitives::B256;
use chain::{ChainError, ChainEvent};
use domain::Timestamp;
use domain::ids::{MarketId, TradeId};
use store::movements::{IntentFailure, Movement};
use store::{Tx, quarantine};

use super::apply::failure_of;
use super::repair_markets::{Repaired, repair_market};
use super::{settle_trades, sync};
use crate::{AppError, Ctx};

/// The number of blocks per request.
const BLOCKS: u64 = 500;

/// The result of reading blocks again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reread {
    /// The number of compared blocks.
    pub blocks: u64,
    /// The block after which everything was taken back, if the chain was reorganized.
    pub taken_back_to: Option<u64>,
    /// The number of trade failures that were missing, or stored but not on chain.
    pub corrected_failures: u64,
    /// Markets that differed and now equal the chain.
    pub repaired: Vec<Repaired>,
    /// Markets that could not be repaired and are quarantined, with the reason.
    pub quarantined: Vec<(MarketId, String)>,
}

/// The operator's decision about taking back settled blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptReorganization {
    /// Take them back: the chain was reorganized deeper than its finality promised.
    Yes,
    /// Fail instead.
    No,
}

/// Compares the blocks from `from` to the last block read with the tables, and repairs differences.
/// Blocks that the sync was configured to skip are no longer skipped.
///
/// If the node has another chain than the one that was settled, this fails unless `accept` allows
/// it. Then everything after the last common block is taken back, and the sync continues from
/// there.
pub async fn reread(ctx: &Ctx, from: u64, accept: AcceptReorganization) -> Result<Reread, AppError> {
    let last = ctx
        .store
        .write(from, |tx, from| {
            Box::pin(async move {
                quarantine::unskip_blocks_from(tx, *from).await?;
                store::sync::find_last(tx, None).await
            })
        })
        .await;
    let Some(mut last) = last? else { return Ok(Reread::default()) };
    let mut found = Reread::default();
    let fork = sync::find_fork(ctx, &last).await?;
    if fork.as_ref() != Some(&last) {
        let number = fork.as_ref().map_or(0, |fork| fork.number);
        if accept == AcceptReorganization::No {
            let detail =
                format!("the node's chain differs from the one that was read, from block {number} on");
            return Err(ChainError::Inconsistent(detail).into());
        }
        sync::take_back_to(ctx, None, number).await?;
        found.taken_back_to = Some(number);
        let Some(fork) = fork else { return Ok(found) };
        last = fork;
    }
    let mut differing = BTreeSet::new();
    let mut next = from;
    while next <= last.number {
        let to = last.number.min(next + BLOCKS - 1);
        found.corrected_failures += compare(ctx, next, to, &mut differing).await?;
        found.blocks += to + 1 - next;
        next = to + 1;
    }
    repair_all(ctx, differing, from, &mut found).await?;
    Ok(found)
}

/// Like [`reread`], for one block.
pub async fn reread_block(ctx: &Ctx, block: u64) -> Result<Reread, AppError> {
    let mut found = Reread { blocks: 1, ..Reread::default() };
    let mut differing = BTreeSet::new();
    found.corrected_failures = compare(ctx, block, block, &mut differing).await?;
    repair_all(ctx, differing, block, &mut found).await?;
    Ok(found)
}

async fn repair_all(
    ctx: &Ctx,
    differing: BTreeSet<MarketId>,
    from: u64,
    found: &mut Reread,
) -> Result<(), AppError> {
    for market_id in differing {
        match repair_market(ctx, market_id, Some(from)).await {
            Ok(repaired) => found.repaired.push(repaired),
            Err(error) => {
                let reason = error.to_string();
                super::reconcile::quarantine_drifted(ctx, None, market_id, from, &reason).await?;
                found.quarantined.push((market_id, reason));
            }
        }
    }
    Ok(())
}

/// Corrects the trade failures in these blocks, and adds the markets whose movements differ to
/// `differing`.
async fn compare(ctx: &Ctx, from: u64, to: u64, differing: &mut BTreeSet<MarketId>) -> Result<u64, AppError> {
    let blocks = ctx.chain.read_blocks(from, to, &[]).await?.blocks;
    let events: Vec<(ChainEvent, Timestamp)> = blocks
        .into_iter()
        .flat_map(|block| {
            let at = Timestamp::from_s(block.timestamp_s);
            block.events.into_iter().map(move |event| (event, at))
        })
        .collect();
    let chain_id = ctx.chain.chain_id();
    let input = (events, chain_id, from, to, ctx.now());
    let (corrected, found) = ctx
        .store
        .try_write(input, |tx, (events, chain_id, from, to, now)| {
            Box::pin(async move {
                // The sync must not write failures of these blocks at the same time.
                store::leases::exclude(tx, sync::LEASE).await?;
                let corrected = correct_failures(tx, events, *from, *to, *now).await?;
                let found = differing_markets(tx, events, *chain_id, *from, *to).await?;
                Ok::<_, AppError>((corrected, found))
            })
        })
        .await?;
    differing.extend(found);
    Ok(corrected)
}

async fn correct_failures(
    tx: &mut Tx,
    events: &[(ChainEvent, Timestamp)],
    from: u64,
    to: u64,
    now: Timestamp,
) -> Result<u64, AppError> {
    let on_chain: Vec<IntentFailure> =
        events.iter().filter_map(|(event, at)| failure_of(event, *at)).collect();
    let stored = store::movements::list_failures(tx, from, to).await?;
    let place = |failure: &IntentFailure| (failure.block_number, failure.log_index, failure.trade_id);
    let (chain, kept): (BTreeSet<(u64, u32, TradeId)>, BTreeSet<_>) =
        (on_chain.iter().map(place).collect(), stored.iter().map(place).collect());
    let corrected = chain.symmetric_difference(&kept).count() as u64;
    if corrected > 0 {
        store::movements::delete_failures(tx, from, to).await?;
        store::movements::insert_failures(tx, &on_chain).await?;
        // Blocks that are not settled yet are settled later by the sync.
        if let Some(settled) = store::sync::find_settled(tx).await? {
            settle_trades::settle(tx, from, to.min(settled), now).await?;
        }
    }
    Ok(corrected)
}

async fn differing_markets(
    tx: &mut Tx,
    events: &[(ChainEvent, Timestamp)],
    chain_id: u64,
    from: u64,
    to: u64,
) -> Result<BTreeSet<MarketId>, AppError> {
    let mut numbers = std::collections::BTreeMap::new();
    for (number, id) in store::markets::list_numbers(tx, chain_id).await? {
        numbers.insert(number, id);
    }
    let mut on_chain: BTreeSet<(String, B256, MarketId)> = BTreeSet::new();
    for (event, _) in events.iter().filter(|(event, _)| event.kind.moves_position()) {
        let Some(id) = event.kind.market_id().and_then(|number| numbers.get(&number)) else { continue };
        let log_index = u32::try_from(event.log_index).unwrap_or(u32::MAX);
        on_chain.insert((Movement::id_at(event.block_number, log_index), event.tx_hash, *id));
    }
    let stored = store::movements::list_places(tx, from, to).await?;
    Ok(on_chain.symmetric_difference(&stored.into_iter().collect()).map(|(_, _, id)| *id).collect())
}
