//! Recomputes a market: its state, positions and candles from its movements, and its status from
//! the recorded statuses or the chain.

use domain::market::MarketStatus;
use store::StoreError;
use store::markets::{ChangeBlock, Market};

use super::apply::ApplyError;
use super::candles::Remade;
use super::on_chain::status_of;
use crate::markets::reference_of;
use crate::{AppError, Ctx};

/// A market's status and, once settled, its payouts.
#[derive(Debug, Clone)]
pub struct Life {
    pub status: MarketStatus,
    payouts: Option<Vec<domain::Wad>>,
}

impl Life {
    /// The life of a market that is not on chain.
    pub const NONE: Self = Self { status: MarketStatus::Frozen, payouts: None };

    /// Returns the recorded life after a block.
    pub async fn after(tx: &mut store::Tx, market: &Market, block: u64) -> Result<Self, StoreError> {
        let noted = store::market_statuses::find_last(tx, market.id, block).await?;
        let status = noted.map_or(MarketStatus::Frozen, |noted| noted.status);
        if !matches!(status, MarketStatus::Resolved | MarketStatus::Cancelled) {
            return Ok(Self { status, ..Self::NONE });
        }
        Ok(Self { status, payouts: market.payouts.clone() })
    }

    /// Returns the current life on chain. `None` if the chain lacks the market, or has it under
    /// another number because it was created again on another branch.
    pub async fn now(ctx: &Ctx, market: &Market) -> Result<Option<Self>, AppError> {
        let found = ctx.chain.market_of(reference_of(market.id)).await?;
        let Some(number) = found.filter(|number| market.chain_market_id == Some(*number)) else {
            return Ok(None);
        };
        let status = status_of(ctx.chain.market(number).await?.status);
        if !matches!(status, MarketStatus::Resolved | MarketStatus::Cancelled) {
            return Ok(Some(Self { status, payouts: None }));
        }
        let payouts = ctx.chain.resolution(number).await?.into_iter().map(domain::Wad).collect();
        Ok(Some(Self { status, payouts: Some(payouts) }))
    }
}

/// Recomputes a market's state and positions from its movements, and its candles after the block
/// `stands`. Earlier candles are unchanged.
pub async fn rebuild(
    tx: &mut store::Tx,
    id: domain::ids::MarketId,
    life: Option<&Life>,
    stands: ChangeBlock,
) -> Result<(), ApplyError> {
    let Some(mut market) = store::markets::find(tx, id).await? else { return Ok(()) };
    let mut outcomes = store::markets::outcomes(tx, id).await?;
    // Events that set these values after `stands` were taken back.
    super::apply::reset(&mut market, &mut outcomes);
    if let Some(life) = life {
        market.status = life.status;
        market.payouts.clone_from(&life.payouts);
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
    // Positions before the market: the order of markets in lists may depend on payouts that are
    // still owed to positions.
    positions.write(tx).await?;
    store::markets::put_state(tx, &market, &outcomes).await?;
    Ok(candles.write(tx, id).await?)
}
