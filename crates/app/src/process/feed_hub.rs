//! Listeners of this process. One watcher wakes them, so waiting listeners never poll the database.
//!
//! The hub stores no events. A listener that is woken reads the tables itself, so a slow listener
//! costs no memory, and a lost wake-up only costs time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use domain::ErrorCode;
use domain::ids::{KeyId, MarketId, SessionId, UserId};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::AppError;

/// The maximum number of feed listeners, and separately of market listeners, in this process. Each
/// holds a connection, and other requests need connections too. Anonymous market listeners do not
/// use the places of users.
const MOST: usize = 1_000;
/// The retry time, in seconds, when there are too many listeners.
const RETRY_AFTER_S: u32 = 5;

/// The subject of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    User(UserId),
    Market(MarketId),
    /// The end of a key.
    Key(KeyId),
    /// The token of a session: see [`Subscription::latest`].
    Session(SessionId),
    /// Nothing. Only the number of listeners from this address is counted.
    Address(IpAddr),
    /// Nothing. Only the number of browsers at this address is counted.
    Browser(IpAddr),
}

impl Topic {
    /// Returns whether both topics count against the same total.
    fn shares_places_with(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

#[derive(Debug, Default)]
pub struct Hub {
    open: Mutex<HashMap<Topic, Open>>,
    closing: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Open {
    /// Changes with every wake-up. For a user it is the number of the last event, for a session the
    /// time at which it got its token.
    news: watch::Sender<u64>,
    /// Listeners that take a place.
    listeners: usize,
    /// Listeners whose stream takes a place of another topic.
    followers: usize,
}

/// The reason why a listener was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    /// There may be new data.
    News,
    /// The process is stopping.
    Closing,
}

/// One listener's place in the hub. Dropping it frees the place.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    topic: Topic,
    takes_place: bool,
    news: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
}

impl Hub {
    /// Adds a listener of `topic`, which may have at most `most` of them.
    ///
    /// # Errors
    /// `RATE_LIMIT_EXCEEDED` if the topic, or this process, already has too many listeners.
    pub fn subscribe(self: &Arc<Self>, topic: Topic, most: usize) -> Result<Subscription, AppError> {
        self.subscribe_within(topic, most, MOST)
    }

    /// Adds a listener of `topic`, which may have at most `most` of them. All topics of its kind
    /// together may have `total`.
    ///
    /// # Errors
    /// Those of [`subscribe`](Self::subscribe).
    pub fn subscribe_within(
        self: &Arc<Self>,
        topic: Topic,
        most: usize,
        total: usize,
    ) -> Result<Subscription, AppError> {
        let mut open = self.open.lock();
        let rivals = open.iter().filter(|(other, _)| topic.shares_places_with(other));
        let all: usize = rivals.map(|(_, open)| open.listeners).sum();
        let own = open.get(&topic).map_or(0, |open| open.listeners);
        if own >= most || all >= total {
            let detail = "Too many streams are open. Close one, or try again later.";
            let refusal = AppError::new(ErrorCode::RateLimitExceeded).detail(detail);
            return Err(refusal.with("limiter", "streams").retry_after_s(RETRY_AFTER_S));
        }
        let entry = open.entry(topic).or_default();
        entry.listeners += 1;
        let (news, closing) = (entry.news.subscribe(), self.closing.subscribe());
        Ok(Subscription { hub: Arc::clone(self), topic, takes_place: true, news, closing })
    }

    /// Adds a listener of `topic` to a stream that already has a place.
    pub fn follow(self: &Arc<Self>, topic: Topic) -> Subscription {
        let mut open = self.open.lock();
        let entry = open.entry(topic).or_default();
        entry.followers += 1;
        let (news, closing) = (entry.news.subscribe(), self.closing.subscribe());
        Subscription { hub: Arc::clone(self), topic, takes_place: false, news, closing }
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

    pub(crate) fn keys(&self) -> Vec<KeyId> {
        let open = self.open.lock();
        open.keys().filter_map(|topic| if let Topic::Key(id) = topic { Some(*id) } else { None }).collect()
    }

    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        let open = self.open.lock();
        open.keys()
            .filter_map(|topic| if let Topic::Session(id) = topic { Some(*id) } else { None })
            .collect()
    }

    pub(crate) fn has_markets(&self) -> bool {
        self.open.lock().keys().any(|topic| matches!(topic, Topic::Market(_)))
    }

    /// Wakes listeners of a topic if `latest` is news.
    pub(crate) fn notify(&self, topic: Topic, latest: u64) {
        if let Some(open) = self.open.lock().get(&topic) {
            open.news.send_if_modified(|known| {
                // A lower number is news too: the database was replaced by an older copy.
                let differs = latest != *known;
                *known = latest;
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

    /// Returns what the topic was last notified of, or 0 if it was not since it has listeners.
    pub fn latest(&self) -> u64 {
        *self.news.borrow()
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
            let count = if self.takes_place { &mut entry.listeners } else { &mut entry.followers };
            *count -= 1;
            if entry.listeners + entry.followers == 0 {
                open.remove(&self.topic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn user(number: u128) -> Topic {
        Topic::User(UserId(Uuid::from_u128(number)))
    }

    #[test]
    fn a_slot_is_released_only_when_its_listener_disconnects() {
        let hub = Arc::new(Hub::default());
        let first = hub.subscribe(user(1), 2).unwrap();
        let second = hub.subscribe(user(1), 2).unwrap();
        let refusal = hub.subscribe(user(1), 2).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::RateLimitExceeded);
        assert!(refusal.retry_after_s.is_some());
        // Another user's places are counted separately.
        let other = hub.subscribe(user(2), 2).unwrap();
        drop(first);
        let third = hub.subscribe(user(1), 2).unwrap();
        assert_eq!(hub.listeners(), 3);
        drop((second, third, other));
        assert_eq!(hub.listeners(), 0);
        assert!(hub.open.lock().is_empty());
    }

    #[tokio::test]
    async fn a_follower_is_woken_and_takes_no_place() {
        let hub = Arc::new(Hub::default());
        let id = MarketId(Uuid::from_u128(1));
        let browser = Topic::Browser(IpAddr::from([127, 0, 0, 1]));
        let place = hub.subscribe(browser, 1).unwrap();
        let mut follower = hub.follow(Topic::Market(id));
        assert_eq!(hub.listeners(), 1);
        assert!(hub.has_markets());
        hub.tell_markets(Some(&[id]));
        assert_eq!(follower.wait().await, WakeReason::News);
        drop((place, follower));
        assert!(hub.open.lock().is_empty());
    }

    #[test]
    fn feed_and_market_listeners_of_a_process_are_bounded() {
        let hub = Arc::new(Hub::default());
        let places: Vec<_> = (0..MOST as u128).map(|n| hub.subscribe(user(n), 1).unwrap()).collect();
        assert!(hub.subscribe(user(MOST as u128), 1).is_err());
        let market = |n: u128| Topic::Market(MarketId(Uuid::from_u128(n)));
        let strangers: Vec<_> = (0..MOST as u128).map(|n| hub.subscribe(market(n), 1).unwrap()).collect();
        assert!(hub.subscribe(market(MOST as u128), 1).is_err());
        drop(places);
        assert!(hub.subscribe(user(1), 1).is_ok(), "strangers take no place from users");
        drop(strangers);
        assert!(hub.subscribe(user(1), 1).is_ok());
    }

    #[tokio::test]
    async fn news_wake_only_the_users_listeners_and_a_stop_wakes_all() {
        let hub = Arc::new(Hub::default());
        let mut place = hub.subscribe(user(1), 5).unwrap();
        let mut other = hub.subscribe(user(2), 5).unwrap();
        hub.notify(user(1), 7);
        assert_eq!(place.wait().await, WakeReason::News);
        // The same number again is no news.
        hub.notify(user(1), 7);
        assert!(!place.news.has_changed().unwrap() && !other.news.has_changed().unwrap());
        hub.close();
        assert_eq!((place.wait().await, other.wait().await), (WakeReason::Closing, WakeReason::Closing));
        assert!(hub.subscribe(user(3), 5).unwrap().is_closing());
    }
}
