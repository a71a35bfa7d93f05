//! Automatic payouts: the settled markets that are not fully processed, and their positions of the
//! service's accounts.

use alloy_primitives::Address;
use domain::ids::{MarketId, RedemptionId, UserId};
use domain::{Timestamp, Wad};

use crate::movements::{LastPosition, position_values};
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    /// A settled market, and the progress of its payout scan.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SettledMarket {
        pub id: MarketId = "m.id",
        /// The market's number on the hub.
        pub number: u64 = "m.chain_market_id",
        /// The payouts of the result that is being processed, as stored in the market's row.
        pub payouts: String = "s.payouts",
        /// The last processed position.
        pub after: LastPosition = ..,
    }
}

/// Starts the payout scan of a settled market. Does nothing if one exists for the same result, and
/// restarts it if the result has changed.
pub(crate) async fn begin_scan(tx: &mut Tx, id: MarketId, payouts: &str) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO payout_scans (market_id, payouts, after_account, after_outcome_index)
        VALUES ($1, $2, '', -1) ON CONFLICT (market_id) DO UPDATE SET payouts = excluded.payouts,
        after_account = '', after_outcome_index = -1, ended_at_ms = NULL
        WHERE payout_scans.payouts <> excluded.payouts";
    tx.exec(SQL, &params![id, payouts]).await.map(drop)
}

/// Lists a chain's settled markets whose payout scan is not finished, earliest settlement first.
pub async fn list_unscanned(
    tx: &mut Tx,
    chain_id: u64,
    limit: u32,
) -> Result<Vec<SettledMarket>, StoreError> {
    // SQLite never reorders a CROSS JOIN: the few open scans must be the outer loop.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        SettledMarket::COLUMNS,
        " FROM payout_scans s CROSS JOIN markets m WHERE s.ended_at_ms IS NULL AND m.id = s.market_id
        AND m.status IN ('RESOLVED', 'CANCELLED') AND m.chain_id = $1 AND m.chain_market_id IS NOT NULL
        ORDER BY m.resolved_at_ms, m.id LIMIT $2"
    );
    tx.list(SQL, &params![SqlValue::try_from(chain_id)?, limit], SettledMarket::from_row).await
}

/// A position that may be paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payable {
    /// The smart account.
    pub account: Address,
    /// The account's user.
    pub user_id: UserId,
    pub outcome_index: u8,
    /// The tokens held, in WAD.
    pub tokens: Wad,
    /// The position's claim, if any, and the time at which it ended.
    pub claim: Option<(RedemptionId, Option<Timestamp>)>,
}

/// Lists the next positions of a market that belong to the service's accounts, at most `limit`.
pub async fn list_payable(
    tx: &mut Tx,
    market: &SettledMarket,
    limit: u32,
) -> Result<Vec<Payable>, StoreError> {
    const SQL: &str =
        "SELECT p.account, a.user_id, p.outcome_index, p.tokens_wad, r.id AS claim_id, r.ended_at_ms
        FROM positions p JOIN accounts a ON a.address = p.account
        LEFT JOIN redemptions r ON r.account = p.account AND r.market_id = p.market_id
            AND r.outcome_index = p.outcome_index
        WHERE p.market_id = $1 AND (p.account, p.outcome_index) > ($2, $3)
        ORDER BY p.account, p.outcome_index LIMIT $4";
    let [account, outcome_index] = position_values(market.after);
    tx.list(SQL, &params![market.id, account, outcome_index, limit], |row| {
        let claim: Option<RedemptionId> = row.get("claim_id")?;
        let ended_at = row.get("ended_at_ms")?;
        Ok(Payable {
            account: row.get("account")?,
            user_id: row.get("user_id")?,
            outcome_index: row.get("outcome_index")?,
            tokens: row.get("tokens_wad")?,
            claim: claim.map(|id| (id, ended_at)),
        })
    })
    .await
}

/// Stores the progress of a payout scan; `ended_at` is set after the last position. Does nothing if
/// the market's result has changed, because the scan was then restarted.
pub async fn put_scan(
    tx: &mut Tx,
    market: &SettledMarket,
    ended_at: Option<Timestamp>,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE payout_scans SET after_account = $1, after_outcome_index = $2, ended_at_ms = $3
        WHERE market_id = $4 AND payouts = $5";
    let [account, outcome_index] = position_values(market.after);
    let bound = params![account, outcome_index, ended_at, market.id, &market.payouts];
    tx.exec(SQL, &bound).await.map(drop)
}
