//! The limits of a service that runs as a single process.

use std::net::IpAddr;

use domain::Timestamp;
use domain::ids::UserId;
use domain::rate::{Lockout, RateDecision, SlidingWindow, TokenBucket};

use super::failures::Failures;
use super::table::Table;
use super::{LimitKind, MAX_ADDRESSES};

/// Rate limit state in memory. The number of users is limited by the service. Addresses can be made
/// up, so their tables are bounded.
#[derive(Debug)]
pub struct Memory {
    reads: Table<UserId, SlidingWindow>,
    writes: Table<UserId, TokenBucket>,
    redeliveries: Table<UserId, TokenBucket>,
    lockouts: Table<Failures, Lockout>,
    /// A table of its own: made-up credentials must not evict the lockouts of addresses.
    credential_lockouts: Table<Failures, Lockout>,
    routes: Table<(IpAddr, &'static str), SlidingWindow>,
}

impl Memory {
    pub fn new() -> Self {
        Self {
            reads: Table::unbounded(),
            writes: Table::unbounded(),
            redeliveries: Table::unbounded(),
            lockouts: Table::bounded(MAX_ADDRESSES),
            credential_lockouts: Table::bounded(MAX_ADDRESSES),
            routes: Table::bounded(MAX_ADDRESSES),
        }
    }

    pub fn take(&self, kind: LimitKind, user: UserId, limit: u32, now: Timestamp) -> RateDecision {
        match kind {
            LimitKind::Read => self.reads.with(user, now, |window| window.take(limit, now)),
            LimitKind::Write => self.writes.with(user, now, |bucket| bucket.take(limit, now)),
            LimitKind::Redelivery => self.redeliveries.with(user, now, |bucket| bucket.take(limit, now)),
        }
    }

    pub fn take_route(
        &self,
        network: IpAddr,
        route: &'static str,
        limit: u32,
        now: Timestamp,
    ) -> RateDecision {
        self.routes.with((network, route), now, |window| window.take(limit, now))
    }

    pub fn shut_out(&self, failures: Failures, now: Timestamp) -> Option<Timestamp> {
        self.lockouts_of(failures).find(&failures, |lockout| lockout.until(now)).flatten()
    }

    pub fn fail(&self, failures: Failures, limit: u64, now: Timestamp) -> Option<Timestamp> {
        self.lockouts_of(failures).with(failures, now, |lockout| lockout.fail(limit, now))
    }

    const fn lockouts_of(&self, failures: Failures) -> &Table<Failures, Lockout> {
        match failures {
            Failures::Network(..) => &self.lockouts,
            Failures::Credential(_) => &self.credential_lockouts,
        }
    }
}
