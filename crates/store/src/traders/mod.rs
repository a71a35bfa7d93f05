//! Derived data about traders: participants, windows of trending markets, leaderboards.
//!
//! All of it is sums over movements. [`Deeds`] collects movements that are added, or removed by a
//! reorganization, and updates the sums in the same transaction. Windows and recent spans also lose
//! old trades: [`advance`] does that every five minutes.
//!
//! A transaction that writes any of this, or of `crate::listed`, must first call [`lock`], which
//! serializes such transactions on PostgreSQL too. To avoid deadlocks, it takes this lock directly
//! after its lease, if any, and before any row of a thread or a market.

pub mod backlog;
mod deeds;
pub mod kept;
mod leaderboard;
mod windows;

pub use deeds::Deeds;
pub use leaderboard::{SPANS_MS, oldest};
pub use windows::{BUCKET_MS, Edges, RankingWindow, advance};

use crate::{StoreError, Tx};

/// Locks the derived data until the transaction ends and returns the starts of the windows. Waits
/// for other transactions that write here or in `crate::listed`.
pub async fn lock(tx: &mut Tx) -> Result<Edges, StoreError> {
    const SQL: &str = "UPDATE trending_windows SET start_ms = start_ms RETURNING window_ms, start_ms";
    let edges = tx.list(SQL, &[], |row| Ok((row.get("window_ms")?, row.get("start_ms")?))).await?;
    Ok(Edges(edges.into_iter().collect()))
}
