//! The open connections, by network. At a limit, an idle connection gives way to a new one, so that
//! clients who only hold connections cannot keep others out.
//!
//! A connection is idle unless a request of it is being answered: before its first byte, while it
//! sends a head, and between two requests. The address with the most connections gives way first, and
//! of its connections the one that has been idle for the longest time.
//!
//! A limit holds for an address (IPv6: a /64), for the networks around it, and for all together. At
//! the limit of a network, only its own connections give way.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domain::rate::{Scope, network_in, network_of};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::TrustedProxies;
use super::throttle::Throttle;

/// Minimum time between two warnings about closed connections.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The turn of a connection that is not idle.
const BUSY: u64 = 0;

/// The scopes of networks that have a limit, the narrowest first.
const NETWORKS: [Scope; 3] = [Scope::Address, Scope::Network, Scope::Site];

/// The most open connections of each scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Of an IPv4 address or an IPv6 /64.
    pub address: usize,
    /// Of an IPv4 /24 or an IPv6 /56.
    pub network: usize,
    /// Of an IPv6 /48.
    pub site: usize,
    pub total: usize,
}

impl ConnectionLimits {
    const fn of(self, scope: Scope) -> usize {
        match scope {
            Scope::User => usize::MAX,
            Scope::Address => self.address,
            Scope::Network => self.network,
            Scope::Site => self.site,
            Scope::Total => self.total,
        }
    }
}

/// Learns which connections are open, and which were refused.
pub trait ConnectionMeter: Send + Sync {
    /// A connection from `ip` was opened. The returned value is dropped when it closes. An exempt one
    /// counts only for all connections together.
    fn opened(&self, ip: IpAddr, is_exempt: bool) -> Box<dyn Any + Send + Sync>;

    /// The share of this scope had no room for a connection.
    fn refused(&self, scope: Scope);
}

/// The open connections of a server.
pub struct Connections {
    shared: Arc<Shared>,
    limits: ConnectionLimits,
    exempt: TrustedProxies,
    meter: Option<Arc<dyn ConnectionMeter>>,
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
    /// Addresses (IPv6: the first one of a /64) with their connections by id.
    addresses: HashMap<IpAddr, BTreeMap<u64, Arc<Slot>>>,
    /// Addresses whose connections may give way, by the number of their connections.
    by_size: BTreeSet<(usize, IpAddr)>,
    /// The connections of wider networks, except for those of trusted proxies.
    wider: HashMap<(Scope, IpAddr), Wider>,
    total: usize,
    last_id: u64,
}

#[derive(Default)]
struct Wider {
    count: usize,
    addresses: BTreeSet<IpAddr>,
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
    /// Its address or one of its networks has reached its limit with connections that are all busy.
    Refused,
    /// All connections are busy. One may become idle or end.
    Full,
}

/// The place of an open connection. Dropping it frees the place.
pub struct Place {
    shared: Arc<Shared>,
    address: IpAddr,
    id: u64,
    slot: Arc<Slot>,
    _metered: Option<Box<dyn Any + Send + Sync>>,
}

/// A request that is being answered. Dropping it makes the connection idle.
pub struct Answering {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
}

impl Connections {
    /// Allows these numbers of connections. For addresses in `exempt`, only the total holds.
    pub fn new(
        limits: ConnectionLimits,
        exempt: TrustedProxies,
        meter: Option<Arc<dyn ConnectionMeter>>,
    ) -> Self {
        let warnings = Throttle::every(WARN_EVERY);
        Self { shared: Arc::default(), limits, exempt, meter, warnings }
    }

    /// Counts a connection from `ip`. At a limit, closes an idle connection instead of refusing this
    /// one.
    pub fn admit(&self, ip: IpAddr) -> Admission {
        // An IPv4 client on an IPv6 socket must match IPv4 ranges.
        let ip = ip.to_canonical();
        let address = network_of(ip);
        let is_exempt = self.exempt.contains(ip);
        let mut open = self.shared.open.lock();
        // The narrowest one is enough: its connections also count for the wider ones.
        let is_full = |scope: &Scope| open.count(*scope, address) >= self.limits.of(*scope);
        let full = if is_exempt { None } else { NETWORKS.into_iter().find(is_full) };
        let evicted = if let Some(scope) = full {
            let Some(evicted) = open.evict_within(scope, address) else {
                drop(open);
                self.refuse(scope);
                self.warn(address);
                return Admission::Refused;
            };
            Some(evicted)
        } else if open.total >= self.limits.total {
            let Some(evicted) = open.evict() else {
                drop(open);
                self.refuse(Scope::Total);
                return Admission::Full;
            };
            Some(evicted)
        } else {
            None
        };
        let (id, slot) = self.insert(&mut open, address, is_exempt);
        // Release the lock before logging, which may block.
        drop(open);
        if let Some(evicted) = evicted {
            self.warn(evicted);
        }
        Admission::Admitted(self.place(ip, address, id, slot))
    }

    /// Counts a connection from `ip` above all limits.
    pub fn admit_beyond(&self, ip: IpAddr) -> Place {
        let ip = ip.to_canonical();
        let (address, is_exempt) = (network_of(ip), self.exempt.contains(ip));
        let (id, slot) = self.insert(&mut self.shared.open.lock(), address, is_exempt);
        self.place(ip, address, id, slot)
    }

    fn insert(&self, open: &mut Open, address: IpAddr, is_exempt: bool) -> (u64, Arc<Slot>) {
        let idle_since = AtomicU64::new(self.shared.next_turn());
        let slot = Arc::new(Slot { idle_since, is_exempt, evicted: CancellationToken::new() });
        (open.insert(address, Arc::clone(&slot)), slot)
    }

    fn place(&self, ip: IpAddr, address: IpAddr, id: u64, slot: Arc<Slot>) -> Place {
        let metered = self.meter.as_ref().map(|meter| meter.opened(ip, slot.is_exempt));
        Place { shared: Arc::clone(&self.shared), address, id, slot, _metered: metered }
    }

    fn refuse(&self, scope: Scope) {
        if let Some(meter) = &self.meter {
            meter.refused(scope);
        }
    }

    /// Waits until a place may be free. Only the accept loop waits.
    pub async fn freed(&self) {
        self.shared.is_awaited.store(true, Ordering::Release);
        self.shared.freed.notified().await;
        self.shared.is_awaited.store(false, Ordering::Release);
    }

    fn warn(&self, address: IpAddr) {
        if let Some(closed) = self.warnings.pass(Instant::now()) {
            let ConnectionLimits { address: limit_per_address, network, site, total } = self.limits;
            tracing::warn!(
                %address, limit = total, limit_per_address, limit_per_network = network, limit_per_site = site, closed,
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
    /// Returns the number of connections that count for the limit of a scope of this address.
    fn count(&self, scope: Scope, address: IpAddr) -> usize {
        match scope {
            Scope::Address => self.addresses.get(&address).map_or(0, BTreeMap::len),
            _ => wider(scope, address).and_then(|key| self.wider.get(&key)).map_or(0, |wider| wider.count),
        }
    }

    fn insert(&mut self, address: IpAddr, slot: Arc<Slot>) -> u64 {
        self.last_id += 1;
        let is_exempt = slot.is_exempt;
        let slots = self.addresses.entry(address).or_default();
        let before = slots.len();
        slots.insert(self.last_id, slot);
        if self.by_size.remove(&(before, address)) || !is_exempt {
            self.by_size.insert((before + 1, address));
        }
        if !is_exempt {
            for key in all_wider(address) {
                let wider = self.wider.entry(key).or_default();
                wider.count += 1;
                wider.addresses.insert(address);
            }
        }
        self.total += 1;
        self.last_id
    }

    fn remove(&mut self, address: IpAddr, id: u64) {
        let Some(slots) = self.addresses.get_mut(&address) else { return };
        let before = slots.len();
        // An evicted connection was removed already.
        let Some(slot) = slots.remove(&id) else { return };
        if self.by_size.remove(&(before, address)) && before > 1 {
            self.by_size.insert((before - 1, address));
        }
        // Remove empty entries, or every address that ever connected would use memory.
        if before == 1 {
            self.addresses.remove(&address);
        }
        for key in all_wider(address) {
            let Some(wider) = self.wider.get_mut(&key) else { continue };
            wider.count -= usize::from(!slot.is_exempt);
            if before == 1 {
                wider.addresses.remove(&address);
            }
            if wider.count == 0 {
                self.wider.remove(&key);
            }
        }
        self.total -= 1;
    }

    /// Returns the connection of the address that has been idle for the longest time.
    fn find_idle(&self, address: IpAddr) -> Option<u64> {
        let slots = self.addresses.get(&address)?;
        let idle = slots.iter().filter_map(|(id, slot)| Some((slot.idle_turn()?, *id)));
        idle.min().map(|(_, id)| id)
    }

    /// Closes that connection. Returns whether there was one.
    fn evict_of(&mut self, address: IpAddr) -> bool {
        let Some(id) = self.find_idle(address) else { return false };
        if let Some(slot) = self.addresses.get(&address).and_then(|slots| slots.get(&id)) {
            slot.evicted.cancel();
        }
        self.remove(address, id);
        true
    }

    /// Closes an idle connection of the same scope as `address`: one of the address with the most
    /// connections that has one. Returns that address.
    fn evict_within(&mut self, scope: Scope, address: IpAddr) -> Option<IpAddr> {
        let fullest = match scope {
            Scope::Address => address,
            _ => {
                let addresses = &self.wider.get(&wider(scope, address)?)?.addresses;
                let with_idle = addresses.iter().filter(|address| self.find_idle(**address).is_some());
                *with_idle.max_by_key(|address| self.count(Scope::Address, **address))?
            }
        };
        self.evict_of(fullest).then_some(fullest)
    }

    /// Closes an idle connection of the address with the most connections that has one, and returns the
    /// address.
    fn evict(&mut self) -> Option<IpAddr> {
        let mut by_size = self.by_size.iter().rev().map(|(_, address)| *address);
        let address = by_size.find(|address| self.find_idle(*address).is_some())?;
        self.evict_of(address).then_some(address)
    }
}

/// Returns the network of the address that `scope` counts as one, if it has one.
fn wider(scope: Scope, address: IpAddr) -> Option<(Scope, IpAddr)> {
    Some((scope, network_in(scope, address)?))
}

fn all_wider(address: IpAddr) -> impl Iterator<Item = (Scope, IpAddr)> {
    [Scope::Network, Scope::Site].into_iter().filter_map(move |scope| wider(scope, address))
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
        self.shared.open.lock().remove(self.address, self.id);
        self.shared.tell_waiting();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits each address and the total.
    fn limited(total: usize, address: usize, exempt: TrustedProxies) -> Connections {
        let limits = ConnectionLimits { address, network: usize::MAX, site: usize::MAX, total };
        Connections::new(limits, exempt, None)
    }

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
    fn each_address_has_a_connection_limit_and_a_closed_connection_frees_a_slot() {
        let exempt = TrustedProxies::from(vec!["10.0.0.0/8".parse().unwrap()]);
        let connections = limited(100, 2, exempt);
        let admit = |ip: &str| admit(&connections, ip);
        let places = ["2001:db8::1", "2001:db8::2", "192.0.2.1", "::ffff:192.0.2.1"].map(admit);
        let busy: Vec<_> = places.iter().map(|place| place.as_ref().unwrap().begin_answer()).collect();
        assert!(admit("2001:db8::3").is_none() && admit("192.0.2.1").is_none());
        assert!(admit("2001:db8:0:1::3").is_some() && admit("192.0.2.2").is_some());
        let proxied: Vec<_> = (0..9).map(|_| admit("10.1.2.3").unwrap()).collect();
        drop((places, busy, proxied));
        assert!(admit("2001:db8::3").is_some());
        let open = connections.shared.open.lock();
        assert!(
            open.addresses.is_empty() && open.by_size.is_empty(),
            "nothing is kept of closed connections"
        );
        assert!(open.wider.is_empty(), "nor of their networks");
        assert_eq!(open.total, 0);
    }

    #[test]
    fn at_the_limit_of_its_address_a_new_connection_replaces_the_one_that_is_idle_for_longest() {
        let connections = limited(100, 3, TrustedProxies::default());
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
    fn at_the_total_limit_the_address_with_the_most_connections_gives_way() {
        let connections = limited(1_000, 512, TrustedProxies::default());
        let attacker = |index: usize| format!("198.51.100.{}", index % 25);
        let guest = admit(&connections, "192.0.2.1").unwrap();
        let idle: Vec<_> = (0..10_000).map(|n| admit(&connections, &attacker(n)).unwrap()).collect();
        assert!(evicted(std::slice::from_ref(&guest)).is_empty());
        assert_eq!(evicted(&idle).len(), 10_001 - 1_000);
        // The last ones are open: each address lost its oldest.
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
        let connections = limited(3, 3, exempt);
        let proxied: Vec<_> = (0..2).map(|_| admit(&connections, "10.1.2.3").unwrap()).collect();
        let busy = admit(&connections, "192.0.2.1").unwrap();
        let answering = busy.begin_answer();
        assert!(matches!(connections.admit("192.0.2.2".parse().unwrap()), Admission::Full));
        drop(answering);
        let new = admit(&connections, "192.0.2.2").unwrap();
        assert_eq!((evicted(&proxied), evicted(&[busy, new])), (vec![], vec![0]));
    }

    #[derive(Default)]
    struct Counting {
        /// Each open connection has a clone.
        open: Arc<()>,
        refused: Mutex<Vec<Scope>>,
    }

    impl ConnectionMeter for Counting {
        fn opened(&self, _: IpAddr, _: bool) -> Box<dyn Any + Send + Sync> {
            Box::new(Arc::clone(&self.open))
        }

        fn refused(&self, scope: Scope) {
            self.refused.lock().push(scope);
        }
    }

    #[test]
    fn the_meter_learns_of_open_connections_and_of_refused_ones() {
        let meter = Arc::new(Counting::default());
        let metered: Arc<dyn ConnectionMeter> = Arc::<Counting>::clone(&meter);
        let limits = ConnectionLimits { address: 1, network: usize::MAX, site: usize::MAX, total: 2 };
        let connections = Connections::new(limits, TrustedProxies::default(), Some(metered));
        let open = || Arc::strong_count(&meter.open) - 1;
        let places = ["192.0.2.1", "192.0.2.2"].map(|ip| admit(&connections, ip).unwrap());
        let busy = places.each_ref().map(Place::begin_answer);
        assert_eq!(open(), 2);
        assert!(admit(&connections, "192.0.2.1").is_none() && admit(&connections, "192.0.2.3").is_none());
        assert_eq!(*meter.refused.lock(), [Scope::Address, Scope::Total]);
        drop((busy, places));
        assert_eq!(open(), 0);
    }

    #[test]
    fn a_network_and_a_site_have_a_share_and_lose_only_their_own_connections() {
        let limits = ConnectionLimits { address: 3, network: 4, site: 6, total: 100 };
        let exempt = TrustedProxies::from(vec!["192.0.2.200/32".parse().unwrap()]);
        let connections = Connections::new(limits, exempt, None);
        let admit = |ip: &str| admit(&connections, ip);
        let guest = admit("198.51.100.1").unwrap();
        let proxied: Vec<_> = (0..9).map(|_| admit("192.0.2.200").unwrap()).collect();
        let places: Vec<_> =
            ["192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3"].map(|ip| admit(ip).unwrap()).into();
        assert!(evicted(&places).is_empty());
        // The address with the most connections gives way, and of these the first one.
        let fifth = admit("192.0.2.4").unwrap();
        assert_eq!(evicted(&places), [1]);
        let busy: Vec<_> = places.iter().chain([&fifth]).map(Place::begin_answer).collect();
        assert!(admit("192.0.2.5").is_none() && admit("192.0.3.1").is_some());
        drop(busy);
        // Two /56 of one /48 have three connections each.
        let of_site: Vec<_> =
            (0..6).map(|n| admit(&format!("2001:db8:1:{}0{n}::1", n % 2)).unwrap()).collect();
        assert!(evicted(&of_site).is_empty());
        let more = admit("2001:db8:1:200::1").unwrap();
        assert_eq!(evicted(&of_site).len(), 1);
        assert!(evicted(&[guest, more]).is_empty() && evicted(&proxied).is_empty());
        drop((places, fifth, of_site, proxied));
        let open = connections.shared.open.lock();
        assert!(open.addresses.is_empty() && open.wider.is_empty() && open.by_size.is_empty());
    }
}
