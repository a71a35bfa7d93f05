//! Changes of keys' delegations on chain, from the moment at which they are asked for until their transaction is final.

use domain::Timestamp;
use domain::delegation::{Ceilings, Change, Kind, Status};
use domain::ids::{BatchId, DelegationChangeId, KeyId};

use crate::keys::Key;
use crate::{Row, StoreError, Tx, params};

/// A change as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationChange {
    /// Its id.
    pub id: DelegationChangeId,
    /// Whose delegation it changes.
    pub key_id: KeyId,
    /// The account, lower-case hex.
    pub account: String,
    /// Which of the account's policies it changes.
    pub key_index: u32,
    /// The lane whose executor carries it.
    pub lane: u16,
    /// What it does.
    pub change: Change,
    /// Where it stands.
    pub status: Status,
    /// The batch that carries it, or the last one that did.
    pub batch_id: Option<BatchId>,
    /// The transaction that made it.
    pub tx_hash: Option<String>,
    /// Why the last attempt did not carry it.
    pub error: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl DelegationChange {
    /// A change of `key`'s delegation that nothing was done for yet.
    pub fn queued(
        id: DelegationChangeId,
        key: &Key,
        account: String,
        lane: u16,
        change: Change,
        created_at: Timestamp,
    ) -> Self {
        Self {
            id,
            key_id: key.id,
            account,
            key_index: key.key_index,
            lane,
            change,
            status: Status::Queued,
            batch_id: None,
            tx_hash: None,
            error: None,
            created_at,
            ended_at: None,
        }
    }
}

const COLUMNS: &str =
    "id, key_id, account, key_index, lane, kind, per_trade_usdc_atomic, daily_usdc_atomic, expires_at_ms,
    status, batch_id, tx_hash, error, created_at_ms, ended_at_ms";

fn from_row(row: &Row<'_>) -> Result<DelegationChange, StoreError> {
    let change = match row.parse(5)? {
        Kind::Revoke => Change::Revoke,
        Kind::Reduce => Change::Reduce(Ceilings {
            per_trade: row.opt_usdc(6)?,
            daily: row.opt_usdc(7)?,
            expires_at: row.opt_timestamp(8)?,
        }),
    };
    Ok(DelegationChange {
        id: row.parse(0)?,
        key_id: row.parse(1)?,
        account: row.text(2)?,
        key_index: row.number(3)?,
        lane: row.number(4)?,
        change,
        status: row.parse(9)?,
        batch_id: row.opt_parse(10)?,
        tx_hash: row.opt_text(11)?,
        error: row.opt_text(12)?,
        created_at: row.timestamp(13)?,
        ended_at: row.opt_timestamp(14)?,
    })
}

/// Adds a change. False if the key is being revoked already: nothing is written then.
pub async fn insert(tx: &mut Tx, change: &DelegationChange) -> Result<bool, StoreError> {
    const SQL: &str =
        "INSERT INTO delegation_changes (id, key_id, account, key_index, lane, kind, per_trade_usdc_atomic,
        daily_usdc_atomic, expires_at_ms, status, try_after_ms, created_at_ms, updated_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, $11) ON CONFLICT DO NOTHING";
    let Ceilings { per_trade, daily, expires_at } = match change.change {
        Change::Revoke => Ceilings::default(),
        Change::Reduce(ceilings) => ceilings,
    };
    let bound = params![
        change.id,
        change.key_id,
        &change.account,
        change.key_index,
        change.lane,
        change.change.kind().as_str(),
        per_trade,
        daily,
        expires_at,
        change.status.as_str(),
        change.created_at
    ];
    Ok(tx.exec(SQL, &bound).await? == 1)
}

/// The change with this id.
pub async fn find(tx: &mut Tx, id: DelegationChangeId) -> Result<Option<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM delegation_changes WHERE id = $1");
    tx.find(SQL, &params![id], from_row).await
}

/// The revocation of a key's delegation that is under way.
pub async fn find_open_revocation(
    tx: &mut Tx,
    key_id: KeyId,
) -> Result<Option<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM delegation_changes WHERE key_id = $1 AND kind = 'revoke' AND ended_at_ms IS NULL"
    );
    tx.find(SQL, &params![key_id], from_row).await
}

/// The last change of a key's delegation that was asked for.
pub async fn find_last(tx: &mut Tx, key_id: KeyId) -> Result<Option<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM delegation_changes WHERE key_id = $1 ORDER BY created_at_ms DESC, id DESC LIMIT 1"
    );
    tx.find(SQL, &params![key_id], from_row).await
}

/// The changes that are not final, oldest first, at most `limit`.
pub async fn list_open(tx: &mut Tx, limit: u32) -> Result<Vec<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM delegation_changes WHERE ended_at_ms IS NULL ORDER BY lane, created_at_ms, id LIMIT $1"
    );
    tx.list(SQL, &params![limit], from_row).await
}

/// The next change that the executor of a lane is to send.
pub async fn find_next(
    tx: &mut Tx,
    lane: u16,
    now: Timestamp,
) -> Result<Option<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM delegation_changes WHERE lane = $1 AND ended_at_ms IS NULL AND status = 'queued' AND try_after_ms <= $2
        ORDER BY created_at_ms, id LIMIT 1"
    );
    tx.find(SQL, &params![lane, now], from_row).await
}

/// Puts a queued change into a batch; false if it has moved.
pub async fn mark_sent(
    tx: &mut Tx,
    id: DelegationChangeId,
    batch_id: BatchId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str =
        "UPDATE delegation_changes SET status = 'sent', batch_id = $1, error = NULL, updated_at_ms = $2
        WHERE id = $3 AND status = 'queued'";
    Ok(tx.exec(SQL, &params![batch_id, now, id]).await? == 1)
}

/// Ends the change that a batch has made.
pub async fn mark_mined(
    tx: &mut Tx,
    batch_id: BatchId,
    tx_hash: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE delegation_changes SET status = 'mined', tx_hash = $1, updated_at_ms = $2, ended_at_ms = $2
        WHERE ended_at_ms IS NULL AND batch_id = $3";
    tx.exec(SQL, &params![tx_hash, now, batch_id]).await.map(drop)
}

/// Queues a change again that its batch did not make.
pub async fn requeue(
    tx: &mut Tx,
    batch_id: BatchId,
    error: &str,
    try_after: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE delegation_changes SET status = 'queued', error = $1, try_after_ms = $2, updated_at_ms = $3
        WHERE ended_at_ms IS NULL AND batch_id = $4";
    tx.exec(SQL, &params![error, try_after, now, batch_id]).await.map(drop)
}

/// Leaves a queued change alone for a while.
pub async fn defer(
    tx: &mut Tx,
    id: DelegationChangeId,
    error: &str,
    try_after: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE delegation_changes SET error = $1, try_after_ms = $2, updated_at_ms = $3
        WHERE id = $4 AND status = 'queued'";
    tx.exec(SQL, &params![error, try_after, now, id]).await.map(drop)
}

/// Ends a queued change for which there is nothing to do on chain.
pub async fn mark_not_needed(tx: &mut Tx, id: DelegationChangeId, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE delegation_changes SET status = 'not_needed', error = NULL, updated_at_ms = $1, ended_at_ms = $1
        WHERE id = $2 AND status = 'queued'";
    tx.exec(SQL, &params![now, id]).await.map(drop)
}
