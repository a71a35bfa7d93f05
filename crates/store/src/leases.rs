//! Leases: which process does a piece of work that only one does at a time.

use domain::Timestamp;

use crate::{StoreError, Tx, params};

/// A lease held. Writes made under it check the epoch, so that an owner that was frozen and replaced changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The piece of work.
    pub name: String,
    /// Who does it.
    pub owner: String,
    /// Grows with every new owner.
    pub epoch: i64,
}

/// Takes the lease or extends it until `until`; `None` while another owner holds it at `now`.
pub async fn claim(
    tx: &mut Tx,
    name: &str,
    owner: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Lease>, StoreError> {
    const SQL: &str = "INSERT INTO leases (name, owner, until_ms, epoch) VALUES ($1, $2, $3, 1)
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms,
        epoch = leases.epoch + CASE WHEN leases.owner = excluded.owner THEN 0 ELSE 1 END
        WHERE leases.owner = excluded.owner OR leases.until_ms <= $4 RETURNING epoch";
    let epoch = tx.find(SQL, &params![name, owner, until, now], |row| row.int(0)).await?;
    Ok(epoch.map(|epoch| Lease { name: name.to_owned(), owner: owner.to_owned(), epoch }))
}

/// Whether the lease is still held, judged inside the transaction that writes under it; the row stays locked until it
/// ends, so no other owner can take the lease in between.
pub async fn confirm(tx: &mut Tx, lease: &Lease) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE leases SET epoch = epoch WHERE name = $1 AND owner = $2 AND epoch = $3";
    Ok(tx.exec(SQL, &params![&lease.name, &lease.owner, lease.epoch]).await? == 1)
}

/// Waits until no transaction is under way under this lease, and keeps others from beginning before this one ends.
pub async fn exclude(tx: &mut Tx, name: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE leases SET epoch = epoch WHERE name = $1";
    tx.exec(SQL, &params![name]).await.map(drop)
}

/// Gives the lease up, so that another process need not wait for its end.
pub async fn release(tx: &mut Tx, lease: &Lease) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE leases SET until_ms = 0 WHERE name = $1 AND owner = $2 AND epoch = $3";
    tx.exec(SQL, &params![&lease.name, &lease.owner, lease.epoch]).await.map(drop)
}

/// Ends every lease: for a process that knows itself to be the only one.
pub async fn end_all(tx: &mut Tx) -> Result<(), StoreError> {
    tx.exec("UPDATE leases SET until_ms = 0", &[]).await.map(drop)
}
