//! Listeners to users' feeds in this process, and to the ends of their keys and sessions. One watcher
//! wakes them, so waiting listeners never poll the database.
//!
//! The hub stores no events. A listener that is woken reads the tables itself, so a slow listener
//! costs no memory, and a lost wake-up only costs time.

use std::collections::HashMap;
use std::sync::Arc;

use domain::ids::{KeyId, SessionId, UserId};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::limits::Place;

/// The subject of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The events of a user.
    User(UserId),
    /// The end of a key.
    Key(KeyId),
    /// The token of a session: see [`Subscription::latest`].
    Session(SessionId),
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
    /// Streams of the feed.
    listeners: usize,
    /// Streams that only want to know that there is something new.
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

/// A listener in the hub. Dropping it removes the listener and frees its place.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    topic: Topic,
    /// `None` for a follower: its stream has a place of its own.
    place: Option<Place>,
    news: watch::Receiver<u64>,
    closing: Closing,
}

/// The end of this process, as a stream waits for it.
#[derive(Debug, Clone)]
pub struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Waits until the process stops.
    pub async fn wait(&mut self) {
        // The hub lives as long as the process. Without it, nothing is closed any more.
        if self.0.wait_for(|closing| *closing).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns whether the process is stopping.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }
}

impl Hub {
    /// Adds a listener to the feed of `user`, which holds `place` as long as it listens.
    pub fn subscribe(self: &Arc<Self>, user: UserId, place: Place) -> Subscription {
        let topic = Topic::User(user);
        let mut open = self.open.lock();
        let entry = open.entry(topic).or_default();
        entry.listeners += 1;
        self.subscription(topic, entry, Some(place))
    }

    /// Adds a listener that only wants to know that there is something new. If there are many of them,
    /// it is woken at most four times a second.
    pub fn follow(self: &Arc<Self>, topic: Topic) -> Subscription {
        let mut open = self.open.lock();
        let entry = open.entry(topic).or_default();
        entry.followers += 1;
        self.subscription(topic, entry, None)
    }

    fn subscription(self: &Arc<Self>, topic: Topic, open: &Open, place: Option<Place>) -> Subscription {
        let (hub, news) = (Arc::clone(self), open.news.subscribe());
        Subscription { hub, topic, place, news, closing: self.closing() }
    }

    /// Returns the end of this process, for a stream that no user's events wake.
    pub fn closing(&self) -> Closing {
        Closing(self.closing.subscribe())
    }

    /// Ends all present and future listeners.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns the number of streams of feeds.
    pub fn listeners(&self) -> usize {
        self.open.lock().values().map(|open| open.listeners).sum()
    }

    /// Returns the users whose feeds have streams.
    pub(crate) fn listened(&self) -> Vec<UserId> {
        self.users(|open| open.listeners > 0)
    }

    /// Returns the users of whom only pages are open.
    pub(crate) fn followed(&self) -> Vec<UserId> {
        self.users(|open| open.listeners == 0)
    }

    fn users(&self, wanted: impl Fn(&Open) -> bool) -> Vec<UserId> {
        self.topics(|topic, open| match topic {
            Topic::User(id) => wanted(open).then_some(*id),
            Topic::Key(_) | Topic::Session(_) => None,
        })
    }

    /// Returns the keys that streams were opened with.
    pub(crate) fn keys(&self) -> Vec<KeyId> {
        self.topics(|topic, _| if let Topic::Key(id) = topic { Some(*id) } else { None })
    }

    /// Returns the sessions that streams were opened with.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.topics(|topic, _| if let Topic::Session(id) = topic { Some(*id) } else { None })
    }

    fn topics<T>(&self, find: impl Fn(&Topic, &Open) -> Option<T>) -> Vec<T> {
        self.open.lock().iter().filter_map(|(topic, open)| find(topic, open)).collect()
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
}

impl Subscription {
    /// Marks all news so far as seen. A read that follows is at least as new.
    pub fn catch_up(&mut self) {
        self.news.mark_unchanged();
    }

    /// Marks all news so far as seen, and returns the number of the user's last event. It is 0 until
    /// the watcher has looked.
    pub fn last_event(&mut self) -> u64 {
        *self.news.borrow_and_update()
    }

    /// Waits until there may be new data, or the process stops.
    pub async fn wait(&mut self) -> WakeReason {
        tokio::select! {
            biased;
            () = self.closing.wait() => WakeReason::Closing,
            // The hub cannot be gone, because this subscription holds it. So an error never occurs.
            _ = self.news.changed() => WakeReason::News,
        }
    }

    /// Returns what the topic was last notified of, or 0 if it was not since it has listeners.
    pub fn latest(&self) -> u64 {
        *self.news.borrow()
    }

    /// Returns whether the process is stopping.
    pub fn is_closing(&self) -> bool {
        self.closing.has_begun()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut open = self.hub.open.lock();
        if let Some(entry) = open.get_mut(&self.topic) {
            let is_listener = self.place.is_some();
            let count = if is_listener { &mut entry.listeners } else { &mut entry.followers };
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
    use crate::limits::Limits;
    use crate::limits::budget::Budget;
    use std::net::IpAddr;
    use uuid::Uuid;

    fn id(number: u128) -> UserId {
        UserId(Uuid::from_u128(number))
    }

    fn user(number: u128) -> Topic {
        Topic::User(id(number))
    }

    #[tokio::test]
    async fn a_follower_is_woken_and_takes_no_place() {
        let (hub, limits) = (Arc::new(Hub::default()), Limits::memory());
        let mut follower = hub.follow(user(1));
        assert_eq!((hub.listeners(), hub.followed(), hub.listened()), (0, vec![id(1)], vec![]));
        hub.notify(user(1), 3);
        assert_eq!(follower.wait().await, WakeReason::News);
        assert_eq!(follower.last_event(), 3);
        let client = (IpAddr::from([127, 0, 0, 1]), id(1));
        let stream = hub.subscribe(id(1), limits.budgets().enter(Budget::Feed, client).unwrap());
        assert_eq!((hub.followed(), hub.listened()), (vec![], vec![id(1)]));
        assert_eq!((hub.listeners(), limits.budgets().in_use(Budget::Feed)), (1, 1));
        drop((stream, follower));
        assert!(hub.open.lock().is_empty());
    }

    #[tokio::test]
    async fn news_wake_only_the_users_listeners_and_a_stop_wakes_all() {
        let hub = Arc::new(Hub::default());
        let mut place = hub.follow(user(1));
        let mut other = hub.follow(user(2));
        hub.notify(user(1), 7);
        assert_eq!(place.wait().await, WakeReason::News);
        // The same number again is no news.
        hub.notify(user(1), 7);
        assert!(!place.news.has_changed().unwrap() && !other.news.has_changed().unwrap());
        let mut stranger = hub.closing();
        hub.close();
        assert_eq!((place.wait().await, other.wait().await), (WakeReason::Closing, WakeReason::Closing));
        stranger.wait().await;
        assert!(hub.follow(user(3)).is_closing() && hub.closing().has_begun());
    }
}
