//! Rate limits: per user for reads and writes, per address for requests without a key, and the
//! lockout of addresses that fail to authenticate, for each kind of credential.
//!
//! The state is in memory, or in Redis (or Valkey) if several processes serve the same users. Both
//! give the same results: the rules are those of [`domain::rate`], which Redis runs atomically in
//! scripts. If Redis does not respond within a quarter of a second, requests are rejected.
//!
//! The address limiter always uses this process's memory, because it protects routes that must
//! respond without any dependency.

pub mod budget;
mod budgets;
mod failures;
mod familiar;
mod memory;
mod redis;
mod redis_url;
mod table;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::UserId;
use domain::rate::{RateDecision, Scope, SlidingWindow, network_in, network_of};
use domain::{ErrorCode, Timestamp};

use crate::AppError;
use crate::metrics::Metrics;
use budget::{Budget, BudgetShares};
use failures::Failures;
use familiar::LastUse;
use memory::Memory;
use redis::Redis;
use table::Table;

pub use budgets::{Budgets, Client, NotSpent, Place, Refused};
pub use failures::{CredentialMark, FailureKind};
pub use familiar::KeyMark;

/// The maximum number of tracked addresses. A client with more addresses than this cannot be
/// stopped by a limit per address.
const MAX_ADDRESSES: usize = 128 * 1_024;
/// The retry time in seconds when the limiter does not respond.
pub const UNAVAILABLE_RETRY_S: u32 = 1;
/// The timeout of a Redis connection, and of a command.
const REDIS_TIMEOUT: Duration = Duration::from_millis(250);

/// The limiters of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Reads: a sliding window.
    Read,
    /// Writes: a token bucket.
    Write,
    /// Redeliveries of webhooks: a separate token bucket.
    Redelivery,
}

impl LimitKind {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Redelivery];

    /// The name in headers and errors.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Redelivery => "redelivery",
        }
    }
}

/// The limiter cannot be used right now.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    #[error("Redis: {0}")]
    Redis(#[from] ::redis::RedisError),
    #[error("Redis did not answer within {} ms", REDIS_TIMEOUT.as_millis())]
    Timeout,
}

impl From<Unavailable> for AppError {
    fn from(error: Unavailable) -> Self {
        Self::new(ErrorCode::RateLimitUnavailable).retry_after_s(UNAVAILABLE_RETRY_S).caused_by(error)
    }
}

/// An unusable Redis URL. The message never contains the URL, which may include a password.
#[derive(Debug, thiserror::Error)]
#[error("the Redis URL is invalid: {0}")]
pub struct BadRedisUrl(String);

/// All limiters of this process.
#[derive(Debug)]
pub struct Limits {
    shared: Shared,
    addresses: Table<IpAddr, SlidingWindow>,
    /// Uses of keys that this process has seen.
    familiar: Table<(IpAddr, KeyMark), LastUse>,
    budgets: Budgets,
}

/// What the limits of an address and of its networks say about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressDecision {
    /// The state of the address's own limiter. It rejects the request if a network has used up its
    /// share.
    pub rate: RateDecision,
    /// The share of a network that is used up.
    pub refused: Option<Refused>,
}

impl AddressDecision {
    /// The decision about a request whose address has requests left, but whose network has not.
    fn of_network(rate: RateDecision, refused: Refused) -> Self {
        let retry_after_ms = i64::from(refused.retry_after_s) * 1_000;
        let rate = RateDecision { allowed: false, remaining: 0, retry_after_ms, ..rate };
        Self { rate, refused: Some(refused) }
    }
}

fn whole(limit: u64) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// The storage of the limits that all processes of a service share.
#[derive(Debug)]
enum Shared {
    Memory(Box<Memory>),
    Redis(Arc<Redis>),
}

impl Shared {
    fn redis(&self) -> Option<Arc<Redis>> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(redis) => Some(Arc::clone(redis)),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::memory()
    }
}

impl Limits {
    /// Creates limits in this process's memory.
    pub fn memory() -> Self {
        Self::over(Shared::Memory(Box::new(Memory::new())))
    }

    /// Creates limits in Redis or Valkey at this URL
    /// (`redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS with a verified
    /// certificate). The options `sslrootcert`, `sslcert` and `sslkey` name PEM files. All Redis keys
    /// begin with `prefix`. The connection is opened on first use, so that the service can start
    /// before Redis.
    pub fn redis(url: &str, prefix: &str) -> Result<Self, BadRedisUrl> {
        Ok(Self::over(Shared::Redis(Arc::new(Redis::new(url, prefix)?))))
    }

    fn over(shared: Shared) -> Self {
        let budgets = Budgets::new(BudgetShares::default(), shared.redis(), Arc::default());
        let (addresses, familiar) = (Table::bounded(MAX_ADDRESSES), Table::bounded(MAX_ADDRESSES));
        Self { shared, addresses, familiar, budgets }
    }

    /// Sets the shares of the budgets and the metrics that count refusals. Call it before the limits
    /// are used.
    #[must_use]
    pub fn with_budgets(self, shares: BudgetShares, metrics: Arc<Metrics>) -> Self {
        let budgets = Budgets::new(shares, self.shared.redis(), metrics);
        Self { budgets, ..self }
    }

    /// Returns the budgets of strangers.
    pub const fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Returns the storage's name for logs.
    pub const fn storage_name(&self) -> &'static str {
        match self.shared {
            Shared::Memory(_) => "the process's memory",
            Shared::Redis(_) => "Redis",
        }
    }

    /// Counts one more request of the user. `limit` is the key's limit in requests per minute.
    pub async fn take(
        &self,
        kind: LimitKind,
        user: UserId,
        limit: u32,
        now: Timestamp,
    ) -> Result<RateDecision, Unavailable> {
        match &self.shared {
            Shared::Memory(memory) => Ok(memory.take(kind, user, limit, now)),
            Shared::Redis(redis) => redis.take(kind, user, limit, now).await,
        }
    }

    /// Counts one more request of the address to an anonymous route. `limit` is in requests per
    /// minute. Networks may make a multiple of it.
    pub async fn take_route(
        &self,
        ip: IpAddr,
        route: &'static str,
        limit: u32,
        now: Timestamp,
    ) -> Result<AddressDecision, Unavailable> {
        let network = network_of(ip);
        let share = self.budgets.share(Budget::Routes, Scope::Address).limit();
        let own = share.map_or(u32::MAX, |times| whole(times.saturating_mul(u64::from(limit))));
        let rate = match &self.shared {
            Shared::Memory(memory) => memory.take_route(network, route, own, now),
            Shared::Redis(redis) => redis.take_route(network, route, own, now).await?,
        };
        if !rate.allowed {
            return Ok(AddressDecision { rate, refused: None });
        }
        match self.budgets.spend_wider(Budget::Routes, (route, limit.into()), ip, now).await {
            Ok(()) => Ok(AddressDecision { rate, refused: None }),
            Err(NotSpent::Refused(refused)) => Ok(AddressDecision::of_network(rate, refused)),
            Err(NotSpent::Unavailable(error)) => Err(error),
        }
    }

    /// Returns the end of the lockout of the address, or of one of its networks, for this kind of
    /// credential, if there is one.
    pub async fn shut_out(
        &self,
        kind: FailureKind,
        ip: IpAddr,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Unavailable> {
        let failures: Vec<Failures> = self.lockouts(kind, ip).map(|(failures, _)| failures).collect();
        match &self.shared {
            Shared::Memory(memory) => {
                Ok(failures.iter().filter_map(|failures| memory.shut_out(*failures, now)).max())
            }
            Shared::Redis(_) if failures.is_empty() => Ok(None),
            Shared::Redis(redis) => redis.shut_out(&failures, now).await,
        }
    }

    /// Counts a failed authentication of this kind from the address. Returns the end of the lockout
    /// that it causes or falls into, if any.
    pub async fn fail(
        &self,
        kind: FailureKind,
        ip: IpAddr,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Unavailable> {
        // Attempts during a lockout do not count, neither for the address nor for its networks.
        let mut until = self.shut_out(kind, ip, now).await?;
        if until.is_some() {
            return Ok(until);
        }
        for (failures, limit) in self.lockouts(kind, ip) {
            until = until.max(self.count_failure(failures, limit, now).await?);
        }
        Ok(until)
    }

    /// Counts a failed proof of this passkey or wallet, from any address. Returns the end of the
    /// lockout that it causes or falls into, if any.
    pub async fn fail_credential(
        &self,
        mark: CredentialMark,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Unavailable> {
        // A credential is a user's, so it has the share of one user.
        let Some(limit) = self.budgets.share(Budget::FailedSignIns, Scope::User).limit() else {
            return Ok(None);
        };
        self.count_failure(Failures::Credential(mark), limit, now).await
    }

    async fn count_failure(
        &self,
        failures: Failures,
        limit: u64,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Unavailable> {
        match &self.shared {
            Shared::Memory(memory) => Ok(memory.fail(failures, limit, now)),
            Shared::Redis(redis) => redis.fail(failures, limit, now).await,
        }
    }

    /// Returns the failures of this kind that lock out the address or one of its networks, with the
    /// number at which they do.
    fn lockouts(&self, kind: FailureKind, ip: IpAddr) -> impl Iterator<Item = (Failures, u64)> {
        Scope::ALL.iter().filter_map(move |scope| {
            let limit = self.budgets.share(Budget::FailedSignIns, *scope).limit()?;
            Some((Failures::Network(kind, *scope, network_in(*scope, ip)?), limit))
        })
    }

    /// Records a successful use of a key from the address. Other processes learn of it at most
    /// every ten minutes.
    pub async fn note_success(&self, ip: IpAddr, key: KeyMark, now: Timestamp) {
        let network = network_of(ip);
        let share = self.familiar.with((network, key), now, |last| last.note(now));
        if share && let Shared::Redis(redis) = &self.shared {
            // Best effort: the shared use only matters if the address is locked out later.
            if let Err(error) = redis.note_success(network, key, now).await {
                tracing::debug!(%error, "could not share the last use of a key with the other processes");
            }
        }
    }

    /// Returns whether the key was used successfully from the address in the last 24 hours.
    pub async fn is_familiar(&self, ip: IpAddr, key: KeyMark, now: Timestamp) -> Result<bool, Unavailable> {
        let network = network_of(ip);
        // This process's own memory first: most checks need no round trip.
        if self.familiar.find(&(network, key), |last| last.is_recent(now)) == Some(true) {
            return Ok(true);
        }
        match &self.shared {
            Shared::Memory(_) => Ok(false),
            Shared::Redis(redis) => redis.is_familiar(network, key, now).await,
        }
    }

    /// Counts one more request of the address. Networks may make a multiple of its limit.
    pub fn take_address(&self, ip: IpAddr, now: Timestamp) -> AddressDecision {
        let limit = self.address_limit();
        let rate = self.addresses.with(network_of(ip), now, |window| window.take(limit, now));
        if !rate.allowed {
            return AddressDecision { rate, refused: None };
        }
        match self.budgets.spend_wider_here(Budget::Requests, ip, now) {
            Ok(()) => AddressDecision { rate, refused: None },
            Err(refused) => AddressDecision::of_network(rate, refused),
        }
    }

    /// Returns the address limiter's state without counting a request.
    pub fn peek_address(&self, ip: IpAddr, now: Timestamp) -> RateDecision {
        let limit = self.address_limit();
        let known = self.addresses.find(&network_of(ip), |window| window.peek(limit, now));
        known.unwrap_or_else(|| SlidingWindow::default().peek(limit, now))
    }

    /// Returns the number of requests per minute from one address without an accepted key.
    pub fn address_limit(&self) -> u32 {
        self.budgets.share(Budget::Requests, Scope::Address).limit().map_or(u32::MAX, whole)
    }

    /// Records in the metrics how much of each share is used.
    pub fn record_uses(&self, now: Timestamp) {
        self.budgets.record(&self.largest_uses(now));
    }

    /// Returns the largest use of one holder of each share, as this process has counted it.
    fn largest_uses(&self, now: Timestamp) -> HashMap<(Budget, Scope), u64> {
        let mut largest = self.budgets.largest_uses(now);
        let mut requests = 0;
        self.addresses.for_each(|_, window| requests = requests.max(window.used(now)));
        largest.insert((Budget::Requests, Scope::Address), requests.into());
        largest
    }

    /// Checks that the limiter responds.
    pub async fn ping(&self) -> Result<(), Unavailable> {
        match &self.shared {
            Shared::Memory(_) => Ok(()),
            Shared::Redis(redis) => redis.ping().await,
        }
    }
}

/// The error for a request that exceeds the named limiter.
pub fn exceeded(limiter: &str, decision: RateDecision) -> AppError {
    let RateDecision { limit, retry_after_ms, .. } = decision;
    let whose = if limiter == "address" { "Requests without an accepted key" } else { "Your requests" };
    let detail =
        format!("{whose} are limited to {limit} per minute ({limiter}). Wait for Retry-After seconds.");
    AppError::new(ErrorCode::RateLimitExceeded)
        .detail(detail)
        .with("limiter", limiter)
        .retry_after_s(retry_after_s(retry_after_ms))
}

/// The error for an address that is locked out.
pub fn shut_out(until: Timestamp, now: Timestamp) -> AppError {
    AppError::new(ErrorCode::RateLimitExceeded)
        .detail("Too many failed authentications from your address. Wait for Retry-After seconds.")
        .with("limiter", "lockout")
        .retry_after_s(retry_after_s(until.since_ms(now)))
}

/// Rounds milliseconds up to whole seconds, and to at least one.
pub fn retry_after_s(ms: i64) -> u32 {
    u32::try_from(ms.max(1).unsigned_abs().div_ceil(1_000)).unwrap_or(u32::MAX)
}
