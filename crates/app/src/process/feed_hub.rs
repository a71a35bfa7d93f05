//! Listeners of this process. One watcher wakes them, so waiting listeners never poll the database.
//!
//! The hub stores no events. A listener that is woken reads the tables itself, so a slow listener
//! costs no memory, and a lost wake-up only costs time.

use std::collections::HashMap;
use std::sync::Arc;

use domain::ids::{MarketId, UserId};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::limits::Place;

/// The subject of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    User(UserId),
    Market(MarketId),
}

#[derive(Debug, Default)]
pub struct Hub {
    open: Mutex<HashMap<Topic, Open>>,
    closing: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Open {
    /// Changes with every wake-up. For a user it is the number of the last event.
    news: watch::Sender<u64>,
    listeners: usize,
}

/// The reason why a listener was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    /// There may be new data.
    News,
    /// The process is stopping.
    Closing,
}

/// A listener in the hub. Dropping it removes the listener and frees its place.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    topic: Topic,
    /// `None` if the listener's stream has a place of its own.
    _place: Option<Place>,
    news: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
}

impl Hub {
    /// Adds a listener of `topic`, which holds `place` as long as it listens.
    pub fn subscribe(self: &Arc<Self>, topic: Topic, place: Place) -> Subscription {
        self.add(topic, Some(place))
    }

    /// Adds a listener of `topic` to a stream that already has a place.
    pub fn follow(self: &Arc<Self>, topic: Topic) -> Subscription {
        self.add(topic, None)
    }

    fn add(self: &Arc<Self>, topic: Topic, place: Option<Place>) -> Subscription {
        let mut open = self.open.lock();
        let entry = open.entry(topic).or_default();
        entry.listeners += 1;
        let (news, closing) = (entry.news.subscribe(), self.closing.subscribe());
        Subscription { hub: Arc::clone(self), topic, _place: place, news, closing }
    }

    /// Ends all present and future listeners.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns the number of listeners.
    pub fn listeners(&self) -> usize {
        self.open.lock().values().map(|open| open.listeners).sum()
    }

    pub(crate) fn users(&self) -> Vec<UserId> {
        let open = self.open.lock();
        let user = |topic: &Topic| if let Topic::User(id) = topic { Some(*id) } else { None };
        open.keys().filter_map(user).collect()
    }

    pub(crate) fn has_markets(&self) -> bool {
        self.open.lock().keys().any(|topic| matches!(topic, Topic::Market(_)))
    }

    pub(crate) fn notify_user(&self, user: UserId, last: u64) {
        if let Some(open) = self.open.lock().get(&Topic::User(user)) {
            open.news.send_if_modified(|known| {
                // A lower number is news too: the database was replaced by an older copy.
                let differs = last != *known;
                *known = last;
                differs
            });
        }
    }

    /// Wakes listeners of the touched markets. `None` means all markets.
    pub(crate) fn tell_markets(&self, touched: Option<&[MarketId]>) {
        for (topic, open) in self.open.lock().iter() {
            if let Topic::Market(id) = topic
                && touched.is_none_or(|touched| touched.contains(id))
            {
                open.news.send_modify(|wakes| *wakes += 1);
            }
        }
    }
}

impl Subscription {
    /// Marks all news so far as seen. A read that follows is at least as new.
    pub fn catch_up(&mut self) {
        self.news.mark_unchanged();
    }

    /// Waits until there may be new data, or the process stops.
    pub async fn wait(&mut self) -> WakeReason {
        tokio::select! {
            biased;
            // The hub cannot be gone, because this subscription holds it. So an error never occurs.
            _ = self.closing.wait_for(|closing| *closing) => WakeReason::Closing,
            _ = self.news.changed() => WakeReason::News,
        }
    }

    /// Returns whether the process is stopping.
    pub fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut open = self.hub.open.lock();
        if let Some(entry) = open.get_mut(&self.topic) {
            entry.listeners -= 1;
            if entry.listeners == 0 {
                open.remove(&self.topic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::limits::budget::Budget;
    use std::net::IpAddr;
    use uuid::Uuid;

    fn user(number: u128) -> Topic {
        Topic::User(UserId(Uuid::from_u128(number)))
    }

    #[tokio::test]
    async fn a_place_is_freed_when_its_listener_disconnects() {
        let (hub, limits) = (Arc::new(Hub::default()), Limits::memory());
        let id = MarketId(Uuid::from_u128(1));
        let ip = IpAddr::from([127, 0, 0, 1]);
        let place = limits.budgets().enter(Budget::MarketStreams, ip).unwrap();
        let mut listener = hub.subscribe(Topic::Market(id), place);
        let follower = hub.follow(Topic::Market(id));
        assert!(hub.has_markets());
        assert_eq!((hub.listeners(), limits.budgets().in_use(Budget::MarketStreams)), (2, 1));
        hub.tell_markets(Some(&[id]));
        assert_eq!(listener.wait().await, WakeReason::News);
        drop((listener, follower));
        assert_eq!((hub.listeners(), limits.budgets().in_use(Budget::MarketStreams)), (0, 0));
        assert!(hub.open.lock().is_empty());
    }

    #[tokio::test]
    async fn news_wake_only_the_users_listeners_and_a_stop_wakes_all() {
        let hub = Arc::new(Hub::default());
        let mut place = hub.follow(user(1));
        let mut other = hub.follow(user(2));
        hub.notify_user(UserId(Uuid::from_u128(1)), 7);
        assert_eq!(place.wait().await, WakeReason::News);
        // The same number again is no news.
        hub.notify_user(UserId(Uuid::from_u128(1)), 7);
        assert!(!place.news.has_changed().unwrap() && !other.news.has_changed().unwrap());
        hub.close();
        assert_eq!((place.wait().await, other.wait().await), (WakeReason::Closing, WakeReason::Closing));
        assert!(hub.follow(user(3)).is_closing());
    }
}
