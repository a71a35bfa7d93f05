//! A market by its id, as it is or was a moment ago.

use std::sync::Arc;

use domain::ErrorCode;
use domain::ids::MarketId;
use store::StoreError;
use store::markets::{Market, Outcome};

use crate::fresh::Weigh;
use crate::{AppError, Ctx};

/// A market's row and its outcomes' rows.
pub type Rows = (Market, Vec<Outcome>);

impl Weigh for MarketId {
    fn weight_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// The texts that importers choose, and the rows themselves.
impl Weigh for Arc<Rows> {
    fn weight_bytes(&self) -> usize {
        let (market, outcomes) = self.as_ref();
        let texts = [&market.description, &market.source_url, &market.resolution_source];
        let texts: usize = texts.into_iter().flatten().chain(&market.tags).map(String::len).sum();
        let labels: usize = outcomes.iter().map(|outcome| outcome.label.len()).sum();
        size_of::<Market>() + market.question.len() + texts + outcomes.len() * size_of::<Outcome>() + labels
    }
}

/// The market on chain with this id. Its rows are those of the database, or as fresh as [`crate::fresh::Fresh`] says: what
/// this process has written shows at once.
pub async fn find(ctx: &Ctx, id: MarketId) -> Result<Option<Arc<Rows>>, StoreError> {
    if let Some(rows) = ctx.markets.get(&id, ctx.market_as_of(id, ctx.now())) {
        return Ok(Some(rows));
    }
    let as_of = ctx.markets_as_of();
    let rows = read(ctx, id).await?.map(Arc::new);
    if let Some(rows) = &rows {
        ctx.markets.put(id, as_of, None, Arc::clone(rows));
    }
    Ok(rows)
}

/// The same as it is in the database.
pub async fn read(ctx: &Ctx, id: MarketId) -> Result<Option<Rows>, StoreError> {
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
    Ok(found?.filter(|(market, _)| market.chain_market_id.is_some()))
}

/// The market that a request names, on the chain that is served here, and the hub's number for it. `MARKET_NOT_FOUND` for
/// an unknown or malformed id, `CHAIN_NOT_SUPPORTED`.
pub async fn get(ctx: &Ctx, id: &str) -> Result<(Arc<Rows>, u64), AppError> {
    let not_found = || AppError::new(ErrorCode::MarketNotFound);
    let id: MarketId = id.parse().map_err(|_| not_found())?;
    let rows = find(ctx, id).await?.ok_or_else(not_found)?;
    let number = rows.0.chain_market_id.ok_or_else(not_found)?;
    if rows.0.chain_id == ctx.chain.chain_id() {
        Ok((rows, number))
    } else {
        Err(AppError::new(ErrorCode::ChainNotSupported))
    }
}

/// The outcome that a request names, of a market with so many; `OUTCOME_INDEX_INVALID`.
pub fn outcome_of(outcomes: usize, index: i64) -> Result<u8, AppError> {
    let found = u8::try_from(index).ok().filter(|index| usize::from(*index) < outcomes);
    found.ok_or_else(|| {
        let last = outcomes.saturating_sub(1);
        AppError::new(ErrorCode::OutcomeIndexInvalid)
            .detail(format!("The market has {outcomes} outcomes; the index goes from 0 to {last}."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_out_of_range_is_invalid() {
        assert_eq!(outcome_of(2, 1).unwrap(), 1);
        for index in [-1, 2, 256, i64::MAX] {
            assert_eq!(outcome_of(2, index).unwrap_err().code, ErrorCode::OutcomeIndexInvalid, "{index}");
        }
    }
}
