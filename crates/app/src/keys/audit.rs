//! The audit log of failed authentications: what came with a key that is known, and was refused nevertheless.
//!
//! A request that fails writes nothing by itself. It is noted in memory, equal ones of a minute as one, and a worker
//! writes what was noted at most once a second. A crash loses at most that second; what cannot be written stays noted.

use std::collections::BTreeMap;
use std::net::IpAddr;

use domain::ids::KeyId;
use domain::time::MINUTE_MS;
use domain::{ErrorCode, Timestamp};
use parking_lot::Mutex;
use store::StoreError;
use store::audit::AuditEntry;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The most entries between two writes. Failures beyond them are counted in the log alone.
const MOST: usize = 1_000;

/// A failed authentication that a key can be named for.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The key.
    pub key_id: KeyId,
    /// What it was refused with.
    pub code: ErrorCode,
    /// Where it came from.
    pub ip: IpAddr,
    /// The route that it was for.
    pub route: String,
    /// The request's id.
    pub request_id: String,
}

type Subject = (KeyId, Timestamp, &'static str, IpAddr);

/// Failures that are not written yet.
#[derive(Debug, Default)]
pub struct AuditBuffer(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    entries: BTreeMap<Subject, AuditEntry>,
    passed_over: u64,
}

impl Noted {
    fn add(&mut self, entry: AuditEntry) {
        let subject = (entry.key_id, entry.minute, entry.code.as_str(), entry.ip);
        if let Some(equal) = self.entries.get_mut(&subject) {
            equal.failures = equal.failures.saturating_add(entry.failures);
            equal.last_at = equal.last_at.max(entry.last_at);
        } else if self.entries.len() < MOST {
            self.entries.insert(subject, entry);
        } else {
            self.passed_over += u64::from(entry.failures);
        }
    }
}

impl AuditBuffer {
    /// Notes a failure.
    pub fn note(&self, failure: Failure, now: Timestamp) {
        let minute = now.plus_ms(-now.ms().rem_euclid(MINUTE_MS));
        let Failure { key_id, code, ip, route, request_id } = failure;
        let (first_at, last_at, failures) = (now, now, 1);
        let entry = AuditEntry { key_id, minute, code, ip, route, request_id, first_at, last_at, failures };
        self.0.lock().add(entry);
    }

    fn take(&self) -> Noted {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Writes what was noted.
pub async fn flush(ctx: &Ctx) -> Result<(), AppError> {
    let Noted { entries, passed_over } = ctx.key_audit.take();
    if passed_over > 0 {
        tracing::warn!(passed_over, "more failed authentications than the audit log takes at once");
    }
    if entries.is_empty() {
        return Ok(());
    }
    let entries: Vec<AuditEntry> = entries.into_values().collect();
    let written: Result<(), StoreError> =
        ctx.store.write(entries.clone(), |tx, entries| Box::pin(store::audit::add(tx, entries))).await;
    if let Err(error) = written {
        let mut noted = ctx.key_audit.0.lock();
        entries.into_iter().for_each(|entry| noted.add(entry));
        return Err(error.into());
    }
    Ok(())
}

/// The worker that writes them. The timer alone wakes it: that is what bounds the writes.
#[derive(Debug, Default)]
pub struct AuditWriter;

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
