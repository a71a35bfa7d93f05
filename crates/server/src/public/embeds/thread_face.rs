//! What a page and a card show of a thread.

use domain::Timestamp;
use domain::ids::ThreadId;
use domain::thread::ThreadStatus;
use store::StoreError;
use store::public::{Extent, MarketFilter, MarketSort, Order, ThreadRow};

use super::face::{MarketFace, dollars, version_of};
use crate::http::Shared;
use crate::public::Refusal;
use crate::public::market_record::next_end;
use crate::public::thread_record::next_turn;
use crate::public::threads::get_thread;

/// How many of a thread's markets are shown: those that were traded most.
const MOST_MARKETS: u32 = 10;

/// A thread as it is shown.
#[derive(Debug, Clone)]
pub struct ThreadFace {
    pub id: ThreadId,
    pub title: String,
    /// In Markdown.
    pub description: Option<String>,
    /// `upcoming`, `active`, `closed`.
    pub status: &'static str,
    pub volume: String,
    pub market_count: u64,
    pub markets: Vec<MarketFace>,
}

impl ThreadFace {
    /// The thread with this id as it reads now, and when it reads otherwise by the clock alone.
    pub async fn read(app: &Shared, id: &str) -> Result<(Self, Option<Timestamp>), Refusal> {
        let row = get_thread(app, id).await?;
        let filter = MarketFilter { thread_id: Some(row.thread.id), ..MarketFilter::default() };
        let listed: Result<_, StoreError> = app
            .ctx
            .store
            .read(filter, |tx, filter| {
                let extent = Extent { limit: MOST_MARKETS, offset: 0 };
                Box::pin(store::public::list_markets(
                    tx,
                    filter,
                    MarketSort::TotalVolume,
                    Order::Desc,
                    extent,
                ))
            })
            .await;
        let (listed, now) = (listed?.items, app.ctx.now());
        let turn = next_turn(std::iter::once(&row), now);
        let end = next_end(listed.iter().map(|listed| &listed.market), now);
        let markets =
            listed.iter().map(|listed| MarketFace::new(&listed.market, &listed.outcomes, now)).collect();
        Ok((Self::new(row, markets, now), turn.into_iter().chain(end).min()))
    }

    fn new(row: ThreadRow, markets: Vec<MarketFace>, now: Timestamp) -> Self {
        let ThreadRow { thread, totals, .. } = row;
        Self {
            id: thread.id,
            title: thread.title,
            description: thread.description,
            status: match ThreadStatus::at(now, thread.start_time, thread.end_time) {
                ThreadStatus::Upcoming => "upcoming",
                ThreadStatus::Active => "active",
                ThreadStatus::Closed => "closed",
            },
            volume: dollars(totals.volume),
            market_count: totals.markets,
            markets,
        }
    }

    /// How many markets are not shown.
    pub fn more(&self) -> u64 {
        self.market_count.saturating_sub(self.markets.len() as u64)
    }

    /// `1 market`, `3 markets`.
    pub fn count(&self) -> String {
        let plural = if self.market_count == 1 { "" } else { "s" };
        format!("{} market{plural}", self.market_count)
    }

    /// Names the state that is shown.
    pub fn version(&self) -> String {
        version_of(&format!("{self:?}"))
    }
}
