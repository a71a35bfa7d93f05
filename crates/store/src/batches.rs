//! Signed batches of intents, redemptions, delegation changes or owner acts. A batch is stored before it is
//! sent, and all its signed forms are retained until it has ended.

use std::str::FromStr;

use alloy_primitives::{Address, B256};
use domain::Timestamp;
use domain::ids::BatchId;

use crate::bind::{column_from_text, word_to_column};
use crate::record::{Insert, Record, record};
use crate::{SqlValue, StoreError, Tx, params};

/// The end of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchEnding {
    /// Mined successfully. Its intents ended with events.
    Mined,
    /// Mined, but reverted as a whole. Its intents are unchanged.
    Reverted,
    /// Another transaction used its nonce, so it can never be mined.
    Displaced,
}

impl BatchEnding {
    /// The ending as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mined => "mined",
            Self::Reverted => "reverted",
            Self::Displaced => "displaced",
        }
    }
}

/// The content of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchKind {
    /// Intents, for the Gate.
    Trades,
    /// Redemptions, for the hub.
    Redemptions,
    /// One change of a delegation, for the Gate.
    Delegation,
    /// One batch that an owner of an account has signed, for the account, or for the account factory
    /// if it is the account's first one.
    OwnerAct,
}

impl BatchKind {
    /// The kind as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trades => "trades",
            Self::Redemptions => "redemptions",
            Self::Delegation => "delegation",
            Self::OwnerAct => "owner_act",
        }
    }
}

column_from_text!(BatchKind);
word_to_column!(BatchKind);

impl FromStr for BatchKind {
    type Err = UnknownBatchKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Trades, Self::Redemptions, Self::Delegation, Self::OwnerAct]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(UnknownBatchKind)
    }
}

/// The error for a text that is not a kind of batch.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("not a kind of batch")]
pub struct UnknownBatchKind;

record! {
    /// A batch.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Batch: Insert {
        pub id: BatchId,
        pub lane: u16,
        pub kind: BatchKind,
        /// The executor's address.
        pub executor: Address,
        /// The executor's nonce that the batch uses.
        pub chain_nonce: u64,
        /// The called contract, if its kind does not determine it.
        pub target: Option<Address>,
        /// The call of the Gate, the hub, the account factory or an account.
        pub calldata: Vec<u8>,
        /// The gas limit.
        pub gas_limit: u64,
        /// The time of the first signature.
        pub created_at: Timestamp = "created_at_ms",
        /// The time at which it was last sent.
        pub sent_at: Timestamp = "sent_at_ms",
    }
}

record! {
    /// A signed form of a batch: a transaction with certain fees.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SignedForm: Insert {
        /// The transaction's hash.
        pub hash: B256,
        /// The signed transaction to send.
        pub raw: Vec<u8>,
        /// In wei per gas.
        pub max_fee_per_gas: u128,
        /// In wei per gas.
        pub max_priority_fee_per_gas: u128,
        pub created_at: Timestamp = "created_at_ms",
    }
}

record! {
    /// The request to sign a batch with certain fees. It is stored before a remote signer is asked.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SigningRequest: Insert {
        /// In wei per gas.
        pub max_fee_per_gas: u128,
        /// In wei per gas.
        pub max_priority_fee_per_gas: u128,
        pub created_at: Timestamp = "created_at_ms",
    }
}

/// The first form of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstForm {
    Signed(SignedForm),
    /// A remote signer signs it once the batch is stored.
    Requested(SigningRequest),
}

impl FirstForm {
    /// Returns the transaction's hash, if it is signed.
    pub const fn hash(&self) -> Option<B256> {
        match self {
            Self::Signed(form) => Some(form.hash),
            Self::Requested(_) => None,
        }
    }
}

/// Inserts a batch with its first form.
pub async fn insert(tx: &mut Tx, batch: &Batch, form: &FirstForm) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO batches (",
        Batch::COLUMNS,
        ", status) VALUES (",
        Batch::PLACEHOLDERS,
        ", 'signed')"
    );
    tx.exec(SQL, &batch.values()?).await?;
    match form {
        FirstForm::Signed(form) => insert_form(tx, batch.id, form).await,
        FirstForm::Requested(request) => put_request(tx, batch.id, request).await,
    }
}

/// Stores the request to sign a batch, unless there is one.
pub async fn put_request(tx: &mut Tx, id: BatchId, request: &SigningRequest) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO signing_requests (",
        SigningRequest::COLUMNS,
        ", batch_id) VALUES (",
        SigningRequest::PLACEHOLDERS,
        ", $4) ON CONFLICT DO NOTHING"
    );
    let mut bound = request.values()?;
    bound.push(id.into());
    tx.exec(SQL, &bound).await.map(drop)
}

/// Returns the request to sign a batch that has not been answered.
pub async fn find_request(tx: &mut Tx, id: BatchId) -> Result<Option<SigningRequest>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        SigningRequest::COLUMNS,
        " FROM signing_requests WHERE batch_id = $1"
    );
    tx.find(SQL, &params![id], SigningRequest::from_row).await
}

/// Inserts the signed form that answers a request. Returns false if the request was answered before,
/// or the batch has ended.
pub async fn insert_requested(tx: &mut Tx, id: BatchId, form: &SignedForm) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM signing_requests WHERE batch_id = $1";
    if tx.exec(SQL, &params![id]).await? == 0 || !is_open(tx, id).await? {
        return Ok(false);
    }
    insert_form(tx, id, form).await?;
    Ok(true)
}

/// Inserts another signed form of a batch, with the same nonce and calldata and higher fees.
pub async fn insert_form(tx: &mut Tx, id: BatchId, form: &SignedForm) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO batch_transactions (",
        SignedForm::COLUMNS,
        ", batch_id) VALUES (",
        SignedForm::PLACEHOLDERS,
        ", $6)"
    );
    let mut bound = form.values()?;
    bound.push(id.into());
    tx.exec(SQL, &bound).await.map(drop)
}

/// Counts a lane's batches that have not ended.
pub async fn count_open(tx: &mut Tx, lane: u16) -> Result<u64, StoreError> {
    const SQL: &str = "SELECT COUNT(*) AS batches FROM batches WHERE lane = $1 AND ended_at_ms IS NULL";
    Ok(tx.find(SQL, &params![lane], |row| row.only()).await?.unwrap_or_default())
}

/// Lists a lane's batches that have not ended, in nonce order.
pub async fn list_open(tx: &mut Tx, lane: u16, limit: u32) -> Result<Vec<Batch>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Batch::COLUMNS,
        " FROM batches WHERE lane = $1 AND ended_at_ms IS NULL ORDER BY chain_nonce LIMIT $2"
    );
    tx.list(SQL, &params![lane, limit], Batch::from_row).await
}

/// Lists all signed forms of a batch, newest first. Any of them may be the one that is mined.
pub async fn list_forms(tx: &mut Tx, id: BatchId) -> Result<Vec<SignedForm>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        SignedForm::COLUMNS,
        " FROM batch_transactions WHERE batch_id = $1 ORDER BY created_at_ms DESC, hash LIMIT 100"
    );
    tx.list(SQL, &params![id], SignedForm::from_row).await
}

/// Reports whether a batch has not ended.
pub async fn is_open(tx: &mut Tx, id: BatchId) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM batches WHERE id = $1 AND ended_at_ms IS NULL";
    tx.exists(SQL, &params![id]).await
}

/// Stores the time at which a batch was sent again.
pub async fn mark_sent(tx: &mut Tx, id: BatchId, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE batches SET sent_at_ms = $1 WHERE id = $2 AND ended_at_ms IS NULL";
    tx.exec(SQL, &params![now, id]).await.map(drop)
}

/// Ends a batch. Returns false if it had already ended.
pub async fn mark_ended(
    tx: &mut Tx,
    id: BatchId,
    ending: BatchEnding,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str =
        "UPDATE batches SET status = $1, ended_at_ms = $2 WHERE id = $3 AND ended_at_ms IS NULL";
    Ok(tx.exec(SQL, &params![ending.as_str(), now, id]).await? == 1)
}

/// Deletes at most `limit` batches that ended before `before`, with their signed forms, and returns
/// their number.
pub async fn delete_ended(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const ENDED: &str = "SELECT id FROM batches WHERE ended_at_ms < $1 ORDER BY ended_at_ms LIMIT $2";
    const FORMS: &str = "DELETE FROM batch_transactions WHERE batch_id = $1";
    const REQUESTS: &str = "DELETE FROM signing_requests WHERE batch_id = $1";
    const BATCH: &str = "DELETE FROM batches WHERE id = $1";
    let ended: Vec<BatchId> = tx.list(ENDED, &params![before, limit], |row| row.only()).await?;
    let rows: Vec<Vec<SqlValue<'_>>> = ended.iter().map(|id| params![*id].to_vec()).collect();
    // The forms first, because they reference the batch.
    tx.exec_each(FORMS, &rows).await?;
    tx.exec_each(REQUESTS, &rows).await?;
    tx.exec_each(BATCH, &rows).await?;
    Ok(ended.len() as u64)
}
