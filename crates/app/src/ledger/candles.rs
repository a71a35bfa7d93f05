//! Maintains candles, computed from movements in the transactions that write them.
//!
//! Only the sync writes candles. It first folds a reading's trades into minutes, and writes each
//! changed bucket once. If blocks are taken back, the changed buckets are computed again from the
//! remaining movements.
//!
//! Every row stores the market's trade count so far. So a gap (for example, because an older
//! version of the service wrote movements in between) is detected at the market's next trade, and
//! all of its candles are recomputed. Markets to recompute are in a backlog. The sync processes a
//! bounded part of it per tick. A market in the backlog gets no candles in any other way, so each
//! movement is folded once and in order, even after a crash.

use domain::Timestamp;
use domain::candle::{Bucket, CandleTrade, Interval, Level};
use domain::ids::MarketId;
use store::candles::CandleBacklogEntry;
use store::leases::Lease;
use store::markets::{Market, Outcome};
use store::movements::Movement;
use store::{StoreError, Tx};

use super::apply::{add_to_market, reset};
use crate::{AppError, Ctx, lease};

/// The number of backlog movements folded per transaction.
const BATCH: u32 = 1_000;
/// A time before every trade.
const ALWAYS: Timestamp = Timestamp::from_ms(0);

/// One market's trades, folded into minutes.
#[derive(Debug, Default)]
pub struct Minutes {
    buckets: Vec<Bucket>,
    /// Splits and merges before the first bucket. They are applied to the stored buckets.
    levels: Vec<Level>,
}

impl Minutes {
    /// Adds a movement that `market` and `outcomes` already include.
    pub fn add(&mut self, market: &Market, outcomes: &[Outcome], movement: &Movement) {
        let (Some(cost), Some(quantity)) = (movement.cost, movement.quantity) else { return };
        if movement.kind.moves_sets() {
            // A split or merge is one movement per outcome. All quantities are known at the last
            // one.
            if usize::from(movement.outcome_index) + 1 == outcomes.len() {
                let quantities = outcomes.iter().map(|outcome| outcome.quantity).collect();
                self.change_level(Level { cost, quantities });
            }
            return;
        }
        let trade = CandleTrade {
            at: movement.created_at,
            block: movement.block_number,
            outcome_index: movement.outcome_index,
            usdc: movement.usdc,
            tokens: movement.tokens,
            cost,
            quantity,
        };
        match self.buckets.last_mut() {
            Some(last) if last.start == last.interval.floor(trade.at) => last.add(&trade),
            _ => {
                let quantities = outcomes.iter().map(|outcome| outcome.quantity).collect();
                self.buckets.push(Bucket::of(Interval::OneMinute, &trade, quantities, market.trade_count));
            }
        }
    }

    fn change_level(&mut self, level: Level) {
        match self.buckets.last_mut() {
            Some(last) => last.change_level(&level),
            None => self.levels.push(level),
        }
    }

    fn is_empty(&self) -> bool {
        self.buckets.is_empty() && self.levels.is_empty()
    }

    /// Adds the trades to the market's buckets that end after `after`; earlier buckets already
    /// include them. If the stored buckets do not lead up to these trades, all of the market's
    /// candles are queued for recomputation.
    pub async fn write(self, tx: &mut Tx, market_id: MarketId, after: Timestamp) -> Result<(), StoreError> {
        if self.is_empty() {
            return Ok(());
        }
        let mut last = store::candles::list_last(tx, market_id).await?;
        for bucket in &mut last {
            self.levels.iter().for_each(|level| bucket.change_level(level));
        }
        let mut changed = if self.levels.is_empty() { Vec::new() } else { last.clone() };
        for interval in Interval::STORED {
            let new = self.buckets.iter().filter(|minute| minute.start >= interval.floor(after));
            let Some(first) = new.clone().next() else { continue };
            let at = last.iter().position(|bucket| bucket.interval == interval);
            let last = at.map(|at| last.swap_remove(at));
            // Trade counts must be continuous, otherwise movements are missing from the stored
            // buckets.
            let led_up_to = last.as_ref().map_or(0, |last| last.market_trades);
            if led_up_to + first.trades() != first.market_trades {
                tracing::warn!(market.id = %market_id, "candles are missing: rebuilding all candles of the market");
                return store::candles::restart(tx, market_id).await;
            }
            // A last bucket of an earlier interval is complete and stays unchanged.
            let open = last.filter(|last| last.start == interval.floor(first.start));
            changed.extend(domain::candle::roll_up(open.into_iter().chain(new.cloned()), interval));
        }
        store::candles::put(tx, market_id, &changed).await
    }

    /// Adds trades that follow all earlier ones. Does nothing if the market is in the backlog.
    pub async fn append(self, tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
        if self.is_empty() || store::candles::is_behind(tx, market_id).await? {
            return Ok(());
        }
        self.write(tx, market_id, ALWAYS).await
    }
}

/// A market's candles while they are recomputed after a reorganization.
pub struct Remade {
    /// The time of the last remaining block. `None` if the backlog computes the candles.
    after: Option<Timestamp>,
    minutes: Minutes,
}

impl Remade {
    /// Deletes the buckets that end after `after`, the time of the last remaining block.
    pub async fn begin(tx: &mut Tx, market_id: MarketId, after: Timestamp) -> Result<Self, StoreError> {
        let minutes = Minutes::default();
        if store::candles::is_behind(tx, market_id).await? {
            // The backlog's position may be in a block that was taken back, so start over.
            store::candles::restart(tx, market_id).await?;
            return Ok(Self { after: None, minutes });
        }
        store::candles::delete_after(tx, market_id, after).await?;
        Ok(Self { after: Some(after), minutes })
    }

    /// Like [`Minutes::add`], but skips movements that only unchanged buckets contain.
    pub fn add(&mut self, market: &Market, outcomes: &[Outcome], movement: &Movement) {
        // The longest interval decides: its last bucket may contain trades since the start of that
        // day.
        let from = self.after.map(|after| Interval::OneDay.floor(after));
        if from.is_some_and(|from| movement.created_at >= from) {
            self.minutes.add(market, outcomes, movement);
        }
    }

    pub async fn write(self, tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
        match self.after {
            Some(after) => self.minutes.write(tx, market_id, after).await,
            None => Ok(()),
        }
    }
}

/// Processes a part of the backlog. Returns whether there may be more.
pub async fn catch_up(ctx: &Ctx, lease: &Lease) -> Result<bool, AppError> {
    // Look with a reader first, because the backlog is usually empty.
    let behind = ctx.store.read((), |tx, ()| Box::pin(store::candles::find_behind(tx))).await?;
    if behind.is_none() {
        return Ok(false);
    }
    ctx.store
        .try_write(lease.clone(), |tx, lease| {
            Box::pin(async move {
                lease::check(tx, lease).await?;
                match store::candles::find_behind(tx).await? {
                    Some(behind) => Ok(make(tx, &behind).await.map(|()| true)?),
                    None => Ok(false),
                }
            })
        })
        .await
}

async fn make(tx: &mut Tx, behind: &CandleBacklogEntry) -> Result<(), StoreError> {
    let id = behind.market_id;
    let Some(mut market) = store::markets::find(tx, id).await? else {
        return store::candles::finish(tx, id).await;
    };
    let mut outcomes = store::markets::outcomes(tx, id).await?;
    reset(&mut market, &mut outcomes);
    // Continue from the stored buckets: the backlog processes one batch per transaction.
    let last = store::candles::list_last(tx, id).await?;
    if let Some(last) = last.into_iter().find(|bucket| bucket.interval == Interval::OneMinute) {
        market.trade_count = last.market_trades;
        for (outcome, quantity) in outcomes.iter_mut().zip(last.quantities) {
            outcome.quantity = quantity;
        }
    }
    let movements = store::movements::list_of_market(tx, id, &behind.after_movement_id, BATCH).await?;
    let mut minutes = Minutes::default();
    for movement in &movements {
        add_to_market(&mut market, &mut outcomes, movement);
        minutes.add(&market, &outcomes, movement);
    }
    minutes.write(tx, id, ALWAYS).await?;
    match movements.last() {
        Some(last) if movements.len() == BATCH as usize => store::candles::advance(tx, id, &last.id).await,
        _ => store::candles::finish(tx, id).await,
    }
}
