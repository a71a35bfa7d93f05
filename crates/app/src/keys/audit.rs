//! The audit log of failed authentications with an existing key.
//!
//! A failing request writes nothing itself. Failures are collected in memory, where equal ones
//! within a minute are merged, and a worker writes them at most once per second. A crash loses at
//! most that second. Entries that could not be written are retried.

use async_trait::async_trait;
use store::audit::AuditEntry;

use crate::process::audit_buffer::Noted;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// Writes the collected failures. Puts them back if the write fails.
pub async fn flush(ctx: &Ctx) -> Result<(), AppError> {
    let Noted { entries, passed_over } = ctx.process.key_audit.take();
    if passed_over > 0 {
        tracing::warn!(passed_over, "dropped failed authentications: more than the audit log can buffer");
    }
    if entries.is_empty() {
        return Ok(());
    }
    let entries: Vec<AuditEntry> = entries.into_values().collect();
    let written =
        ctx.store.write(entries.clone(), |tx, entries| Box::pin(store::audit::add(tx, entries))).await;
    if let Err(error) = written {
        ctx.process.key_audit.put_back(entries);
        return Err(error.into());
    }
    Ok(())
}

/// The worker that writes failures. It only runs on the timer, which limits the number of writes.
#[derive(Debug, Default)]
pub struct AuditWriter;

#[async_trait]
impl Worker for AuditWriter {
    fn name(&self) -> &'static str {
        "audit"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        flush(ctx).await.map(|()| Progress::Idle)
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        flush(ctx).await
    }
}
