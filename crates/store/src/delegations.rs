//! On-chain changes of keys' delegations, from the request until their transaction is final.

use alloy_primitives::{Address, B256};
use domain::delegation::{Ceilings, DelegationEdit, Kind, Status};
use domain::ids::{BatchId, DelegationChangeId, KeyId};
use domain::lane::assign;
use domain::{Timestamp, Usdc};

use crate::engine::Columns;
use crate::keys::Key;
use crate::record::{Record, record};
use crate::{Row, StoreError, Tx, params};

record! {
    /// A change of a delegation.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct DelegationChange {
        pub id: DelegationChangeId,
        /// The key whose delegation is changed.
        pub key_id: KeyId,
        pub account: Address,
        /// The index of the account's policy.
        pub key_index: u32,
        /// The lane whose executor sends the change.
        pub lane: u16,
        pub change: DelegationEdit = ..,
        pub status: Status,
        /// The batch that contains the change, or the last one that did.
        pub batch_id: Option<BatchId>,
        /// The transaction that made the change.
        pub tx_hash: Option<B256>,
        /// The reason why the last attempt failed.
        pub error: Option<String>,
        pub created_at: Timestamp = "created_at_ms",
        pub ended_at: Option<Timestamp> = "ended_at_ms",
    }
}

impl DelegationChange {
    /// Creates a queued change of `key`'s delegation.
    pub fn queued(
        id: DelegationChangeId,
        key: &Key,
        account: Address,
        lane: u16,
        change: DelegationEdit,
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

impl Record for DelegationEdit {
    const COLUMNS: &'static str = const_format::concatcp!("kind, ", Ceilings::COLUMNS);

    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        let (kind, ceilings) = (columns.next("kind")?, Ceilings::read(columns)?);
        Ok(match kind {
            Kind::Revoke => Self::Revoke,
            Kind::Reduce => Self::Reduce(ceilings),
        })
    }
}

record!(impl Ceilings {
    // NULL leaves a limit unchanged.
    per_trade: Option<Usdc> = "per_trade_usdc_atomic",
    daily: Option<Usdc> = "daily_usdc_atomic",
    expires_at: Option<Timestamp> = "expires_at_ms",
});

/// Inserts a change. Returns false, without a change, if a revocation of the key is already in
/// progress.
pub async fn insert(tx: &mut Tx, change: &DelegationChange) -> Result<bool, StoreError> {
    const SQL: &str =
        "INSERT INTO delegation_changes (id, key_id, account, key_index, lane, kind, per_trade_usdc_atomic,
        daily_usdc_atomic, expires_at_ms, status, try_after_ms, created_at_ms, updated_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, $11) ON CONFLICT DO NOTHING";
    let Ceilings { per_trade, daily, expires_at } = match change.change {
        DelegationEdit::Revoke => Ceilings::default(),
        DelegationEdit::Reduce(ceilings) => ceilings,
    };
    let bound = params![
        change.id,
        change.key_id,
        change.account,
        change.key_index,
        change.lane,
        change.change.kind().as_str(),
        per_trade,
        daily,
        expires_at,
        change.status.as_str(),
        change.created_at
    ];
    // A partial unique index allows one open revocation per key.
    Ok(tx.exec(SQL, &bound).await? == 1)
}

pub async fn find(tx: &mut Tx, id: DelegationChangeId) -> Result<Option<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        DelegationChange::COLUMNS,
        " FROM delegation_changes WHERE id = $1"
    );
    tx.find(SQL, &params![id], DelegationChange::from_row).await
}

/// Returns the revocation of a key's delegation that is in progress, if any.
pub async fn find_open_revocation(
    tx: &mut Tx,
    key_id: KeyId,
) -> Result<Option<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        DelegationChange::COLUMNS,
        " FROM delegation_changes WHERE key_id = $1 AND kind = 'revoke' AND ended_at_ms IS NULL"
    );
    tx.find(SQL, &params![key_id], DelegationChange::from_row).await
}

/// Returns the most recently requested change of a key's delegation.
pub async fn find_last(tx: &mut Tx, key_id: KeyId) -> Result<Option<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        DelegationChange::COLUMNS,
        " FROM delegation_changes WHERE key_id = $1 ORDER BY created_at_ms DESC, id DESC LIMIT 1"
    );
    tx.find(SQL, &params![key_id], DelegationChange::from_row).await
}

/// Lists the changes that are not final, by lane and then oldest first, at most `limit`.
pub async fn list_open(tx: &mut Tx, limit: u32) -> Result<Vec<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        DelegationChange::COLUMNS,
        " FROM delegation_changes WHERE ended_at_ms IS NULL ORDER BY lane, created_at_ms, id LIMIT $1"
    );
    tx.list(SQL, &params![limit], DelegationChange::from_row).await
}

/// Returns the next change that a lane's executor must send.
pub async fn find_next(
    tx: &mut Tx,
    lane: u16,
    now: Timestamp,
) -> Result<Option<DelegationChange>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        DelegationChange::COLUMNS,
        " FROM delegation_changes WHERE lane = $1 AND ended_at_ms IS NULL AND status = 'queued' AND try_after_ms <= $2
        ORDER BY created_at_ms, id LIMIT 1"
    );
    tx.find(SQL, &params![lane, now], DelegationChange::from_row).await
}

/// Moves the changes that the lane `from` has not sent to the lanes of their accounts among `targets`.
pub async fn hand_over(tx: &mut Tx, from: u16, targets: &[u16]) -> Result<(), StoreError> {
    const LIST: &str = "SELECT id, account FROM delegation_changes WHERE lane = $1 AND ended_at_ms IS NULL
        AND status = 'queued'";
    const SQL: &str = "UPDATE delegation_changes SET lane = x.new_lane
        FROM ROWS($1 BIGINT, $2 TEXT) AS x(new_lane, change_id)
        WHERE delegation_changes.id = x.change_id AND delegation_changes.status = 'queued'";
    let read = |row: &Row<'_>| Ok((row.get::<DelegationChangeId>("id")?, row.get("account")?));
    let queued = tx.list(LIST, &params![from], read).await?;
    let rows = queued.into_iter().map(|(id, account)| params![assign(account, targets), id].to_vec());
    tx.exec_rows(SQL, rows.collect()).await.map(drop)
}

/// Assigns a queued change to a batch. Returns false if its status has changed.
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

/// Completes the change that a batch contained.
pub async fn mark_mined(
    tx: &mut Tx,
    batch_id: BatchId,
    tx_hash: B256,
    now: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE delegation_changes SET status = 'mined', tx_hash = $1, updated_at_ms = $2, ended_at_ms = $2
        WHERE ended_at_ms IS NULL AND batch_id = $3";
    tx.exec(SQL, &params![tx_hash, now, batch_id]).await.map(drop)
}

/// Queues a change again after its batch failed to make it.
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

/// Postpones a queued change.
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

/// Completes a queued change that requires no transaction.
pub async fn mark_not_needed(tx: &mut Tx, id: DelegationChangeId, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE delegation_changes SET status = 'not_needed', error = NULL, updated_at_ms = $1, ended_at_ms = $1
        WHERE id = $2 AND status = 'queued'";
    tx.exec(SQL, &params![now, id]).await.map(drop)
}
