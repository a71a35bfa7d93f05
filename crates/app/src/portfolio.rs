//! Portfolios: an account's positions and their value.
//!
//! Tokens and costs come from the tables that the sync writes. The account's USDC and the prices are
//! read from the chain.

mod cash_flows;
mod export;
mod over_time;

pub use cash_flows::list_deposits;
pub(crate) use cash_flows::outside_deposits;
pub use export::export_trades;
pub use over_time::{PortfolioOverTime, PortfolioPoint, Timeframe, read_over_time};

use std::collections::HashMap;

use alloy_primitives::{Address, U256};
use chain::AccountState;
use domain::ids::MarketId;
use domain::key::Scope;
use domain::market::MarketStatus;
use domain::position::Position;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};
use store::markets::{Market, Outcome};
use store::movements::Held;
use store::users::Account;

use crate::accounts::account_of;
use crate::caller::Caller;
use crate::sessions::Person;
use crate::{AppError, Ctx, minimum};

/// A position with its market and current value.
#[derive(Debug, Clone)]
pub struct ValuedPosition {
    pub market: Market,
    /// The outcome's label.
    pub label: String,
    /// The stored position.
    pub held: Held,
    /// The price of one token in WAD of USDC: the current price, or the payout of a settled market.
    pub price: Wad,
    /// Tokens times price, rounded down.
    pub value: Usdc,
    /// The amount that the contract would pay for it now.
    pub claimable: Usdc,
    /// A claim would be accepted: it pays something, and the service does not pay it by itself.
    pub is_claimable: bool,
}

impl ValuedPosition {
    pub const fn position(&self) -> &Position {
        &self.held.position
    }

    /// Reports whether the position can still be sold or paid.
    pub fn is_open(&self) -> bool {
        self.position().is_open(is_settled(&self.market).then_some(self.price))
    }

    /// The profit at the current price.
    pub const fn unrealized_pnl(&self) -> UsdcDelta {
        UsdcDelta::between(self.value, self.held.position.cost_basis)
    }
}

/// The account with all of its positions.
#[derive(Debug, Clone)]
pub struct Portfolio {
    pub account: Account,
    /// The state on chain, including the policy of the caller's key.
    pub state: AccountState,
    pub positions: Vec<ValuedPosition>,
    /// The newest block's number and time.
    pub as_of: (u64, Timestamp),
}

impl Portfolio {
    /// Returns the account's USDC. The chain's balance is 256 bits wide: it saturates.
    pub fn cash(&self) -> Usdc {
        Usdc::from_atomic(u64::try_from(self.state.usdc_balance_atomic).unwrap_or(i64::MAX as u64))
    }
}

/// Returns the caller's portfolio.
pub async fn summary(ctx: &Ctx, caller: &Caller) -> Result<Portfolio, AppError> {
    caller.require(Scope::PortfolioRead)?;
    let account = account_of(ctx, caller.user_id()).await?;
    // Read the head first: the other reads are then at least as new as the reported block.
    let head = ctx.chain.head().await?;
    let state = ctx.chain.account_state(account.address, caller.key.key_index).await?;
    let positions = valued(ctx, account.address, None).await?;
    Ok(Portfolio { account, state, positions, as_of: (head.number, Timestamp::from_s(head.timestamp_s)) })
}

/// Returns the person's portfolio. The state on chain has the policy of the web key.
pub async fn of_person(ctx: &Ctx, person: &Person) -> Result<Portfolio, AppError> {
    summary(ctx, &person.holder()).await
}

/// Returns the caller's positions that hold tokens or have a history, optionally of one market.
pub async fn positions(
    ctx: &Ctx,
    caller: &Caller,
    market_id: Option<MarketId>,
) -> Result<Vec<ValuedPosition>, AppError> {
    caller.require(Scope::PortfolioRead)?;
    let account = account_of(ctx, caller.user_id()).await?;
    valued(ctx, account.address, market_id).await
}

async fn valued(
    ctx: &Ctx,
    account: Address,
    market_id: Option<MarketId>,
) -> Result<Vec<ValuedPosition>, AppError> {
    let (held, markets) = ctx
        .store
        .read((account, market_id), |tx, (account, market_id)| {
            Box::pin(async move {
                let held = store::movements::list_positions(tx, *account, *market_id).await?;
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
        .await?;
    let prices = prices(ctx, markets.values().map(|(market, _)| market)).await?;
    let claimables = claimable(ctx, account, &held, &markets).await?;
    let mut valued = Vec::with_capacity(held.len());
    for held in held {
        let Some((market, outcomes)) = markets.get(&held.market_id) else { continue };
        let index = usize::from(held.outcome_index);
        let price = prices.get(&market.id).and_then(|prices| prices.get(index)).copied().unwrap_or_default();
        let claimable = claimables.get(&(held.market_id, held.outcome_index)).copied().unwrap_or_default();
        let value = if is_settled(market) { claimable } else { held.position.tokens.worth_floor(price) };
        valued.push(ValuedPosition {
            label: outcomes.get(index).map(|outcome| outcome.label.clone()).unwrap_or_default(),
            market: market.clone(),
            held,
            price,
            value,
            claimable,
            is_claimable: minimum::is_claimable(ctx, claimable),
        });
    }
    Ok(valued)
}

async fn prices(
    ctx: &Ctx,
    markets: impl Iterator<Item = &Market>,
) -> Result<HashMap<MarketId, Vec<Wad>>, AppError> {
    let (mut prices, mut asked) = (HashMap::new(), Vec::new());
    for market in markets {
        match (&market.payouts, market.chain_market_id) {
            (Some(payouts), _) => drop(prices.insert(market.id, payouts.clone())),
            (None, Some(number)) => asked.push((market.id, number)),
            (None, None) => {}
        }
    }
    let numbers: Vec<u64> = asked.iter().map(|(_, number)| *number).collect();
    let found = ctx.chain.prices_of(&numbers).await?;
    let of_market = |prices: Vec<U256>| prices.into_iter().map(Wad).collect();
    prices.extend(asked.into_iter().zip(found).map(|((id, _), found)| (id, of_market(found))));
    Ok(prices)
}

/// Returns the amount that the contract would pay for each position.
async fn claimable(
    ctx: &Ctx,
    account: Address,
    held: &[Held],
    markets: &HashMap<MarketId, (Market, Vec<Outcome>)>,
) -> Result<HashMap<(MarketId, u8), Usdc>, AppError> {
    let may_pay = |held: &&Held| {
        let market = markets.get(&held.market_id).map(|(market, _)| market);
        held.position.tokens > Wad::ZERO && market.is_some_and(is_settled)
    };
    let number_of = |held: &Held| markets.get(&held.market_id).and_then(|(market, _)| market.chain_market_id);
    let asked = held.iter().filter(may_pay).filter_map(|held| Some((held, number_of(held)?)));
    let (places, asked): (Vec<_>, Vec<_>) = asked
        .map(|(held, number)| ((held.market_id, held.outcome_index), (account, number, held.outcome_index)))
        .unzip();
    let paid = ctx.chain.redeemable_of(&asked).await?;
    Ok(places.into_iter().zip(paid.into_iter().map(Usdc::from_atomic)).collect())
}

const fn is_settled(market: &Market) -> bool {
    matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled)
}
