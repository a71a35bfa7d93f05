//! The accounts that have gained and traded most: the profit realised in a timeframe, and the profit that open positions would
//! make now.
//!
//! Ranking the last days sums what every account did in them, and the value of positions follows from every one of them. So both
//! are cached for a moment, each read by one at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::market::probability_for_display;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};
use parking_lot::Mutex;
use store::StoreError;
use store::public::{Extent, Leader, LeaderSort, Listed, OpenPosition, Timeframe};

use crate::Ctx;

/// The places that a leaderboard has.
pub const PLACES: u32 = 1_000;
/// For how long a leaderboard is shown as it was read.
const RANKED_MS: i64 = 5_000;
/// For how long an account's positions are worth what they were.
const VALUED_MS: i64 = 30_000;
/// The accounts with the greatest realised profit, and those with the greatest volume, that are ranked by total profit.
const CANDIDATES: u32 = 50_000;
/// The most accounts whose positions' worth is kept.
const MOST_VALUED: usize = 8_192;
/// Positions that are read at once.
const POSITIONS: u32 = 1_000;

/// An account's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked {
    /// From 1.
    pub rank: u64,
    /// What it did in the timeframe.
    pub leader: Leader,
    /// What its open positions are worth now over what they cost, whatever the timeframe.
    pub unrealized_pnl: UsdcDelta,
}

/// The leaderboards of a moment ago.
#[derive(Debug, Default)]
pub struct Leaderboards {
    ranked: Mutex<HashMap<(Timeframe, LeaderSort), Arc<Ranking>>>,
    valued: Mutex<HashMap<String, (Timestamp, UsdcDelta)>>,
    all_valued: tokio::sync::Mutex<Option<(Timestamp, Arc<Values>)>>,
}

/// What the open positions of each account are worth over what they cost.
type Values = HashMap<String, UsdcDelta>;

/// One leaderboard and when it was read; locked while it is read.
type Ranking = tokio::sync::Mutex<Option<(Timestamp, Arc<[Leader]>)>>;

/// The accounts that have done something in the timeframe, the greatest first: a thousand of them at most, as they stood within the
/// last five seconds, with their positions' worth of the last half minute.
pub async fn leaderboard(
    ctx: &Ctx,
    timeframe: Timeframe,
    sort: LeaderSort,
    extent: Extent,
) -> Result<Listed<Ranked>, StoreError> {
    let leaders = ranked(ctx, timeframe, sort).await?;
    // A ranking by these values shows the values that it was made with.
    let values = if sort == LeaderSort::Total { Some(all_valued(ctx).await?) } else { None };
    let mut items = Vec::new();
    let page = (1..).zip(leaders.iter()).skip(extent.offset as usize).take(extent.limit as usize);
    for (rank, leader) in page {
        let unrealized_pnl = match &values {
            Some(values) => of(values, &leader.account),
            None => valued(ctx, &leader.account).await?,
        };
        items.push(Ranked { rank, leader: leader.clone(), unrealized_pnl });
    }
    Ok(Listed { items, total: leaders.len() as u64 })
}

async fn ranked(ctx: &Ctx, timeframe: Timeframe, sort: LeaderSort) -> Result<Arc<[Leader]>, StoreError> {
    let ranking = Arc::clone(ctx.leaderboards.ranked.lock().entry((timeframe, sort)).or_default());
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

/// The accounts with the greatest sum of realised and unrealised profit; ties by the account, the last first.
async fn rank_by_total(ctx: &Ctx, timeframe: Timeframe, now: Timestamp) -> Result<Vec<Leader>, StoreError> {
    let values = all_valued(ctx).await?;
    let mut leaders = list(ctx, timeframe, LeaderSort::Realized, CANDIDATES, now).await?;
    if leaders.len() == CANDIDATES as usize {
        let known: HashSet<String> = leaders.iter().map(|leader| leader.account.clone()).collect();
        let others = list(ctx, timeframe, LeaderSort::Volume, CANDIDATES, now).await?;
        leaders.extend(others.into_iter().filter(|leader| !known.contains(&leader.account)));
    }
    let total = |leader: &Leader| leader.realized_pnl.0.saturating_add(of(&values, &leader.account).0);
    leaders.sort_by(|a, b| (total(b), &b.account).cmp(&(total(a), &a.account)));
    leaders.truncate(PLACES as usize);
    Ok(leaders)
}

fn of(values: &Values, account: &str) -> UsdcDelta {
    values.get(account).copied().unwrap_or(UsdcDelta(0))
}

/// The values of all open positions by their accounts, of the last half minute.
async fn all_valued(ctx: &Ctx) -> Result<Arc<Values>, StoreError> {
    let mut kept = ctx.leaderboards.all_valued.lock().await;
    let now = ctx.now();
    if let Some((at, values)) = &*kept
        && (0..VALUED_MS).contains(&now.since_ms(*at))
    {
        return Ok(Arc::clone(values));
    }
    let mut values = Values::new();
    let (mut account, mut market, mut outcome) = (String::new(), String::new(), 0);
    loop {
        let read: Result<Vec<(String, OpenPosition)>, StoreError> = ctx
            .store
            .read((account, market, outcome), |tx, (account, market, outcome)| {
                let after = (account.as_str(), market.as_str(), *outcome);
                Box::pin(store::public::list_all_open_positions(tx, after, POSITIONS))
            })
            .await;
        let open = read?;
        for (account, position) in &open {
            values.entry(account.clone()).or_insert(UsdcDelta(0)).0 += unrealized(position).0;
        }
        let Some((last_account, last)) = open.last().filter(|_| open.len() == POSITIONS as usize) else {
            break;
        };
        (account, market) = (last_account.clone(), last.market_id.to_string());
        outcome = i64::from(last.outcome_index);
    }
    let values = Arc::new(values);
    *kept = Some((now, Arc::clone(&values)));
    Ok(values)
}

/// What an account's open positions are worth over what they cost.
async fn valued(ctx: &Ctx, account: &str) -> Result<UsdcDelta, StoreError> {
    let now = ctx.now();
    let is_kept = |at: Timestamp| (0..VALUED_MS).contains(&now.since_ms(at));
    let kept = ctx.leaderboards.valued.lock().get(account).copied();
    if let Some((_, value)) = kept.filter(|(at, _)| is_kept(*at)) {
        return Ok(value);
    }
    let mut value = 0;
    let (mut market, mut outcome) = (String::new(), 0);
    loop {
        let after = (account.to_owned(), market, outcome);
        let read: Result<Vec<OpenPosition>, StoreError> = ctx
            .store
            .read(after, |tx, (account, market, outcome)| {
                Box::pin(store::public::list_open_positions(tx, account, (market, *outcome), POSITIONS))
            })
            .await;
        let open = read?;
        value += open.iter().map(|position| unrealized(position).0).sum::<i64>();
        let Some(last) = open.last().filter(|_| open.len() == POSITIONS as usize) else { break };
        (market, outcome) = (last.market_id.to_string(), i64::from(last.outcome_index));
    }
    let mut valued = ctx.leaderboards.valued.lock();
    if valued.len() >= MOST_VALUED {
        valued.retain(|_, (at, _)| is_kept(*at));
    }
    if valued.len() < MOST_VALUED {
        valued.insert(account.to_owned(), (now, UsdcDelta(value)));
    }
    Ok(UsdcDelta(value))
}

/// What a position is worth over what it cost: at what its market pays where that is settled, and at the current price
/// otherwise. For display alone.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a display value"
)]
fn unrealized(p: &OpenPosition) -> UsdcDelta {
    let per_token = |price: f64| (p.tokens.to_f64_for_display() * price * 1e6).floor().max(0.0) as u64;
    let display = |wad: &Wad| wad.to_f64_for_display();
    let value = match (&p.payouts, &p.refund_scale) {
        (_, Some(scale)) => (p.cost_basis.to_f64_for_display() * scale.to_f64_for_display() * 1e6) as u64,
        (Some(payouts), None) => per_token(payouts.get(usize::from(p.outcome_index)).map_or(0.0, display)),
        (None, None) => {
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
            refund_scale: None,
        }
    }

    #[test]
    fn an_open_position_is_worth_its_price_a_settled_one_its_payout_a_refund_its_cost() {
        assert_eq!(unrealized(&position()), UsdcDelta(6_000_000));
        let lost = OpenPosition { payouts: Some(vec![Wad::ZERO, Wad::ONE]), ..position() };
        assert_eq!(unrealized(&lost), UsdcDelta(-4_000_000));
        let refunded = OpenPosition { refund_scale: Some(Wad::ONE), ..lost };
        assert_eq!(unrealized(&refunded), UsdcDelta(0));
    }
}
