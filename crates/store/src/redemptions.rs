//! Claims for the payouts of settled markets (table `redemptions`). Every status change is a
//! compare-and-set that reports whether it took effect. A claim is open until it has an end time.

use alloy_primitives::{Address, B256};
use domain::event::{self, ClaimData, EventKind};
use domain::ids::{BatchId, CorrelationId, EventId, KeyId, MarketId, RedemptionId, UserId};
use domain::page::Page;
use domain::redemption::RedemptionStatus;
use domain::{ErrorCode, Timestamp, Usdc, Wad};

use crate::bind::position_or_end;
use crate::engine::Columns;
use crate::events::{self, NewEvent};
use crate::movements::LastPosition;
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

mod announcements;
mod payouts;

pub(crate) use announcements::begin_announcement;
pub use announcements::{Announced, Owned, list_owned, list_unannounced, put_announced};
pub(crate) use payouts::begin_scan;
pub use payouts::{Payable, SettledMarket, list_payable, list_unscanned, put_scan};

impl Record for LastPosition {
    const COLUMNS: &'static str = "NULLIF(after_account, '') AS after_account, after_outcome_index";

    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        let (account, index): (Option<_>, i64) =
            (columns.next("after_account")?, columns.next("after_outcome_index")?);
        let invalid = |_| columns.corrupt("after_outcome_index", "not an outcome");
        account.map(|account| Ok((account, u8::try_from(index).map_err(invalid)?))).transpose()
    }
}

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Redemption {
        pub id: RedemptionId,
        pub user_id: UserId,
        /// The key that created the claim. `None` if the service pays automatically.
        pub key_id: Option<KeyId>,
        /// The smart account to pay.
        pub account: Address,
        pub market_id: MarketId,
        pub outcome_index: u8,
        pub correlation_id: CorrelationId,
        pub status: RedemptionStatus,
        /// The tokens that are redeemed.
        pub tokens: Wad = "tokens_wad",
        /// The expected payout at the time of the claim.
        pub expected: Usdc = "expected_usdc_atomic",
        /// The amount that the chain has paid so far.
        pub paid: Usdc = "paid_usdc_atomic",
        pub tx_hash: Option<B256>,
        /// The reason of a failure: an error code and a message.
        pub failure: Option<(ErrorCode, String)> = ..,
        /// The batch that contains the claim, or the last one that did.
        pub batch_id: Option<BatchId>,
        pub created_at: Timestamp = "created_at_ms",
        pub updated_at: Timestamp = "updated_at_ms",
        pub ended_at: Option<Timestamp> = "ended_at_ms",
    }
}

impl Record for Option<(ErrorCode, String)> {
    const COLUMNS: &'static str = "error_code, error_message";

    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        let (code, message): (Option<_>, Option<_>) =
            (columns.next("error_code")?, columns.next("error_message")?);
        let missing = || columns.corrupt("error_message", "NULL, although there is an error code");
        code.map(|code| Ok((code, message.ok_or_else(missing)?))).transpose()
    }
}

/// Inserts a claim. Returns false, without a change, if the position already has one.
pub async fn insert(tx: &mut Tx, claim: &Redemption) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO redemptions (id, user_id, key_id, account, market_id, outcome_index, correlation_id,
        status, tokens_wad, expected_usdc_atomic, paid_usdc_atomic, judge_after_ms, created_at_ms, updated_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, $9, 0, 0, $10, $10)
        ON CONFLICT (account, market_id, outcome_index) DO NOTHING";
    let bound = params![
        claim.id,
        claim.user_id,
        claim.key_id,
        claim.account,
        claim.market_id,
        claim.outcome_index,
        claim.correlation_id,
        claim.tokens,
        claim.expected,
        claim.created_at
    ];
    Ok(tx.exec(SQL, &bound).await? == 1)
}

/// Another attempt at an ended claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRetry {
    pub id: RedemptionId,
    /// The end time that the caller has read. It detects a claim that was reopened and ended again
    /// meanwhile.
    pub ended_at: Timestamp,
    /// The current expected payout.
    pub expected: Usdc,
    /// The tokens to redeem. Zero leaves the stored amount unchanged.
    pub tokens: Wad,
}

/// Reopens an ended claim. Returns false if it has changed since it was read.
pub async fn reopen(tx: &mut Tx, again: &ClaimRetry, now: Timestamp) -> Result<bool, StoreError> {
    // Zero tokens leave the stored amount unchanged.
    const SQL: &str = "UPDATE redemptions SET status = 'pending', expected_usdc_atomic = $1,
        tokens_wad = CASE WHEN $2 = '0' THEN tokens_wad ELSE $2 END, error_code = NULL, error_message = NULL,
        batch_id = NULL, judge_after_ms = 0, updated_at_ms = $3, ended_at_ms = NULL
        WHERE id = $4 AND ended_at_ms = $5";
    let bound = params![again.expected, again.tokens, now, again.id, again.ended_at];
    Ok(tx.exec(SQL, &bound).await? == 1)
}

pub async fn find(tx: &mut Tx, user_id: UserId, id: RedemptionId) -> Result<Option<Redemption>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Redemption::COLUMNS,
        " FROM redemptions WHERE id = $1 AND user_id = $2"
    );
    tx.find(SQL, &params![id, user_id], Redemption::from_row).await
}

/// The user's claim for a position.
pub async fn find_of_position(
    tx: &mut Tx,
    user_id: UserId,
    market_id: MarketId,
    outcome_index: u8,
) -> Result<Option<Redemption>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Redemption::COLUMNS,
        " FROM redemptions WHERE user_id = $1 AND account = (SELECT address FROM accounts WHERE user_id = $1)
        AND market_id = $2 AND outcome_index = $3"
    );
    tx.find(SQL, &params![user_id, market_id, outcome_index], Redemption::from_row).await
}

/// A filter for lists of claims.
#[derive(Debug, Clone, Default)]
pub struct RedemptionListFilter {
    /// Allowed statuses. Empty means all.
    pub statuses: Vec<RedemptionStatus>,
    pub market_id: Option<MarketId>,
}

/// Lists the user's claims, newest first. Returns up to `limit + 1` rows: the extra row shows that
/// there is a next page.
pub async fn list(
    tx: &mut Tx,
    user_id: UserId,
    filter: &RedemptionListFilter,
    page: &Page,
) -> Result<Vec<Redemption>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Redemption::COLUMNS,
        " FROM redemptions WHERE user_id = $1 AND (created_at_ms, id) < ($2, $3)
        AND ($4 = '' OR $4 LIKE '%,' || status || ',%') AND ($5 = '' OR market_id = $5)
        ORDER BY created_at_ms DESC, id DESC LIMIT $6"
    );
    let (created_at, id) = position_or_end(page.after.as_ref());
    let statuses = match filter.statuses.as_slice() {
        [] => String::new(),
        some => format!(",{},", some.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",")),
    };
    let market_id = filter.market_id.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![user_id, created_at, id, statuses, market_id, page.limit + 1], Redemption::from_row)
        .await
}

/// Lists the open claims that are not in a pending batch, oldest first, with their market's number
/// on the hub. These must be sent, or their batch has ended and their payment is not final yet.
pub async fn list_unsent(
    tx: &mut Tx,
    chain_id: u64,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<(Redemption, Option<u64>)>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Redemption::COLUMNS,
        ", (SELECT chain_market_id FROM markets WHERE markets.id = market_id AND chain_id = $1) AS chain_market_id
        FROM redemptions WHERE ended_at_ms IS NULL AND judge_after_ms <= $2
        AND NOT EXISTS (SELECT 1 FROM batches WHERE batches.id = batch_id AND batches.ended_at_ms IS NULL)
        ORDER BY created_at_ms, id LIMIT $3"
    );
    tx.list(SQL, &params![SqlValue::try_from(chain_id)?, now, limit], |row| {
        Ok((Redemption::from_row(row)?, row.get("chain_market_id")?))
    })
    .await
}

/// Assigns open claims to a batch. Returns for each claim whether it was still open.
pub async fn set_batch(
    tx: &mut Tx,
    claims: &[RedemptionId],
    batch_id: BatchId,
    now: Timestamp,
) -> Result<Vec<bool>, StoreError> {
    const SQL: &str = "UPDATE redemptions SET status = 'executing', batch_id = $1, updated_at_ms = $2
        WHERE id = $3 AND ended_at_ms IS NULL";
    let rows: Vec<Vec<SqlValue<'_>>> = claims.iter().map(|id| params![batch_id, now, *id].to_vec()).collect();
    let moved = tx.exec_each(SQL, &rows).await?;
    Ok(moved.into_iter().map(|affected| affected == 1).collect())
}

/// Postpones the next look at open claims.
pub async fn defer(tx: &mut Tx, claims: &[(RedemptionId, Timestamp)]) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE redemptions SET judge_after_ms = $1 WHERE id = $2 AND ended_at_ms IS NULL";
    let rows: Vec<Vec<SqlValue<'_>>> =
        claims.iter().map(|(id, until)| params![*until, *id].to_vec()).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

record! {
    /// A payment of a claim, according to the chain's events.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Payment {
        pub id: RedemptionId = "r.id",
        pub movement_id: String = "m.id AS movement_id",
        pub tx_hash: B256 = "m.tx_hash",
        pub usdc: Usdc = "m.usdc_atomic",
    }
}

/// Lists the payments for open claims in the blocks `from..=to`, in chain order. Anyone may have
/// sent the transaction.
pub async fn list_payments(tx: &mut Tx, from: u64, to: u64) -> Result<Vec<Payment>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Payment::COLUMNS,
        " FROM movements m JOIN redemptions r
        ON r.account = m.account AND r.market_id = m.market_id AND r.outcome_index = m.outcome_index
        WHERE m.block_number >= $1 AND m.block_number <= $2 AND m.kind = 'redeem' AND r.ended_at_ms IS NULL
        ORDER BY m.id"
    );
    tx.list(SQL, &[SqlValue::try_from(from)?, SqlValue::try_from(to)?], Payment::from_row).await
}

/// Returns the last payment for the claim's position up to block `to` that the claim does not
/// include yet.
pub async fn find_uncounted_payment(
    tx: &mut Tx,
    id: RedemptionId,
    to: u64,
) -> Result<Option<Payment>, StoreError> {
    // Ids of movements sort in chain order, so a greater id is a later payment.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Payment::COLUMNS,
        " FROM redemptions r JOIN movements m
        ON r.account = m.account AND r.market_id = m.market_id AND r.outcome_index = m.outcome_index
        WHERE r.id = $1 AND m.kind = 'redeem' AND m.block_number <= $2 AND m.id > COALESCE(r.paid_movement_id, '')
        ORDER BY m.id DESC LIMIT 1"
    );
    tx.find(SQL, &params![id, SqlValue::try_from(to)?], Payment::from_row).await
}

/// Adds a payment, completes the claim and emits its event. Returns false if the claim does not
/// exist or already includes the payment.
pub async fn complete(tx: &mut Tx, payment: &Payment, now: Timestamp) -> Result<bool, StoreError> {
    // There is no condition on the status: a payment also completes a claim that had failed.
    const SQL: &str = "UPDATE redemptions SET status = 'completed', paid_usdc_atomic = paid_usdc_atomic + $1,
        paid_movement_id = $2, tx_hash = $3, error_code = NULL, error_message = NULL, updated_at_ms = $4,
        ended_at_ms = $4 WHERE id = $5 AND COALESCE(paid_movement_id, '') < $2
        RETURNING user_id, key_id, market_id, outcome_index, tokens_wad, correlation_id";
    let bound = params![payment.usdc, &payment.movement_id, payment.tx_hash, now, payment.id];
    let completed = tx.find(SQL, &bound, |row| {
        let data = ClaimData {
            redemption_id: payment.id,
            market_id: row.get("market_id")?,
            outcome_index: row.get("outcome_index")?,
            amount: payment.usdc,
            tokens: row.get("tokens_wad")?,
            tx_hash: Some(payment.tx_hash),
            correlation_id: row.get("correlation_id")?,
        };
        Ok((row.get("user_id")?, row.get("key_id")?, data))
    });
    let Some((user_id, key_id, data)) = completed.await? else { return Ok(false) };
    let kind = EventKind::RedemptionCompleted;
    let id = EventId::of_redemption(payment.id, &payment.movement_id, now);
    let body = event::body(id, kind, now, &data).map_err(|error| StoreError::unwritable(&error))?;
    events::emit(tx, NewEvent { id, user_id, kind, key_id, trade_id: None, body, at: now });
    Ok(true)
}

/// Ends an open claim that gets no further payment: as failed, or as completed if something was
/// paid before. Returns false if it had already ended.
pub async fn end_unpaid(
    tx: &mut Tx,
    id: RedemptionId,
    code: ErrorCode,
    message: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const FAIL: &str = "UPDATE redemptions SET status = 'failed', error_code = $1, error_message = $2,
        updated_at_ms = $3, ended_at_ms = $3 WHERE id = $4 AND ended_at_ms IS NULL AND paid_usdc_atomic = 0";
    const COMPLETE: &str = "UPDATE redemptions SET status = 'completed', updated_at_ms = $1, ended_at_ms = $1
        WHERE id = $2 AND ended_at_ms IS NULL";
    if tx.exec(FAIL, &params![code.as_str(), message, now, id]).await? == 1 {
        return Ok(true);
    }
    // Either something was paid before, or the claim has already ended.
    Ok(tx.exec(COMPLETE, &params![now, id]).await? == 1)
}
