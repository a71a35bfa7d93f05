//! The shared limits in Redis or Valkey: one key for each limiter of a user and for each address that failed, changed by one
//! script each, so that processes that ask at once are answered one after the other.
//!
//! Time is the asking process's. A script takes the latest that it has seen, so that a process whose clock is behind
//! cannot win anything by it. Keys end by themselves well after they have become idle.

use std::net::IpAddr;
use std::time::Duration;

use domain::Timestamp;
use domain::ids::UserId;
use domain::rate::Verdict;
use domain::time::DAY_MS;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionInfo, FromRedisValue, IntoConnectionInfo, RedisError, Script};

use super::familiar::{SHARE_EVERY_MS, is_recent};
use super::{BadRedisUrl, KeyMark, Kind, REDIS_TIMEOUT, Unavailable};

/// After how long without an acknowledgement a connection counts as lost: a peer that vanished must not be waited for.
const LOST_AFTER: Duration = Duration::from_secs(2);

/// A connection that comes back by itself, and the scripts.
pub struct Redis {
    client: Client,
    connection: tokio::sync::OnceCell<ConnectionManager>,
    prefix: String,
    window: Script,
    bucket: Script,
    lockout: Script,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Redis {
    pub fn new(url: &str, prefix: &str) -> Result<Self, BadRedisUrl> {
        let info = url.into_connection_info().map_err(bad_url)?;
        let tcp = TcpSettings::default().set_nodelay(true).set_user_timeout(LOST_AFTER);
        let client = Client::open(ConnectionInfo::set_tcp_settings(info, tcp)).map_err(bad_url)?;
        Ok(Self {
            client,
            connection: tokio::sync::OnceCell::new(),
            prefix: prefix.to_owned(),
            window: Script::new(include_str!("window.lua")),
            bucket: Script::new(include_str!("bucket.lua")),
            lockout: Script::new(include_str!("lockout.lua")),
        })
    }

    pub async fn take(
        &self,
        kind: Kind,
        user: UserId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Verdict, Unavailable> {
        let script = if kind == Kind::Read { &self.window } else { &self.bucket };
        let key = format!("{}:{}:{user}", self.prefix, kind.as_str());
        self.take_at(script, &key, limit, now).await
    }

    pub async fn take_route(
        &self,
        network: IpAddr,
        route: &'static str,
        limit: u32,
        now: Timestamp,
    ) -> Result<Verdict, Unavailable> {
        let key = format!("{}:route:{route}:{network}", self.prefix);
        self.take_at(&self.window, &key, limit, now).await
    }

    async fn take_at(
        &self,
        script: &Script,
        key: &str,
        limit: u32,
        now: Timestamp,
    ) -> Result<Verdict, Unavailable> {
        let answer: (bool, i64, i64, i64) = self.run(script, key, &[i64::from(limit), now.ms()]).await?;
        let (allowed, remaining, reset_at_ms, retry_after_ms) = answer;
        let remaining = u32::try_from(remaining).unwrap_or_default();
        Ok(Verdict { allowed, limit, remaining, reset_at: Timestamp::from_ms(reset_at_ms), retry_after_ms })
    }

    /// The end of the lockout is the first element of the address's list, the latest instant seen the second.
    pub async fn shut_out(&self, network: IpAddr, now: Timestamp) -> Result<Option<Timestamp>, Unavailable> {
        let mut command = redis::cmd("LRANGE");
        command.arg(self.lockout_key(network)).arg(0).arg(1);
        let mut connection = self.connection().await?;
        let found: Vec<i64> = in_time(command.query_async(&mut connection)).await?;
        let [until_ms, latest_ms] = found[..] else { return Ok(None) };
        Ok((now.ms().max(latest_ms) < until_ms).then_some(Timestamp::from_ms(until_ms)))
    }

    pub async fn fail(&self, network: IpAddr, now: Timestamp) -> Result<Option<Timestamp>, Unavailable> {
        let until_ms: i64 = self.run(&self.lockout, &self.lockout_key(network), &[now.ms()]).await?;
        Ok((until_ms > 0).then_some(Timestamp::from_ms(until_ms)))
    }

    /// Notes when a key was last used successfully from the network.
    pub async fn note_success(
        &self,
        network: IpAddr,
        key: KeyMark,
        now: Timestamp,
    ) -> Result<(), Unavailable> {
        let mut command = redis::cmd("SET");
        command.arg(self.familiar_key(network, key)).arg(now.ms());
        // A later use may be shared this much later.
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

    fn lockout_key(&self, network: IpAddr) -> String {
        format!("{}:lockout:{network}", self.prefix)
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

    /// The connection, made when it is first asked for: it belongs to the runtime that asks.
    async fn connection(&self) -> Result<ConnectionManager, Unavailable> {
        let connect = || async {
            let settings = ConnectionManagerConfig::new()
                // Whoever asks next tries again; nobody waits for a row of tries.
                .set_number_of_retries(0)
                .set_connection_timeout(Some(REDIS_TIMEOUT))
                .set_response_timeout(Some(REDIS_TIMEOUT));
            ConnectionManager::new_lazy_with_config(self.client.clone(), settings)
        };
        Ok(self.connection.get_or_try_init(connect).await?.clone())
    }
}

fn bad_url(error: RedisError) -> BadRedisUrl {
    BadRedisUrl(error.category().to_owned())
}

/// The whole of it, connecting included, within the time that an answer may take.
async fn in_time<T>(asked: impl Future<Output = Result<T, RedisError>>) -> Result<T, Unavailable> {
    tokio::time::timeout(REDIS_TIMEOUT, asked).await.map_err(|_| Unavailable::Timeout)?.map_err(Into::into)
}
