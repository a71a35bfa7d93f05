//! What automatic payment goes through: the settled markets, and in each of them the positions of the service's accounts.

use domain::ids::{MarketId, RedemptionId, UserId};
use domain::{Timestamp, Wad};

use crate::{StoreError, Tx, Value, params};

/// A settled market whose positions have not all been gone through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledMarket {
    /// The market.
    pub id: MarketId,
    /// The hub's number for it.
    pub number: u64,
    /// The part of the cost that it refunds, WAD; empty where it refunds nothing.
    pub refund_scale: String,
    /// The account and outcome of the last position that was gone through; before the first one, an empty account.
    pub after: (String, i64),
}

/// Notes that a settled market is still to be gone through: where that was not noted before, and from the beginning where it refunds
/// another part of the cost by now.
pub(crate) async fn begin_scan(
    tx: &mut Tx,
    id: MarketId,
    refund_scale: Option<Wad>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO payout_scans (market_id, refund_scale_wad, after_account, after_outcome_index)
        VALUES ($1, $2, '', -1) ON CONFLICT (market_id) DO UPDATE SET refund_scale_wad = excluded.refund_scale_wad,
        after_account = '', after_outcome_index = -1, ended_at_ms = NULL
        WHERE payout_scans.refund_scale_wad <> excluded.refund_scale_wad";
    let refund_scale = refund_scale.map_or_else(String::new, |scale| scale.to_string());
    tx.exec(SQL, &params![id, refund_scale]).await.map(drop)
}

/// The settled markets of a chain that are still to be gone through, the one settled first foremost.
pub async fn list_unscanned(
    tx: &mut Tx,
    chain_id: u64,
    limit: u32,
) -> Result<Vec<SettledMarket>, StoreError> {
    const SQL: &str =
        "SELECT m.id, m.chain_market_id, s.refund_scale_wad, s.after_account, s.after_outcome_index
        FROM payout_scans s CROSS JOIN markets m WHERE s.ended_at_ms IS NULL AND m.id = s.market_id
        AND m.status IN ('RESOLVED', 'CANCELLED') AND m.chain_id = $1 AND m.chain_market_id IS NOT NULL
        ORDER BY m.resolved_at_ms, m.id LIMIT $2";
    tx.list(SQL, &params![Value::try_from(chain_id)?, limit], |row| {
        let after = (row.text(3)?, row.int(4)?);
        Ok(SettledMarket { id: row.parse(0)?, number: row.number(1)?, refund_scale: row.text(2)?, after })
    })
    .await
}

/// A position that may be paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payable {
    /// The smart account, lower-case hex.
    pub account: String,
    /// Whose it is.
    pub user_id: UserId,
    /// The outcome.
    pub outcome_index: u8,
    /// The tokens held, WAD.
    pub tokens: Wad,
    /// The claim that it has, and when that ended.
    pub claim: Option<(RedemptionId, Option<Timestamp>)>,
}

/// The next positions of a market that belong to accounts of the service, at most `limit`.
pub async fn list_payable(
    tx: &mut Tx,
    market: &SettledMarket,
    limit: u32,
) -> Result<Vec<Payable>, StoreError> {
    const SQL: &str = "SELECT p.account, a.user_id, p.outcome_index, p.tokens_wad, r.id, r.ended_at_ms
        FROM positions p JOIN accounts a ON a.address = p.account
        LEFT JOIN redemptions r ON r.account = p.account AND r.market_id = p.market_id
            AND r.outcome_index = p.outcome_index
        WHERE p.market_id = $1 AND (p.account, p.outcome_index) > ($2, $3)
        ORDER BY p.account, p.outcome_index LIMIT $4";
    let (account, outcome_index) = &market.after;
    tx.list(SQL, &params![market.id, account, *outcome_index, limit], |row| {
        let claim = row.opt_parse(4)?;
        let ended_at = row.opt_timestamp(5)?;
        Ok(Payable {
            account: row.text(0)?,
            user_id: row.parse(1)?,
            outcome_index: row.number(2)?,
            tokens: row.parse(3)?,
            claim: claim.map(|id| (id, ended_at)),
        })
    })
    .await
}

/// Notes how far a market was gone through; `ended_at` where that was its last position. Nothing is noted where the market refunds
/// another part of the cost by now.
pub async fn put_scan(
    tx: &mut Tx,
    market: &SettledMarket,
    ended_at: Option<Timestamp>,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE payout_scans SET after_account = $1, after_outcome_index = $2, ended_at_ms = $3
        WHERE market_id = $4 AND refund_scale_wad = $5";
    let (account, outcome_index) = &market.after;
    let bound = params![account, *outcome_index, ended_at, market.id, &market.refund_scale];
    tx.exec(SQL, &bound).await.map(drop)
}
