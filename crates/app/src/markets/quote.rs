//! Price quotes from the contracts, for now or for a past block.

use std::sync::Arc;

use alloy_primitives::U256;
use chain::{Block, ChainError, Fill, IntentSide, Revert};
use domain::market::MarketStatus;
use domain::trade::{Side, TradeWarning};
use domain::{ErrorCode, Usdc, Wad};
use store::markets::{Market, Outcome};

use super::{get, outcome_of};
use crate::{AppError, Ctx, minimum};

/// The trade to quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuoteRequest {
    pub side: Side,
    /// Atomic USDC for a buy, WAD tokens for a sale.
    pub amount: U256,
}

/// A quote and the state that it was computed from.
#[derive(Debug, Clone)]
pub struct Quote {
    pub market: Market,
    /// As the sync last read them, or with the quantities of the requested block.
    pub outcomes: Vec<Outcome>,
    pub outcome_index: u8,
    pub action: QuoteRequest,
    /// The amounts that would move.
    pub fill: Fill,
    /// The requested block, or the newest block at the time of the call.
    pub block: Block,
}

impl Quote {
    pub fn warnings(&self) -> Vec<TradeWarning> {
        let (usdc, tokens) = (Usdc::from_atomic(self.fill.usdc_atomic), Wad(self.fill.tokens_wad));
        TradeWarning::list(self.action.side, usdc, tokens)
    }
}

/// Quotes a trade by a contract call, either now or in the state after the given block. The market
/// must be open then.
pub async fn quote(
    ctx: &Ctx,
    market_id: &str,
    outcome_index: i64,
    action: QuoteRequest,
    block: Option<u64>,
) -> Result<Quote, AppError> {
    let (rows, number) = get(ctx, market_id).await?;
    let (market, outcomes) = Arc::unwrap_or_clone(rows);
    if block.is_none() {
        check_open(ctx, &market)?;
    }
    let outcome_index = outcome_of(outcomes.len(), outcome_index)?;
    let side = match action.side {
        Side::Buy => IntentSide::BuyForUsdc,
        Side::Sell => IntentSide::SellTokens,
    };
    if let Some(block) = block {
        let Past { block, quantities, fill } =
            past(ctx, block, number, outcome_index, side, action.amount).await?;
        let outcomes = outcomes.into_iter().zip(quantities);
        let outcomes = outcomes.map(|(outcome, quantity)| Outcome { quantity: Wad(quantity), ..outcome });
        let outcomes = outcomes.collect();
        return Ok(Quote { market, outcomes, outcome_index, action, fill, block });
    }
    // A sale may close the asker's position, and then it has no minimum.
    if action.side == Side::Buy {
        minimum::check_buy(ctx, Usdc::from_atomic(u64::try_from(action.amount).unwrap_or(u64::MAX)))?;
    }
    let (fill, block) = quote_now(ctx, number, outcome_index, side, action.amount).await?;
    Ok(Quote { market, outcomes, outcome_index, action, fill, block })
}

/// Quotes a trade in USDC now, including the fee: the USDC that a buy spends or that a sale pays.
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
    if side == Side::Buy {
        minimum::check_buy(ctx, usdc)?;
    }
    let on_chain = match side {
        Side::Buy => IntentSide::BuyForUsdc,
        Side::Sell => IntentSide::SellForUsdc,
    };
    let action = QuoteRequest { side, amount: U256::from(usdc.atomic()) };
    let (fill, block) = quote_now(ctx, number, outcome_index, on_chain, action.amount).await?;
    Ok(Quote { market, outcomes, outcome_index, action, fill, block })
}

/// Returns the amounts that would move now, and the newest block.
async fn quote_now(
    ctx: &Ctx,
    market: u64,
    outcome_index: u8,
    side: IntentSide,
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
    side: IntentSide,
    amount: U256,
) -> Result<Past, AppError> {
    let found = ctx.chain.block(block).await?;
    let block =
        found.ok_or_else(|| AppError::field("/block", "must be the number of a block on the chain"))?;
    // Query by the block's hash: a reorganization between the two calls then cannot mix two
    // branches.
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
