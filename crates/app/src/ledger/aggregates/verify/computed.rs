//! Computes the aggregates from the movements, one market at a time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use alloy_primitives::Address;
use domain::ids::MarketId;
use domain::position::{self, Position};
use domain::trending::score_e4;
use domain::{Usdc, UsdcDelta};
use store::listed::{ListStatus, Scope};
use store::markets::Market;
use store::movements::{Held, Movement, MovementKind};
use store::traders::kept::{self, Kept};
use store::traders::{BUCKET_MS, Edges, SPANS_MS, oldest};
use store::{StoreError, Tx};

use super::{AggregatesVerification, Difference, differ};
use crate::ledger::aggregates::PAGE;
use crate::{AppError, Ctx};

/// Trades, atomic USDC of volume, and atomic USDC of realized profit.
type Figures = [i64; 3];

/// The aggregates of the markets so far.
pub struct Computed {
    edges: Edges,
    participants: BTreeMap<(Scope, Address), i64>,
    totals: BTreeMap<Scope, [i64; 7]>,
    buckets: BTreeMap<(i64, MarketId), [i64; 2]>,
    trending: BTreeMap<(i64, MarketId), [i64; 3]>,
    leaderboard: BTreeMap<Address, Figures>,
    spans: BTreeMap<(i64, i64, Address), Figures>,
}

/// The rows of one market.
struct OfMarket {
    market: Market,
    movements: Vec<Movement>,
    traders: Kept,
    participants: i64,
    positions: Vec<Held>,
    misplaced: Option<(String, String)>,
    misfiled: Option<(String, String)>,
    counted_as: Option<(ListStatus, Usdc, Vec<Scope>)>,
}

impl Computed {
    /// Creates empty aggregates for windows with these starts.
    pub fn new(edges: Edges) -> Self {
        Self {
            edges,
            participants: BTreeMap::new(),
            totals: BTreeMap::new(),
            buckets: BTreeMap::new(),
            trending: BTreeMap::new(),
            leaderboard: BTreeMap::new(),
            spans: BTreeMap::new(),
        }
    }

    /// Adds a market. Values that only depend on this market are compared at once.
    pub async fn market(
        &mut self,
        ctx: &Ctx,
        id: MarketId,
        verified: &mut AggregatesVerification,
    ) -> Result<(), AppError> {
        let read = ctx.store.read(id, |tx, id| Box::pin(read(tx, *id))).await?;
        let Some(of) = read else { return Ok(()) };
        verified.markets += 1;
        verified.movements += of.movements.len();
        let differences = &mut verified.differences;
        let mut note = |what: &str, kept: String, computed: String| {
            if kept != computed {
                differences.push(Difference { what: format!("{what} of market {id}"), kept, computed });
            }
        };
        if let Some((listed, market)) = &of.misplaced {
            note("list row", listed.clone(), market.clone());
        }
        if let Some((of_market, of_thread)) = &of.misfiled {
            note("organization and partner", of_market.clone(), of_thread.clone());
        }
        let trades = of.movements.iter().filter(|movement| is_trade(movement));
        let volume: u64 = trades.clone().map(|trade| trade.usdc.atomic()).sum();
        note("volume", of.market.volume.atomic().to_string(), volume.to_string());
        note("trades", of.market.trade_count.to_string(), trades.count().to_string());
        let cost = of.movements.iter().rev().find_map(|movement| movement.cost);
        let cost = cost.unwrap_or(of.market.opening_cost);
        note("cost", of.market.cost.to_string(), cost.to_string());
        let positions = fold(&of.movements, &mut note);
        let kept = of.positions.iter().map(|held| ((held.account, held.outcome_index), held.position));
        let kept: BTreeMap<(Address, u8), Position> = kept.collect();
        note("positions", format!("{kept:?}"), format!("{positions:?}"));
        let traders = self.add(&of);
        let takes_part = |row: &&Vec<i64>| row.first().is_some_and(|trades| *trades > 0);
        let participants = traders.values().filter(takes_part).count();
        note("participants", of.participants.to_string(), participants.to_string());
        let prefixed = |rows: &Kept| -> Kept {
            rows.iter().map(|(account, row)| (format!("traders {id} {account}"), row.clone())).collect()
        };
        differ(&prefixed(&of.traders), &prefixed(&traders), &mut verified.differences);
        Ok(())
    }

    /// Adds a market to the aggregates over markets. Returns its traders.
    fn add(&mut self, of: &OfMarket) -> Kept {
        let id = of.market.id;
        let mut traders: BTreeMap<Address, (Figures, i64)> = BTreeMap::new();
        for movement in &of.movements {
            let volume = i64::try_from(movement.usdc.atomic()).unwrap_or(i64::MAX);
            let traded = if is_trade(movement) { [1, volume] } else { [0, 0] };
            let figures = [traded[0], traded[1], movement.realized_pnl.0];
            let at = movement.created_at.ms();
            let (sum, last) = traders.entry(movement.account).or_default();
            plus(sum, figures);
            plus(self.leaderboard.entry(movement.account).or_default(), figures);
            for span in SPANS_MS {
                let start = at - at.rem_euclid(span);
                if start >= oldest(span, &self.edges) {
                    plus(self.spans.entry((span, start, movement.account)).or_default(), figures);
                }
            }
            if !is_trade(movement) {
                continue;
            }
            *last = at.max(*last);
            let bucket = at - at.rem_euclid(BUCKET_MS);
            if self.edges.0.iter().any(|(_, edge)| bucket >= *edge) {
                plus(self.buckets.entry((bucket, id)).or_default(), traded);
            }
            for (window, _) in self.edges.0.iter().filter(|(_, edge)| bucket >= *edge) {
                plus(self.trending.entry((*window, id)).or_default(), [traded[0], traded[1], 0]);
            }
        }
        traders.retain(|_, (figures, _)| *figures != [0; 3]);
        let active = || traders.iter().filter(|(_, (figures, _))| figures[0] > 0);
        for (window, edge) in &self.edges.0 {
            let unique = active().filter(|(_, (_, last))| last >= edge).count();
            if let Some(row) = self.trending.get_mut(&(*window, id)) {
                row[2] = i64::try_from(unique).unwrap_or(i64::MAX);
            }
        }
        if let Some((status, volume, scopes)) = &of.counted_as {
            for scope in scopes {
                let row = self.totals.entry(scope.clone()).or_default();
                row[kept::column_of(*status)] += 1;
                row[5] += i64::try_from(volume.atomic()).unwrap_or(i64::MAX);
                for (account, _) in active().filter(|_| scope.0.has_participants()) {
                    *self.participants.entry((scope.clone(), *account)).or_default() += 1;
                }
            }
        }
        let row = |([trades, volume, realized], last): (Figures, i64)| vec![trades, volume, realized, last];
        traders.into_iter().map(|(account, trader)| (format!("{account:#x}"), row(trader))).collect()
    }

    /// Returns all rows, named by table and key.
    pub fn rows(mut self) -> Kept {
        let mut rows = Kept::new();
        for (((kind, id), account), markets) in &self.participants {
            rows.insert(format!("participants {} {id} {account:#x}", kind.as_str()), vec![*markets]);
            if let Some(row) = self.totals.get_mut(&(*kind, id.clone())) {
                row[6] += 1;
            }
        }
        for ((kind, id), row) in &self.totals {
            rows.insert(format!("totals {} {id}", kind.as_str()), row.to_vec());
        }
        for ((start, id), row) in &self.buckets {
            rows.insert(format!("buckets {start} {id}"), row.to_vec());
        }
        for ((window, id), [trades, volume, unique]) in &self.trending {
            let natural = |n: &i64| u64::try_from(*n).unwrap_or_default();
            let score = score_e4(natural(unique), natural(trades), Usdc::from_atomic(natural(volume)));
            rows.insert(format!("trending {window} {id}"), vec![*trades, *volume, *unique, score]);
        }
        for (account, row) in &self.leaderboard {
            rows.insert(format!("leaderboard {account:#x}"), row.to_vec());
        }
        for ((span, start, account), row) in &self.spans {
            rows.insert(format!("spans {span} {start} {account:#x}"), row.to_vec());
        }
        rows
    }
}

const fn is_trade(movement: &Movement) -> bool {
    movement.kind.is_trade()
}

fn plus<const N: usize>(sum: &mut [i64; N], more: [i64; N]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Returns the positions that result from the movements, and compares each movement's realized
/// profit.
fn fold(
    movements: &[Movement],
    note: &mut impl FnMut(&str, String, String),
) -> BTreeMap<(Address, u8), Position> {
    let mut held: HashMap<(Address, u8), Position> = HashMap::new();
    let mut touched = BTreeSet::new();
    for movement in movements {
        let Movement { usdc, tokens, fee, outcome_index, .. } = *movement;
        let moved = match movement.kind {
            MovementKind::Buy => position::Movement::Bought { usdc, tokens, fee },
            MovementKind::Sell => position::Movement::Sold { usdc, tokens, fee },
            MovementKind::Redeem => position::Movement::Redeemed { usdc, tokens },
            MovementKind::Transfer => position::Movement::Sent { tokens },
            MovementKind::Split => position::Movement::Bought { usdc, tokens, fee },
            MovementKind::Merge => position::Movement::Sold { usdc, tokens, fee },
        };
        let own = (movement.account, outcome_index);
        let before = held.get(&own).copied().unwrap_or_default();
        let Ok(after) = before.after(moved) else {
            note(&movement.id, "a movement of more than is held".to_owned(), String::new());
            continue;
        };
        held.insert(own, after);
        touched.insert(own);
        if let (MovementKind::Transfer, Some(receiver)) = (movement.kind, movement.counterparty) {
            let other = (receiver, outcome_index);
            let received = position::Movement::Received { tokens, cost_basis: before.cost_of(tokens) };
            let position = held.get(&other).copied().unwrap_or_default();
            held.insert(other, position.after(received).unwrap_or(position));
            touched.insert(other);
            continue;
        }
        let realized = UsdcDelta(after.realized_pnl.0 - before.realized_pnl.0);
        note(&movement.id, format!("{:?}", movement.realized_pnl), format!("{realized:?}"));
    }
    touched.into_iter().map(|key| (key, held.remove(&key).unwrap_or_default())).collect()
}

async fn read(tx: &mut Tx, id: MarketId) -> Result<Option<OfMarket>, StoreError> {
    let Some(market) = store::markets::find(tx, id).await? else { return Ok(None) };
    let mut movements = Vec::new();
    let mut after = String::new();
    loop {
        let page = store::movements::list_of_market(tx, id, &after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.id);
        movements.extend(page);
    }
    Ok(Some(OfMarket {
        market,
        movements,
        traders: kept::traders_of(tx, id).await?,
        participants: kept::participants_of(tx, id).await?,
        positions: store::movements::list_of_market_positions(tx, id).await?,
        misplaced: kept::misplaced(tx, id).await?,
        misfiled: store::catalog::misfiled(tx, id).await?,
        counted_as: store::listed::counted_as(tx, id).await?,
    }))
}
