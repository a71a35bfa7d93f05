//! Proofs that the database accepts writes.

use domain::Timestamp;

use crate::{StoreError, Tx, params};

/// Writes a row that nothing remains of. Its commit needs the disk like any other.
pub async fn write(tx: &mut Tx, id: &str, now: Timestamp) -> Result<(), StoreError> {
    // A row of its own, so that processes do not wait for each other.
    tx.exec("INSERT INTO write_probes (id, written_at_ms) VALUES ($1, $2)", &params![id, now]).await?;
    tx.exec("DELETE FROM write_probes WHERE id = $1", &params![id]).await?;
    Ok(())
}
