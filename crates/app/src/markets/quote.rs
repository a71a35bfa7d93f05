//! What a trade would move now, asked of the contracts.

use alloy_primitives::U256;
use chain::{Block, Fill, Side as ChainSide};
use domain::ErrorCode;
use domain::ids::MarketId;
use domain::market::MarketStatus;
use domain::trade::Side;
use store::StoreError;
use store::markets::{Market, Outcome};

use crate::{AppError, Ctx};

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
    /// Its outcomes, as the sync last read them.
    pub outcomes: Vec<Outcome>,
    /// The outcome.
    pub outcome_index: u8,
    /// What was asked.
    pub action: Action,
    /// What would move.
    pub fill: Fill,
    /// The chain's newest block when it was asked.
    pub block: Block,
}

/// Quotes a trade by a call on the chain. Only an open market is quoted.
pub async fn quote(
    ctx: &Ctx,
    market_id: &str,
    outcome_index: i64,
    action: Action,
) -> Result<Quote, AppError> {
    let not_found = || AppError::new(ErrorCode::MarketNotFound);
    let id: MarketId = market_id.parse().map_err(|_| not_found())?;
    let found: Result<_, StoreError> = ctx
        .store
        .read(id, |tx, id| {
            Box::pin(async move {
                let Some(market) = store::markets::find(tx, *id).await? else { return Ok(None) };
                let outcomes = store::markets::outcomes(tx, *id).await?;
                Ok(Some((market, outcomes)))
            })
        })
        .await;
    let (market, outcomes) = found?.ok_or_else(not_found)?;
    let chain_market_id = market.chain_market_id.ok_or_else(not_found)?;
    if market.chain_id != ctx.chain.chain_id() {
        return Err(AppError::new(ErrorCode::ChainNotSupported));
    }
    let status = market.status_at(ctx.now());
    if status != MarketStatus::Open {
        return Err(AppError::new(ErrorCode::MarketNotTradeable).with("marketStatus", status.as_str()));
    }
    let outcome_index = u8::try_from(outcome_index)
        .ok()
        .filter(|index| usize::from(*index) < outcomes.len())
        .ok_or_else(|| AppError::new(ErrorCode::OutcomeIndexInvalid))?;
    let side = match action.side {
        Side::Buy => ChainSide::BuyForUsdc,
        Side::Sell => ChainSide::SellTokens,
    };
    let (fill, block) = tokio::try_join!(
        ctx.chain.quote(chain_market_id, outcome_index, side, action.amount),
        ctx.chain.head(),
    )?;
    Ok(Quote { market, outcomes, outcome_index, action, fill, block })
}
