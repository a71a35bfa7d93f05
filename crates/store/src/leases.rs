//! Leases. A lease makes one process at a time responsible for a piece of work.

use domain::Timestamp;

use crate::{StoreError, Tx, params};

/// A lease that this process holds. Every write under it checks the epoch, so that a process that
/// was frozen and replaced cannot write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The piece of work, such as a lane or the sync.
    pub name: String,
    /// The process that holds the lease.
    pub owner: String,
    /// Incremented with every change of owner.
    pub epoch: i64,
}

/// Acquires the lease or extends it until `until`. Returns `None` while another owner holds it at
/// `now`.
pub async fn claim(
    tx: &mut Tx,
    name: &str,
    owner: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Lease>, StoreError> {
    // The epoch is unchanged if an owner extends its own lease. A new owner increments it.
    const SQL: &str = "INSERT INTO leases (name, owner, until_ms, epoch) VALUES ($1, $2, $3, 1)
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms,
        epoch = leases.epoch + CASE WHEN leases.owner = excluded.owner THEN 0 ELSE 1 END
        WHERE leases.owner = excluded.owner OR leases.until_ms <= $4 RETURNING epoch";
    let epoch = tx.find(SQL, &params![name, owner, until, now], |row| row.only()).await?;
    Ok(epoch.map(|epoch| Lease { name: name.to_owned(), owner: owner.to_owned(), epoch }))
}

/// Reports whether the lease is still held. Called inside the transaction that writes under the
/// lease: the row stays locked until that transaction ends, so no other owner can acquire the lease
/// in between.
pub async fn confirm(tx: &mut Tx, lease: &Lease) -> Result<bool, StoreError> {
    // The expiry time is not checked: an expired lease is still valid until another owner claims
    // it, and that claim changes the epoch.
    const SQL: &str = "UPDATE leases SET epoch = epoch WHERE name = $1 AND owner = $2 AND epoch = $3";
    Ok(tx.exec(SQL, &params![&lease.name, &lease.owner, lease.epoch]).await? == 1)
}

/// Locks the lease's row. Waits for a transaction that is writing under this lease, and blocks
/// further ones until this transaction ends.
pub async fn exclude(tx: &mut Tx, name: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE leases SET epoch = epoch WHERE name = $1";
    tx.exec(SQL, &params![name]).await.map(drop)
}

/// Releases the lease, so that another process does not have to wait until it expires.
pub async fn release(tx: &mut Tx, lease: &Lease) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE leases SET until_ms = 0 WHERE name = $1 AND owner = $2 AND epoch = $3";
    tx.exec(SQL, &params![&lease.name, &lease.owner, lease.epoch]).await.map(drop)
}

/// Records until `until` that `owner` does this work, which several processes may do at the same time.
pub async fn announce(tx: &mut Tx, name: &str, owner: &str, until: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO leases (name, owner, until_ms, epoch) VALUES ($1, $2, $3, 1)
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms";
    tx.exec(SQL, &params![name, owner, until]).await.map(drop)
}

/// Lists the names of all leases, each with the time until which a process holds it.
pub async fn list(tx: &mut Tx) -> Result<Vec<(String, Timestamp)>, StoreError> {
    const SQL: &str = "SELECT name, until_ms FROM leases ORDER BY name";
    tx.list(SQL, &[], |row| Ok((row.get("name")?, row.get("until_ms")?))).await
}

/// Expires every lease. Only for a process that is known to be the only one.
pub async fn end_all(tx: &mut Tx) -> Result<(), StoreError> {
    tx.exec("UPDATE leases SET until_ms = 0", &[]).await.map(drop)
}
