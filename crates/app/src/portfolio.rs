//! What an account holds and what it is worth. Balances come from the chain, the ledger of costs from its events; prices
//! are the contracts' own, as integers.

use std::collections::HashMap;

use alloy_primitives::U256;
use chain::AccountState;
use domain::ids::MarketId;
use domain::market::MarketStatus;
use domain::position::Position;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};
use futures::{StreamExt, TryStreamExt};
use store::StoreError;
use store::markets::{Market, Outcome};
use store::movements::Held;
use store::users::Account;

use crate::accounts::{account_of, address_of};
use crate::keys::Caller;
use crate::{AppError, Ctx};

/// Questions to the chain that are open at once.
const CONCURRENT: usize = 16;
/// One, in WAD.
const WAD: u64 = 1_000_000_000_000_000_000;
/// WAD of tokens times WAD of price, over this, is atomic USDC.
const WAD_PER_ATOMIC: u64 = 1_000_000_000_000;

/// A position, its market, and its worth now.
#[derive(Debug, Clone)]
pub struct ValuedPosition {
    /// The market.
    pub market: Market,
    /// The outcome's name.
    pub label: String,
    /// The ledger.
    pub held: Held,
    /// The price of one token, WAD of USDC: the market's, or what a settled market pays.
    pub price: Wad,
    /// Tokens times price, rounded down.
    pub value: Usdc,
    /// What the hub would pay for it now.
    pub claimable: Usdc,
    /// Whether a claim of it is accepted: it pays something, and at least the smallest claim.
    pub is_claimable: bool,
}

impl ValuedPosition {
    /// The ledger's position.
    pub const fn position(&self) -> &Position {
        &self.held.position
    }

    /// What the position would gain at this price.
    pub const fn unrealized_pnl(&self) -> UsdcDelta {
        UsdcDelta::between(self.value, self.held.position.cost_basis)
    }
}

/// The account and its positions taken together.
#[derive(Debug, Clone)]
pub struct Portfolio {
    /// The account.
    pub account: Account,
    /// Its state on chain, with this key's policy.
    pub state: AccountState,
    /// Its positions.
    pub positions: Vec<ValuedPosition>,
    /// The chain's newest block and its time.
    pub as_of: (u64, Timestamp),
}

/// The caller's portfolio.
pub async fn summary(ctx: &Ctx, caller: &Caller) -> Result<Portfolio, AppError> {
    let account = account_of(ctx, caller.user_id()).await?;
    let address = address_of(&account)?;
    let head = ctx.chain.head().await?;
    let state = ctx.chain.account_state(address, caller.key.key_index).await?;
    let positions = valued(ctx, &account, None).await?;
    Ok(Portfolio { account, state, positions, as_of: (head.number, Timestamp::from_s(head.timestamp_s)) })
}

/// The caller's positions, of one market where `market_id` is given: those that hold tokens or have a history.
pub async fn positions(
    ctx: &Ctx,
    caller: &Caller,
    market_id: Option<MarketId>,
) -> Result<Vec<ValuedPosition>, AppError> {
    let account = account_of(ctx, caller.user_id()).await?;
    valued(ctx, &account, market_id).await
}

async fn valued(
    ctx: &Ctx,
    account: &Account,
    market_id: Option<MarketId>,
) -> Result<Vec<ValuedPosition>, AppError> {
    type Read = (Vec<Held>, HashMap<MarketId, (Market, Vec<Outcome>)>);
    let read: Result<Read, StoreError> = ctx
        .store
        .read((account.address.clone(), market_id), |tx, (address, market_id)| {
            Box::pin(async move {
                let held = store::movements::list_positions(tx, address, *market_id).await?;
                let mut markets = HashMap::new();
                for position in &held {
                    if markets.contains_key(&position.market_id) {
                        continue;
                    }
                    if let Some(market) = store::markets::find(tx, position.market_id).await? {
                        let outcomes = store::markets::outcomes(tx, market.id).await?;
                        markets.insert(market.id, (market, outcomes));
                    }
                }
                Ok((held, markets))
            })
        })
        .await;
    let (held, markets) = read?;
    let prices = prices(ctx, markets.values().map(|(market, _)| market)).await?;
    let mut valued = Vec::with_capacity(held.len());
    for held in held {
        let Some((market, outcomes)) = markets.get(&held.market_id) else { continue };
        let index = usize::from(held.outcome_index);
        let price = prices.get(&market.id).and_then(|prices| prices.get(index)).copied().unwrap_or_default();
        let claimable = claimable(ctx, account, market, &held).await?;
        let settled = matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled);
        let value = if settled { claimable } else { worth_floor(held.position.tokens, price) };
        valued.push(ValuedPosition {
            label: outcomes.get(index).map(|outcome| outcome.label.clone()).unwrap_or_default(),
            market: market.clone(),
            held,
            price,
            value,
            claimable,
            is_claimable: claimable > Usdc::ZERO && claimable >= ctx.config.min_claim,
        });
    }
    Ok(valued)
}

/// Tokens times price, in USDC, rounded down.
pub fn worth_floor(tokens: Wad, price: Wad) -> Usdc {
    let atomic = tokens.0.saturating_mul(price.0) / U256::from(WAD) / U256::from(WAD_PER_ATOMIC);
    Usdc::from_atomic(u64::try_from(atomic).unwrap_or(i64::MAX as u64))
}

async fn prices(
    ctx: &Ctx,
    markets: impl Iterator<Item = &Market>,
) -> Result<HashMap<MarketId, Vec<Wad>>, AppError> {
    let asked = markets.map(|market| (market.id, market.chain_market_id, market.payouts.clone()));
    let asked: Vec<_> = asked.collect();
    futures::stream::iter(asked)
        .map(async |(id, number, payouts)| match (payouts, number) {
            (Some(payouts), _) => Ok((id, payouts)),
            (None, Some(number)) => {
                let prices = ctx.chain.prices(number).await?;
                Ok((id, prices.into_iter().map(Wad).collect()))
            }
            (None, None) => Ok((id, Vec::new())),
        })
        .buffer_unordered(CONCURRENT)
        .try_collect()
        .await
}

async fn claimable(ctx: &Ctx, account: &Account, market: &Market, held: &Held) -> Result<Usdc, AppError> {
    let settled = matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled);
    // A refund that was scaled down takes the tokens and may be topped up later.
    let may_be_owed = held.position.tokens > Wad::ZERO || market.refund_scale.is_some();
    let (true, Some(number)) = (settled && may_be_owed, market.chain_market_id) else {
        return Ok(Usdc::ZERO);
    };
    let atomic = ctx.chain.redeemable(address_of(account)?, number, held.outcome_index).await?;
    Ok(Usdc::from_atomic(atomic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worth_is_rounded_down() {
        let third = Wad::from(333_333_333_333_333_333);
        assert_eq!(worth_floor(Wad::ONE, third), Usdc::from_atomic(333_333));
        assert_eq!(worth_floor(Wad::from(1), Wad::ONE), Usdc::ZERO);
    }
}
