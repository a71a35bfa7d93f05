//! The audit log of administrative acts, for the command line and whatever else administers.
//!
//! An act that is one transaction notes itself in it ([`store::audit_log::note`]). An act on the chain cannot be one
//! transaction with the log: [`around`] writes an entry before the act and one after it, so that an act whose outcome was
//! lost shows as begun and never ended.

use domain::Timestamp;
use serde_json::{Value, json};
use store::StoreError;
pub use store::audit_log::{Act, Actor, Entry, Filter, Phase};

use crate::{AppError, Ctx};

/// Entries that are read at once.
const PAGE: u32 = 1_000;

/// Writes an entry of its own. Does nothing if the context acts for nobody.
pub async fn record(ctx: &Ctx, act: Act) -> Result<(), AppError> {
    let written: Result<(), StoreError> = ctx
        .store
        .write(act, |tx, act| {
            Box::pin(async move {
                store::audit_log::note(tx, act.clone());
                Ok(())
            })
        })
        .await;
    Ok(written?)
}

/// Runs an act that is not one transaction of the database: logs that it begins, and then how it ended, with what `after`
/// makes of its result.
///
/// # Errors
/// That of the act. Without an entry nothing is begun; an entry that cannot be written afterwards is only reported.
pub async fn around<T>(
    ctx: &Ctx,
    act: Act,
    run: impl Future<Output = Result<T, AppError>>,
    after: impl FnOnce(&T) -> Value,
) -> Result<T, AppError> {
    if !ctx.store.is_acting() {
        return run.await;
    }
    record(ctx, act.clone().in_phase(Phase::Begun)).await?;
    let done = run.await;
    let ended = match &done {
        Ok(value) => act.after(after(value)),
        Err(error) => {
            act.after(json!({ "error": error.code.as_str(), "detail": error.detail })).in_phase(Phase::Failed)
        }
    };
    if let Err(error) = record(ctx, ended).await {
        tracing::error!(%error, cause = ?error.source, "the end of an administrative act was not logged");
    }
    done
}

/// Entries with numbers below `before`, the newest first.
pub async fn list(ctx: &Ctx, filter: Filter, before: i64, limit: u32) -> Result<Vec<Entry>, AppError> {
    let listed: Result<Vec<Entry>, StoreError> = ctx
        .store
        .read((filter, before, limit), |tx, (filter, before, limit)| {
            Box::pin(store::audit_log::list(tx, filter, *before, *limit))
        })
        .await;
    Ok(listed?)
}

/// Entries with numbers above `after`, the oldest first; at most a page.
async fn list_after(ctx: &Ctx, filter: Filter, after: i64) -> Result<Vec<Entry>, AppError> {
    let listed: Result<Vec<Entry>, StoreError> = ctx
        .store
        .read((filter, after), |tx, (filter, after)| {
            Box::pin(store::audit_log::list_after(tx, filter, *after, PAGE))
        })
        .await;
    Ok(listed?)
}

/// Passes every entry that `filter` lets through to `take`, the oldest first.
pub async fn export<E: From<AppError>>(
    ctx: &Ctx,
    filter: Filter,
    mut take: impl FnMut(&Entry) -> Result<(), E>,
) -> Result<(), E> {
    let mut after = 0;
    loop {
        let page = list_after(ctx, filter.clone(), after).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        for entry in &page {
            take(entry)?;
        }
    }
}

/// What a check of the whole log found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// How many entries there are.
    pub entries: u64,
    /// The number of the first entry that is missing or was changed.
    pub broken_at: Option<i64>,
}

/// Checks that no entry is missing and none was changed.
pub async fn verify(ctx: &Ctx) -> Result<Verified, AppError> {
    let (mut seq, mut hash, mut entries) = (0, String::new(), 0);
    // The head is read first: entries that are written meanwhile follow it.
    let head: Result<(i64, String), StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::audit_log::find_head(tx))).await;
    let (head_seq, head_hash) = head?;
    loop {
        let page = list_after(ctx, Filter::default(), seq).await?;
        for entry in &page {
            seq += 1;
            if entry.seq != seq || entry.hash != entry.hash_after(&hash) {
                return Ok(Verified { entries, broken_at: Some(seq) });
            }
            hash.clone_from(&entry.hash);
            entries += 1;
            if seq == head_seq && hash != head_hash {
                return Ok(Verified { entries, broken_at: Some(seq) });
            }
        }
        if page.is_empty() {
            let broken_at = (seq < head_seq).then_some(seq + 1);
            return Ok(Verified { entries, broken_at });
        }
    }
}

/// An entry as programs read it.
pub fn to_json(entry: &Entry) -> Value {
    let Entry { seq, at, actor, os_user, host, action, subject, phase, before, after, hash } = entry;
    let state = |text: &Option<String>| {
        text.as_deref().map_or(Value::Null, |text| serde_json::from_str(text).unwrap_or_else(|_| text.into()))
    };
    json!({
        "seq": seq,
        "at": Timestamp::to_string(at),
        "actor": actor,
        "osUser": os_user,
        "host": host,
        "action": action,
        "subject": subject,
        "phase": phase,
        "before": state(before),
        "after": state(after),
        "hash": hash,
    })
}
