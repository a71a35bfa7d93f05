//! Sessions of the web application.

use std::net::IpAddr;

use domain::Timestamp;
use domain::ids::{CredentialId, SessionId, UserId};
use domain::session::{IDLE_MS, LIFETIME_MS, SessionTimes};

use crate::record::{Record, record};
use crate::users::User;
use crate::{StoreError, Tx, params};

/// The maximum number of sessions in a list.
const MOST: i64 = 100;

record! {
    /// A session, without its token.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Session {
        pub id: SessionId = "sessions.id",
        pub user_id: UserId = "sessions.user_id",
        /// The credential that signed in last.
        pub credential_id: CredentialId,
        pub user_agent: String,
        /// The address of the last stored use.
        pub ip: IpAddr,
        pub created_at: Timestamp = "sessions.created_at_ms",
        pub times: SessionTimes = ..,
    }
}

record!(impl SessionTimes {
    last_used_at: Timestamp = "last_used_at_ms",
    renewed_at: Timestamp = "renewed_at_ms",
    stepped_up_at: Timestamp = "stepped_up_at_ms",
    ended_at: Option<Timestamp> = "ended_at_ms",
});

/// Inserts a session. `token_digest` is in hex.
pub async fn insert(tx: &mut Tx, session: &Session, token_digest: &str) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO sessions (id, user_id, credential_id, token_digest, user_agent, ip, created_at_ms,
        last_used_at_ms, renewed_at_ms, stepped_up_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let Session { id, user_id, credential_id, user_agent, ip, created_at, times } = session;
    let values = params![
        *id,
        *user_id,
        *credential_id,
        token_digest,
        user_agent,
        ip.to_string(),
        *created_at,
        times.last_used_at,
        times.renewed_at,
        times.stepped_up_at
    ];
    tx.exec(SQL, &values).await.map(drop)
}

/// Returns the session with this token and its user, even if it has ended.
pub async fn find_by_token(tx: &mut Tx, token_digest: &str) -> Result<Option<(Session, User)>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Session::COLUMNS,
        ", ",
        User::COLUMNS,
        " FROM sessions JOIN users ON users.id = sessions.user_id WHERE token_digest = $1"
    );
    tx.find(SQL, &params![token_digest], |row| {
        let mut columns = row.columns();
        Ok((Session::read(&mut columns)?, User::read(&mut columns)?))
    })
    .await
}

/// Lists a user's sessions that are live at `now`, last used first.
pub async fn list_live(tx: &mut Tx, user_id: UserId, now: Timestamp) -> Result<Vec<Session>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Session::COLUMNS,
        " FROM sessions WHERE sessions.user_id = $1 AND ended_at_ms IS NULL AND last_used_at_ms > $2
        AND renewed_at_ms > $3 ORDER BY last_used_at_ms DESC, sessions.id DESC LIMIT $4"
    );
    let (used_after, renewed_after) = (now.plus_ms(-IDLE_MS), now.plus_ms(-LIFETIME_MS));
    tx.list(SQL, &params![user_id, used_after, renewed_after, MOST], Session::from_row).await
}

/// Returns the live ones of these sessions, each with the time at which it got its token.
pub async fn list_live_of(
    tx: &mut Tx,
    ids: &[SessionId],
    now: Timestamp,
) -> Result<Vec<(SessionId, Timestamp)>, StoreError> {
    const SQL: &str =
        "SELECT s.id, s.renewed_at_ms FROM ROWS($1 TEXT, $2 BIGINT, $3 BIGINT) AS x(id, used, renewed)
        CROSS JOIN sessions s WHERE s.id = x.id AND s.ended_at_ms IS NULL AND s.last_used_at_ms > x.used
        AND s.renewed_at_ms > x.renewed";
    let (used_after, renewed_after) = (now.plus_ms(-IDLE_MS), now.plus_ms(-LIFETIME_MS));
    let rows = ids.iter().map(|id| params![*id, used_after, renewed_after].to_vec()).collect();
    tx.list_rows(SQL, rows, |row| Ok((row.get("id")?, row.get("renewed_at_ms")?))).await
}

/// Records a use of a session.
pub async fn mark_used(tx: &mut Tx, id: SessionId, ip: IpAddr, now: Timestamp) -> Result<(), StoreError> {
    // Two processes may write out of order, and time must not go back.
    const SQL: &str =
        "UPDATE sessions SET last_used_at_ms = $1, ip = $2 WHERE id = $3 AND last_used_at_ms < $1";
    tx.exec(SQL, &params![now, ip.to_string(), id]).await.map(drop)
}

/// Renews a session: gives it a new token and a new step-up. Returns false if it has ended.
pub async fn renew(
    tx: &mut Tx,
    id: SessionId,
    credential_id: CredentialId,
    token_digest: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE sessions SET token_digest = $1, credential_id = $2, last_used_at_ms = $3,
        renewed_at_ms = $3, stepped_up_at_ms = $3 WHERE id = $4 AND ended_at_ms IS NULL";
    Ok(tx.exec(SQL, &params![token_digest, credential_id, now, id]).await? == 1)
}

/// Ends a user's session. Returns false if the user has no such session, or if it has ended.
pub async fn mark_ended(
    tx: &mut Tx,
    user_id: UserId,
    id: SessionId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str =
        "UPDATE sessions SET ended_at_ms = $1 WHERE id = $2 AND user_id = $3 AND ended_at_ms IS NULL";
    Ok(tx.exec(SQL, &params![now, id, user_id]).await? == 1)
}

/// Ends all sessions of a user except `kept`. Returns their number.
pub async fn mark_others_ended(
    tx: &mut Tx,
    user_id: UserId,
    kept: SessionId,
    now: Timestamp,
) -> Result<u64, StoreError> {
    const SQL: &str =
        "UPDATE sessions SET ended_at_ms = $1 WHERE user_id = $2 AND id <> $3 AND ended_at_ms IS NULL";
    tx.exec(SQL, &params![now, user_id, kept]).await
}

/// Ends all sessions of a user. Returns their number.
pub async fn mark_all_ended(tx: &mut Tx, user_id: UserId, now: Timestamp) -> Result<u64, StoreError> {
    const SQL: &str = "UPDATE sessions SET ended_at_ms = $1 WHERE user_id = $2 AND ended_at_ms IS NULL";
    tx.exec(SQL, &params![now, user_id]).await
}

/// Ends the sessions of a user that this credential signed in. Returns their number.
pub async fn mark_ended_of_credential(
    tx: &mut Tx,
    user_id: UserId,
    credential_id: CredentialId,
    now: Timestamp,
) -> Result<u64, StoreError> {
    const SQL: &str = "UPDATE sessions SET ended_at_ms = $1
        WHERE user_id = $2 AND credential_id = $3 AND ended_at_ms IS NULL";
    tx.exec(SQL, &params![now, user_id, credential_id]).await
}

/// Ends the sessions that owners have signed in that the account no longer has. Returns their number.
pub async fn mark_ended_of_removed_owners(
    tx: &mut Tx,
    user_id: UserId,
    now: Timestamp,
) -> Result<u64, StoreError> {
    const SQL: &str = "UPDATE sessions SET ended_at_ms = $1
        WHERE user_id = $2 AND ended_at_ms IS NULL AND credential_id IN
            (SELECT id FROM credentials c WHERE c.user_id = $2 AND c.kind = 'owner' AND NOT EXISTS
                (SELECT 1 FROM account_owners o WHERE o.user_id = $2 AND o.owner = c.public_key))";
    tx.exec(SQL, &params![now, user_id]).await
}

/// Deletes at most `limit` sessions that were last used before `before`. Returns their number.
pub async fn delete_before(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM sessions WHERE id IN
        (SELECT id FROM sessions WHERE last_used_at_ms < $1 ORDER BY last_used_at_ms LIMIT $2)";
    tx.exec(SQL, &params![before, limit]).await
}
