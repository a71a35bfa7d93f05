//! How often somebody may call: per user for reads and for writes, per address for what comes without a key, and the
//! lockout of addresses that fail to authenticate.
//!
//! What users have used and who is shut out is kept in this process, or in Redis (or Valkey) where several processes serve
//! one set of users. Both say the same to the same requests: the rules are those of [`domain::rate`], and Redis does them
//! atomically in scripts. A limiter that cannot be asked lets nobody through, within a quarter of a second.
//!
//! The address limiter is always this process's own: it stands before routes that must answer without any dependency.

mod familiar;
mod memory;
mod redis;
mod table;

use std::net::IpAddr;
use std::time::Duration;

use domain::ids::UserId;
use domain::rate::{SlidingWindow, Verdict, network_of};
use domain::{ErrorCode, Timestamp};

use crate::AppError;
use familiar::LastUse;
use memory::Memory;
use redis::Redis;
use table::Table;

pub use familiar::KeyMark;

/// Requests a minute from one address that come without a key or with one that is refused.
pub const ADDRESS_LIMIT: u32 = 300;
/// How many addresses are remembered at once. Whoever has more at hand is not stopped by a limit per address.
const MAX_ADDRESSES: usize = 128 * 1_024;
/// When to come again where the limiter did not answer.
pub const UNAVAILABLE_RETRY_S: u32 = 1;
/// How long Redis may take for a connection, and for an answer.
const REDIS_TIMEOUT: Duration = Duration::from_millis(250);

/// Which of a user's limiters a request draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads: a sliding window.
    Read,
    /// Writes: a token bucket.
    Write,
    /// Redeliveries of webhooks: a token bucket of their own.
    Redelivery,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Redelivery];

    /// The name that headers and refusals tell.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Redelivery => "redelivery",
        }
    }
}

/// The limiter could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// Redis refused or could not be reached.
    #[error("Redis: {0}")]
    Redis(#[from] ::redis::RedisError),
    /// Redis took too long.
    #[error("Redis did not answer within {} ms", REDIS_TIMEOUT.as_millis())]
    Timeout,
}

impl From<Unavailable> for AppError {
    fn from(error: Unavailable) -> Self {
        Self::new(ErrorCode::RateLimitUnavailable).retry_after_s(UNAVAILABLE_RETRY_S).caused_by(error)
    }
}

/// A Redis URL that cannot be used. Never shows the URL, which may hold a password.
#[derive(Debug, thiserror::Error)]
#[error("the Redis URL cannot be used: {0}")]
pub struct BadRedisUrl(String);

/// Every limiter of a service.
#[derive(Debug)]
pub struct Limits {
    shared: Shared,
    addresses: Table<IpAddr, SlidingWindow>,
    /// What this process has seen of keys' uses.
    familiar: Table<(IpAddr, KeyMark), LastUse>,
}

/// Where the limits stand that all processes of a service share.
#[derive(Debug)]
enum Shared {
    /// Here: the service is this process.
    Memory(Memory),
    /// In Redis.
    Redis(Box<Redis>),
}

impl Default for Limits {
    fn default() -> Self {
        Self::memory()
    }
}

impl Limits {
    /// In this process's memory.
    pub fn memory() -> Self {
        Self::over(Shared::Memory(Memory::new()))
    }

    /// In the Redis or Valkey at this URL (`redis://[user:password@]host[:port][/database]`), under keys that begin with
    /// `prefix`. Nothing is connected yet, so that a service can start before its Redis.
    pub fn redis(url: &str, prefix: &str) -> Result<Self, BadRedisUrl> {
        Ok(Self::over(Shared::Redis(Box::new(Redis::new(url, prefix)?))))
    }

    fn over(shared: Shared) -> Self {
        Self { shared, addresses: Table::bounded(MAX_ADDRESSES), familiar: Table::bounded(MAX_ADDRESSES) }
    }

    /// Where the limits stand, for people.
    pub const fn place(&self) -> &'static str {
        match self.shared {
            Shared::Memory(_) => "the process's memory",
            Shared::Redis(_) => "Redis",
        }
    }

    /// Asks for one more request of the user, whose key has this many requests a minute.
    pub async fn take(
        &self,
        kind: Kind,
        user: UserId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Verdict, Unavailable> {
        match &self.shared {
            Shared::Memory(memory) => Ok(memory.take(kind, user, limit, now)),
            Shared::Redis(redis) => redis.take(kind, user, limit, now).await,
        }
    }

    /// Asks for one more request of the address to a route that asks for no key, of so many a minute.
    pub async fn take_route(
        &self,
        ip: IpAddr,
        route: &'static str,
        limit: u32,
        now: Timestamp,
    ) -> Result<Verdict, Unavailable> {
        let network = network_of(ip);
        match &self.shared {
            Shared::Memory(memory) => Ok(memory.take_route(network, route, limit, now)),
            Shared::Redis(redis) => redis.take_route(network, route, limit, now).await,
        }
    }

    /// Until when the address is shut out, if it is.
    pub async fn shut_out(&self, ip: IpAddr, now: Timestamp) -> Result<Option<Timestamp>, Unavailable> {
        let network = network_of(ip);
        match &self.shared {
            Shared::Memory(memory) => Ok(memory.shut_out(network, now)),
            Shared::Redis(redis) => redis.shut_out(network, now).await,
        }
    }

    /// Counts a failed authentication from the address; until when that shuts it out, if it does.
    pub async fn fail(&self, ip: IpAddr, now: Timestamp) -> Result<Option<Timestamp>, Unavailable> {
        let network = network_of(ip);
        match &self.shared {
            Shared::Memory(memory) => Ok(memory.fail(network, now)),
            Shared::Redis(redis) => redis.fail(network, now).await,
        }
    }

    /// Notes that a key was used successfully from the address. Other processes hear of it at most every ten minutes.
    pub async fn note_success(&self, ip: IpAddr, key: KeyMark, now: Timestamp) {
        let network = network_of(ip);
        let share = self.familiar.with((network, key), now, |last| last.note(now));
        if share && let Shared::Redis(redis) = &self.shared {
            // Only a lockout would ever ask for it.
            if let Err(error) = redis.note_success(network, key, now).await {
                tracing::debug!(%error, "a key's use is not known to the other processes");
            }
        }
    }

    /// Whether a key was used successfully from the address in the last 24 hours.
    pub async fn is_familiar(&self, ip: IpAddr, key: KeyMark, now: Timestamp) -> Result<bool, Unavailable> {
        let network = network_of(ip);
        if self.familiar.find(&(network, key), |last| last.is_recent(now)) == Some(true) {
            return Ok(true);
        }
        match &self.shared {
            Shared::Memory(_) => Ok(false),
            Shared::Redis(redis) => redis.is_familiar(network, key, now).await,
        }
    }

    /// Asks for one more request of the address.
    pub fn take_address(&self, ip: IpAddr, now: Timestamp) -> Verdict {
        self.addresses.with(network_of(ip), now, |window| window.take(ADDRESS_LIMIT, now))
    }

    /// What the address's limiter says, without counting anything.
    pub fn peek_address(&self, ip: IpAddr, now: Timestamp) -> Verdict {
        let known = self.addresses.find(&network_of(ip), |window| window.peek(ADDRESS_LIMIT, now));
        known.unwrap_or_else(|| SlidingWindow::default().peek(ADDRESS_LIMIT, now))
    }

    /// Whether the limiter can be asked.
    pub async fn ping(&self) -> Result<(), Unavailable> {
        match &self.shared {
            Shared::Memory(_) => Ok(()),
            Shared::Redis(redis) => redis.ping().await,
        }
    }
}

/// The refusal of a request whose limiter, named so, is used up.
pub fn exceeded(limiter: &str, verdict: Verdict) -> AppError {
    let Verdict { limit, retry_after_ms, .. } = verdict;
    let whose = if limiter == "address" { "Requests without an accepted key" } else { "Your requests" };
    let detail = format!(
        "{whose} are limited to {limit} a minute ({limiter}), which are used up. Wait as long as Retry-After says."
    );
    AppError::new(ErrorCode::RateLimitExceeded)
        .detail(detail)
        .with("limiter", limiter)
        .retry_after_s(retry_after_s(retry_after_ms))
}

/// The refusal of an address that is shut out.
pub fn shut_out(until: Timestamp, now: Timestamp) -> AppError {
    AppError::new(ErrorCode::RateLimitExceeded)
        .detail(
            "Too many requests from your address failed to authenticate. Wait as long as Retry-After says.",
        )
        .with("limiter", "lockout")
        .retry_after_s(retry_after_s(until.since_ms(now)))
}

/// Whole seconds after which another try makes sense: rounded up, and at least one.
pub fn retry_after_s(ms: i64) -> u32 {
    u32::try_from(ms.max(1).unsigned_abs().div_ceil(1_000)).unwrap_or(u32::MAX)
}
