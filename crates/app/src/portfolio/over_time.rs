//! The value and the profit of an account over time.
//!
//! The history is computed backwards from what the account holds now: each earlier point undoes the
//! movements after it, and values the tokens at the prices of that time. USDC comes from the stored
//! cash flows. So no worker records points, and a repaired ledger repairs the history.

use std::collections::HashMap;

use alloy_primitives::{Address, U256};
use domain::candle::Bucket;
use domain::ids::MarketId;
use domain::market::{MarketStatus, probability_ppm};
use domain::time::DAY_MS;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};
use store::cash_flows::{CashFlow, CashFlowSums};
use store::markets::{Market, Outcome};
use store::movements::{Held, Movement, MovementKind};

use super::cash_flows::update_cash_flows;
use super::{Portfolio, of_person};
use crate::markets::{PoolState, Span, history};
use crate::sessions::Person;
use crate::{AppError, Ctx};

const HOUR_MS: i64 = DAY_MS / 24;
/// The maximum number of points besides the present.
const MOST_POINTS: i64 = 180;
/// The maximum number of movements and of cash flows that are read. The history of an account with
/// more begins later.
const MOST_MOVEMENTS: u32 = 20_000;
/// The maximum number of markets whose prices are read.
const MOST_MARKETS: usize = 200;
/// WAD in a millionth.
const WAD_PER_PPM: u64 = 1_000_000_000_000;

/// The timeframe of a history. It ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeframe {
    OneDay,
    SevenDays,
    ThirtyDays,
    /// Since the user signed up.
    All,
}

/// An account at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortfolioPoint {
    pub at: Timestamp,
    pub cash: Usdc,
    /// The value of all positions at the prices of that time, rounded down.
    pub positions: Usdc,
    /// Deposits minus withdrawals until then.
    pub deposited: UsdcDelta,
}

impl PortfolioPoint {
    /// Returns cash and positions.
    pub fn value(&self) -> Usdc {
        Usdc::from_atomic(self.cash.atomic().saturating_add(self.positions.atomic()))
    }

    /// Returns the profit since the beginning.
    pub fn profit(&self) -> UsdcDelta {
        let value = i64::try_from(self.value().atomic()).unwrap_or(i64::MAX);
        UsdcDelta(value.saturating_sub(self.deposited.0))
    }
}

/// The history of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortfolioOverTime {
    /// Oldest first. The last one is the present.
    pub points: Vec<PortfolioPoint>,
}

/// Returns the person's history.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE` while the account's transfers or a market's prices are still being read.
pub async fn read_over_time(
    ctx: &Ctx,
    person: &Person,
    timeframe: Timeframe,
) -> Result<PortfolioOverTime, AppError> {
    let now_held = of_person(ctx, person).await?;
    update_cash_flows(ctx, &now_held.account).await?;
    let now = ctx.now();
    let (from, step_ms) = grid(timeframe, person.user().created_at, now);
    let rows = read_rows(ctx, now_held.account.address, from).await?;
    let prices = Prices::read(ctx, &rows, from).await?;
    Ok(PortfolioOverTime { points: points(&now_held, rows, &prices, (from, step_ms), now) })
}

/// Returns the first point's time, and the distance of points.
fn grid(timeframe: Timeframe, since: Timestamp, now: Timestamp) -> (Timestamp, i64) {
    let span_ms = match timeframe {
        Timeframe::OneDay => DAY_MS,
        Timeframe::SevenDays => 7 * DAY_MS,
        Timeframe::ThirtyDays => 30 * DAY_MS,
        Timeframe::All => now.since_ms(since).max(HOUR_MS),
    };
    let steps = [HOUR_MS / 4, HOUR_MS, 4 * HOUR_MS, DAY_MS, 7 * DAY_MS];
    let fits = steps.into_iter().find(|step| span_ms / step <= MOST_POINTS);
    let step_ms = fits.unwrap_or_else(|| (span_ms / MOST_POINTS / DAY_MS + 1) * DAY_MS);
    let first_ms = now.plus_ms(-span_ms).ms().div_euclid(step_ms).saturating_add(1).saturating_mul(step_ms);
    (Timestamp::from_ms(first_ms), step_ms)
}

/// What the history is computed from.
struct Rows {
    /// Newest first.
    movements: Vec<Movement>,
    /// Positions, including closed ones.
    held: Vec<Held>,
    markets: HashMap<MarketId, (Market, Vec<Outcome>)>,
    before: CashFlowSums,
    /// Oldest first.
    flows: Vec<CashFlow>,
}

async fn read_rows(ctx: &Ctx, account: Address, from: Timestamp) -> Result<Rows, AppError> {
    let rows = ctx.store.read((account, from), |tx, (account, from)| {
        Box::pin(async move {
            let movements =
                store::movements::list_of_account_since(tx, *account, *from, MOST_MOVEMENTS).await?;
            let held = store::movements::list_positions(tx, *account, None).await?;
            let mut markets = HashMap::new();
            let moved = movements.iter().map(|movement| movement.market_id);
            let open =
                held.iter().filter(|held| !held.position.tokens.0.is_zero()).map(|held| held.market_id);
            for id in open.chain(moved) {
                if markets.len() >= MOST_MARKETS || markets.contains_key(&id) {
                    continue;
                }
                if let Some(market) = store::markets::find(tx, id).await? {
                    let outcomes = store::markets::outcomes(tx, id).await?;
                    markets.insert(id, (market, outcomes));
                }
            }
            let before = store::cash_flows::sums_before(tx, *account, *from).await?;
            let flows = store::cash_flows::list_since(tx, *account, *from, MOST_MOVEMENTS).await?;
            Ok(Rows { movements, held, markets, before, flows })
        })
    });
    Ok(rows.await?)
}

/// The prices of markets over time.
struct Prices(HashMap<MarketId, MarketPrices>);

struct MarketPrices {
    market: Market,
    opening: PoolState,
    buckets: Vec<Bucket>,
}

impl Prices {
    async fn read(ctx: &Ctx, rows: &Rows, from: Timestamp) -> Result<Self, AppError> {
        let mut prices = HashMap::new();
        for (id, (market, outcomes)) in &rows.markets {
            // Before its first trade of the span, a market has the price at the span's start. One that
            // ended before has its last price.
            let to = ctx.now().min(market.end_time).plus_ms(1);
            let from = Some(from.min(to.plus_ms(-1)));
            let read = history(ctx, market, outcomes, Span { interval: None, from, to: Some(to) }).await?;
            let (opening, buckets) = (read.opening, read.buckets);
            prices.insert(*id, MarketPrices { market: market.clone(), opening, buckets });
        }
        Ok(Self(prices))
    }

    /// Returns the price of an outcome at a time.
    fn at(&self, id: MarketId, outcome: u8, at: Timestamp) -> Wad {
        let Some(prices) = self.0.get(&id) else { return Wad::default() };
        let index = usize::from(outcome);
        let market = &prices.market;
        let is_settled = matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled)
            && market.resolved_at.is_none_or(|resolved_at| resolved_at <= at);
        if is_settled && let Some(payouts) = &market.payouts {
            return payouts.get(index).copied().unwrap_or_default();
        }
        let last = prices.buckets.partition_point(|bucket| bucket.at <= at).checked_sub(1);
        let state = last.and_then(|last| prices.buckets.get(last)).map(PoolState::after);
        let state = state.as_ref().unwrap_or(&prices.opening);
        let Some(quantity) = state.quantities.get(index) else { return Wad::default() };
        Wad(U256::from(probability_ppm(*quantity, state.cost, market.liquidity)) * U256::from(WAD_PER_PPM))
    }
}

/// Returns the points of the grid, and the present.
fn points(
    now_held: &Portfolio,
    rows: Rows,
    prices: &Prices,
    (from, step_ms): (Timestamp, i64),
    now: Timestamp,
) -> Vec<PortfolioPoint> {
    let account = now_held.account.address;
    let Rows { movements, held, before, flows, .. } = rows;
    // A longer list is cut off: its oldest movements cannot be undone.
    let is_cut = movements.len() >= MOST_MOVEMENTS as usize || flows.len() >= MOST_MOVEMENTS as usize;
    let oldest_known = movements.last().filter(|_| is_cut).map_or(from, |oldest| oldest.created_at);
    let mut tokens: HashMap<(MarketId, u8), U256> =
        held.iter().map(|it| ((it.market_id, it.outcome_index), it.position.tokens.0)).collect();
    let mut times = Vec::new();
    let mut at = from;
    while at < now {
        times.push(at);
        at = at.plus_ms(step_ms);
    }
    let total = flows.iter().fold(before, sums_with);
    let present = now_held.positions.iter().fold(0_u64, |sum, it| sum.saturating_add(it.value.atomic()));
    let mut points = vec![PortfolioPoint {
        at: now,
        cash: now_held.cash(),
        positions: Usdc::from_atomic(present),
        deposited: UsdcDelta(total.deposited),
    }];
    let (mut sums, mut undone, mut kept) = (total, movements.iter().peekable(), flows.as_slice());
    for at in times.into_iter().rev().take_while(|at| *at >= oldest_known) {
        while let Some(movement) = undone.next_if(|movement| movement.created_at > at) {
            undo(&mut tokens, account, movement);
        }
        while let Some((last, rest)) = kept.split_last()
            && last.at > at
        {
            sums = CashFlowSums {
                balance: sums.balance.saturating_sub(last.usdc.0),
                deposited: sums.deposited.saturating_sub(if last.is_external { last.usdc.0 } else { 0 }),
            };
            kept = rest;
        }
        let worth = |((id, outcome), held): (&(MarketId, u8), &U256)| {
            Wad(*held).worth_floor(prices.at(*id, *outcome, at)).atomic()
        };
        let positions = tokens.iter().filter(|(_, held)| !held.is_zero()).map(worth);
        points.push(PortfolioPoint {
            at,
            cash: Usdc::from_atomic(u64::try_from(sums.balance).unwrap_or_default()),
            positions: Usdc::from_atomic(positions.fold(0, u64::saturating_add)),
            deposited: UsdcDelta(sums.deposited),
        });
    }
    points.reverse();
    points
}

fn sums_with(sums: CashFlowSums, flow: &CashFlow) -> CashFlowSums {
    CashFlowSums {
        balance: sums.balance.saturating_add(flow.usdc.0),
        deposited: sums.deposited.saturating_add(if flow.is_external { flow.usdc.0 } else { 0 }),
    }
}

/// Takes a movement back.
fn undo(tokens: &mut HashMap<(MarketId, u8), U256>, account: Address, movement: &Movement) {
    let held = tokens.entry((movement.market_id, movement.outcome_index)).or_default();
    let was_received = match movement.kind {
        MovementKind::Buy | MovementKind::Split => true,
        MovementKind::Sell | MovementKind::Merge | MovementKind::Redeem => false,
        MovementKind::Transfer if movement.counterparty == Some(movement.account) => return,
        MovementKind::Transfer => movement.account != account,
    };
    let amount = movement.tokens.0;
    *held = if was_received { held.saturating_sub(amount) } else { held.saturating_add(amount) };
}
