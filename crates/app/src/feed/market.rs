//! Public market data: the prices of markets, and the trades on chain and the status changes. The
//! events are from final blocks only, so that nothing published is ever taken back.

use std::sync::Arc;

use domain::ids::MarketId;
use store::markets::{Market, Outcome};

use crate::markets::{self, displayed_price};
use crate::process::boards::Follower;
use crate::process::live::{Happening, MarketPrices, MarketTail, SharedBytes};
use crate::{AppError, Ctx};

/// Maximum number of events of a [`MarketTail`]. The others follow in the next one.
const MAX_TAIL: u32 = 500;

/// A page of a market's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketEventsPage {
    /// In the chain's order.
    pub happenings: Vec<Happening>,
    /// The position to continue from: all events up to it are on this page or before it.
    pub position: String,
    /// More events follow after this page.
    pub has_more: bool,
}

/// Returns at most `limit` final events of the market after the position `after`.
pub async fn read_market(
    ctx: &Ctx,
    id: MarketId,
    after: &str,
    limit: u32,
) -> Result<MarketEventsPage, AppError> {
    let input = (id, after.to_owned(), limit + 1);
    let (mut happenings, settled) = ctx
        .store
        .read(input, |tx, (id, after, limit)| {
            Box::pin(async move {
                // Read the settled block first: up to it, the tables never change again.
                let Some(to) = store::sync::find_settled(tx).await? else { return Ok((Vec::new(), None)) };
                // Each list may fill the whole page, so both are read with the full limit.
                let trades = store::movements::list_trades_after(tx, *id, after, to, *limit).await?;
                let statuses = store::market_statuses::list_after(tx, *id, after, to, *limit).await?;
                let trades = trades.into_iter().map(|trade| Happening::Trade(Box::new(trade)));
                let mut all: Vec<_> = trades.chain(statuses.into_iter().map(Happening::Status)).collect();
                all.sort_by(|one, other| one.id().cmp(other.id()));
                Ok((all, Some(to)))
            })
        })
        .await?;
    let has_more = happenings.len() > limit as usize;
    happenings.truncate(limit as usize);
    let last = happenings.last().map_or(after, Happening::id);
    let end = settled.filter(|_| !has_more).map(store::market_statuses::end_of_block).unwrap_or_default();
    let position = last.max(&end).to_owned();
    Ok(MarketEventsPage { happenings, position, has_more })
}

/// Returns the position after all events that are final now.
pub async fn first_position(ctx: &Ctx) -> Result<String, AppError> {
    let settled = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await?;
    Ok(settled.map_or(String::new(), store::market_statuses::end_of_block))
}

/// Returns the prices of a market that a stream follows: those that the other streams show, or what
/// the database has if no stream shows any yet. `None` if there is no such market.
pub async fn newest_prices(
    ctx: &Ctx,
    follower: &Follower<MarketPrices>,
    place: usize,
) -> Result<Option<Arc<MarketPrices>>, AppError> {
    follower.newest_or_read(place, async |id| read_prices(ctx, id).await).await
}

/// Reads the prices of a market. `None` if there is no such market.
pub(super) async fn read_prices(ctx: &Ctx, id: MarketId) -> Result<Option<MarketPrices>, AppError> {
    // Without the cache, whose state may be older than the wake-up.
    let read = markets::read(ctx, id).await?;
    Ok(read.map(|(market, outcomes)| prices(ctx, &market, &outcomes)))
}

fn prices(ctx: &Ctx, market: &Market, outcomes: &[Outcome]) -> MarketPrices {
    let now = ctx.now();
    MarketPrices {
        market_id: market.id,
        status: market.status_at(now),
        prices: outcomes.iter().map(|outcome| (outcome.index, displayed_price(market, outcome))).collect(),
        block: market.as_of_block,
        at: market.as_of,
        ends_at: market.end_time,
        read_at: now,
        bytes: SharedBytes::default(),
    }
}

/// Reads the next events of a market after `after`. Returns whether more follow.
pub(super) async fn read_tail(
    ctx: &Ctx,
    id: MarketId,
    after: String,
) -> Result<(MarketTail, bool), AppError> {
    let page = read_market(ctx, id, &after, MAX_TAIL).await?;
    // Without events the position stays: streams are not told of an empty tail, and must still be
    // within the next one.
    let position = if page.happenings.is_empty() { after.clone() } else { page.position };
    let (happenings, read_at, bytes) = (page.happenings, ctx.now(), SharedBytes::default());
    Ok((MarketTail { after, happenings, position, read_at, bytes }, page.has_more))
}
