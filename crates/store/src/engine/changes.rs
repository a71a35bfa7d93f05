//! Local change tracking: versions that show caches when market data is stale, and a signal for new
//! events.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use domain::ids::MarketId;
use parking_lot::RwLock;
use tokio::sync::Notify;

use crate::{StoreObserver, TradeMove};

/// The change counters of one process. They are updated after a write is durable and before it is
/// acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The version of the last change of any market. Stored after `of_markets` is updated, so that
    /// a reader of the new version also finds the change there.
    markets: AtomicU64,
    of_markets: RwLock<OfMarkets>,
    events: Notify,
    observer: Observer,
}

/// The observer of the store, once there is one.
#[derive(Default)]
struct Observer(OnceLock<Arc<dyn StoreObserver>>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.get().is_some()).finish()
    }
}

#[derive(Debug, Default)]
struct OfMarkets {
    /// The version of the last change that may have touched any market.
    any: u64,
    /// The versions of the last change of single markets.
    one: HashMap<MarketId, u64>,
}

/// The changes made by a unit of work, or by a group of them.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// Markets whose public data changed.
    pub(super) markets: Changed,
    /// Set if events were written.
    pub(super) events: bool,
    /// Trades with a new state.
    pub(super) trades: Vec<TradeMove>,
}

impl Touched {
    pub(super) fn add(&mut self, other: Self) {
        self.markets.add(other.markets);
        self.events |= other.events;
        self.trades.extend(other.trades);
    }
}

/// The markets that a unit of work has changed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum Changed {
    #[default]
    Nothing,
    Some(BTreeSet<MarketId>),
    /// An unknown set of markets, so all are considered changed.
    Any,
}

impl Changed {
    /// Merges the changes of another unit.
    pub(super) fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (_, Self::Nothing) | (Self::Any, _) => {}
            (Self::Some(these), Self::Some(those)) => these.extend(those),
            (_, other) => *self = other,
        }
    }

    pub(super) fn add_one(&mut self, id: MarketId) {
        self.add(Self::Some([id].into()));
    }
}

impl Changes {
    pub(crate) fn markets_version(&self) -> u64 {
        self.markets.load(Ordering::Acquire)
    }

    pub(crate) fn market_version(&self, id: MarketId) -> u64 {
        let of = self.of_markets.read();
        of.one.get(&id).map_or(of.any, |one| of.any.max(*one))
    }

    pub(crate) const fn events_written(&self) -> &Notify {
        &self.events
    }

    /// Sets the observer, unless there is one.
    pub(crate) fn observe(&self, observer: Arc<dyn StoreObserver>) {
        // Tests have several contexts on one store: the first one observes it.
        drop(self.observer.0.set(observer));
    }

    pub(crate) fn observer(&self) -> Option<&dyn StoreObserver> {
        self.observer.0.get().map(AsRef::as_ref)
    }

    pub(super) fn tell(&self, touched: Touched) {
        if let Some(observer) = self.observer() {
            touched.trades.iter().for_each(|moved| observer.trade(moved));
        }
        self.markets_changed(touched.markets);
        if touched.events {
            self.events.notify_waiters();
        }
    }

    fn markets_changed(&self, changed: Changed) {
        if changed == Changed::Nothing {
            return;
        }
        let mut of = self.of_markets.write();
        // The write lock makes this read-modify-write safe: there is no other writer.
        let version = self.markets.load(Ordering::Acquire) + 1;
        match changed {
            Changed::Nothing => {}
            Changed::Some(ids) => of.one.extend(ids.into_iter().map(|id| (id, version))),
            Changed::Any => {
                // `any` is now at least as new as every single entry.
                of.any = version;
                of.one.clear();
            }
        }
        self.markets.store(version, Ordering::Release);
    }
}
