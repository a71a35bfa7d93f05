//! A market by its id, as it is or was a moment ago.

use std::sync::Arc;

use domain::ids::MarketId;
use store::StoreError;
use store::markets::{Market, Outcome};

use crate::Ctx;

/// A market's row and its outcomes' rows.
pub type Rows = (Market, Vec<Outcome>);

/// The market on chain with this id. Its rows are those of the database, or as fresh as [`crate::fresh::Fresh`] says: what
/// this process has written shows at once.
pub async fn find(ctx: &Ctx, id: MarketId) -> Result<Option<Arc<Rows>>, StoreError> {
    let as_of = ctx.markets_as_of();
    if let Some(rows) = ctx.markets.get(&id, as_of) {
        return Ok(Some(rows));
    }
    let found: Result<Option<Rows>, StoreError> = ctx
        .store
        .read(id, |tx, id| {
            Box::pin(async move {
                let Some(market) = store::markets::find(tx, *id).await? else { return Ok(None) };
                let outcomes = store::markets::outcomes(tx, *id).await?;
                Ok(Some((market, outcomes)))
            })
        })
        .await;
    let rows = found?.filter(|(market, _)| market.chain_market_id.is_some()).map(Arc::new);
    if let Some(rows) = &rows {
        ctx.markets.put(id, as_of, None, Arc::clone(rows));
    }
    Ok(rows)
}
