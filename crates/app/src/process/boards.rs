//! Boards: the newest value of each market that streams follow.
//!
//! One publisher reads a market and puts the value up; every stream of the process takes it from
//! there. A follower only remembers which of its markets have changed. So a client that reads slowly
//! skips to the newest value, and holds no memory meanwhile.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::ids::MarketId;
use indexmap::IndexSet;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The newest values by market.
#[derive(Debug)]
pub struct Board<T> {
    cells: Mutex<HashMap<MarketId, Arc<Cell<T>>>>,
    /// The number of followers so far.
    followers: AtomicU64,
}

impl<T> Default for Board<T> {
    fn default() -> Self {
        Self { cells: Mutex::default(), followers: AtomicU64::new(0) }
    }
}

/// A market that somebody follows.
#[derive(Debug)]
struct Cell<T> {
    newest: Mutex<Option<Arc<T>>>,
    /// The followers by their numbers, with the market's place in their lists.
    followers: Mutex<HashMap<u64, (Arc<Mailbox>, usize)>>,
    /// Held while the first value is read.
    reading: tokio::sync::Mutex<()>,
}

impl<T> Default for Cell<T> {
    fn default() -> Self {
        Self { newest: Mutex::new(None), followers: Mutex::default(), reading: tokio::sync::Mutex::new(()) }
    }
}

/// What a follower has not seen yet.
#[derive(Debug, Default)]
struct Mailbox {
    /// The places of the changed markets.
    changed: Mutex<BTreeSet<usize>>,
    wake: Notify,
}

/// One stream's list of markets. Dropping it ends its interest.
#[derive(Debug)]
pub struct Follower<T> {
    board: Arc<Board<T>>,
    number: u64,
    mailbox: Arc<Mailbox>,
    markets: Vec<(MarketId, Arc<Cell<T>>)>,
}

impl<T> Board<T> {
    /// Follows the markets. A repeated one counts once. At first, all of them are changed.
    pub fn follow(self: &Arc<Self>, ids: impl IntoIterator<Item = MarketId>) -> Follower<T> {
        let ids: IndexSet<MarketId> = ids.into_iter().collect();
        let number = self.followers.fetch_add(1, Ordering::Relaxed);
        let mailbox =
            Arc::new(Mailbox { changed: Mutex::new((0..ids.len()).collect()), ..Mailbox::default() });
        let mut cells = self.cells.lock();
        let markets = ids.into_iter().enumerate().map(|(place, id)| {
            let cell = Arc::clone(cells.entry(id).or_default());
            cell.followers.lock().insert(number, (Arc::clone(&mailbox), place));
            (id, cell)
        });
        let markets = markets.collect();
        Follower { board: Arc::clone(self), number, mailbox, markets }
    }

    /// Puts up a market's newest value, and wakes its followers if it `is_news`. Without followers
    /// there is nothing to put it on.
    pub fn publish(&self, id: MarketId, value: T, is_news: bool) {
        let Some(cell) = self.cells.lock().get(&id).cloned() else { return };
        *cell.newest.lock() = Some(Arc::new(value));
        if is_news {
            for (mailbox, place) in cell.followers.lock().values() {
                mailbox.changed.lock().insert(*place);
                mailbox.wake.notify_one();
            }
        }
    }

    pub fn newest(&self, id: MarketId) -> Option<Arc<T>> {
        self.cells.lock().get(&id).and_then(|cell| cell.newest.lock().clone())
    }

    pub fn is_followed(&self, id: MarketId) -> bool {
        self.cells.lock().contains_key(&id)
    }

    /// Returns up to `limit` followed markets whose newest value is `wanted`.
    pub fn find(&self, limit: usize, wanted: impl Fn(Option<&T>) -> bool) -> Vec<MarketId> {
        let cells = self.cells.lock();
        let of_cell =
            |(id, cell): (&MarketId, &Arc<Cell<T>>)| wanted(cell.newest.lock().as_deref()).then_some(*id);
        cells.iter().filter_map(of_cell).take(limit).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.cells.lock().is_empty()
    }
}

impl<T> Follower<T> {
    /// Waits until a market has changed.
    pub async fn changed(&self) {
        while self.mailbox.changed.lock().is_empty() {
            self.mailbox.wake.notified().await;
        }
    }

    /// Takes the place of a market that has changed since it was taken last.
    pub fn take_changed(&self) -> Option<usize> {
        self.mailbox.changed.lock().pop_first()
    }

    /// Returns a market's newest value, if there is one yet.
    pub fn newest(&self, place: usize) -> Option<Arc<T>> {
        self.markets.get(place).and_then(|(_, cell)| cell.newest.lock().clone())
    }

    /// Returns a market's newest value. If there is none yet, `read` reads it; streams that open at
    /// once share one read.
    ///
    /// # Errors
    /// Those of `read`.
    pub async fn newest_or_read<E>(
        &self,
        place: usize,
        read: impl AsyncFnOnce(MarketId) -> Result<Option<T>, E>,
    ) -> Result<Option<Arc<T>>, E> {
        let Some((id, cell)) = self.markets.get(place) else { return Ok(None) };
        let _turn = match self.newest(place) {
            Some(newest) => return Ok(Some(newest)),
            None => cell.reading.lock().await,
        };
        if let Some(newest) = self.newest(place) {
            return Ok(Some(newest));
        }
        let Some(value) = read(*id).await? else { return Ok(None) };
        // The publisher may have been faster. Its value is at least as new, because this market was
        // already followed when the read began.
        Ok(Some(Arc::clone(cell.newest.lock().get_or_insert_with(|| Arc::new(value)))))
    }

    /// Returns the number of markets.
    pub fn len(&self) -> usize {
        self.markets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.markets.is_empty()
    }
}

impl<T> Drop for Follower<T> {
    fn drop(&mut self) {
        let mut cells = self.board.cells.lock();
        for (id, cell) in &self.markets {
            let mut followers = cell.followers.lock();
            followers.remove(&self.number);
            if followers.is_empty() {
                cells.remove(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use uuid::Uuid;

    fn market(number: u128) -> MarketId {
        MarketId(Uuid::from_u128(number))
    }

    fn drain(follower: &Follower<u32>) -> Vec<usize> {
        std::iter::from_fn(|| follower.take_changed()).collect()
    }

    #[test]
    fn a_repeated_market_is_one() {
        let board = Arc::<Board<u32>>::default();
        let follower = board.follow([market(1), market(2), market(1), market(1)]);
        assert_eq!((follower.len(), drain(&follower)), (2, vec![0, 1]));
        board.publish(market(1), 7, true);
        assert_eq!(drain(&follower), [0]);
        assert_eq!(follower.newest(0).as_deref(), Some(&7));
    }

    #[test]
    fn a_follower_that_is_late_gets_only_the_newest_value() {
        let board = Arc::<Board<u32>>::default();
        let follower = board.follow([market(1)]);
        for value in 0..1_000 {
            board.publish(market(1), value, true);
        }
        assert_eq!(drain(&follower), [0]);
        assert_eq!(follower.newest(0).as_deref(), Some(&999));
        let kept = follower.newest(0).unwrap();
        assert_eq!(Arc::strong_count(&kept), 2, "the board's own and this one");
    }

    #[test]
    fn only_news_of_followed_markets_wake() {
        let board = Arc::<Board<u32>>::default();
        let follower = board.follow([market(1)]);
        drain(&follower);
        board.publish(market(1), 1, false);
        board.publish(market(2), 1, true);
        assert!(follower.changed().now_or_never().is_none());
        board.publish(market(1), 2, true);
        assert!(follower.changed().now_or_never().is_some());
    }

    #[tokio::test]
    async fn streams_that_open_at_once_share_one_read() {
        let board = Arc::<Board<u32>>::default();
        let reads = AtomicU64::new(0);
        let followers: Vec<_> = (0..100).map(|_| board.follow([market(1)])).collect();
        let all = followers.iter().map(|follower| {
            follower.newest_or_read(0, async |_| {
                reads.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Ok::<_, ()>(Some(5))
            })
        });
        let values = futures::future::join_all(all).await;
        assert!(values.iter().all(|value| value.as_ref().unwrap().as_deref() == Some(&5)));
        assert_eq!(reads.into_inner(), 1);
    }

    #[test]
    fn a_market_without_followers_is_forgotten() {
        let board = Arc::<Board<u32>>::default();
        let (one, two) = (board.follow([market(1), market(2)]), board.follow([market(2)]));
        drop(one);
        assert!(!board.is_followed(market(1)) && board.is_followed(market(2)));
        drop(two);
        assert!(board.is_empty());
        board.publish(market(1), 1, true);
        assert!(board.newest(market(1)).is_none());
    }
}
