//! What follows from who has traded: participants, the windows of trending markets, leaderboards.
//!
//! Everything here is a sum over movements. [`Deeds`] gathers movements that come, or that a reorganisation takes back,
//! and moves the sums by them in the transaction that writes or deletes them. Windows and recent spans also lose what
//! becomes too old for them: [`advance`] does that, every five minutes.
//!
//! A transaction that writes any of it first takes the rows of `trending_windows`, so that on PostgreSQL too such
//! transactions follow one another.

pub mod backlog;
mod deeds;
pub mod kept;
mod leaderboard;
mod participants;
mod windows;

pub use deeds::Deeds;
pub use leaderboard::{SPANS_MS, oldest};
pub use participants::move_participants;
pub use windows::{BUCKET_MS, Edges, advance};

use crate::{StoreError, Tx};

/// Waits for other transactions that write what is here, and tells where the windows begin.
pub(crate) async fn lock(tx: &mut Tx) -> Result<Edges, StoreError> {
    const SQL: &str = "UPDATE trending_windows SET start_ms = start_ms RETURNING window_ms, start_ms";
    let edges = tx.list(SQL, &[], |row| Ok((row.int(0)?, row.int(1)?))).await?;
    Ok(Edges(edges.into_iter().collect()))
}
