//! Loads a market by id, possibly from a short-lived cache.

use std::sync::Arc;

use domain::ErrorCode;
use domain::ids::MarketId;
use domain::market::MarketStatus;
use store::StoreError;

pub use crate::process::market_cache::CachedMarket;
use crate::{AppError, Ctx};

/// Returns the market if it is on chain. The rows come from the database or from the cache with the
/// limits of [`TtlCache`](crate::process::ttl_cache::TtlCache). Writes of this process are visible at once.
pub async fn find(ctx: &Ctx, id: MarketId) -> Result<Option<Arc<CachedMarket>>, StoreError> {
    if let Some(rows) = ctx.process.markets.get(&id, ctx.market_as_of(id, ctx.now())) {
        return Ok(Some(rows));
    }
    // Taken before the read: a write during the read must make this entry stale.
    let as_of = ctx.markets_as_of();
    let rows = read(ctx, id).await?.map(Arc::new);
    if let Some(rows) = &rows {
        ctx.process.markets.put(id, as_of, None, Arc::clone(rows));
    }
    Ok(rows)
}

/// Returns the market from the database, without the cache.
pub async fn read(ctx: &Ctx, id: MarketId) -> Result<Option<CachedMarket>, StoreError> {
    let found = ctx
        .store
        .read(id, |tx, id| {
            Box::pin(async move {
                let Some(market) = store::markets::find(tx, *id).await? else { return Ok(None) };
                let outcomes = store::markets::outcomes(tx, *id).await?;
                Ok(Some((market, outcomes)))
            })
        })
        .await?;
    Ok(found.filter(|(market, _)| market.chain_market_id.is_some()))
}

/// Returns the requested market, which must be on this service's chain, and its number on chain.
///
/// # Errors
/// `MARKET_NOT_FOUND` for an unknown or malformed id, `CHAIN_NOT_SUPPORTED`.
pub async fn get(ctx: &Ctx, id: &str) -> Result<(Arc<CachedMarket>, u64), AppError> {
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

/// The error for a trade in a market that is not open.
pub fn not_open(status: MarketStatus) -> AppError {
    AppError::new(ErrorCode::MarketNotTradeable)
        .detail(format!("The market is {status}. Only an OPEN market can be traded."))
        .with("marketStatus", status.as_str())
}

/// Checks an outcome index of a request. Fails with `OUTCOME_INDEX_INVALID`.
pub fn outcome_of(outcomes: usize, index: i64) -> Result<u8, AppError> {
    let found = u8::try_from(index).ok().filter(|index| usize::from(*index) < outcomes);
    found.ok_or_else(|| {
        let last = outcomes.saturating_sub(1);
        AppError::new(ErrorCode::OutcomeIndexInvalid)
            .detail(format!("The market has {outcomes} outcomes. The index must be from 0 to {last}."))
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
