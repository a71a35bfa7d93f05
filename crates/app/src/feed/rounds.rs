//! Rounds: what open streams show of markets is read once for all of them, at most four times a
//! second.
//!
//! A hundred trades in one second change a market a hundred times. A round reads it once, writes its
//! bytes once, and each stream sends these bytes. So neither reads nor work per trade grow with the
//! number of streams, and a repeated or slow stream costs nobody anything.

use std::collections::HashMap;
use std::sync::Arc;

use domain::Timestamp;
use domain::ids::MarketId;
use parking_lot::Mutex;

use super::market::{read_prices, read_tail};
use crate::process::live::{MarketPrices, MarketTail};
use crate::{AppError, Ctx};

/// The shortest time between two rounds, in milliseconds.
const ROUND_MS: i64 = 250;
/// The time between two looks for markets to read again although nothing woke them.
const LOOK_MS: i64 = 1_000;
/// Maximum number of markets that one look reads again. It bounds the cost of streams of markets in
/// which nothing happens: 50,000 of them take their turns.
const MAX_LOOKED_AT: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Rounds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The last block whose changes are known. `None` if no stream follows a market.
    settled: Option<u64>,
    /// Changed markets that the next round reads, with the last block that streams may have seen.
    changed: HashMap<MarketId, u64>,
    last_round: Option<Timestamp>,
    last_look: Option<Timestamp>,
}

/// Returns whether a round is due, and notes its time if so. A clock that was set back makes one due.
pub(super) fn is_due(last: &mut Option<Timestamp>, now: Timestamp) -> bool {
    is_due_after(last, now, ROUND_MS)
}

fn is_due_after(last: &mut Option<Timestamp>, now: Timestamp, ms: i64) -> bool {
    let is_due = last.is_none_or(|last| now.since_ms(last).abs() >= ms);
    if is_due {
        *last = Some(now);
    }
    is_due
}

impl Rounds {
    /// Finds the changed markets. If a round is due, reads them and wakes their streams.
    pub async fn run(&self, ctx: &Ctx) -> Result<(), AppError> {
        let streams = &ctx.process.streams;
        if streams.prices.is_empty() && streams.tails.is_empty() {
            // Forget the block: a later stream would otherwise cause a scan of everything since.
            *self.0.lock() = State::default();
            return Ok(());
        }
        self.find_changed(ctx).await?;
        self.find_stale(ctx);
        let due: Vec<(MarketId, u64)> = {
            let mut state = self.0.lock();
            if state.changed.is_empty() || !is_due(&mut state.last_round, ctx.now()) {
                return Ok(());
            }
            state.changed.iter().map(|(id, since)| (*id, *since)).collect()
        };
        for (id, since) in due {
            publish_prices(ctx, id).await?;
            let has_more = publish_tail(ctx, id, since).await?;
            // After the reads: a market whose read fails stays for the next round.
            if !has_more {
                self.0.lock().changed.remove(&id);
            }
        }
        Ok(())
    }

    async fn find_changed(&self, ctx: &Ctx) -> Result<(), AppError> {
        let known = self.0.lock().settled;
        let read = ctx
            .store
            .read(known, |tx, known| {
                Box::pin(async move {
                    let settled = store::sync::find_settled(tx).await?;
                    let from = known.map_or(Some(0), |known| known.checked_add(1)).unwrap_or(u64::MAX);
                    let touched = match (known, settled) {
                        (Some(_), Some(to)) if from <= to => {
                            store::market_statuses::list_touched(tx, from, to).await?
                        }
                        _ => Vec::new(),
                    };
                    Ok((settled, touched))
                })
            })
            .await;
        let (settled, touched) = read?;
        let streams = &ctx.process.streams;
        let is_followed = |id: &MarketId| streams.prices.is_followed(*id) || streams.tails.is_followed(*id);
        let mut state = self.0.lock();
        state.settled = settled;
        match (known, settled) {
            (Some(known), _) => touched.into_iter().filter(is_followed).for_each(|id| {
                state.changed.entry(id).or_insert(known);
            }),
            // On the first look, read all: blocks may have settled between a stream's own read and
            // this one.
            (None, Some(settled)) => {
                let all = streams.prices.find(usize::MAX, |_| true).into_iter();
                for id in all.chain(streams.tails.find(usize::MAX, |_| true)) {
                    state.changed.entry(id).or_insert(settled);
                }
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// Finds markets whose trading has ended by the clock, or whose wake-up may have been missed.
    fn find_stale(&self, ctx: &Ctx) {
        let (streams, now) = (&ctx.process.streams, ctx.now());
        let mut state = self.0.lock();
        let Some(settled) = state.settled else { return };
        if !is_due_after(&mut state.last_look, now, LOOK_MS) {
            return;
        }
        let is_stale = |prices: Option<&MarketPrices>| prices.is_some_and(|prices| prices.is_stale(now));
        let prices = streams.prices.find(MAX_LOOKED_AT, is_stale);
        let is_stale = |tail: Option<&MarketTail>| tail.is_none_or(|tail| tail.is_stale(now));
        let tails = streams.tails.find(MAX_LOOKED_AT, is_stale);
        for id in prices.into_iter().chain(tails) {
            state.changed.entry(id).or_insert(settled);
        }
    }
}

/// Reads the prices of a market, and wakes its streams if they differ from what these show.
async fn publish_prices(ctx: &Ctx, id: MarketId) -> Result<(), AppError> {
    let board = &ctx.process.streams.prices;
    if board.is_followed(id)
        && let Some(prices) = read_prices(ctx, id).await?
    {
        let is_news = board.newest(id).is_none_or(|shown| !shown.shows_the_same(&prices));
        board.publish(id, prices, is_news);
    }
    Ok(())
}

/// Reads the events of a market since its last ones. `since` is the block after which to begin if
/// there are none. Returns whether more follow.
async fn publish_tail(ctx: &Ctx, id: MarketId, since: u64) -> Result<bool, AppError> {
    let board = &ctx.process.streams.tails;
    if !board.is_followed(id) {
        return Ok(false);
    }
    let last: Option<Arc<MarketTail>> = board.newest(id);
    let after = last
        .as_ref()
        .map_or_else(|| store::market_statuses::end_of_block(since), |last| last.position.clone());
    let (tail, has_more) = read_tail(ctx, id, after).await?;
    // A stream without a tail does not know yet from where to go on.
    let is_news = last.is_none() || !tail.happenings.is_empty();
    board.publish(id, tail, is_news);
    Ok(has_more)
}
