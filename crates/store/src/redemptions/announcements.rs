//! Announcements of results to position holders: the settled markets that are not fully processed,
//! and their positions.

use alloy_primitives::Address;
use domain::ids::{MarketId, UserId};
use domain::market::MarketStatus;
use domain::{Timestamp, Wad};

use crate::movements::{LastPosition, position_values};
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    /// A settled market, and the progress of its announcement.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Announced {
        pub id: MarketId = "m.id",
        /// The market's number on the hub.
        pub number: u64 = "m.chain_market_id",
        /// RESOLVED or CANCELLED.
        pub status: MarketStatus = "m.status",
        pub resolved_at: Timestamp = "m.resolved_at_ms",
        /// The last processed position.
        pub after: LastPosition = ..,
        /// The last account that was notified.
        pub told: Option<Address> = "NULLIF(told_account, '') AS told_account",
    }
}

/// Starts the announcement of a settled market, if it was not started before.
pub(crate) async fn begin_announcement(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO announcements (market_id, after_account, after_outcome_index, told_account)
        VALUES ($1, '', -1, '') ON CONFLICT (market_id) DO NOTHING";
    tx.exec(SQL, &params![id]).await.map(drop)
}

/// Lists a chain's settled markets whose announcement is not finished, earliest settlement first.
pub async fn list_unannounced(tx: &mut Tx, chain_id: u64, limit: u32) -> Result<Vec<Announced>, StoreError> {
    // SQLite never reorders a CROSS JOIN: the few open announcements must be the outer loop.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Announced::COLUMNS,
        " FROM announcements a CROSS JOIN markets m WHERE a.ended_at_ms IS NULL AND m.id = a.market_id
        AND m.status IN ('RESOLVED', 'CANCELLED') AND m.chain_id = $1 AND m.chain_market_id IS NOT NULL
        AND m.resolved_at_ms IS NOT NULL ORDER BY m.resolved_at_ms, m.id LIMIT $2"
    );
    tx.list(SQL, &params![SqlValue::try_from(chain_id)?, limit], Announced::from_row).await
}

record! {
    /// A position of one of the service's accounts.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Owned {
        /// The smart account.
        pub account: Address = "p.account",
        /// The account's user.
        pub user_id: UserId = "a.user_id",
        pub outcome_index: u8 = "p.outcome_index",
        /// The tokens held, in WAD.
        pub tokens: Wad = "p.tokens_wad",
        pub updated_at: Timestamp = "p.updated_at_ms",
        /// Set if the position has a claim.
        pub is_claimed: bool = "(r.id IS NOT NULL) AS is_claimed",
    }
}

/// Lists the next positions of a market that belong to the service's accounts, at most `limit`.
pub async fn list_owned(tx: &mut Tx, market: &Announced, limit: u32) -> Result<Vec<Owned>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Owned::COLUMNS,
        " FROM positions p JOIN accounts a ON a.address = p.account
        LEFT JOIN redemptions r ON r.account = p.account AND r.market_id = p.market_id
            AND r.outcome_index = p.outcome_index
        WHERE p.market_id = $1 AND (p.account, p.outcome_index) > ($2, $3)
        ORDER BY p.account, p.outcome_index LIMIT $4"
    );
    let [account, outcome_index] = position_values(market.after);
    tx.list(SQL, &params![market.id, account, outcome_index, limit], Owned::from_row).await
}

/// Stores the progress of an announcement; `ended_at` is set after the last position.
pub async fn put_announced(
    tx: &mut Tx,
    market: &Announced,
    ended_at: Option<Timestamp>,
) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO announcements (market_id, after_account, after_outcome_index, told_account, ended_at_ms)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (market_id) DO UPDATE SET after_account = excluded.after_account,
        after_outcome_index = excluded.after_outcome_index, told_account = excluded.told_account,
        ended_at_ms = excluded.ended_at_ms";
    let [account, outcome_index] = position_values(market.after);
    let told = market.told.map_or(SqlValue::from(""), SqlValue::from);
    tx.exec(SQL, &params![market.id, account, outcome_index, told, ended_at]).await.map(drop)
}
