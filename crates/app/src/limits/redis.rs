//! The shared limits in Redis or Valkey.
//!
//! There is one Redis key per limiter. One script changes it, so that concurrent processes are
//! serialized.
//!
//! The time comes from the calling process. A script uses the latest time it has seen, so a process
//! with a slow clock gains nothing. Redis keys expire well after they have become idle.

use std::net::IpAddr;
use std::time::Duration;

use domain::Timestamp;
use domain::ids::UserId;
use domain::rate::{NoRoom, RateDecision};
use domain::time::DAY_MS;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{Client, FromRedisValue, RedisError, Script};

use super::budgets::{Counted, Use};
use super::failures::Failures;
use super::familiar::{SHARE_EVERY_MS, is_recent};
use super::{BadRedisUrl, KeyMark, LimitKind, REDIS_TIMEOUT, Unavailable, redis_url};

/// The time without an acknowledgement after which a connection counts as lost. Without it, a peer
/// that vanished would block for minutes.
const LOST_AFTER: Duration = Duration::from_secs(2);

/// A reconnecting connection and the scripts.
pub struct Redis {
    client: Client,
    connection: tokio::sync::OnceCell<ConnectionManager>,
    prefix: String,
    window: Script,
    bucket: Script,
    lockout: Script,
    slots: Script,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Redis {
    pub fn new(url: &str, prefix: &str) -> Result<Self, BadRedisUrl> {
        let tcp = TcpSettings::default().set_nodelay(true).set_user_timeout(LOST_AFTER);
        Ok(Self {
            client: redis_url::client(url, tcp)?,
            connection: tokio::sync::OnceCell::new(),
            prefix: prefix.to_owned(),
            window: Script::new(include_str!("window.lua")),
            bucket: Script::new(include_str!("bucket.lua")),
            lockout: Script::new(include_str!("lockout.lua")),
            slots: Script::new(include_str!("slots.lua")),
        })
    }

    pub async fn take(
        &self,
        kind: LimitKind,
        user: UserId,
        limit: u32,
        now: Timestamp,
    ) -> Result<RateDecision, Unavailable> {
        let script = if kind == LimitKind::Read { &self.window } else { &self.bucket };
        let key = format!("{}:{}:{user}", self.prefix, kind.as_str());
        self.take_at(script, &key, limit, now).await
    }

    pub async fn take_route(
        &self,
        network: IpAddr,
        route: &'static str,
        limit: u32,
        now: Timestamp,
    ) -> Result<RateDecision, Unavailable> {
        let key = format!("{}:route:{route}:{network}", self.prefix);
        self.take_at(&self.window, &key, limit, now).await
    }

    async fn take_at(
        &self,
        script: &Script,
        key: &str,
        limit: u32,
        now: Timestamp,
    ) -> Result<RateDecision, Unavailable> {
        let answer: (bool, i64, i64, i64) = self.run(script, key, &[i64::from(limit), now.ms()]).await?;
        let (allowed, remaining, reset_at_ms, retry_after_ms) = answer;
        let remaining = u32::try_from(remaining).unwrap_or_default();
        Ok(RateDecision {
            allowed,
            limit,
            remaining,
            reset_at: Timestamp::from_ms(reset_at_ms),
            retry_after_ms,
        })
    }

    /// Gives back an amount that [`take_slots`](Self::take_slots) has used.
    pub async fn give_back_slots(&self, wanted: &Use, now: Timestamp) -> Result<(), Unavailable> {
        self.change_slots(wanted, -wanted.amount.cast_signed(), now).await.map(drop)
    }

    /// Uses an amount of a budget in all scopes. The inner error has the index of the scope that has
    /// no room; nothing is used then.
    pub async fn take_slots(
        &self,
        wanted: &Use,
        now: Timestamp,
    ) -> Result<Result<(), (usize, NoRoom)>, Unavailable> {
        self.change_slots(wanted, wanted.amount.cast_signed(), now).await
    }

    async fn change_slots(
        &self,
        Use { budget, part, counted, .. }: &Use,
        amount: i64,
        now: Timestamp,
    ) -> Result<Result<(), (usize, NoRoom)>, Unavailable> {
        let Some((first, others)) = counted.split_first() else { return Ok(Ok(())) };
        let key = |Counted { scope, holder, .. }: &Counted| {
            format!("{}:budget:{budget}{part}:{scope}:{holder}", self.prefix)
        };
        let mut invocation = self.slots.key(key(first));
        for counted in others {
            invocation.key(key(counted));
        }
        let period_ms = budget.counting().period_ms().unwrap_or_default();
        invocation.arg(now.ms()).arg(period_ms).arg(amount);
        for counted in counted {
            invocation.arg(counted.limit);
        }
        let mut connection = self.connection().await?;
        let (full, retry_after_ms): (usize, i64) = in_time(invocation.invoke_async(&mut connection)).await?;
        Ok(match full.checked_sub(1) {
            None => Ok(()),
            Some(place) => Err((place, NoRoom { retry_after_ms })),
        })
    }

    /// Returns the latest end of these lockouts. A Redis list holds the end first, then the latest
    /// time seen.
    pub async fn shut_out(
        &self,
        failures: &[Failures],
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Unavailable> {
        // One round trip: every authenticated request asks.
        let mut commands = redis::pipe();
        for failures in failures {
            commands.cmd("LRANGE").arg(self.lockout_key(*failures)).arg(0).arg(1);
        }
        let mut connection = self.connection().await?;
        let found: Vec<Vec<i64>> = in_time(commands.query_async(&mut connection)).await?;
        let ends = found.iter().filter_map(|list| match list[..] {
            [until_ms, latest_ms] if now.ms().max(latest_ms) < until_ms => Some(until_ms),
            _ => None,
        });
        Ok(ends.max().map(Timestamp::from_ms))
    }

    pub async fn fail(
        &self,
        failures: Failures,
        limit: u64,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Unavailable> {
        let arguments = [now.ms(), limit.cast_signed()];
        let until_ms: i64 = self.run(&self.lockout, &self.lockout_key(failures), &arguments).await?;
        Ok((until_ms > 0).then_some(Timestamp::from_ms(until_ms)))
    }

    pub async fn note_success(
        &self,
        network: IpAddr,
        key: KeyMark,
        now: Timestamp,
    ) -> Result<(), Unavailable> {
        let mut command = redis::cmd("SET");
        command.arg(self.familiar_key(network, key)).arg(now.ms());
        // The next use may only be shared after `SHARE_EVERY_MS`, so the entry must live that much
        // longer.
        command.arg("PX").arg(DAY_MS + SHARE_EVERY_MS);
        let mut connection = self.connection().await?;
        in_time(command.query_async(&mut connection)).await
    }

    pub async fn is_familiar(
        &self,
        network: IpAddr,
        key: KeyMark,
        now: Timestamp,
    ) -> Result<bool, Unavailable> {
        let mut command = redis::cmd("GET");
        command.arg(self.familiar_key(network, key));
        let mut connection = self.connection().await?;
        let used_at_ms: Option<i64> = in_time(command.query_async(&mut connection)).await?;
        Ok(used_at_ms.is_some_and(|used_at_ms| is_recent(used_at_ms, now)))
    }

    fn familiar_key(&self, network: IpAddr, key: KeyMark) -> String {
        format!("{}:familiar:{network}:{:032x}", self.prefix, key.0)
    }

    pub async fn ping(&self) -> Result<(), Unavailable> {
        let mut connection = self.connection().await?;
        in_time(redis::cmd("PING").query_async(&mut connection)).await
    }

    fn lockout_key(&self, failures: Failures) -> String {
        format!("{}:lockout:{failures}", self.prefix)
    }

    async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        key: &str,
        arguments: &[i64],
    ) -> Result<T, Unavailable> {
        let mut connection = self.connection().await?;
        in_time(script.key(key).arg(arguments).invoke_async(&mut connection)).await
    }

    /// Returns the connection. It is created on first use, because it belongs to the current
    /// runtime.
    async fn connection(&self) -> Result<ConnectionManager, Unavailable> {
        let connect = || async {
            let settings = ConnectionManagerConfig::new()
                // No retries here: the next request tries again, and no request should wait for a
                // series of attempts.
                .set_number_of_retries(0)
                .set_connection_timeout(Some(REDIS_TIMEOUT))
                .set_response_timeout(Some(REDIS_TIMEOUT));
            ConnectionManager::new_lazy_with_config(self.client.clone(), settings)
        };
        Ok(self.connection.get_or_try_init(connect).await?.clone())
    }
}

/// Limits the whole call, including connecting, to [`REDIS_TIMEOUT`].
async fn in_time<T>(asked: impl Future<Output = Result<T, RedisError>>) -> Result<T, Unavailable> {
    tokio::time::timeout(REDIS_TIMEOUT, asked).await.map_err(|_| Unavailable::Timeout)?.map_err(Into::into)
}
