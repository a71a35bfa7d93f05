//! What follows from who has traded: participants, the windows of trending markets, leaderboards.
//!
//! Everything here is a sum over movements. [`Deeds`] gathers movements that come, or that a reorganisation takes back,
//! and moves the sums by them in the transaction that writes or deletes them. Windows and recent spans also lose what
//! becomes too old for them: [`advance`] does that, every five minutes.
//!
//! A transaction that writes any of it, or of `crate::listed`, first takes the rows of `trending_windows`, so that on
//! PostgreSQL too such transactions follow one another. It takes them right behind its lease, where it has one, and before
//! any row of a thread or a market: no two of them then wait for each other.

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

/// Waits for other transactions that write what is here or in `crate::listed`, keeps more of them from beginning before
/// this one ends, and tells where the windows begin.
pub async fn lock(tx: &mut Tx) -> Result<Edges, StoreError> {
    const SQL: &str = "UPDATE trending_windows SET start_ms = start_ms RETURNING window_ms, start_ms";
    let edges = tx.list(SQL, &[], |row| Ok((row.int(0)?, row.int(1)?))).await?;
    Ok(Edges(edges.into_iter().collect()))
}
