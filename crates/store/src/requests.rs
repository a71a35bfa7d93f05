//! Rejected requests and writes of keys, as the keys' owners see them.

use domain::ids::{KeyId, TradeId, UserId};
use domain::page::Page;
use domain::{ErrorCode, Timestamp};

use crate::bind::position_or_end;
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    /// A request of a key that was rejected, or that writes.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LoggedRequest {
        /// The id of the request, as its response has it.
        pub id: String,
        pub key_id: KeyId,
        pub at: Timestamp = "at_ms",
        /// Method and path template.
        pub route: String,
        /// The status of the response.
        pub status: u16,
        /// The error code, if the request was rejected.
        pub code: Option<ErrorCode>,
        pub latency_ms: u32,
        /// The trade that the request created or confirmed.
        pub trade_id: Option<TradeId>,
    }
}

/// The requests of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFilter {
    All,
    OfKey(KeyId),
    OfTrade(TradeId),
    WithId(String),
}

/// Stores requests. Ignores those that are stored already, because a write whose result is unknown
/// is repeated.
pub async fn add(tx: &mut Tx, requests: &[LoggedRequest]) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO requests (id, user_id, key_id, at_ms, route, status, code, latency_ms, trade_id)
        SELECT $1, user_id, id, $2, $3, $4, $5, $6, $7 FROM keys WHERE id = $8 ON CONFLICT (id) DO NOTHING";
    let rows: Vec<Vec<SqlValue<'_>>> = requests.iter().map(values).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

fn values(request: &LoggedRequest) -> Vec<SqlValue<'_>> {
    params![
        request.id.as_str(),
        request.at,
        request.route.as_str(),
        request.status,
        request.code.map(ErrorCode::as_str),
        request.latency_ms,
        request.trade_id,
        request.key_id
    ]
    .to_vec()
}

/// Lists requests of the user's keys, newest first. Returns up to `limit + 1` rows: the extra row
/// shows that there is a next page.
pub async fn list(
    tx: &mut Tx,
    user_id: UserId,
    filter: &RequestFilter,
    page: &Page,
) -> Result<Vec<LoggedRequest>, StoreError> {
    const SELECT: &str = const_format::concatcp!(
        "SELECT ",
        LoggedRequest::COLUMNS,
        " FROM requests WHERE user_id = $1 AND (at_ms, id) < ($2, $3)"
    );
    const NEWEST: &str = " ORDER BY at_ms DESC, id DESC LIMIT ";
    const ALL: &str = const_format::concatcp!(SELECT, NEWEST, "$4");
    const OF_KEY: &str = const_format::concatcp!(SELECT, " AND key_id = $4", NEWEST, "$5");
    const OF_TRADE: &str = const_format::concatcp!(SELECT, " AND trade_id = $4", NEWEST, "$5");
    const WITH_ID: &str = const_format::concatcp!(SELECT, " AND id = $4", NEWEST, "$5");
    let (at, id) = position_or_end(page.after.as_ref());
    let limit = page.limit + 1;
    match filter {
        RequestFilter::All => tx.list(ALL, &params![user_id, at, id, limit], LoggedRequest::from_row).await,
        RequestFilter::OfKey(key) => {
            tx.list(OF_KEY, &params![user_id, at, id, *key, limit], LoggedRequest::from_row).await
        }
        RequestFilter::OfTrade(trade) => {
            tx.list(OF_TRADE, &params![user_id, at, id, *trade, limit], LoggedRequest::from_row).await
        }
        RequestFilter::WithId(request) => {
            tx.list(WITH_ID, &params![user_id, at, id, request.as_str(), limit], LoggedRequest::from_row)
                .await
        }
    }
}

/// Deletes at most `limit` requests from before `before` and returns their number.
pub async fn delete_before(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM requests WHERE id IN
        (SELECT id FROM requests WHERE at_ms < $1 ORDER BY at_ms LIMIT $2)";
    tx.exec(SQL, &params![before, limit]).await
}
