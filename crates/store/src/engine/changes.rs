//! What this process has changed: versions that let readers keep what they have read until it is old, and a signal.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use domain::ids::MarketId;
use parking_lot::RwLock;
use tokio::sync::Notify;

/// What is raised after a write is durable and before it is answered.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The last change of any market. Raised behind `of_markets`, so that who sees it finds there what it changed.
    markets: AtomicU64,
    of_markets: RwLock<OfMarkets>,
    events: Notify,
}

#[derive(Debug, Default)]
struct OfMarkets {
    /// The last change that may have touched any of them.
    any: u64,
    /// The last change that touched this one.
    one: HashMap<MarketId, u64>,
}

/// What one unit of work, or a group of them, has changed.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// What is shown of markets.
    pub(super) markets: Changed,
    /// Events were written.
    pub(super) events: bool,
}

impl Touched {
    /// Adds what another unit has changed.
    pub(super) fn add(&mut self, other: Self) {
        self.markets.add(other.markets);
        self.events |= other.events;
    }
}

/// Which markets a unit of work has changed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum Changed {
    /// None.
    #[default]
    Nothing,
    /// These.
    Some(BTreeSet<MarketId>),
    /// Nobody knows which.
    Any,
}

impl Changed {
    /// Adds what another unit has changed.
    pub(super) fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (_, Self::Nothing) | (Self::Any, _) => {}
            (Self::Some(these), Self::Some(those)) => these.extend(those),
            (_, other) => *self = other,
        }
    }

    /// Adds one market.
    pub(super) fn add_one(&mut self, id: MarketId) {
        self.add(Self::Some([id].into()));
    }
}

impl Changes {
    pub(super) fn markets_version(&self) -> u64 {
        self.markets.load(Ordering::Acquire)
    }

    pub(super) fn market_version(&self, id: MarketId) -> u64 {
        let of = self.of_markets.read();
        of.one.get(&id).map_or(of.any, |one| of.any.max(*one))
    }

    pub(super) const fn events_written(&self) -> &Notify {
        &self.events
    }

    pub(super) fn tell(&self, touched: Touched) {
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
        let version = self.markets.load(Ordering::Acquire) + 1;
        match changed {
            Changed::Nothing => {}
            Changed::Some(ids) => of.one.extend(ids.into_iter().map(|id| (id, version))),
            Changed::Any => {
                of.any = version;
                of.one.clear();
            }
        }
        self.markets.store(version, Ordering::Release);
    }
}
