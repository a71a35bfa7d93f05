//! Why nobody can trade at the moment. Pages show it before a trade is refused.

use domain::Timestamp;
use store::StoreError;

use crate::Ctx;

/// Why nobody can trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TradingStop {
    /// The operator has halted trading, with these words.
    Halted { reason: Option<String> },
    /// Restored data is compared with the chain.
    Recovering,
    /// No node of the chain can be used. Prices are those of the last block that was read.
    ChainUnavailable { prices_at: Option<Timestamp> },
    /// No trade can be completed, for another known reason.
    Degraded,
}

/// Returns why nobody can trade, or `None` if trading is possible. It asks neither the chain nor, if
/// trading is possible, the database.
pub async fn find(ctx: &Ctx) -> Result<Option<TradingStop>, StoreError> {
    let process = &ctx.process;
    if let Some(halt) = process.switches.halt() {
        return Ok(Some(TradingStop::Halted { reason: halt.reason }));
    }
    if process.switches.is_recovering() {
        return Ok(Some(TradingStop::Recovering));
    }
    if ctx.chain.nodes().is_some_and(|nodes| !nodes.is_available()) {
        let last = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await?;
        return Ok(Some(TradingStop::ChainUnavailable { prices_at: last.map(|block| block.at) }));
    }
    let is_degraded = process.degradations.list().iter().any(|problem| problem.stops_trading);
    Ok(is_degraded.then_some(TradingStop::Degraded))
}
