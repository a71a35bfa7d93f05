//! What the owners of settled positions are told: the markets that are still to be gone through, and their positions.

use domain::ids::{MarketId, UserId};
use domain::market::MarketStatus;
use domain::{Timestamp, Wad};

use crate::{StoreError, Tx, Value, params};

/// A settled market, and how far its positions' owners were told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// The market.
    pub id: MarketId,
    /// The hub's number for it.
    pub number: u64,
    /// RESOLVED or CANCELLED.
    pub status: MarketStatus,
    /// When it was settled.
    pub resolved_at: Timestamp,
    /// The account and outcome of the last position that was gone through; before the first one, an empty account.
    pub after: (String, i64),
    /// The last account that was told of the result.
    pub told: String,
}

/// Notes that the owners of a settled market's positions are still to be told, where that was not noted before.
pub(crate) async fn begin_announcement(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO announcements (market_id, after_account, after_outcome_index, told_account)
        VALUES ($1, '', -1, '') ON CONFLICT (market_id) DO NOTHING";
    tx.exec(SQL, &params![id]).await.map(drop)
}

/// The settled markets of a chain whose positions' owners were not all told, the one settled first foremost.
pub async fn list_unannounced(tx: &mut Tx, chain_id: u64, limit: u32) -> Result<Vec<Announced>, StoreError> {
    const SQL: &str =
        "SELECT m.id, m.chain_market_id, m.status, m.resolved_at_ms, a.after_account, a.after_outcome_index, a.told_account
        FROM announcements a CROSS JOIN markets m WHERE a.ended_at_ms IS NULL AND m.id = a.market_id
        AND m.status IN ('RESOLVED', 'CANCELLED') AND m.chain_id = $1 AND m.chain_market_id IS NOT NULL
        AND m.resolved_at_ms IS NOT NULL ORDER BY m.resolved_at_ms, m.id LIMIT $2";
    tx.list(SQL, &params![Value::try_from(chain_id)?, limit], |row| {
        Ok(Announced {
            id: row.parse(0)?,
            number: row.number(1)?,
            status: row.parse(2)?,
            resolved_at: row.timestamp(3)?,
            after: (row.text(4)?, row.int(5)?),
            told: row.text(6)?,
        })
    })
    .await
}

/// A position of an account of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// The smart account, lower-case hex.
    pub account: String,
    /// Whose it is.
    pub user_id: UserId,
    /// The outcome.
    pub outcome_index: u8,
    /// The tokens held, WAD.
    pub tokens: Wad,
    /// When it last moved.
    pub updated_at: Timestamp,
    /// Whether somebody has claimed it.
    pub is_claimed: bool,
}

/// The next positions of a market that belong to accounts of the service, at most `limit`.
pub async fn list_owned(tx: &mut Tx, market: &Announced, limit: u32) -> Result<Vec<Owned>, StoreError> {
    const SQL: &str = "SELECT p.account, a.user_id, p.outcome_index, p.tokens_wad, p.updated_at_ms, r.id
        FROM positions p JOIN accounts a ON a.address = p.account
        LEFT JOIN redemptions r ON r.account = p.account AND r.market_id = p.market_id
            AND r.outcome_index = p.outcome_index
        WHERE p.market_id = $1 AND (p.account, p.outcome_index) > ($2, $3)
        ORDER BY p.account, p.outcome_index LIMIT $4";
    let (account, outcome_index) = &market.after;
    tx.list(SQL, &params![market.id, account, *outcome_index, limit], |row| {
        Ok(Owned {
            account: row.text(0)?,
            user_id: row.parse(1)?,
            outcome_index: row.number(2)?,
            tokens: row.parse(3)?,
            updated_at: row.timestamp(4)?,
            is_claimed: row.opt_text(5)?.is_some(),
        })
    })
    .await
}

/// Notes how far a market was gone through; `ended_at` where that was its last position.
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
    let (account, outcome_index) = &market.after;
    tx.exec(SQL, &params![market.id, account, *outcome_index, &market.told, ended_at]).await.map(drop)
}
