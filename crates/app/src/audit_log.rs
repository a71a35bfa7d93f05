//! The audit log of administrative acts.
//!
//! An act that is a single transaction records itself in it ([`store::audit_log::note`]). An act on
//! chain cannot share a transaction with the log. So [`around`] writes an entry before and one
//! after the act. An act whose result was lost has a begin entry without an end.

use domain::Timestamp;
use serde_json::{Value, json};
pub use store::audit_log::{Act, Actor, Entry, Filter, Phase};

use crate::{AppError, Ctx};

/// The number of entries per page.
const PAGE: u32 = 1_000;

/// Writes a single entry. Does nothing if the context has no actor.
pub async fn record(ctx: &Ctx, act: Act) -> Result<(), AppError> {
    Ok(ctx
        .store
        .write(act, |tx, act| {
            Box::pin(async move {
                store::audit_log::note(tx, act.clone());
                Ok(())
            })
        })
        .await?)
}

/// Runs an act that is not a database transaction. Logs its begin and its end; `after` converts the
/// result for the end entry.
///
/// # Errors
/// The act's own errors. If the first entry cannot be written, the act does not start. If the last
/// one cannot be written, the error is only logged.
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
        tracing::error!(%error, cause = ?error.source, "could not write the outcome of an administrative action to the audit log");
    }
    done
}

/// Returns entries with numbers below `before`, newest first.
pub async fn list(ctx: &Ctx, filter: Filter, before: i64, limit: u32) -> Result<Vec<Entry>, AppError> {
    Ok(ctx
        .store
        .read((filter, before, limit), |tx, (filter, before, limit)| {
            Box::pin(store::audit_log::list(tx, filter, *before, *limit))
        })
        .await?)
}

/// Returns one page of entries with numbers above `after`, oldest first.
async fn list_after(ctx: &Ctx, filter: Filter, after: i64) -> Result<Vec<Entry>, AppError> {
    Ok(ctx
        .store
        .read((filter, after), |tx, (filter, after)| {
            Box::pin(store::audit_log::list_after(tx, filter, *after, PAGE))
        })
        .await?)
}

/// Passes every entry that matches `filter` to `take`, oldest first.
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

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditVerification {
    /// The number of entries.
    pub entries: u64,
    /// The number of the first missing or modified entry.
    pub broken_at: Option<i64>,
}

/// Verifies the hash chain: no entry is missing or modified.
pub async fn verify(ctx: &Ctx) -> Result<AuditVerification, AppError> {
    let (mut seq, mut hash, mut entries) = (0, String::new(), 0);
    // Read the head first. Entries that are written during the check come after it.
    let head = ctx.store.read((), |tx, ()| Box::pin(store::audit_log::find_head(tx))).await;
    let (head_seq, head_hash) = head?;
    loop {
        let page = list_after(ctx, Filter::default(), seq).await?;
        for entry in &page {
            seq += 1;
            if entry.seq != seq || entry.hash != entry.hash_after(&hash) {
                return Ok(AuditVerification { entries, broken_at: Some(seq) });
            }
            hash.clone_from(&entry.hash);
            entries += 1;
            // The chain is intact up to here, but the stored head differs: the last entries were
            // replaced.
            if seq == head_seq && hash != head_hash {
                return Ok(AuditVerification { entries, broken_at: Some(seq) });
            }
        }
        if page.is_empty() {
            let broken_at = (seq < head_seq).then_some(seq + 1);
            return Ok(AuditVerification { entries, broken_at });
        }
    }
}

/// Returns an entry as JSON.
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
