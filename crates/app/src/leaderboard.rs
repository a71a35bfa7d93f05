//! Leaderboards: accounts by realized profit, volume, or total profit including open positions.
//!
//! A ranking sums what every account did in the timeframe, and the total also needs every open
//! position. So both are cached for a short time, and only one task computes each of them.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use alloy_primitives::Address;
use domain::market::probability_for_display;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};
use store::StoreError;
use store::public::{Leader, LeaderSort, Listed, OpenPosition, PageRange, Timeframe};

use crate::Ctx;
use crate::process::leaderboards::Values;

/// The maximum length of a leaderboard.
pub const PLACES: u32 = 1_000;
/// The lifetime of a cached ranking.
const RANKED_MS: i64 = 5_000;
/// The lifetime of cached position values.
const VALUED_MS: i64 = 30_000;
/// The number of accounts by realized profit, and by volume, that are considered for the ranking by
/// total profit.
const CANDIDATES: u32 = 50_000;
/// The number of positions per page.
const POSITIONS: u32 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked {
    /// From 1.
    pub rank: u64,
    /// The account's figures in the timeframe.
    pub leader: Leader,
    /// The value of the account's open positions minus their cost, independent of the timeframe.
    pub unrealized_pnl: UsdcDelta,
    /// The name that the account's user chose to show.
    pub name: Option<String>,
}

/// Returns a page of the ranking. It has at most a thousand accounts, is at most five seconds old,
/// and uses position values that are at most half a minute old.
pub async fn leaderboard(
    ctx: &Ctx,
    timeframe: Timeframe,
    sort: LeaderSort,
    extent: PageRange,
) -> Result<Listed<Ranked>, StoreError> {
    let leaders = ranked(ctx, timeframe, sort).await?;
    // A ranking by total profit must show the values that it was computed with.
    let values = if sort == LeaderSort::Total { Some(all_valued(ctx).await?) } else { None };
    let mut items = Vec::new();
    let page = (1..).zip(leaders.iter()).skip(extent.offset as usize).take(extent.limit as usize);
    for (rank, leader) in page {
        let unrealized_pnl = match &values {
            Some(values) => of(values, leader.account),
            None => valued(ctx, leader.account).await?,
        };
        let name = name_of(ctx, leader.account).await?;
        items.push(Ranked { rank, leader: leader.clone(), unrealized_pnl, name });
    }
    Ok(Listed { items, total: leaders.len() as u64 })
}

/// Returns an account's figures of all time and the unrealized profit of its open positions. `None`
/// if it has never traded.
pub async fn of_account(ctx: &Ctx, account: Address) -> Result<Option<(Leader, UsdcDelta)>, StoreError> {
    let read: Result<Option<Leader>, StoreError> =
        ctx.store.read(account, |tx, account| Box::pin(store::public::find_leader(tx, *account))).await;
    let Some(leader) = read? else { return Ok(None) };
    Ok(Some((leader, valued(ctx, account).await?)))
}

/// Returns the name that an account's user chose to show, if there is one.
pub async fn name_of(ctx: &Ctx, account: Address) -> Result<Option<String>, StoreError> {
    ctx.store.read(account, |tx, account| Box::pin(store::public_names::find_of_account(tx, *account))).await
}

async fn ranked(ctx: &Ctx, timeframe: Timeframe, sort: LeaderSort) -> Result<Arc<[Leader]>, StoreError> {
    let ranking = Arc::clone(ctx.process.leaderboards.ranked.lock().entry((timeframe, sort)).or_default());
    let mut ranking = ranking.lock().await;
    let now = ctx.now();
    if let Some((at, leaders)) = &*ranking
        && (0..RANKED_MS).contains(&now.since_ms(*at))
    {
        return Ok(Arc::clone(leaders));
    }
    let leaders: Arc<[Leader]> = match sort {
        LeaderSort::Total => rank_by_total(ctx, timeframe, now).await?.into(),
        sort => list(ctx, timeframe, sort, PLACES, now).await?.into(),
    };
    *ranking = Some((now, Arc::clone(&leaders)));
    Ok(leaders)
}

async fn list(
    ctx: &Ctx,
    timeframe: Timeframe,
    sort: LeaderSort,
    limit: u32,
    now: Timestamp,
) -> Result<Vec<Leader>, StoreError> {
    ctx.store
        .read((timeframe, sort, limit, now), |tx, (timeframe, sort, limit, now)| {
            Box::pin(store::public::list_leaders(tx, *timeframe, *sort, *limit, *now))
        })
        .await
}

/// Ranks by the sum of realized and unrealized profit. Ties are in descending order of the account.
async fn rank_by_total(ctx: &Ctx, timeframe: Timeframe, now: Timestamp) -> Result<Vec<Leader>, StoreError> {
    let values = all_valued(ctx).await?;
    // If the candidates do not cover all accounts, also consider those with the greatest volume:
    // their open positions may be large although they realized little.
    let mut leaders = list(ctx, timeframe, LeaderSort::Realized, CANDIDATES, now).await?;
    if leaders.len() == CANDIDATES as usize {
        let known: HashSet<Address> = leaders.iter().map(|leader| leader.account).collect();
        let others = list(ctx, timeframe, LeaderSort::Volume, CANDIDATES, now).await?;
        leaders.extend(others.into_iter().filter(|leader| !known.contains(&leader.account)));
    }
    let total = |leader: &Leader| leader.realized_pnl.0.saturating_add(of(&values, leader.account).0);
    leaders.sort_by_key(|leader| Reverse((total(leader), leader.account)));
    leaders.truncate(PLACES as usize);
    Ok(leaders)
}

fn of(values: &Values, account: Address) -> UsdcDelta {
    values.get(&account).copied().unwrap_or(UsdcDelta(0))
}

/// Returns the values of all open positions by account, at most half a minute old.
async fn all_valued(ctx: &Ctx) -> Result<Arc<Values>, StoreError> {
    let mut kept = ctx.process.leaderboards.all_valued.lock().await;
    let now = ctx.now();
    if let Some((at, values)) = &*kept
        && (0..VALUED_MS).contains(&now.since_ms(*at))
    {
        return Ok(Arc::clone(values));
    }
    let mut values = Values::new();
    let mut after = None;
    loop {
        let open = ctx
            .store
            .read(after, |tx, after| Box::pin(store::public::list_all_open_positions(tx, *after, POSITIONS)))
            .await?;
        for (account, position) in &open {
            values.entry(*account).or_insert(UsdcDelta(0)).0 += unrealized(position).0;
        }
        let Some((last_account, last)) = open.last().filter(|_| open.len() == POSITIONS as usize) else {
            break;
        };
        after = Some((*last_account, last.market_id, last.outcome_index));
    }
    let values = Arc::new(values);
    *kept = Some((now, Arc::clone(&values)));
    Ok(values)
}

/// Returns the value of an account's open positions minus their cost.
async fn valued(ctx: &Ctx, account: Address) -> Result<UsdcDelta, StoreError> {
    let now = ctx.now();
    let kept = ctx.process.leaderboards.valued.get(&account);
    if let Some((_, value)) = kept.filter(|(at, _)| (0..VALUED_MS).contains(&now.since_ms(*at))) {
        return Ok(value);
    }
    let mut value = 0;
    let mut after = None;
    loop {
        let open = ctx
            .store
            .read((account, after), |tx, (account, after)| {
                Box::pin(store::public::list_open_positions(tx, *account, *after, POSITIONS))
            })
            .await?;
        value += open.iter().map(|position| unrealized(position).0).sum::<i64>();
        let Some(last) = open.last().filter(|_| open.len() == POSITIONS as usize) else { break };
        after = Some((last.market_id, last.outcome_index));
    }
    ctx.process.leaderboards.valued.insert(account, (now, UsdcDelta(value)));
    Ok(UsdcDelta(value))
}

/// Returns a position's value minus its cost. Settled markets use their payout, others the current
/// price. Only for display.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a display value"
)]
fn unrealized(p: &OpenPosition) -> UsdcDelta {
    let per_token = |price: f64| (p.tokens.to_f64_for_display() * price * 1e6).floor().max(0.0) as u64;
    let display = |wad: &Wad| wad.to_f64_for_display();
    let value = match &p.payouts {
        Some(payouts) => per_token(payouts.get(usize::from(p.outcome_index)).map_or(0.0, display)),
        None => {
            let (quantity, cost) = (display(&p.quantity), display(&p.cost));
            per_token(probability_for_display(quantity, cost, p.liquidity.to_f64_for_display()))
        }
    };
    UsdcDelta::between(Usdc::from_atomic(value), p.cost_basis)
}

#[cfg(test)]
mod tests {
    use domain::ids::MarketId;

    use super::*;

    fn position() -> OpenPosition {
        OpenPosition {
            market_id: MarketId(uuid::Uuid::nil()),
            outcome_index: 0,
            tokens: Wad::from_amount(Usdc::from_whole(10)),
            cost_basis: Usdc::from_whole(4),
            quantity: Wad::from_amount(Usdc::from_whole(7)),
            cost: Wad::from_amount(Usdc::from_whole(7)),
            liquidity: Usdc::from_whole(100),
            payouts: None,
        }
    }

    #[test]
    fn open_positions_are_valued_by_price_and_settled_ones_by_payout() {
        assert_eq!(unrealized(&position()), UsdcDelta(6_000_000));
        let lost = OpenPosition { payouts: Some(vec![Wad::ZERO, Wad::ONE]), ..position() };
        assert_eq!(unrealized(&lost), UsdcDelta(-4_000_000));
    }
}
