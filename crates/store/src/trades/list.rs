//! Reads of trades. The owner is part of each query, so that another user's trade is reported as
//! missing.

use std::collections::HashMap;

use domain::ids::{MarketId, TradeId, UserId};
use domain::page::Page;
use domain::trade::Status;

use super::row::{StatusHistory, Trade, push_move};
use crate::bind::position_or_end;
use crate::record::Record;
use crate::{StoreError, Tx, params};

/// A filter for lists of trades.
#[derive(Debug, Clone, Default)]
pub struct TradeListFilter {
    /// Allowed statuses. Empty means all.
    pub statuses: Vec<Status>,
    pub market_id: Option<MarketId>,
    pub client_request_id: Option<String>,
}

pub async fn find(tx: &mut Tx, user_id: UserId, id: TradeId) -> Result<Option<Trade>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", Trade::COLUMNS, " FROM trades WHERE id = $1 AND user_id = $2");
    tx.find(SQL, &params![id, user_id], Trade::from_row).await
}

/// Returns a trade of any user. Only for workers: responses to clients must use [`find`].
pub async fn find_any(tx: &mut Tx, id: TradeId) -> Result<Option<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Trade::COLUMNS, " FROM trades WHERE id = $1");
    tx.find(SQL, &params![id], Trade::from_row).await
}

/// Returns trades of any users, in no particular order. Only for workers.
pub async fn find_all(tx: &mut Tx, ids: &[TradeId]) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Trade::COLUMNS,
        " FROM ROWS($1 TEXT) AS x(trade_id) CROSS JOIN trades WHERE trades.id = x.trade_id"
    );
    tx.list_rows(SQL, ids.iter().map(|id| params![*id].to_vec()).collect(), Trade::from_row).await
}

/// The rows that a filter and a page select.
const CHOSEN: &str = "FROM trades WHERE user_id = $1 AND (created_at_ms, id) < ($2, $3)
    AND ($4 = '' OR $4 LIKE '%,' || status || ',%')
    AND ($5 = '' OR market_id = $5) AND ($6 = '' OR client_request_id = $6)
    ORDER BY created_at_ms DESC, id DESC LIMIT $7";

/// Lists the user's trades, newest first, each with its status history. Returns up to `limit + 1`
/// rows: the extra row shows that there is a next page.
pub async fn list(
    tx: &mut Tx,
    user_id: UserId,
    filter: &TradeListFilter,
    page: &Page,
) -> Result<Vec<(Trade, StatusHistory)>, StoreError> {
    const TRADES: &str = const_format::concatcp!("SELECT ", Trade::COLUMNS, " ", CHOSEN);
    const EVENTS: &str = const_format::concatcp!(
        "SELECT trade_id, status, at_ms FROM trace_events WHERE trade_id IN (SELECT id ",
        CHOSEN,
        ")
        AND kind LIKE 'trade.%' ORDER BY trade_id, seq"
    );
    let (created_at, id) = position_or_end(page.after.as_ref());
    // The statuses are passed as one string `,a,b,` that is searched with LIKE, because a list has
    // no fixed number of placeholders.
    let statuses = match filter.statuses.as_slice() {
        [] => String::new(),
        some => format!(",{},", some.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",")),
    };
    let market_id = filter.market_id.map(|id| id.to_string()).unwrap_or_default();
    let client_request_id = filter.client_request_id.as_deref().unwrap_or_default();
    let bound = params![user_id, created_at, id, statuses, market_id, client_request_id, page.limit + 1];
    let trades = tx.list(TRADES, &bound, Trade::from_row).await?;
    let events = tx
        .list(EVENTS, &bound, |row| Ok((row.get("trade_id")?, (row.get("status")?, row.get("at_ms")?))))
        .await?;
    let mut of_trade: HashMap<TradeId, StatusHistory> = HashMap::with_capacity(trades.len());
    for (trade_id, event) in events {
        push_move(of_trade.entry(trade_id).or_default(), event);
    }
    // The two reads share no transaction. A trade that only the first one saw has an empty history,
    // and one that only the second saw is ignored.
    let with_history = |trade: Trade| {
        let history = of_trade.remove(&trade.id).unwrap_or_default();
        (trade, history)
    };
    Ok(trades.into_iter().map(with_history).collect())
}
