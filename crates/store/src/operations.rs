//! Figures about the whole service, for the operator's pages.

use domain::Timestamp;
use domain::ids::{KeyId, UserId};

use crate::record::{Record, record};
use crate::users::User;
use crate::{StoreError, Tx, params, sync};

record! {
    /// The open trades of a lane.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct LaneQueue {
        pub lane: u16,
        pub open: u64,
        /// The creation of the oldest one.
        pub oldest: Option<Timestamp> = "oldest_ms",
    }
}

/// The setting with the time of the last backup, in milliseconds.
const LAST_BACKUP: &str = "backup.at_ms";

/// Returns the time of the last backup that the service made itself.
pub async fn find_last_backup(tx: &mut Tx) -> Result<Option<Timestamp>, StoreError> {
    let at_ms = sync::find_setting(tx, LAST_BACKUP).await?.and_then(|text| text.parse().ok());
    Ok(at_ms.map(Timestamp::from_ms))
}

pub async fn put_last_backup(tx: &mut Tx, at: Timestamp) -> Result<(), StoreError> {
    sync::put_setting(tx, LAST_BACKUP, &at.ms().to_string()).await
}

/// Lists the lanes that have open trades.
pub async fn list_lanes(tx: &mut Tx) -> Result<Vec<LaneQueue>, StoreError> {
    const SQL: &str = "SELECT lane, COUNT(*) AS open, MIN(created_at_ms) AS oldest_ms FROM trades
        WHERE ended_at_ms IS NULL GROUP BY lane ORDER BY lane";
    tx.list(SQL, &[], LaneQueue::from_row).await
}

/// Returns the number of signed acts of owners that have not ended, and the signing of the oldest.
pub async fn count_acts(tx: &mut Tx) -> Result<(u64, Option<Timestamp>), StoreError> {
    const SQL: &str = "SELECT COUNT(*) AS acts, MIN(signed_at_ms) AS oldest_ms FROM owner_acts
        WHERE status IN ('signed', 'sent')";
    let found = tx.find(SQL, &[], |row| Ok((row.get("acts")?, row.get("oldest_ms")?))).await?;
    Ok(found.unwrap_or_default())
}

/// Returns the numbers of users and of admins.
pub async fn count_users(tx: &mut Tx) -> Result<(u64, u64), StoreError> {
    const SQL: &str =
        "SELECT COUNT(*) AS users, COUNT(CASE WHEN role = 'admin' THEN 1 END) AS admins FROM users";
    let found = tx.find(SQL, &[], |row| Ok((row.get("users")?, row.get("admins")?))).await?;
    Ok(found.unwrap_or_default())
}

/// Returns the number of markets on chain of each status.
pub async fn count_markets(tx: &mut Tx) -> Result<Vec<(String, u64)>, StoreError> {
    const SQL: &str = "SELECT status, COUNT(*) AS markets FROM markets WHERE chain_market_id IS NOT NULL
        GROUP BY status ORDER BY status";
    tx.list(SQL, &[], |row| Ok((row.get("status")?, row.get("markets")?))).await
}

record! {
    /// A key whose webhooks wait.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct WaitingWebhooks {
        pub key_id: KeyId = "k.id AS key_id",
        pub user_id: UserId = "k.user_id",
        pub key_name: String = "k.name AS key_name",
        pub url: Option<String> = "k.webhook_url",
        /// The state of the receiver's circuit breaker. Empty if it never failed.
        pub breaker: String = "w.breaker",
        /// The time of the next attempt.
        pub due_at: Option<Timestamp> = "w.due_at_ms",
        pub waiting: u64 = "COUNT(*) AS waiting",
        /// The time from which the oldest event is attempted.
        pub oldest: Option<Timestamp> = "MIN(q.began_at_ms) AS oldest_ms",
        /// The failed attempts of the events that wait.
        pub attempts: u64 = "CAST(SUM(q.attempts) AS BIGINT) AS attempts",
    }
}

/// Lists at most `limit` keys with queued events, oldest first.
pub async fn list_waiting_webhooks(tx: &mut Tx, limit: u32) -> Result<Vec<WaitingWebhooks>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        WaitingWebhooks::COLUMNS,
        " FROM webhook_queue q JOIN webhook_endpoints w ON w.key_id = q.key_id JOIN keys k ON k.id = q.key_id
        GROUP BY k.id, k.user_id, k.name, k.webhook_url, w.breaker, w.due_at_ms
        ORDER BY oldest_ms, k.id LIMIT $1"
    );
    tx.list(SQL, &params![limit], WaitingWebhooks::from_row).await
}

/// Lists at most `limit` users whose name, id, account or key id contains `text`, newest first,
/// starting after the id `after`.
pub async fn search_users(
    tx: &mut Tx,
    text: &str,
    after: Option<UserId>,
    limit: u32,
) -> Result<Vec<User>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        User::COLUMNS,
        " FROM users LEFT JOIN accounts a ON a.user_id = users.id
        WHERE ($1 = '' OR users.id < $1) AND ($2 = '' OR LOWER(users.name) LIKE LOWER($3) ESCAPE '!'
            OR users.id = $2 OR LOWER(a.address) = LOWER($2)
            OR users.id IN (SELECT user_id FROM keys WHERE id = $2 OR hint = $2))
        ORDER BY users.id DESC LIMIT $4"
    );
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![after, text, crate::markets::like_pattern(text), limit], User::from_row).await
}
