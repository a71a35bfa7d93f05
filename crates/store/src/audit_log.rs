//! The audit log: operators' actions, written in the same transaction as the action and never
//! changed.
//!
//! A [`crate::Store`] with an actor ([`crate::Store::acting_as`]) writes the actions that its units
//! of work note, at the end of each unit. A store without an actor, such as that of API requests
//! and workers, discards them.

use std::fmt::Write as _;
use std::sync::Arc;

use domain::{Clock, Timestamp};
use sha2::{Digest, Sha256};

pub use crate::act::{Act, Actor, Phase};
use crate::record::{Insert, Record, record};
use crate::{StoreError, Tx, params};

/// An actor, and the clock that dates its actions.
pub(crate) struct AuditContext {
    pub actor: Actor,
    pub clock: Arc<dyn Clock>,
}

/// Notes an action. It is written at the end of the unit of work if the store has an actor.
pub fn note(tx: &mut Tx, act: Act) {
    tx.note_act(act);
}

/// Notes one action instead of those that the unit of work has noted so far, which are its parts.
pub fn note_instead(tx: &mut Tx, act: Act) {
    tx.take_acts();
    note(tx, act);
}

/// Appends the actions that the unit of work noted to the log.
pub(crate) async fn write_noted(tx: &mut Tx, acting: &AuditContext) -> Result<(), StoreError> {
    match tx.take_acts() {
        acts if acts.is_empty() => Ok(()),
        acts => write(tx, acting, acts).await,
    }
}

async fn write(tx: &mut Tx, acting: &AuditContext, acts: Vec<Act>) -> Result<(), StoreError> {
    // The no-op UPDATE locks the head row, which serializes all writers of the log.
    const LOCK: &str = "UPDATE audit_head SET seq = seq WHERE id = 1 RETURNING seq, hash";
    const ENTRY: &str = const_format::concatcp!(
        "INSERT INTO audit_entries (",
        Entry::COLUMNS,
        ") VALUES (",
        Entry::PLACEHOLDERS,
        ")"
    );
    const HEAD: &str = "UPDATE audit_head SET seq = $1, hash = $2 WHERE id = 1";
    let head: Option<(i64, String)> =
        tx.find(LOCK, &[], |row| Ok((row.get("seq")?, row.get("hash")?))).await?;
    let (mut seq, mut hash) = head.ok_or_else(|| StoreError::missing("audit_head"))?;
    for act in acts {
        seq += 1;
        let Actor { name, os_user, host } = acting.actor.clone();
        let mut entry = Entry {
            seq,
            at: acting.clock.now(),
            actor: name,
            os_user,
            host,
            action: act.action.to_owned(),
            subject: act.subject,
            phase: act.phase.as_str().to_owned(),
            before: act.before.map(|state| state.to_string()),
            after: act.after.map(|state| state.to_string()),
            hash: String::new(),
        };
        entry.hash = entry.hash_after(&hash);
        tx.exec(ENTRY, &entry.values()?).await?;
        hash = entry.hash;
    }
    tx.exec(HEAD, &params![seq, &hash]).await.map(drop)
}

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Entry: Insert {
        /// The entry's number, from 1 and without gaps.
        pub seq: i64,
        pub at: Timestamp = "at_ms",
        /// The actor's name.
        pub actor: String,
        pub os_user: String,
        /// The machine's host name.
        pub host: String,
        /// The action, such as `key.revoke`.
        pub action: String,
        /// The object of the action, such as `key:018f...`.
        pub subject: String,
        /// `begun`, `done`, `failed` or `printed`.
        pub phase: String,
        /// The state before the action, as JSON.
        pub before: Option<String> = "before_state",
        /// The state after the action, as JSON.
        pub after: Option<String> = "after_state",
        /// A hash over this entry and the previous entry's hash, in hex. It makes later changes of the
        /// log detectable.
        pub hash: String,
    }
}

impl Entry {
    /// Computes the hash of this entry after an entry with the hash `previous`. The first entry
    /// follows an empty hash.
    pub fn hash_after(&self, previous: &str) -> String {
        let Self { seq, at, actor, os_user, host, action, subject, phase, before, after, .. } = self;
        let texts = [
            Some(previous),
            Some(actor),
            Some(os_user),
            Some(host),
            Some(action),
            Some(subject),
            Some(phase),
            before.as_deref(),
            after.as_deref(),
        ];
        let mut input = format!("{seq}\n{}\n", at.ms());
        for text in texts {
            // Each field is preceded by its length, so that two different entries never produce the
            // same input.
            match text {
                Some(text) => drop(writeln!(input, "{}:{text}", text.len())),
                None => input.push_str("-\n"),
            }
        }
        hex::encode(Sha256::digest(input))
    }
}

/// A filter for lists of entries.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub since: Option<Timestamp>,
    pub actor: Option<String>,
    /// An exact action, or a prefix of actions: `key` matches `key.revoke`.
    pub action: Option<String>,
    pub subject: Option<String>,
}

const FILTERED: &str =
    "at_ms >= $2 AND ($3 = '' OR actor = $3) AND ($4 = '' OR action = $4 OR action LIKE $5)
    AND ($6 = '' OR subject = $6)";

/// Lists entries with numbers below `before`, newest first.
pub async fn list(tx: &mut Tx, filter: &Filter, before: i64, limit: u32) -> Result<Vec<Entry>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Entry::COLUMNS,
        " FROM audit_entries WHERE seq < $1 AND ",
        FILTERED,
        " ORDER BY seq DESC LIMIT $7"
    );
    list_filtered(tx, SQL, filter, before, limit).await
}

/// Lists entries with numbers above `after`, oldest first.
pub async fn list_after(
    tx: &mut Tx,
    filter: &Filter,
    after: i64,
    limit: u32,
) -> Result<Vec<Entry>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Entry::COLUMNS,
        " FROM audit_entries WHERE seq > $1 AND ",
        FILTERED,
        " ORDER BY seq LIMIT $7"
    );
    list_filtered(tx, SQL, filter, after, limit).await
}

async fn list_filtered(
    tx: &mut Tx,
    sql: &'static str,
    filter: &Filter,
    seq: i64,
    limit: u32,
) -> Result<Vec<Entry>, StoreError> {
    let since = filter.since.unwrap_or(Timestamp::from_ms(i64::MIN));
    let actor = filter.actor.as_deref().unwrap_or_default();
    let action = filter.action.as_deref().unwrap_or_default();
    let family = format!("{action}.%");
    let subject = filter.subject.as_deref().unwrap_or_default();
    tx.list(sql, &params![seq, since, actor, action, family, subject, limit], Entry::from_row).await
}

/// Returns the number and hash that the last entry must have. They are 0 and empty if the log is
/// empty.
pub async fn find_head(tx: &mut Tx) -> Result<(i64, String), StoreError> {
    const SQL: &str = "SELECT seq, hash FROM audit_head WHERE id = 1";
    let head = tx.find(SQL, &[], |row| Ok((row.get("seq")?, row.get("hash")?))).await?;
    head.ok_or_else(|| StoreError::missing("audit_head"))
}
