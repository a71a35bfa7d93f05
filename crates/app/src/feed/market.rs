//! What happens to a market, for everybody: its trades on chain and its statuses, once their blocks are final, so that
//! nothing is told that could be taken back.

use domain::ids::MarketId;
use store::StoreError;
use store::market_statuses::StatusChange;
use store::movements::Movement;

use crate::{AppError, Ctx};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// A trade.
    Trade(Box<Movement>),
    /// Another status.
    Status(StatusChange),
}

impl Happening {
    /// Its place on the chain; sorts as the chain does.
    pub fn id(&self) -> &str {
        match self {
            Self::Trade(movement) => &movement.id,
            Self::Status(change) => &change.id,
        }
    }
}

/// What happened behind a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// In the chain's order.
    pub happenings: Vec<Happening>,
    /// Whether there was more.
    pub has_more: bool,
}

/// What is final of the market behind the place `after`, at most `limit`.
pub async fn read_market(ctx: &Ctx, id: MarketId, after: &str, limit: u32) -> Result<Told, AppError> {
    let input = (id, after.to_owned(), limit + 1);
    let read: Result<Vec<Happening>, StoreError> = ctx
        .store
        .read(input, |tx, (id, after, limit)| {
            Box::pin(async move {
                // Read first: what is in the tables up to this block is all that will ever be.
                let Some(to) = store::sync::find_settled(tx).await? else { return Ok(Vec::new()) };
                let trades = store::movements::list_trades_after(tx, *id, after, to, *limit).await?;
                let statuses = store::market_statuses::list_after(tx, *id, after, to, *limit).await?;
                let trades = trades.into_iter().map(|trade| Happening::Trade(Box::new(trade)));
                let mut all: Vec<_> = trades.chain(statuses.into_iter().map(Happening::Status)).collect();
                all.sort_by(|one, other| one.id().cmp(other.id()));
                Ok(all)
            })
        })
        .await;
    let mut happenings = read?;
    let has_more = happenings.len() > limit as usize;
    happenings.truncate(limit as usize);
    Ok(Told { happenings, has_more })
}

/// The place behind everything that is final now.
pub async fn first_position(ctx: &Ctx) -> Result<String, AppError> {
    let settled: Result<Option<u64>, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
    Ok(settled?.map_or(String::new(), store::market_statuses::end_of_block))
}
