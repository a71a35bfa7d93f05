//! Keeping candles: made of movements, in the transactions that write these.
//!
//! The sync alone writes them. A reading's trades are folded by the minute first, and each touched bucket is written once.
//! Blocks that are taken back take their candles back: the touched buckets are made again of the movements that are left.
//! Every row says how many trades its market has had, so a gap (an older version of the service has written movements in
//! between, say) is noticed at the market's next trade, and all its candles are made again. Markets whose candles are to be
//! made stand in a backlog, which the sync works off a bounded piece at a tick beside its reading; a market in it gets no
//! candles in any other way, so each movement is folded once and in the chain's order, whenever the process dies.

use domain::Timestamp;
use domain::candle::{Bucket, Interval, Trade};
use domain::ids::MarketId;
use store::candles::Behind;
use store::leases::Lease;
use store::markets::{Market, Outcome};
use store::movements::Movement;
use store::{StoreError, Tx};

use super::apply::{add_to_market, reset};
use crate::{AppError, Ctx, lease};

/// How many movements of the backlog are folded in one transaction.
const BATCH: u32 = 1_000;
/// Before every trade.
const ALWAYS: Timestamp = Timestamp::from_ms(0);

/// A market's trades, folded by the minute.
#[derive(Debug, Default)]
pub struct Minutes(Vec<Bucket>);

impl Minutes {
    /// Takes a movement in. `market` and `outcomes` hold it already.
    pub fn add(&mut self, market: &Market, outcomes: &[Outcome], movement: &Movement) {
        let (Some(cost), Some(quantity)) = (movement.cost, movement.quantity) else { return };
        let trade = Trade {
            at: movement.created_at,
            block: movement.block_number,
            outcome_index: movement.outcome_index,
            usdc: movement.usdc,
            tokens: movement.tokens,
            cost,
            quantity,
        };
        match self.0.last_mut() {
            Some(last) if last.start == last.interval.floor(trade.at) => last.add(&trade),
            _ => {
                let quantities = outcomes.iter().map(|outcome| outcome.quantity).collect();
                self.0.push(Bucket::of(Interval::OneMinute, &trade, quantities, market.trade_count));
            }
        }
    }

    /// Adds these trades to the market's buckets that end after `after`: of the others it has the trades already. Where the
    /// buckets before do not lead up to them, all of the market's candles are to be made again.
    pub async fn write(self, tx: &mut Tx, market_id: MarketId, after: Timestamp) -> Result<(), StoreError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut last = store::candles::list_last(tx, market_id).await?;
        let mut changed = Vec::new();
        for interval in Interval::STORED {
            let new = self.0.iter().filter(|minute| minute.start >= interval.floor(after));
            let Some(first) = new.clone().next() else { continue };
            let at = last.iter().position(|bucket| bucket.interval == interval);
            let last = at.map(|at| last.swap_remove(at));
            let led_up_to = last.as_ref().map_or(0, |last| last.market_trades);
            if led_up_to + first.trades() != first.market_trades {
                tracing::warn!(market.id = %market_id, "candles are missing; all of the market's are made again");
                return store::candles::restart(tx, market_id).await;
            }
            // A last bucket that the new trades do not go on with stays as it is.
            let open = last.filter(|last| last.start == interval.floor(first.start));
            changed.extend(domain::candle::roll_up(open.into_iter().chain(new.cloned()), interval));
        }
        store::candles::put(tx, market_id, &changed).await
    }

    /// Adds these trades, which follow upon all that were folded before, unless the market's candles are to be made anyway.
    pub async fn append(self, tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
        if self.0.is_empty() || store::candles::is_behind(tx, market_id).await? {
            return Ok(());
        }
        self.write(tx, market_id, ALWAYS).await
    }
}

/// A market's candles while they are made again from what a reorganisation has left of its movements.
pub struct Remade {
    /// The time of the last block that stands; `None` where the backlog will make them.
    after: Option<Timestamp>,
    minutes: Minutes,
}

impl Remade {
    /// Forgets the buckets that end after the time of the last block that stands.
    pub async fn begin(tx: &mut Tx, market_id: MarketId, after: Timestamp) -> Result<Self, StoreError> {
        let minutes = Minutes::default();
        if store::candles::is_behind(tx, market_id).await? {
            // The place that the backlog has come to may have been taken back.
            store::candles::restart(tx, market_id).await?;
            return Ok(Self { after: None, minutes });
        }
        store::candles::delete_after(tx, market_id, after).await?;
        Ok(Self { after: Some(after), minutes })
    }

    /// As [`Minutes::add`]. Movements that only buckets hold which stand are passed over.
    pub fn add(&mut self, market: &Market, outcomes: &[Outcome], movement: &Movement) {
        let from = self.after.map(|after| Interval::OneDay.floor(after));
        if from.is_some_and(|from| movement.created_at >= from) {
            self.minutes.add(market, outcomes, movement);
        }
    }

    /// Writes them.
    pub async fn write(self, tx: &mut Tx, market_id: MarketId) -> Result<(), StoreError> {
        match self.after {
            Some(after) => self.minutes.write(tx, market_id, after).await,
            None => Ok(()),
        }
    }
}

/// Makes a piece of the candles that are still to be made. Answers whether there are more.
pub async fn catch_up(ctx: &Ctx, lease: &Lease) -> Result<bool, AppError> {
    let behind: Result<_, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::candles::find_behind(tx))).await;
    if behind?.is_none() {
        return Ok(false);
    }
    ctx.store
        .write(lease.clone(), |tx, lease| {
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

async fn make(tx: &mut Tx, behind: &Behind) -> Result<(), StoreError> {
    let id = behind.market_id;
    let Some(mut market) = store::markets::find(tx, id).await? else {
        return store::candles::finish(tx, id).await;
    };
    let mut outcomes = store::markets::outcomes(tx, id).await?;
    reset(&mut market, &mut outcomes);
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
