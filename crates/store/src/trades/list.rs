//! Reading trades. Ownership is part of the query, so that another user's trade is simply not there.

use std::collections::HashMap;

use domain::ids::{MarketId, TradeId, UserId};
use domain::page::Page;
use domain::trade::Status;

use super::row::{COLUMNS, History, Trade, from_row, push_move};
use crate::bind::position_or_end;
use crate::{StoreError, Tx, params};

/// What a list of trades is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Trades in one of these statuses; all where empty.
    pub statuses: Vec<Status>,
    /// Trades of this market.
    pub market_id: Option<MarketId>,
    /// The trade with this `clientRequestId`.
    pub client_request_id: Option<String>,
}

/// The user's trade with this id.
pub async fn find(tx: &mut Tx, user_id: UserId, id: TradeId) -> Result<Option<Trade>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", COLUMNS, " FROM trades WHERE id = $1 AND user_id = $2");
    tx.find(SQL, &params![id, user_id], from_row).await
}

/// The trade with this id, whoever it belongs to: for the workers, never for an answer.
pub async fn find_any(tx: &mut Tx, id: TradeId) -> Result<Option<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM trades WHERE id = $1");
    tx.find(SQL, &params![id], from_row).await
}

/// The rows that a list's filter and page choose.
const CHOSEN: &str = "FROM trades WHERE user_id = $1 AND (created_at_ms, id) < ($2, $3)
    AND ($4 = '' OR $4 LIKE '%,' || status || ',%')
    AND ($5 = '' OR market_id = $5) AND ($6 = '' OR client_request_id = $6)
    ORDER BY created_at_ms DESC, id DESC LIMIT $7";

/// One row more than the page's limit of the user's trades, newest first, each with the statuses it went through.
pub async fn list(
    tx: &mut Tx,
    user_id: UserId,
    filter: &ListFilter,
    page: &Page,
) -> Result<Vec<(Trade, History)>, StoreError> {
    const TRADES: &str = const_format::concatcp!("SELECT ", COLUMNS, " ", CHOSEN);
    const EVENTS: &str = const_format::concatcp!(
        "SELECT trade_id, status, at_ms FROM trace_events WHERE trade_id IN (SELECT id ",
        CHOSEN,
        ")
        AND kind LIKE 'trade.%' ORDER BY trade_id, seq"
    );
    let (created_at, id) = position_or_end(page.after.as_ref());
    let statuses = match filter.statuses.as_slice() {
        [] => String::new(),
        some => format!(",{},", some.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",")),
    };
    let market_id = filter.market_id.map(|id| id.to_string()).unwrap_or_default();
    let client_request_id = filter.client_request_id.as_deref().unwrap_or_default();
    let bound = params![user_id, created_at, id, statuses, market_id, client_request_id, page.limit + 1];
    let trades = tx.list(TRADES, &bound, from_row).await?;
    let events =
        tx.list(EVENTS, &bound, |row| Ok((row.parse(0)?, (row.parse(1)?, row.timestamp(2)?)))).await?;
    let mut of_trade: HashMap<TradeId, History> = HashMap::with_capacity(trades.len());
    for (trade_id, event) in events {
        push_move(of_trade.entry(trade_id).or_default(), event);
    }
    let with_history = |trade: Trade| {
        let history = of_trade.remove(&trade.id).unwrap_or_default();
        (trade, history)
    };
    Ok(trades.into_iter().map(with_history).collect())
}
