//! Batches of calls that owners of accounts sign, from their preparation until their transaction is
//! final.

use alloy_primitives::{Address, B256};
use domain::ids::{BatchId, KeyId, OwnerActId, UserId};
use domain::key::ChosenCaps;
use domain::lane::assign;
use domain::owner_act::{OwnerActFailure, OwnerActKind, OwnerActStatus};
use domain::{Timestamp, Usdc};

use crate::record::{Insert, Record, record};
use crate::{Row, StoreError, Tx, params};

/// The unique index that allows one signed act per account.
const SIGNED_INDEX: &str = "owner_acts_signed";

record! {
    /// A batch of calls of an account that one of its owners signs.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct OwnerAct: Insert {
        pub id: OwnerActId,
        pub user_id: UserId,
        pub account: Address,
        /// The lane whose executor sends the act.
        pub lane: u16,
        pub kind: OwnerActKind,
        /// The calls as JSON: a list of target, value and data.
        pub calls: String,
        /// The account's nonce for which the act is valid.
        pub nonce: u64,
        /// The end of its validity, in Unix seconds.
        pub deadline_s: u64,
        /// The digest that an owner signs.
        pub digest: B256,
        pub status: OwnerActStatus,
        /// The owner that signed, in hex.
        pub signer: Option<String>,
        /// The owner's signature in the account contract's form.
        pub signature: Option<Vec<u8>>,
        pub signed_at: Option<Timestamp> = "signed_at_ms",
        /// The batch that contains the act, or the last one that did.
        pub batch_id: Option<BatchId>,
        /// The transaction that executed the act, or the last one that was sent.
        pub tx_hash: Option<B256>,
        pub failure: Option<OwnerActFailure>,
        /// Details of the failure, or of the last attempt.
        pub error: Option<String>,
        /// The key whose caps the act sets.
        pub caps_key_id: Option<KeyId>,
        pub caps_daily: Option<Usdc> = "caps_daily_usdc_atomic",
        pub caps_per_trade: Option<Usdc> = "caps_per_trade_usdc_atomic",
        pub created_at: Timestamp = "created_at_ms",
        pub ended_at: Option<Timestamp> = "ended_at_ms",
    }
}

/// The end of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerActEnding {
    Done { tx_hash: B256 },
    Failed { failure: OwnerActFailure, error: Option<String> },
    Expired,
}

/// The result of storing a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureStored {
    Stored,
    /// The act is not prepared any more.
    Stale,
    /// Another act of the account is signed and has not ended.
    AnotherInProgress,
}

pub async fn insert(tx: &mut Tx, act: &OwnerAct) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO owner_acts (",
        OwnerAct::COLUMNS,
        ") VALUES (",
        OwnerAct::PLACEHOLDERS,
        ")"
    );
    tx.exec(SQL, &act.values()?).await.map(drop)
}

pub async fn find(tx: &mut Tx, id: OwnerActId) -> Result<Option<OwnerAct>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", OwnerAct::COLUMNS, " FROM owner_acts WHERE id = $1");
    tx.find(SQL, &params![id], OwnerAct::from_row).await
}

/// Returns an act of this user.
pub async fn find_of_user(
    tx: &mut Tx,
    user_id: UserId,
    id: OwnerActId,
) -> Result<Option<OwnerAct>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        OwnerAct::COLUMNS,
        " FROM owner_acts WHERE user_id = $1 AND id = $2"
    );
    tx.find(SQL, &params![user_id, id], OwnerAct::from_row).await
}

/// Lists a user's acts, newest first, starting after the id `before`.
pub async fn list_of_user(
    tx: &mut Tx,
    user_id: UserId,
    before: Option<OwnerActId>,
    limit: u32,
) -> Result<Vec<OwnerAct>, StoreError> {
    // Ids grow with time, so they sort by creation.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        OwnerAct::COLUMNS,
        " FROM owner_acts WHERE user_id = $1 AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3"
    );
    let before = before.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![user_id, before, limit], OwnerAct::from_row).await
}

/// Returns the account's act with this digest that has not ended.
pub async fn find_open_by_digest(
    tx: &mut Tx,
    account: Address,
    digest: B256,
) -> Result<Option<OwnerAct>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        OwnerAct::COLUMNS,
        " FROM owner_acts WHERE account = $1 AND digest = $2 AND ended_at_ms IS NULL"
    );
    tx.find(SQL, &params![account, digest], OwnerAct::from_row).await
}

/// Returns the account's signed act that has not ended, if any.
pub async fn find_in_progress(tx: &mut Tx, account: Address) -> Result<Option<OwnerAct>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        OwnerAct::COLUMNS,
        " FROM owner_acts WHERE account = $1 AND status IN ('signed', 'sent')"
    );
    tx.find(SQL, &params![account], OwnerAct::from_row).await
}

/// Returns the time at which the user's `n`th last act was signed, counted from 1. `None` if fewer
/// were signed.
pub async fn find_nth_last_signed(
    tx: &mut Tx,
    user_id: UserId,
    n: u32,
) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str = "SELECT signed_at_ms FROM owner_acts WHERE user_id = $1 AND signed_at_ms IS NOT NULL
        ORDER BY signed_at_ms DESC LIMIT 1 OFFSET $2";
    tx.find(SQL, &params![user_id, n.saturating_sub(1)], |row| row.only()).await
}

/// Stores an owner's signature of a prepared act. The act then waits for its executor.
pub async fn sign(
    tx: &mut Tx,
    act: &OwnerAct,
    signer: &str,
    signature: &[u8],
    now: Timestamp,
) -> Result<SignatureStored, StoreError> {
    const SQL: &str =
        "UPDATE owner_acts SET status = 'signed', signer = $1, signature = $2, signed_at_ms = $3
        WHERE id = $4 AND status = 'prepared'";
    if find_in_progress(tx, act.account).await?.is_some_and(|other| other.id != act.id) {
        return Ok(SignatureStored::AnotherInProgress);
    }
    let stored = tx.exec(SQL, &params![signer, signature, now, act.id]).await?;
    Ok(if stored == 1 { SignatureStored::Stored } else { SignatureStored::Stale })
}

/// Returns whether this is the conflict of two acts of one account that were signed at the same
/// time.
pub fn is_signed_conflict(error: &StoreError) -> bool {
    error.is_conflict_on(SIGNED_INDEX)
}

/// Returns the next act that a lane's executor must send.
pub async fn find_next(tx: &mut Tx, lane: u16, now: Timestamp) -> Result<Option<OwnerAct>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        OwnerAct::COLUMNS,
        " FROM owner_acts WHERE lane = $1 AND status = 'signed' AND try_after_ms <= $2
        ORDER BY signed_at_ms, id LIMIT 1"
    );
    tx.find(SQL, &params![lane, now], OwnerAct::from_row).await
}

/// Moves the acts that the lane `from` has not sent to the lanes of their accounts among `targets`.
pub async fn hand_over(tx: &mut Tx, from: u16, targets: &[u16]) -> Result<(), StoreError> {
    const LIST: &str = "SELECT id, account FROM owner_acts WHERE lane = $1 AND status = 'signed'";
    const SQL: &str = "UPDATE owner_acts SET lane = x.new_lane
        FROM ROWS($1 BIGINT, $2 TEXT) AS x(new_lane, act_id)
        WHERE owner_acts.id = x.act_id AND owner_acts.status = 'signed'";
    let read = |row: &Row<'_>| Ok((row.get::<OwnerActId>("id")?, row.get("account")?));
    let signed = tx.list(LIST, &params![from], read).await?;
    let rows = signed.into_iter().map(|(id, account)| params![assign(account, targets), id].to_vec());
    tx.exec_rows(SQL, rows.collect()).await.map(drop)
}

/// Returns the act that a batch contains and that has not ended.
pub async fn find_of_batch(tx: &mut Tx, batch_id: BatchId) -> Result<Option<OwnerAct>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        OwnerAct::COLUMNS,
        " FROM owner_acts WHERE batch_id = $1 AND ended_at_ms IS NULL"
    );
    tx.find(SQL, &params![batch_id], OwnerAct::from_row).await
}

/// Assigns a signed act to a batch. Returns false if its status has changed.
pub async fn mark_sent(
    tx: &mut Tx,
    id: OwnerActId,
    batch_id: BatchId,
    tx_hash: Option<B256>,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE owner_acts SET status = 'sent', batch_id = $1, tx_hash = $2, error = NULL
        WHERE id = $3 AND status = 'signed'";
    Ok(tx.exec(SQL, &params![batch_id, tx_hash, id]).await? == 1)
}

/// Stores the hash of an act's transaction, which a remote signer has signed now.
pub async fn put_tx_hash(tx: &mut Tx, batch_id: BatchId, tx_hash: B256) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE owner_acts SET tx_hash = $1 WHERE batch_id = $2 AND status = 'sent'";
    tx.exec(SQL, &params![tx_hash, batch_id]).await.map(drop)
}

/// Queues an act again that its transaction did not execute, or postpones it.
pub async fn requeue(
    tx: &mut Tx,
    id: OwnerActId,
    error: &str,
    try_after: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE owner_acts SET status = 'signed', error = $1, try_after_ms = $2
        WHERE id = $3 AND status IN ('signed', 'sent')";
    tx.exec(SQL, &params![error, try_after, id]).await.map(drop)
}

/// Ends a signed act. Does nothing if it has already ended. The caps of an act that is done become
/// the user's choice for their key.
pub async fn end(
    tx: &mut Tx,
    id: OwnerActId,
    ending: &OwnerActEnding,
    now: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE owner_acts SET status = $1, tx_hash = COALESCE($2, tx_hash), failure = $3,
        error = $4, ended_at_ms = $5 WHERE id = $6 AND status IN ('signed', 'sent')
        RETURNING user_id, caps_key_id, caps_daily_usdc_atomic, caps_per_trade_usdc_atomic";
    let (status, tx_hash, failure, error) = match ending {
        OwnerActEnding::Done { tx_hash } => (OwnerActStatus::Done, Some(*tx_hash), None, None),
        OwnerActEnding::Failed { failure, error } => {
            (OwnerActStatus::Failed, None, Some(failure.as_str()), error.as_deref())
        }
        OwnerActEnding::Expired => (OwnerActStatus::Expired, None, None, None),
    };
    // The caps are read here and not from the executor's copy of the act: the user may have lowered
    // a cap since.
    let ended = tx
        .find(SQL, &params![status.as_str(), tx_hash, failure, error, now, id], |row| {
            let caps = ChosenCaps {
                daily: row.get("caps_daily_usdc_atomic")?,
                per_trade: row.get("caps_per_trade_usdc_atomic")?,
            };
            Ok((row.get("user_id")?, row.get("caps_key_id")?, caps))
        })
        .await?;
    if let (OwnerActStatus::Done, Some((user_id, Some(key_id), caps))) = (status, ended) {
        crate::keys::set_chosen_caps(tx, user_id, key_id, &caps).await?;
    }
    Ok(())
}

/// Removes the caps from the user's signed act for a key, because the user has chosen others since.
pub async fn forget_caps(tx: &mut Tx, user_id: UserId, key_id: KeyId) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE owner_acts
        SET caps_key_id = NULL, caps_daily_usdc_atomic = NULL, caps_per_trade_usdc_atomic = NULL
        WHERE user_id = $1 AND caps_key_id = $2 AND status IN ('signed', 'sent')";
    tx.exec(SQL, &params![user_id, key_id]).await.map(drop)
}

/// Ends at most `limit` prepared acts whose deadline has passed, and returns their number.
pub async fn expire_prepared(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const SQL: &str = "UPDATE owner_acts SET status = 'expired', ended_at_ms = $1 WHERE status = 'prepared'
        AND id IN (SELECT id FROM owner_acts WHERE status = 'prepared' AND deadline_s < $2 LIMIT $3)";
    tx.exec(SQL, &params![now, now.ms().div_euclid(1_000), limit]).await
}

/// Deletes at most `limit` acts that ended before `before` without a signature, and returns their
/// number.
pub async fn delete_unsigned(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM owner_acts WHERE id IN (SELECT id FROM owner_acts
        WHERE signature IS NULL AND ended_at_ms < $1 ORDER BY ended_at_ms LIMIT $2)";
    tx.exec(SQL, &params![before, limit]).await
}
