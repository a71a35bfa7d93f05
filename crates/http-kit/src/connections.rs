//! The open connections, by network. At a limit, an idle connection gives way to a new one, so that
//! clients who only hold connections cannot keep others out.
//!
//! A connection is idle unless a request of it is being answered: before its first byte, while it
//! sends a head, and between two requests. The network with the most connections gives way first, and
//! of its connections the one that has been idle for the longest time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domain::rate::network_of;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::TrustedProxies;
use super::throttle::Throttle;

/// Minimum time between two warnings about closed connections.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The turn of a connection that is not idle.
const BUSY: u64 = 0;

/// The open connections of a server.
pub struct Connections {
    shared: Arc<Shared>,
    limit: usize,
    limit_per_network: usize,
    exempt: TrustedProxies,
    warnings: Throttle,
}

#[derive(Default)]
struct Shared {
    open: Mutex<Open>,
    /// The last turn that was given to a connection when it became idle. Turns order idle connections
    /// without reading a clock.
    turns: AtomicU64,
    /// Notified if a place may have become free while a new connection waits for one.
    freed: Notify,
    is_awaited: AtomicBool,
}

#[derive(Default)]
struct Open {
    /// Networks (an IPv4 address or an IPv6 /64) with their connections by id.
    networks: HashMap<IpAddr, BTreeMap<u64, Arc<Slot>>>,
    /// Networks whose connections may give way, by the number of their connections.
    by_size: BTreeSet<(usize, IpAddr)>,
    total: usize,
    last_id: u64,
}

struct Slot {
    /// When it became idle, in turns, or [`BUSY`].
    idle_since: AtomicU64,
    /// Connections of trusted proxies carry many clients and never give way.
    is_exempt: bool,
    evicted: CancellationToken,
}

/// The decision about a new connection.
pub enum Admission {
    Admitted(Place),
    /// Its network has reached its limit with connections that are all busy.
    Refused,
    /// All connections are busy. One may become idle or end.
    Full,
}

/// The place of an open connection. Dropping it frees the place.
pub struct Place {
    shared: Arc<Shared>,
    network: IpAddr,
    id: u64,
    slot: Arc<Slot>,
}

/// A request that is being answered. Dropping it makes the connection idle.
pub struct Answering {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
}

impl Connections {
    /// Allows at most `limit` connections, and `limit_per_network` of each network except for
    /// addresses in `exempt`.
    pub fn new(limit: usize, limit_per_network: usize, exempt: TrustedProxies) -> Self {
        let warnings = Throttle::every(WARN_EVERY);
        Self { shared: Arc::default(), limit, limit_per_network, exempt, warnings }
    }

    /// Counts a connection from `ip`. At a limit, closes an idle connection instead of refusing this
    /// one.
    pub fn admit(&self, ip: IpAddr) -> Admission {
        // An IPv4 client on an IPv6 socket must match IPv4 ranges.
        let (ip, network) = (ip.to_canonical(), network_of(ip));
        let is_exempt = self.exempt.contains(ip);
        let mut open = self.shared.open.lock();
        let count = open.networks.get(&network).map_or(0, BTreeMap::len);
        let evicted = if count >= self.limit_per_network && !is_exempt {
            if !open.evict_of(network) {
                drop(open);
                self.warn(network);
                return Admission::Refused;
            }
            Some(network)
        } else if open.total >= self.limit {
            let Some(evicted) = open.evict() else { return Admission::Full };
            Some(evicted)
        } else {
            None
        };
        let place = self.place(&mut open, network, is_exempt);
        // Release the lock before logging, which may block.
        drop(open);
        if let Some(evicted) = evicted {
            self.warn(evicted);
        }
        Admission::Admitted(place)
    }

    /// Counts a connection from `ip` above all limits.
    pub fn admit_beyond(&self, ip: IpAddr) -> Place {
        let is_exempt = self.exempt.contains(ip.to_canonical());
        self.place(&mut self.shared.open.lock(), network_of(ip), is_exempt)
    }

    fn place(&self, open: &mut Open, network: IpAddr, is_exempt: bool) -> Place {
        let idle_since = AtomicU64::new(self.shared.next_turn());
        let slot = Arc::new(Slot { idle_since, is_exempt, evicted: CancellationToken::new() });
        let id = open.insert(network, Arc::clone(&slot));
        Place { shared: Arc::clone(&self.shared), network, id, slot }
    }

    /// Waits until a place may be free. Only the accept loop waits.
    pub async fn freed(&self) {
        self.shared.is_awaited.store(true, Ordering::Release);
        self.shared.freed.notified().await;
        self.shared.is_awaited.store(false, Ordering::Release);
    }

    fn warn(&self, network: IpAddr) {
        if let Some(closed) = self.warnings.pass(Instant::now()) {
            tracing::warn!(
                %network, limit = self.limit, limit_per_address = self.limit_per_network, closed,
                "closed connections: there are too many open ones, most of them of this address. If it is a proxy, add it to trusted-proxies"
            );
        }
    }
}

impl Shared {
    fn next_turn(&self) -> u64 {
        // The first turn is above BUSY.
        self.turns.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn tell_waiting(&self) {
        if self.is_awaited.load(Ordering::Acquire) {
            self.freed.notify_one();
        }
    }
}

impl Open {
    fn insert(&mut self, network: IpAddr, slot: Arc<Slot>) -> u64 {
        self.last_id += 1;
        let is_exempt = slot.is_exempt;
        let slots = self.networks.entry(network).or_default();
        let before = slots.len();
        slots.insert(self.last_id, slot);
        if self.by_size.remove(&(before, network)) || !is_exempt {
            self.by_size.insert((before + 1, network));
        }
        self.total += 1;
        self.last_id
    }

    fn remove(&mut self, network: IpAddr, id: u64) {
        let Some(slots) = self.networks.get_mut(&network) else { return };
        let before = slots.len();
        // An evicted connection was removed already.
        if slots.remove(&id).is_none() {
            return;
        }
        if self.by_size.remove(&(before, network)) && before > 1 {
            self.by_size.insert((before - 1, network));
        }
        // Remove empty entries, or every address that ever connected would use memory.
        if before == 1 {
            self.networks.remove(&network);
        }
        self.total -= 1;
    }

    /// Returns the connection of the network that has been idle for the longest time.
    fn find_idle(&self, network: IpAddr) -> Option<u64> {
        let slots = self.networks.get(&network)?;
        let idle = slots.iter().filter_map(|(id, slot)| Some((slot.idle_turn()?, *id)));
        idle.min().map(|(_, id)| id)
    }

    /// Closes that connection. Returns whether there was one.
    fn evict_of(&mut self, network: IpAddr) -> bool {
        let Some(id) = self.find_idle(network) else { return false };
        if let Some(slot) = self.networks.get(&network).and_then(|slots| slots.get(&id)) {
            slot.evicted.cancel();
        }
        self.remove(network, id);
        true
    }

    /// Closes an idle connection of the network with the most connections that has one, and returns
    /// the network.
    fn evict(&mut self) -> Option<IpAddr> {
        let mut by_size = self.by_size.iter().rev().map(|(_, network)| *network);
        let network = by_size.find(|network| self.find_idle(*network).is_some())?;
        self.evict_of(network).then_some(network)
    }
}

impl Slot {
    /// Returns when it became idle, if it may give way.
    fn idle_turn(&self) -> Option<u64> {
        let turn = self.idle_since.load(Ordering::Relaxed);
        (turn != BUSY && !self.is_exempt).then_some(turn)
    }
}

impl Place {
    /// Marks the connection as busy until the returned value is dropped.
    pub fn begin_answer(&self) -> Answering {
        self.slot.idle_since.store(BUSY, Ordering::Relaxed);
        Answering { shared: Arc::clone(&self.shared), slot: Arc::clone(&self.slot) }
    }

    pub fn is_busy(&self) -> bool {
        self.slot.idle_since.load(Ordering::Relaxed) == BUSY
    }

    /// Completes when the connection must give way to another one.
    pub async fn evicted(&self) {
        self.slot.evicted.cancelled().await;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.slot.idle_since.store(self.shared.next_turn(), Ordering::Relaxed);
        self.shared.tell_waiting();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.open.lock().remove(self.network, self.id);
        self.shared.tell_waiting();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(connections: &Connections, ip: &str) -> Option<Place> {
        match connections.admit(ip.parse().unwrap()) {
            Admission::Admitted(place) => Some(place),
            Admission::Refused | Admission::Full => None,
        }
    }

    fn evicted(places: &[Place]) -> Vec<usize> {
        let is_evicted = |index: &usize| places[*index].slot.evicted.is_cancelled();
        (0..places.len()).filter(is_evicted).collect()
    }

    #[test]
    fn each_network_has_a_connection_limit_and_a_closed_connection_frees_a_slot() {
        let exempt = TrustedProxies::from(vec!["10.0.0.0/8".parse().unwrap()]);
        let connections = Connections::new(100, 2, exempt);
        let admit = |ip: &str| admit(&connections, ip);
        let places = ["2001:db8::1", "2001:db8::2", "192.0.2.1", "::ffff:192.0.2.1"].map(admit);
        let busy: Vec<_> = places.iter().map(|place| place.as_ref().unwrap().begin_answer()).collect();
        assert!(admit("2001:db8::3").is_none() && admit("192.0.2.1").is_none());
        assert!(admit("2001:db8:0:1::3").is_some() && admit("192.0.2.2").is_some());
        let proxied: Vec<_> = (0..9).map(|_| admit("10.1.2.3").unwrap()).collect();
        drop((places, busy, proxied));
        assert!(admit("2001:db8::3").is_some());
        let open = connections.shared.open.lock();
        assert!(open.networks.is_empty() && open.by_size.is_empty(), "nothing is kept of closed connections");
        assert_eq!(open.total, 0);
    }

    #[test]
    fn at_the_limit_of_its_network_a_new_connection_replaces_the_one_that_is_idle_for_longest() {
        let connections = Connections::new(100, 3, TrustedProxies::default());
        let places: Vec<_> = (0..3).map(|_| admit(&connections, "192.0.2.1").unwrap()).collect();
        // The first one has answered a request meanwhile, and the second one answers one.
        drop(places[0].begin_answer());
        let answering = places[1].begin_answer();
        let more: Vec<_> = (0..2).map(|_| admit(&connections, "192.0.2.1").unwrap()).collect();
        assert_eq!(evicted(&places), [0, 2]);
        assert!(evicted(&more).is_empty());
        drop(answering);
        let last = admit(&connections, "192.0.2.1").unwrap();
        assert_eq!(evicted(&more), [0], "it was idle before the second one of the first three");
        drop((places, more, last));
        assert_eq!(connections.shared.open.lock().total, 0);
    }

    #[test]
    fn at_the_total_limit_the_network_with_the_most_connections_gives_way() {
        let connections = Connections::new(1_000, 512, TrustedProxies::default());
        let attacker = |index: usize| format!("198.51.100.{}", index % 25);
        let guest = admit(&connections, "192.0.2.1").unwrap();
        let idle: Vec<_> = (0..10_000).map(|n| admit(&connections, &attacker(n)).unwrap()).collect();
        assert!(evicted(std::slice::from_ref(&guest)).is_empty());
        assert_eq!(evicted(&idle).len(), 10_001 - 1_000);
        // The last ones are open: each network lost its oldest.
        assert!(evicted(&idle).iter().all(|index| *index < 9_100));
        let guests: Vec<_> = (0..30).map(|_| admit(&connections, "192.0.2.2").unwrap()).collect();
        assert!(evicted(&guests).is_empty());
        assert_eq!(connections.shared.open.lock().total, 1_000);
        drop((guest, idle, guests));
        assert_eq!(connections.shared.open.lock().total, 0);
    }

    #[test]
    fn busy_connections_and_those_of_proxies_never_give_way() {
        let exempt = TrustedProxies::from(vec!["10.0.0.0/8".parse().unwrap()]);
        let connections = Connections::new(3, 3, exempt);
        let proxied: Vec<_> = (0..2).map(|_| admit(&connections, "10.1.2.3").unwrap()).collect();
        let busy = admit(&connections, "192.0.2.1").unwrap();
        let answering = busy.begin_answer();
        assert!(matches!(connections.admit("192.0.2.2".parse().unwrap()), Admission::Full));
        drop(answering);
        let new = admit(&connections, "192.0.2.2").unwrap();
        assert_eq!((evicted(&proxied), evicted(&[busy, new])), (vec![], vec![0]));
    }
}
