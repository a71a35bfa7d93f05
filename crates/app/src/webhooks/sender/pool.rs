//! Idle connections for further deliveries to the same endpoint.
//!
//! The pool is limited per origin, in total, and in time. The oldest connection is dropped when it
//! is full, so that an origin with many endpoints cannot displace the others permanently.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::ids::KeyId;
use parking_lot::Mutex;
use tokio::time::{Instant, interval};

use super::Endpoint;
use super::connection::TargetConnection;

/// The maximum number of idle connections per origin. A hosted receiver has many users' endpoints,
/// each with its own connection.
const MAX_PER_ORIGIN: usize = 128;
/// The maximum number of idle connections in total. With TLS one takes about 50 KiB, so 25 MiB.
const MAX_KEPT: usize = 512;
/// The time after which an idle connection is closed.
const MAX_IDLE: Duration = Duration::from_secs(30);
/// The interval at which expired connections are closed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

pub(super) struct Pool<C = TargetConnection> {
    kept: Mutex<Kept<C>>,
}

impl<C> Default for Pool<C> {
    fn default() -> Self {
        let kept = Kept { by_origin: HashMap::new(), count: 0, swept: false };
        Self { kept: Mutex::new(kept) }
    }
}

/// Connections are sorted oldest first. Origins without a connection are removed.
struct Kept<C> {
    by_origin: HashMap<String, VecDeque<Idle<C>>>,
    count: usize,
    swept: bool,
}

/// An idle connection of one endpoint.
struct Idle<C> {
    since: Instant,
    key_id: KeyId,
    /// The whole URL: a key with another path is another receiver.
    url: String,
    connection: C,
}

impl<C> Idle<C> {
    fn belongs_to(&self, endpoint: Endpoint<'_>) -> bool {
        self.key_id == endpoint.key_id && self.url == endpoint.url
    }

    fn is_expired(&self) -> bool {
        self.since.elapsed() >= MAX_IDLE
    }
}

impl<C: Send + 'static> Pool<C> {
    /// Takes the endpoint's newest idle connection to the origin.
    pub fn take(&self, origin: &str, endpoint: Endpoint<'_>) -> Option<C> {
        let mut kept = self.kept.lock();
        let of_origin = kept.by_origin.get_mut(origin)?;
        // The newest: it is the least likely to have been closed by the receiver.
        let newest = of_origin.iter().rposition(|idle| idle.belongs_to(endpoint))?;
        let idle = of_origin.remove(newest)?;
        if of_origin.is_empty() {
            kept.by_origin.remove(origin);
        }
        kept.count -= 1;
        (!idle.is_expired()).then_some(idle.connection)
    }

    /// Adds an idle connection of the endpoint.
    pub fn put(self: &Arc<Self>, origin: &str, endpoint: Endpoint<'_>, connection: C) {
        let mut kept = self.kept.lock();
        if kept.by_origin.get(origin).is_some_and(|of_origin| of_origin.len() >= MAX_PER_ORIGIN) {
            kept.drop_oldest(Some(origin));
        } else if kept.count >= MAX_KEPT {
            kept.drop_oldest(None);
        }
        kept.count += 1;
        let Endpoint { key_id, url, .. } = endpoint;
        let idle = Idle { since: Instant::now(), key_id, url: url.to_owned(), connection };
        match kept.by_origin.get_mut(origin) {
            Some(of_origin) => of_origin.push_back(idle),
            None => drop(kept.by_origin.insert(origin.to_owned(), VecDeque::from([idle]))),
        }
        if !kept.swept {
            kept.swept = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes expired connections. Returns whether any are left.
    fn drop_expired(&self) -> bool {
        let mut kept = self.kept.lock();
        kept.by_origin.retain(|_, of_origin| {
            of_origin.retain(|idle| !idle.is_expired());
            !of_origin.is_empty()
        });
        kept.count = kept.by_origin.values().map(VecDeque::len).sum();
        kept.swept = kept.count > 0;
        kept.swept
    }
}

impl<C> Kept<C> {
    /// Drops the oldest connection of the origin, or of all origins.
    fn drop_oldest(&mut self, origin: Option<&str>) {
        let oldest_of = |of_origin: &VecDeque<Idle<C>>| of_origin.front().map(|idle| idle.since);
        let oldest = match origin {
            Some(origin) => Some(origin.to_owned()),
            None => {
                let oldest = self.by_origin.iter().min_by_key(|(_, of_origin)| oldest_of(of_origin));
                oldest.map(|(origin, _)| origin.clone())
            }
        };
        let Some(origin) = oldest else { return };
        if let Some(of_origin) = self.by_origin.get_mut(&origin)
            && of_origin.pop_front().is_some()
        {
            self.count -= 1;
        }
        if self.by_origin.get(&origin).is_some_and(VecDeque::is_empty) {
            self.by_origin.remove(&origin);
        }
    }
}

/// Closes expired connections periodically. Ends when the pool is empty; `put` starts it again.
async fn sweep<C: Send + 'static>(pool: Weak<Pool<C>>) {
    let mut ticks = interval(SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        let any_is_left = pool.upgrade().is_some_and(|pool| pool.drop_expired());
        if !any_is_left {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ids::UserId;
    use domain::key::Tier;

    /// Stands in for a connection. Its clones count the open ones.
    type Open = Arc<()>;

    fn pool() -> (Arc<Pool<Open>>, Open) {
        (Arc::default(), Open::default())
    }

    /// The endpoint of the user with this number.
    fn of(user: u128) -> Endpoint<'static> {
        let id = uuid::Uuid::from_u128(user);
        let (user_id, key_id, tier) = (UserId(id), KeyId(id), Tier::Free);
        Endpoint { user_id, tier, key_id, url: "https://hooks.example.com/" }
    }

    fn open(all: &Open) -> usize {
        Arc::strong_count(all) - 1
    }

    #[tokio::test(start_paused = true)]
    async fn an_origin_keeps_at_most_128_connections() {
        let (pool, all) = pool();
        for _ in 0..200 {
            pool.put("a", of(1), Arc::clone(&all));
        }
        assert_eq!(open(&all), 128);
        assert!((0..128).all(|_| pool.take("a", of(1)).is_some()));
        assert!(pool.take("a", of(1)).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_512_idle_connections_is_closed_first() {
        let (pool, all) = pool();
        for number in 0..600 {
            pool.put(&number.to_string(), of(1), Arc::clone(&all));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(open(&all), 512);
        assert!(pool.take("87", of(1)).is_none());
        assert!(pool.take("88", of(1)).is_some());
        assert!(pool.take("599", of(1)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed_within_30_seconds() {
        let (pool, all) = pool();
        pool.put("a", of(1), Arc::clone(&all));
        tokio::time::advance(Duration::from_millis(29_999)).await;
        pool.put("a", of(1), pool.take("a", of(1)).unwrap());
        tokio::time::advance(Duration::from_millis(30_000)).await;
        assert!(pool.take("a", of(1)).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_unused_connection_is_closed_too() {
        let (pool, all) = pool();
        for _ in 0..2 {
            pool.put("a", of(1), Arc::clone(&all));
            assert_eq!(open(&all), 1);
            tokio::time::timeout(Duration::from_secs(36), std::future::pending::<()>()).await.unwrap_err();
            assert_eq!(open(&all), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_connection_of_an_origin_is_used_first() {
        let pool = Arc::<Pool<i32>>::default();
        for (origin, number) in [("a", 1), ("a", 2), ("b", 3)] {
            pool.put(origin, of(1), number);
        }
        assert_eq!(
            [pool.take("a", of(1)), pool.take("a", of(1)), pool.take("a", of(1)), pool.take("b", of(1))],
            [Some(2), Some(1), None, Some(3)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_not_used_for_another_path_of_its_key() {
        let pool = Arc::<Pool<i32>>::default();
        pool.put("a", of(1), 1);
        assert_eq!(pool.take("a", Endpoint { url: "https://hooks.example.com/b", ..of(1) }), None);
        assert_eq!(pool.take("a", of(1)), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_used_only_for_its_own_endpoint() {
        let pool = Arc::<Pool<i32>>::default();
        let elsewhere = Endpoint { url: "https://hooks.example.com/b", ..of(1) };
        pool.put("a", of(1), 1);
        assert_eq!((pool.take("a", of(2)), pool.take("a", elsewhere)), (None, None));
        pool.put("a", of(2), 2);
        assert_eq!((pool.take("a", of(1)), pool.take("a", of(2))), (Some(1), Some(2)));
    }
}
