//! Signed batches of intents or redemptions, and changes of delegations: written before they are sent, every signed form kept until the batch has
//! ended.

use std::str::FromStr;

use domain::Timestamp;
use domain::ids::BatchId;

use crate::{Row, StoreError, Tx, Value, params};

/// How a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Mined with success; its intents ended in events.
    Mined,
    /// Mined and reverted as a whole; its intents are untouched.
    Reverted,
    /// Another transaction took its nonce; it can never be mined.
    Displaced,
}

impl Ending {
    /// The word of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mined => "mined",
            Self::Reverted => "reverted",
            Self::Displaced => "displaced",
        }
    }
}

/// What a batch carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Intents, for the Gate.
    Trades,
    /// Redemptions, for the hub.
    Redemptions,
    /// One change of a delegation, for the Gate.
    Delegation,
}

impl Kind {
    /// The word of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trades => "trades",
            Self::Redemptions => "redemptions",
            Self::Delegation => "delegation",
        }
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Trades, Self::Redemptions, Self::Delegation]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(UnknownKind)
    }
}

/// The text is no kind of batch.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("not a kind of batch")]
pub struct UnknownKind;

/// A batch that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// The lane it belongs to.
    pub lane: u16,
    /// What it carries.
    pub kind: Kind,
    /// The executor's address, lower-case hex.
    pub executor: String,
    /// The executor's nonce that it takes.
    pub chain_nonce: u64,
    /// What it asks of the contract that its kind is for.
    pub calldata: Vec<u8>,
    /// The gas it may use.
    pub gas_limit: u64,
    /// When it was signed first.
    pub created_at: Timestamp,
    /// When it was last sent.
    pub sent_at: Timestamp,
}

/// One signed form of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedForm {
    /// The transaction's hash, lower-case hex.
    pub hash: String,
    /// The bytes to send.
    pub raw: Vec<u8>,
    /// Wei per gas.
    pub max_fee_per_gas: u128,
    /// Wei per gas.
    pub max_priority_fee_per_gas: u128,
    /// When it was signed.
    pub created_at: Timestamp,
}

const COLUMNS: &str = "id, lane, executor, chain_nonce, calldata, gas_limit, created_at_ms, sent_at_ms, kind";

fn from_row(row: &Row<'_>) -> Result<Batch, StoreError> {
    Ok(Batch {
        id: row.parse(0)?,
        lane: row.number(1)?,
        kind: row.parse(8)?,
        executor: row.text(2)?,
        chain_nonce: row.number(3)?,
        calldata: row.bytes(4)?,
        gas_limit: row.number(5)?,
        created_at: row.timestamp(6)?,
        sent_at: row.timestamp(7)?,
    })
}

/// Adds a batch and its first signed form.
pub async fn insert(tx: &mut Tx, batch: &Batch, form: &SignedForm) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO batches (id, lane, executor, chain_nonce, calldata, gas_limit, status, created_at_ms,
        sent_at_ms, kind) VALUES ($1, $2, $3, $4, $5, $6, 'signed', $7, $8, $9)";
    let bound = params![
        batch.id,
        batch.lane,
        &batch.executor,
        Value::try_from(batch.chain_nonce)?,
        batch.calldata.as_slice(),
        Value::try_from(batch.gas_limit)?,
        batch.created_at,
        batch.sent_at,
        batch.kind.as_str()
    ];
    tx.exec(SQL, &bound).await?;
    insert_form(tx, batch.id, form).await
}

/// Adds another signed form of a batch: the same nonce and calldata at a higher fee.
pub async fn insert_form(tx: &mut Tx, id: BatchId, form: &SignedForm) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO batch_transactions (hash, batch_id, raw, max_fee_per_gas, max_priority_fee_per_gas,
        created_at_ms) VALUES ($1, $2, $3, $4, $5, $6)";
    let bound = params![
        &form.hash,
        id,
        form.raw.as_slice(),
        form.max_fee_per_gas.to_string(),
        form.max_priority_fee_per_gas.to_string(),
        form.created_at
    ];
    tx.exec(SQL, &bound).await.map(drop)
}

/// The batches of a lane that have not ended, in the order of their nonces.
pub async fn list_open(tx: &mut Tx, lane: u16, limit: u32) -> Result<Vec<Batch>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM batches WHERE lane = $1 AND ended_at_ms IS NULL ORDER BY chain_nonce LIMIT $2"
    );
    tx.list(SQL, &params![lane, limit], from_row).await
}

/// Every signed form of a batch, the newest first.
pub async fn list_forms(tx: &mut Tx, id: BatchId) -> Result<Vec<SignedForm>, StoreError> {
    const SQL: &str =
        "SELECT hash, raw, max_fee_per_gas, max_priority_fee_per_gas, created_at_ms FROM batch_transactions
        WHERE batch_id = $1 ORDER BY created_at_ms DESC, hash LIMIT 100";
    tx.list(SQL, &params![id], |row| {
        Ok(SignedForm {
            hash: row.text(0)?,
            raw: row.bytes(1)?,
            max_fee_per_gas: row.parse(2)?,
            max_priority_fee_per_gas: row.parse(3)?,
            created_at: row.timestamp(4)?,
        })
    })
    .await
}

/// Whether a batch has not ended.
pub async fn is_open(tx: &mut Tx, id: BatchId) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM batches WHERE id = $1 AND ended_at_ms IS NULL";
    Ok(tx.find(SQL, &params![id], |row| row.int(0)).await?.is_some())
}

/// Notes that a batch was sent again.
pub async fn mark_sent(tx: &mut Tx, id: BatchId, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE batches SET sent_at_ms = $1 WHERE id = $2 AND ended_at_ms IS NULL";
    tx.exec(SQL, &params![now, id]).await.map(drop)
}

/// Ends a batch; false where it had ended already.
pub async fn mark_ended(
    tx: &mut Tx,
    id: BatchId,
    ending: Ending,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str =
        "UPDATE batches SET status = $1, ended_at_ms = $2 WHERE id = $3 AND ended_at_ms IS NULL";
    Ok(tx.exec(SQL, &params![ending.as_str(), now, id]).await? == 1)
}

/// Forgets the batches, at most `limit`, that ended before `before`, with their signed forms; how many there were.
pub async fn delete_ended(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const ENDED: &str = "SELECT id FROM batches WHERE ended_at_ms < $1 ORDER BY ended_at_ms LIMIT $2";
    const FORMS: &str = "DELETE FROM batch_transactions WHERE batch_id = $1";
    const BATCH: &str = "DELETE FROM batches WHERE id = $1";
    let ended: Vec<BatchId> = tx.list(ENDED, &params![before, limit], |row| row.parse(0)).await?;
    let rows: Vec<Vec<Value<'_>>> = ended.iter().map(|id| params![*id].to_vec()).collect();
    tx.exec_each(FORMS, &rows).await?;
    tx.exec_each(BATCH, &rows).await?;
    Ok(ended.len() as u64)
}
