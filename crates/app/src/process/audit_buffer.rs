//! Failed authentications that are not in the database yet.

use std::collections::BTreeMap;
use std::net::IpAddr;

use domain::ids::KeyId;
use domain::time::MINUTE_MS;
use domain::{ErrorCode, Timestamp};
use parking_lot::Mutex;
use store::audit::AuditEntry;

/// The maximum number of entries between two writes. Further failures are only counted in the log.
const MOST: usize = 1_000;

/// A failed authentication with a known key.
#[derive(Debug, Clone)]
pub struct FailedAuthentication {
    pub key_id: KeyId,
    /// The error code of the response.
    pub code: ErrorCode,
    /// The client's address.
    pub ip: IpAddr,
    pub route: String,
    pub request_id: String,
}

type Subject = (KeyId, Timestamp, &'static str, IpAddr);

/// Failures that are not in the database yet.
#[derive(Debug, Default)]
pub struct AuditBuffer(Mutex<Noted>);

#[derive(Debug, Default)]
pub(crate) struct Noted {
    pub entries: BTreeMap<Subject, AuditEntry>,
    pub passed_over: u64,
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
    pub fn note(&self, failure: FailedAuthentication, now: Timestamp) {
        let minute = now.plus_ms(-now.ms().rem_euclid(MINUTE_MS));
        let FailedAuthentication { key_id, code, ip, route, request_id } = failure;
        let (first_at, last_at, failures) = (now, now, 1);
        let entry = AuditEntry { key_id, minute, code, ip, route, request_id, first_at, last_at, failures };
        self.0.lock().add(entry);
    }

    pub(crate) fn take(&self) -> Noted {
        std::mem::take(&mut *self.0.lock())
    }

    /// Puts back entries that could not be written.
    pub(crate) fn put_back(&self, entries: Vec<AuditEntry>) {
        let mut noted = self.0.lock();
        entries.into_iter().for_each(|entry| noted.add(entry));
    }
}
