//! Challenges to passkeys and wallets. Each is used at most once.

use domain::Timestamp;
use domain::ids::UserId;
use domain::passkey::Challenge;

use crate::record::{Record, record};
use crate::{StoreError, Tx, params};

record! {
    /// A challenge that the service issued.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct IssuedChallenge {
        pub challenge: Challenge,
        /// The user who may answer it. `None` for sign-up and sign-in.
        pub user_id: Option<UserId>,
        pub created_at: Timestamp = "created_at_ms",
        pub expires_at: Timestamp = "expires_at_ms",
    }
}

pub async fn insert(tx: &mut Tx, issued: &IssuedChallenge) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO challenges (challenge, purpose, user_id, created_at_ms, expires_at_ms)
        VALUES ($1, $2, $3, $4, $5)";
    let IssuedChallenge { challenge, user_id, created_at, expires_at } = issued;
    let values = params![*challenge, challenge.purpose().as_str(), *user_id, *created_at, *expires_at];
    tx.exec(SQL, &values).await.map(drop)
}

/// Returns a challenge that is unused and has not expired at `now`.
pub async fn find_open(
    tx: &mut Tx,
    challenge: &Challenge,
    now: Timestamp,
) -> Result<Option<IssuedChallenge>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        IssuedChallenge::COLUMNS,
        " FROM challenges WHERE challenge = $1 AND used_at_ms IS NULL AND expires_at_ms > $2"
    );
    tx.find(SQL, &params![*challenge, now], IssuedChallenge::from_row).await
}

/// Uses a challenge. Returns false if it was already used or has expired at `now`.
pub async fn mark_used(tx: &mut Tx, challenge: &Challenge, now: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE challenges SET used_at_ms = $1
        WHERE challenge = $2 AND used_at_ms IS NULL AND expires_at_ms > $1";
    Ok(tx.exec(SQL, &params![now, *challenge]).await? == 1)
}

/// Deletes at most `limit` challenges that expired before `before`. Returns their number.
pub async fn delete_expired(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM challenges WHERE challenge IN
        (SELECT challenge FROM challenges WHERE expires_at_ms < $1 ORDER BY expires_at_ms LIMIT $2)";
    tx.exec(SQL, &params![before, limit]).await
}
