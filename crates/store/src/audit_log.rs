//! The audit log: what operators did, appended in the transaction of the act and never changed.
//!
//! A [`crate::Store`] that acts for somebody ([`crate::Store::acting_as`]) writes the acts that its units of work note, at the end
//! of each unit. Units that run for nobody, such as those of API requests and workers, note the same acts and write none.

use std::fmt::Write as _;
use std::sync::Arc;

use domain::{Clock, Timestamp};
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::{Row, StoreError, Tx, params};

/// The person or program that acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The name that the operator gave, or the user of the operating system.
    pub name: String,
    /// The user of the operating system.
    pub os_user: String,
    /// The machine.
    pub host: String,
}

/// An actor with the clock that dates the acts.
pub(crate) struct Acting {
    pub actor: Actor,
    pub clock: Arc<dyn Clock>,
}

/// How far an act has come. An act within one transaction is only ever done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is about to be tried.
    Begun,
    /// It was done.
    Done,
    /// It failed, or its outcome is unknown.
    Failed,
}

impl Phase {
    /// The word of the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// An administrative act that is to be written.
#[derive(Debug, Clone)]
pub struct Act {
    action: &'static str,
    subject: String,
    phase: Phase,
    before: Option<Json>,
    after: Option<Json>,
}

impl Act {
    /// An act such as `key.revoke` on a subject such as `key:018f...`.
    pub fn new(action: &'static str, subject: impl Into<String>) -> Self {
        Self { action, subject: subject.into(), phase: Phase::Done, before: None, after: None }
    }

    /// With the state before it. Must hold no secrets.
    #[must_use]
    pub fn before(mut self, state: impl Serialize) -> Self {
        self.before = serde_json::to_value(state).ok();
        self
    }

    /// With the state after it. Must hold no secrets.
    #[must_use]
    pub fn after(mut self, state: impl Serialize) -> Self {
        self.after = serde_json::to_value(state).ok();
        self
    }

    /// The same act in another phase.
    #[must_use]
    pub const fn in_phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }
}

/// Notes an act: it is written at the end of the unit of work, if the unit runs for an actor.
pub fn note(tx: &mut Tx, act: Act) {
    tx.note_act(act);
}

/// Writes acts behind those that there are.
pub(crate) async fn write(tx: &mut Tx, acting: &Acting, acts: Vec<Act>) -> Result<(), StoreError> {
    // The update that changes nothing locks the row: writers follow one another.
    const LOCK: &str = "UPDATE audit_head SET seq = seq WHERE id = 1 RETURNING seq, hash";
    const ENTRY: &str = "INSERT INTO audit_entries (seq, at_ms, actor, os_user, host, action, subject, phase,
        before_state, after_state, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    const HEAD: &str = "UPDATE audit_head SET seq = $1, hash = $2 WHERE id = 1";
    let head = tx.find(LOCK, &[], |row| Ok((row.int(0)?, row.text(1)?))).await?;
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
        let Entry { at, actor, os_user, host, action, subject, phase, before, after, hash: new, .. } = &entry;
        let (before, after) = (before.as_deref(), after.as_deref());
        tx.exec(ENTRY, &params![seq, *at, actor, os_user, host, action, subject, phase, before, after, new])
            .await?;
        hash = entry.hash;
    }
    tx.exec(HEAD, &params![seq, &hash]).await.map(drop)
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number: 1 for the first, without gaps.
    pub seq: i64,
    /// When it was written.
    pub at: Timestamp,
    /// The name that the operator gave.
    pub actor: String,
    /// The user of the operating system.
    pub os_user: String,
    /// The machine.
    pub host: String,
    /// What was done, such as `key.revoke`.
    pub action: String,
    /// What it was done to, such as `key:018f...`.
    pub subject: String,
    /// `begun`, `done` or `failed`.
    pub phase: String,
    /// The state before it, JSON.
    pub before: Option<String>,
    /// The state after it, JSON.
    pub after: Option<String>,
    /// The hash over the entry and the hash of the entry before it, hex.
    pub hash: String,
}

impl Entry {
    /// The hash that the entry must have behind an entry with the hash `previous`; the first one follows an empty text.
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
            // Each text with its length, so that no two entries give the same input.
            match text {
                Some(text) => drop(writeln!(input, "{}:{text}", text.len())),
                None => input.push_str("-\n"),
            }
        }
        hex::encode(Sha256::digest(input))
    }
}

/// What a list of entries is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Entries written at this time or later.
    pub since: Option<Timestamp>,
    /// Entries of this actor.
    pub actor: Option<String>,
    /// Entries of this action, or of all actions that begin with it and a point.
    pub action: Option<String>,
    /// Entries about this subject.
    pub subject: Option<String>,
}

const COLUMNS: &str =
    "seq, at_ms, actor, os_user, host, action, subject, phase, before_state, after_state, hash";
const FILTERED: &str =
    "at_ms >= $2 AND ($3 = '' OR actor = $3) AND ($4 = '' OR action = $4 OR action LIKE $5)
    AND ($6 = '' OR subject = $6)";

fn from_row(row: &Row<'_>) -> Result<Entry, StoreError> {
    Ok(Entry {
        seq: row.int(0)?,
        at: row.timestamp(1)?,
        actor: row.text(2)?,
        os_user: row.text(3)?,
        host: row.text(4)?,
        action: row.text(5)?,
        subject: row.text(6)?,
        phase: row.text(7)?,
        before: row.opt_text(8)?,
        after: row.opt_text(9)?,
        hash: row.text(10)?,
    })
}

/// Entries below the number `before`, the newest first.
pub async fn list(tx: &mut Tx, filter: &Filter, before: i64, limit: u32) -> Result<Vec<Entry>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM audit_entries WHERE seq < $1 AND ",
        FILTERED,
        " ORDER BY seq DESC LIMIT $7"
    );
    list_filtered(tx, SQL, filter, before, limit).await
}

/// Entries above the number `after`, the oldest first.
pub async fn list_after(
    tx: &mut Tx,
    filter: &Filter,
    after: i64,
    limit: u32,
) -> Result<Vec<Entry>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
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
    tx.list(sql, &params![seq, since, actor, action, family, subject, limit], from_row).await
}

/// The number and the hash that the last entry must have; 0 and an empty text for an empty log.
pub async fn find_head(tx: &mut Tx) -> Result<(i64, String), StoreError> {
    const SQL: &str = "SELECT seq, hash FROM audit_head WHERE id = 1";
    let head = tx.find(SQL, &[], |row| Ok((row.int(0)?, row.text(1)?))).await?;
    head.ok_or_else(|| StoreError::missing("audit_head"))
}
