//! Who is listening in this process, and the one watcher that wakes them: nobody who waits asks the database.
//!
//! The hub holds nothing of what is told. A listener that is woken reads the tables by itself, so a slow one costs no memory
//! and a wake that is lost costs nothing but time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use domain::ErrorCode;
use domain::ids::{MarketId, UserId};
use parking_lot::Mutex;
use store::StoreError;
use tokio::sync::{Notify, watch};

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The most listeners to feeds in a process, and the most to markets: each holds a connection, and the others' requests need some
/// too. Strangers who listen to markets take no place from users.
const MOST: usize = 1_000;
/// After which time it makes sense to try again where there are too many.
const RETRY_AFTER_S: u32 = 5;

/// What somebody listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// A user's feed.
    User(UserId),
    /// A market.
    Market(MarketId),
    /// Nothing: the places that an address takes up are counted.
    Address(IpAddr),
}

impl Topic {
    /// Whether both are counted together.
    fn shares_places_with(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The listeners of this process.
#[derive(Debug, Default)]
pub struct Hub {
    open: Mutex<HashMap<Topic, Open>>,
    closing: watch::Sender<bool>,
}

/// The listeners of one topic.
#[derive(Debug, Default)]
struct Open {
    /// Changes with every wake; for a user it is the number of the last event.
    news: watch::Sender<u64>,
    listeners: usize,
}

/// Why a listener was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// There may be something to read.
    News,
    /// The process stops.
    Closing,
}

/// One listener's place in the hub, given up when it is dropped.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    topic: Topic,
    news: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
}

impl Hub {
    /// A place for one more listener of `topic`, of which there may be `most`.
    ///
    /// # Errors
    /// `RATE_LIMIT_EXCEEDED` where there are as many already, or too many in this process.
    pub fn subscribe(self: &Arc<Self>, topic: Topic, most: usize) -> Result<Subscription, AppError> {
        let mut open = self.open.lock();
        let rivals = open.iter().filter(|(other, _)| topic.shares_places_with(other));
        let all: usize = rivals.map(|(_, open)| open.listeners).sum();
        let own = open.get(&topic).map_or(0, |open| open.listeners);
        if own >= most || all >= MOST {
            let detail = "Too many streams are open. Close one, or try again later.";
            let refusal = AppError::new(ErrorCode::RateLimitExceeded).detail(detail);
            return Err(refusal.with("limiter", "streams").retry_after_s(RETRY_AFTER_S));
        }
        let entry = open.entry(topic).or_default();
        entry.listeners += 1;
        let (news, closing) = (entry.news.subscribe(), self.closing.subscribe());
        Ok(Subscription { hub: Arc::clone(self), topic, news, closing })
    }

    /// Lets every listener come to its end, those that come later too.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// How many listen.
    pub fn listeners(&self) -> usize {
        self.open.lock().values().map(|open| open.listeners).sum()
    }

    fn users(&self) -> Vec<UserId> {
        let open = self.open.lock();
        let user = |topic: &Topic| if let Topic::User(id) = topic { Some(*id) } else { None };
        open.keys().filter_map(user).collect()
    }

    fn has_markets(&self) -> bool {
        self.open.lock().keys().any(|topic| matches!(topic, Topic::Market(_)))
    }

    fn tell_user(&self, user: UserId, last: u64) {
        if let Some(open) = self.open.lock().get(&Topic::User(user)) {
            open.news.send_if_modified(|known| {
                // A number that goes back is news, too: the database was replaced by a copy.
                let differs = last != *known;
                *known = last;
                differs
            });
        }
    }

    /// `None` for all markets.
    fn tell_markets(&self, touched: Option<&[MarketId]>) {
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
    /// Forgets the news so far: what is read after this is at least as new.
    pub fn catch_up(&mut self) {
        self.news.mark_unchanged();
    }

    /// Waits until there may be something to read.
    pub async fn wait(&mut self) -> Wake {
        tokio::select! {
            biased;
            // An error means that the hub is gone, which this place keeps alive.
            _ = self.closing.wait_for(|closing| *closing) => Wake::Closing,
            _ = self.news.changed() => Wake::News,
        }
    }

    /// Whether the process stops.
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

/// The watcher's worker: asks in one statement what the feeds of all listening users have come to, and in another which
/// markets have moved. This process's own events wake it, the timer finds those of others.
#[derive(Debug, Default)]
pub struct Watcher {
    /// The last block whose markets were woken.
    settled: Mutex<Option<u64>>,
}

impl Worker for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }

    fn signal<'a>(&self, ctx: &'a Ctx) -> Option<&'a Notify> {
        Some(ctx.store.events_written())
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let users = ctx.feed.users();
        if !users.is_empty() {
            let last: Result<Vec<_>, StoreError> =
                ctx.store.read(users, |tx, users| Box::pin(store::events::list_last(tx, users))).await;
            last?.into_iter().for_each(|(user, last)| ctx.feed.tell_user(user, last));
        }
        self.watch_markets(ctx).await?;
        Ok(Progress::Idle)
    }
}

impl Watcher {
    /// Wakes those who listen to markets of which blocks have settled that were not settled before.
    async fn watch_markets(&self, ctx: &Ctx) -> Result<(), AppError> {
        if !ctx.feed.has_markets() {
            *self.settled.lock() = None;
            return Ok(());
        }
        let known = *self.settled.lock();
        let read: Result<_, StoreError> = ctx
            .store
            .read(known, |tx, known| {
                Box::pin(async move {
                    let settled = store::sync::find_settled(tx).await?;
                    let from = known.map_or(Some(0), |known| known.checked_add(1)).unwrap_or(u64::MAX);
                    let touched = match (known, settled) {
                        (Some(_), Some(to)) if from <= to => {
                            store::market_statuses::list_touched(tx, from, to).await?
                        }
                        _ => Vec::new(),
                    };
                    Ok((settled, touched))
                })
            })
            .await;
        let (settled, touched) = read?;
        *self.settled.lock() = settled;
        // Blocks may have settled between a listener's reading and the first look.
        ctx.feed.tell_markets(known.map(|_| touched.as_slice()));
        Ok(())
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
    fn a_place_is_given_up_when_its_listener_goes_and_not_before() {
        let hub = Arc::new(Hub::default());
        let first = hub.subscribe(user(1), 2).unwrap();
        let second = hub.subscribe(user(1), 2).unwrap();
        let refusal = hub.subscribe(user(1), 2).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::RateLimitExceeded);
        assert!(refusal.retry_after_s.is_some());
        // Another's places are another's.
        let other = hub.subscribe(user(2), 2).unwrap();
        drop(first);
        let third = hub.subscribe(user(1), 2).unwrap();
        assert_eq!(hub.listeners(), 3);
        drop((second, third, other));
        assert_eq!(hub.listeners(), 0);
        assert!(hub.open.lock().is_empty());
    }

    #[test]
    fn a_process_has_a_bounded_number_of_listeners_to_feeds_and_of_those_to_markets() {
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
    async fn news_wake_the_listeners_of_their_user_once_and_a_stop_wakes_all() {
        let hub = Arc::new(Hub::default());
        let mut place = hub.subscribe(user(1), 5).unwrap();
        let mut other = hub.subscribe(user(2), 5).unwrap();
        hub.tell_user(UserId(Uuid::from_u128(1)), 7);
        assert_eq!(place.wait().await, Wake::News);
        // The same number again is no news.
        hub.tell_user(UserId(Uuid::from_u128(1)), 7);
        assert!(!place.news.has_changed().unwrap() && !other.news.has_changed().unwrap());
        hub.close();
        assert_eq!((place.wait().await, other.wait().await), (Wake::Closing, Wake::Closing));
        assert!(hub.subscribe(user(3), 5).unwrap().is_closing());
    }
}
