//! The log of what users do with their own accounts: signing up and in, names, keys, credentials.
//!
//! It is not in the chain of the audit log. Anybody can sign up and sign in without end, and what a
//! stranger makes grow must be bounded and must end. So of one action of a user, only a number of
//! entries within 24 hours is kept; further ones are counted on the last of them. The bound is per
//! action, so that no flood of renames hides a new key.

use std::net::IpAddr;
use std::sync::Arc;

use domain::ids::{KeyId, UserId};
use domain::time::DAY_MS;
use domain::{Clock, Timestamp};
use serde_json::{Map, Value as Json};

use crate::act::{Act, Phase};
use crate::record::{Insert, Record, record};
use crate::{StoreError, Tx, params};

/// A user who acts, and the clock that dates the acts.
pub(crate) struct UserContext {
    pub user_id: UserId,
    pub ip: IpAddr,
    /// The API key that acts for the user.
    pub key_id: Option<KeyId>,
    /// The number of entries of one action that are kept within 24 hours.
    pub max_per_action: u64,
    pub clock: Arc<dyn Clock>,
}

record! {
    /// Something that a user did.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UserLogEntry: Insert {
        pub user_id: UserId,
        pub at: Timestamp = "at_ms",
        pub ip: IpAddr,
        /// The action, such as `session.begin`.
        pub action: String,
        /// The object, such as `key:018f...`; empty for the user.
        pub subject: String,
        /// The API key that did it, and the states before and after it, as JSON.
        pub detail: Option<String>,
        /// The number of further entries of this action that were only counted.
        pub more: u64,
        /// The time of the last of them.
        pub last_at: Timestamp = "last_at_ms",
    }
}

impl UserLogEntry {
    fn new(acting: &UserContext, act: Act, at: Timestamp) -> Self {
        let own = format!("user:{}", acting.user_id);
        let mut detail = Map::new();
        let by = acting.key_id.map(|id| Json::from(format!("key:{id}")));
        let phase = (act.phase != Phase::Done).then(|| Json::from(act.phase.as_str()));
        for (name, value) in [("by", by), ("phase", phase), ("before", act.before), ("after", act.after)] {
            detail.extend(value.map(|value| (name.to_owned(), value)));
        }
        Self {
            user_id: acting.user_id,
            at,
            ip: acting.ip,
            action: act.action.to_owned(),
            subject: if act.subject == own { String::new() } else { act.subject },
            detail: (!detail.is_empty()).then(|| Json::Object(detail).to_string()),
            more: 0,
            last_at: at,
        }
    }
}

/// Writes the actions that a unit of work of the user noted.
pub(crate) async fn write_noted(tx: &mut Tx, acting: &UserContext) -> Result<(), StoreError> {
    let now = acting.clock.now();
    for act in tx.take_acts() {
        write(tx, &UserLogEntry::new(acting, act, now), acting.max_per_action).await?;
    }
    Ok(())
}

async fn write(tx: &mut Tx, entry: &UserLogEntry, max: u64) -> Result<(), StoreError> {
    const COUNT: &str = "SELECT COUNT(*) AS entries, CAST(COALESCE(MAX(at_ms), 0) AS BIGINT) AS newest
        FROM user_log WHERE user_id = $1 AND at_ms > $2 AND action = $3";
    const MORE: &str = "UPDATE user_log SET more = more + 1, last_at_ms = $1
        WHERE user_id = $2 AND at_ms = $3 AND action = $4";
    const INSERT: &str = const_format::concatcp!(
        "INSERT INTO user_log (",
        UserLogEntry::COLUMNS,
        ") VALUES (",
        UserLogEntry::PLACEHOLDERS,
        ")"
    );
    let UserLogEntry { user_id, at, action, .. } = entry;
    let counted: Option<(u64, i64)> = tx
        .find(COUNT, &params![*user_id, at.plus_ms(-DAY_MS), action], |row| {
            Ok((row.get("entries")?, row.get("newest")?))
        })
        .await?;
    match counted {
        Some((entries, newest)) if entries > 0 && entries >= max => {
            tx.exec(MORE, &params![*at, *user_id, newest, action]).await.map(drop)
        }
        _ => tx.exec(INSERT, &entry.values()?).await.map(drop),
    }
}

/// Lists a user's entries before `before`, newest first.
pub async fn list(
    tx: &mut Tx,
    user_id: UserId,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<UserLogEntry>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        UserLogEntry::COLUMNS,
        " FROM user_log WHERE user_id = $1 AND at_ms < $2 ORDER BY at_ms DESC LIMIT $3"
    );
    tx.list(SQL, &params![user_id, before, limit], UserLogEntry::from_row).await
}

/// Deletes at most `limit` entries before `before`, and returns their number. Accepted terms are
/// kept: they are a proof.
pub async fn delete_before(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM user_log WHERE at_ms IN (SELECT at_ms FROM user_log
        WHERE at_ms < $1 AND action <> 'terms.accept' ORDER BY at_ms LIMIT $2) AND action <> 'terms.accept'";
    tx.exec(SQL, &params![before, limit]).await
}
