//! Public market data: the trades on chain and the status changes, from final blocks only, so that
//! nothing published is ever taken back.

use domain::ids::MarketId;
use store::market_statuses::StatusChange;
use store::movements::Movement;

use crate::{AppError, Ctx};

/// One event of a market.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    Trade(Box<Movement>),
    Status(StatusChange),
}

impl Happening {
    /// Returns the event's position on chain. Positions sort in the chain's order.
    pub fn id(&self) -> &str {
        match self {
            Self::Trade(movement) => &movement.id,
            Self::Status(change) => &change.id,
        }
    }
}

/// A page of a market's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketEventsPage {
    /// In the chain's order.
    pub happenings: Vec<Happening>,
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
    let mut happenings = ctx
        .store
        .read(input, |tx, (id, after, limit)| {
            Box::pin(async move {
                // Read the settled block first: up to it, the tables never change again.
                let Some(to) = store::sync::find_settled(tx).await? else { return Ok(Vec::new()) };
                // Each list may fill the whole page, so both are read with the full limit.
                let trades = store::movements::list_trades_after(tx, *id, after, to, *limit).await?;
                let statuses = store::market_statuses::list_after(tx, *id, after, to, *limit).await?;
                let trades = trades.into_iter().map(|trade| Happening::Trade(Box::new(trade)));
                let mut all: Vec<_> = trades.chain(statuses.into_iter().map(Happening::Status)).collect();
                all.sort_by(|one, other| one.id().cmp(other.id()));
                Ok(all)
            })
        })
        .await?;
    let has_more = happenings.len() > limit as usize;
    happenings.truncate(limit as usize);
    Ok(MarketEventsPage { happenings, has_more })
}

/// Returns the position after all events that are final now.
pub async fn first_position(ctx: &Ctx) -> Result<String, AppError> {
    let settled = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await?;
    Ok(settled.map_or(String::new(), store::market_statuses::end_of_block))
}
