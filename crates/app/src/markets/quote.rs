//! What a trade would move now, or would have moved at a block, asked of the contracts.

use std::sync::Arc;

use alloy_primitives::U256;
use chain::{Block, ChainError, Fill, Revert, Side as ChainSide};
use domain::market::MarketStatus;
use domain::trade::Side;
use domain::{ErrorCode, Usdc, Wad};
use store::markets::{Market, Outcome};

use super::{get, outcome_of};
use crate::{AppError, Ctx, minimum};

/// Buying or selling, and of how much: USDC atomic for a buy, tokens WAD for a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// Buy or sell.
    pub side: Side,
    /// In the side's unit.
    pub amount: U256,
}

/// A quote and what it was computed against.
#[derive(Debug, Clone)]
pub struct Quote {
    /// The market.
    pub market: Market,
    /// Its outcomes: as the sync last read them, or with the quantities of the block that was asked for.
    pub outcomes: Vec<Outcome>,
    /// The outcome.
    pub outcome_index: u8,
    /// What was asked.
    pub action: Action,
    /// What would move.
    pub fill: Fill,
    /// The block that was asked for, or the chain's newest when it was asked.
    pub block: Block,
}

/// Quotes a trade by a call on the chain: as it is now, or as it was right after the block of this number. Only an open market
/// is quoted; of a block, one that was open then.
pub async fn quote(
    ctx: &Ctx,
    market_id: &str,
    outcome_index: i64,
    action: Action,
    block: Option<u64>,
) -> Result<Quote, AppError> {
    let (rows, number) = get(ctx, market_id).await?;
    let (market, outcomes) = Arc::unwrap_or_clone(rows);
    if block.is_none() {
        check_open(ctx, &market)?;
    }
    let outcome_index = outcome_of(outcomes.len(), outcome_index)?;
    let side = match action.side {
        Side::Buy => ChainSide::BuyForUsdc,
        Side::Sell => ChainSide::SellTokens,
    };
    if let Some(block) = block {
        let past = past(ctx, block, number, outcome_index, side, action.amount).await?;
        let Past { block, quantities, fill } = past;
        let outcomes = outcomes.into_iter().zip(quantities);
        let outcomes = outcomes.map(|(outcome, quantity)| Outcome { quantity: Wad(quantity), ..outcome });
        let outcomes = outcomes.collect();
        return Ok(Quote { market, outcomes, outcome_index, action, fill, block });
    }
    if action.side == Side::Buy {
        minimum::check_trade(ctx, Usdc::from_atomic(u64::try_from(action.amount).unwrap_or(u64::MAX)))?;
    }
    let (fill, block) = quote_now(ctx, number, outcome_index, side, action.amount).await?;
    minimum::check_trade(ctx, Usdc::from_atomic(fill.usdc_atomic))?;
    Ok(Quote { market, outcomes, outcome_index, action, fill, block })
}

/// Quotes a trade as it is now in USDC on both sides, fee included: what a buy spends, what a sale brings.
pub async fn quote_usdc(
    ctx: &Ctx,
    market_id: &str,
    outcome_index: i64,
    side: Side,
    usdc: Usdc,
) -> Result<Quote, AppError> {
    let (rows, number) = get(ctx, market_id).await?;
    let (market, outcomes) = Arc::unwrap_or_clone(rows);
    check_open(ctx, &market)?;
    let outcome_index = outcome_of(outcomes.len(), outcome_index)?;
    minimum::check_trade(ctx, usdc)?;
    let on_chain = match side {
        Side::Buy => ChainSide::BuyForUsdc,
        Side::Sell => ChainSide::SellForUsdc,
    };
    let action = Action { side, amount: U256::from(usdc.atomic()) };
    let (fill, block) = quote_now(ctx, number, outcome_index, on_chain, action.amount).await?;
    Ok(Quote { market, outcomes, outcome_index, action, fill, block })
}

/// What would move now, and the chain's newest block.
async fn quote_now(
    ctx: &Ctx,
    market: u64,
    outcome_index: u8,
    side: ChainSide,
    amount: U256,
) -> Result<(Fill, Block), AppError> {
    tokio::try_join!(ctx.chain.quote(market, outcome_index, side, amount), ctx.chain.head())
        .map_err(|error| minimum::refused_quote(ctx, error))
}

fn check_open(ctx: &Ctx, market: &Market) -> Result<(), AppError> {
    match market.status_at(ctx.now()) {
        MarketStatus::Open => Ok(()),
        status => Err(AppError::new(ErrorCode::MarketNotTradeable).with("marketStatus", status.as_str())),
    }
}

struct Past {
    block: Block,
    quantities: Vec<U256>,
    fill: Fill,
}

async fn past(
    ctx: &Ctx,
    block: u64,
    market: u64,
    outcome_index: u8,
    side: ChainSide,
    amount: U256,
) -> Result<Past, AppError> {
    let found = ctx.chain.block(block).await?;
    let block =
        found.ok_or_else(|| AppError::field("/block", "must be the number of a block on the chain"))?;
    // By the block's hash, so that a reorganisation between the reads cannot mix two branches.
    let read = async {
        tokio::try_join!(
            ctx.chain.quantities_at(block.hash, market),
            ctx.chain.quote_at(block.hash, market, outcome_index, side, amount),
        )
    };
    let (quantities, fill) = read.await.map_err(|error| match &error {
        ChainError::Reverted(Revert::MarketUnknown) | ChainError::Decode(_) => {
            AppError::field("/block", "must not be before the block in which the market was created")
                .caused_by(error)
        }
        ChainError::Rejected(_) => {
            AppError::field("/block", "must be a block whose state the chain's node still has")
                .caused_by(error)
        }
        _ => minimum::refused_quote(ctx, error),
    })?;
    Ok(Past { block, quantities, fill })
}
