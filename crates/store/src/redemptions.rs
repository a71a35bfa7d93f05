//! Claims of what settled markets pay. Every move is a compare-and-set that says whether it found the claim where it had to
//! be; a claim is open as long as it has not ended.

use domain::event::{self, ClaimData, EventKind};
use domain::ids::{BatchId, CorrelationId, EventId, KeyId, MarketId, RedemptionId, UserId};
use domain::page::Page;
use domain::redemption::Status;
use domain::{ErrorCode, Timestamp, Usdc, Wad};

use crate::bind::position_or_end;
use crate::events::{self, NewEvent};
use crate::{Row, StoreError, Tx, Value, params};

mod announcements;
mod payouts;

pub(crate) use announcements::begin_announcement;
pub use announcements::{Announced, Owned, list_owned, list_unannounced, put_announced};
pub(crate) use payouts::begin_scan;
pub use payouts::{Payable, SettledMarket, list_payable, list_unscanned, put_scan};

/// A claim as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redemption {
    /// Its id.
    pub id: RedemptionId,
    /// Whose it is.
    pub user_id: UserId,
    /// The key it came with; none where the service pays by itself.
    pub key_id: Option<KeyId>,
    /// The smart account that is paid, lower-case hex.
    pub account: String,
    /// The market.
    pub market_id: MarketId,
    /// The outcome.
    pub outcome_index: u8,
    /// The id of its trace.
    pub correlation_id: CorrelationId,
    /// Where it stands.
    pub status: Status,
    /// The tokens that are given for it.
    pub tokens: Wad,
    /// What the chain would pay, as it was when the claim was made.
    pub expected: Usdc,
    /// What the chain has paid.
    pub paid: Usdc,
    /// The transaction that paid it.
    pub tx_hash: Option<String>,
    /// Why it failed: a code of the catalogue, and words for people.
    pub failure: Option<(ErrorCode, String)>,
    /// The batch that carries it, or the last one that did.
    pub batch_id: Option<BatchId>,
    /// When it was made first.
    pub created_at: Timestamp,
    /// When it last moved.
    pub updated_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

const COLUMNS: &str = "id, user_id, key_id, account, market_id, outcome_index, correlation_id, status, tokens_wad,
    expected_usdc_atomic, paid_usdc_atomic, tx_hash, error_code, error_message, batch_id, created_at_ms, updated_at_ms,
    ended_at_ms";

fn from_row(row: &Row<'_>) -> Result<Redemption, StoreError> {
    Ok(Redemption {
        id: row.parse(0)?,
        user_id: row.parse(1)?,
        key_id: row.opt_parse(2)?,
        account: row.text(3)?,
        market_id: row.parse(4)?,
        outcome_index: row.number(5)?,
        correlation_id: row.parse(6)?,
        status: row.parse(7)?,
        tokens: row.parse(8)?,
        expected: row.usdc(9)?,
        paid: row.usdc(10)?,
        tx_hash: row.opt_text(11)?,
        failure: row.opt_parse(12)?.map(|code| Ok((code, row.text(13)?))).transpose()?,
        batch_id: row.opt_parse(14)?,
        created_at: row.timestamp(15)?,
        updated_at: row.timestamp(16)?,
        ended_at: row.opt_timestamp(17)?,
    })
}

/// Adds a claim. False where the position has one already: nothing is written then.
pub async fn insert(tx: &mut Tx, claim: &Redemption) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO redemptions (id, user_id, key_id, account, market_id, outcome_index, correlation_id,
        status, tokens_wad, expected_usdc_atomic, paid_usdc_atomic, judge_after_ms, created_at_ms, updated_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, $9, 0, 0, $10, $10)
        ON CONFLICT (account, market_id, outcome_index) DO NOTHING";
    let bound = params![
        claim.id,
        claim.user_id,
        claim.key_id,
        &claim.account,
        claim.market_id,
        claim.outcome_index,
        claim.correlation_id,
        claim.tokens,
        claim.expected,
        claim.created_at
    ];
    Ok(tx.exec(SQL, &bound).await? == 1)
}

/// What a claim is made again for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Again {
    /// The claim.
    pub id: RedemptionId,
    /// When it had ended, as it was found: a claim that was made again and ended once more meanwhile is another.
    pub ended_at: Timestamp,
    /// What the chain would pay now.
    pub expected: Usdc,
    /// The tokens that are given for it; none for the rest of a refund, whose tokens are gone.
    pub tokens: Wad,
}

/// Makes an ended claim again in its row; false where it has moved since it was read.
pub async fn reopen(tx: &mut Tx, again: &Again, now: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE redemptions SET status = 'pending', expected_usdc_atomic = $1,
        tokens_wad = CASE WHEN $2 = '0' THEN tokens_wad ELSE $2 END, error_code = NULL, error_message = NULL,
        batch_id = NULL, judge_after_ms = 0, updated_at_ms = $3, ended_at_ms = NULL
        WHERE id = $4 AND ended_at_ms = $5";
    let bound = params![again.expected, again.tokens, now, again.id, again.ended_at];
    Ok(tx.exec(SQL, &bound).await? == 1)
}

/// The user's claim with this id.
pub async fn find(tx: &mut Tx, user_id: UserId, id: RedemptionId) -> Result<Option<Redemption>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", COLUMNS, " FROM redemptions WHERE id = $1 AND user_id = $2");
    tx.find(SQL, &params![id, user_id], from_row).await
}

/// The user's claim of this position.
pub async fn find_of_position(
    tx: &mut Tx,
    user_id: UserId,
    market_id: MarketId,
    outcome_index: u8,
) -> Result<Option<Redemption>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM redemptions WHERE user_id = $1 AND account = (SELECT address FROM accounts WHERE user_id = $1)
        AND market_id = $2 AND outcome_index = $3"
    );
    tx.find(SQL, &params![user_id, market_id, outcome_index], from_row).await
}

/// What a list of claims is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Claims in one of these statuses; all where empty.
    pub statuses: Vec<Status>,
    /// Claims in this market.
    pub market_id: Option<MarketId>,
}

/// One row more than the page's limit of the user's claims, newest first.
pub async fn list(
    tx: &mut Tx,
    user_id: UserId,
    filter: &ListFilter,
    page: &Page,
) -> Result<Vec<Redemption>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
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
    tx.list(SQL, &params![user_id, created_at, id, statuses, market_id, page.limit + 1], from_row).await
}

/// The open claims that no batch is on its way with, oldest first, and the hub's number of their market: those that are to
/// be sent, or whose batch has ended without their payment being final.
pub async fn list_unsent(
    tx: &mut Tx,
    chain_id: u64,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<(Redemption, Option<u64>)>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        ", (SELECT chain_market_id FROM markets WHERE markets.id = market_id AND chain_id = $1)
        FROM redemptions WHERE ended_at_ms IS NULL AND judge_after_ms <= $2
        AND NOT EXISTS (SELECT 1 FROM batches WHERE batches.id = batch_id AND batches.ended_at_ms IS NULL)
        ORDER BY created_at_ms, id LIMIT $3"
    );
    tx.list(SQL, &params![Value::try_from(chain_id)?, now, limit], |row| {
        Ok((from_row(row)?, row.opt_number(18)?))
    })
    .await
}

/// Puts open claims into a batch; for each whether it was still open.
pub async fn set_batch(
    tx: &mut Tx,
    claims: &[RedemptionId],
    batch_id: BatchId,
    now: Timestamp,
) -> Result<Vec<bool>, StoreError> {
    const SQL: &str = "UPDATE redemptions SET status = 'executing', batch_id = $1, updated_at_ms = $2
        WHERE id = $3 AND ended_at_ms IS NULL";
    let rows: Vec<Vec<Value<'_>>> = claims.iter().map(|id| params![batch_id, now, *id].to_vec()).collect();
    let moved = tx.exec_each(SQL, &rows).await?;
    Ok(moved.into_iter().map(|affected| affected == 1).collect())
}

/// Leaves open claims alone for a while.
pub async fn defer(tx: &mut Tx, claims: &[(RedemptionId, Timestamp)]) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE redemptions SET judge_after_ms = $1 WHERE id = $2 AND ended_at_ms IS NULL";
    let rows: Vec<Vec<Value<'_>>> = claims.iter().map(|(id, until)| params![*until, *id].to_vec()).collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// What the chain's events say was paid for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The claim.
    pub id: RedemptionId,
    /// The movement.
    pub movement_id: String,
    /// Its transaction.
    pub tx_hash: String,
    /// What it paid.
    pub usdc: Usdc,
}

fn payment_from_row(row: &Row<'_>) -> Result<Payment, StoreError> {
    Ok(Payment { id: row.parse(0)?, movement_id: row.text(1)?, tx_hash: row.text(2)?, usdc: row.usdc(3)? })
}

/// What the blocks `from..=to` paid for open claims, whoever called for it, in the chain's order.
pub async fn list_payments(tx: &mut Tx, from: u64, to: u64) -> Result<Vec<Payment>, StoreError> {
    const SQL: &str = "SELECT r.id, m.id, m.tx_hash, m.usdc_atomic FROM movements m JOIN redemptions r
        ON r.account = m.account AND r.market_id = m.market_id AND r.outcome_index = m.outcome_index
        WHERE m.block_number >= $1 AND m.block_number <= $2 AND m.kind = 'redeem' AND r.ended_at_ms IS NULL
        ORDER BY m.id";
    tx.list(SQL, &[Value::try_from(from)?, Value::try_from(to)?], payment_from_row).await
}

/// The last payment of the claim's position up to block `to` that the claim does not count yet.
pub async fn find_uncounted_payment(
    tx: &mut Tx,
    id: RedemptionId,
    to: u64,
) -> Result<Option<Payment>, StoreError> {
    const SQL: &str = "SELECT r.id, m.id, m.tx_hash, m.usdc_atomic FROM redemptions r JOIN movements m
        ON r.account = m.account AND r.market_id = m.market_id AND r.outcome_index = m.outcome_index
        WHERE r.id = $1 AND m.kind = 'redeem' AND m.block_number <= $2 AND m.id > COALESCE(r.paid_movement_id, '')
        ORDER BY m.id DESC LIMIT 1";
    tx.find(SQL, &params![id, Value::try_from(to)?], payment_from_row).await
}

/// Counts a payment, completes the claim and tells its owner; false where the claim is not known or counts it already.
pub async fn complete(tx: &mut Tx, payment: &Payment, now: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE redemptions SET status = 'completed', paid_usdc_atomic = paid_usdc_atomic + $1,
        paid_movement_id = $2, tx_hash = $3, error_code = NULL, error_message = NULL, updated_at_ms = $4,
        ended_at_ms = $4 WHERE id = $5 AND COALESCE(paid_movement_id, '') < $2
        RETURNING user_id, key_id, market_id, outcome_index, tokens_wad, correlation_id";
    let bound = params![payment.usdc, &payment.movement_id, &payment.tx_hash, now, payment.id];
    let completed = tx.find(SQL, &bound, |row| {
        let data = ClaimData {
            redemption_id: payment.id,
            market_id: row.parse(2)?,
            outcome_index: row.number(3)?,
            amount: payment.usdc,
            tokens: row.parse(4)?,
            tx_hash: Some(payment.tx_hash.clone()),
            correlation_id: row.parse(5)?,
        };
        Ok((row.parse::<UserId>(0)?, row.opt_parse::<KeyId>(1)?, data))
    });
    let Some((user_id, key_id, data)) = completed.await? else { return Ok(false) };
    let kind = EventKind::RedemptionCompleted;
    let id = EventId::of_redemption(payment.id, &payment.movement_id, now);
    let body = event::body(id, kind, now, &data).map_err(|error| StoreError::unwritable(&error))?;
    events::emit(tx, NewEvent { id, user_id, kind, key_id, trade_id: None, body, at: now });
    Ok(true)
}

/// Ends an open claim for which nothing more is paid: as failed, or as completed where something was paid before; false
/// where it had ended already.
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
    Ok(tx.exec(COMPLETE, &params![now, id]).await? == 1)
}
