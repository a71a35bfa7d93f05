//! The display data of a thread, shared by pages and cards.

use app::Ctx;
use domain::Timestamp;
use domain::ids::ThreadId;
use domain::thread::ThreadStatus;
use store::StoreError;
use store::public::{MarketFilter, MarketSort, Order, PageRange, ThreadRow};

use super::market_face::{MarketFace, dollars, version_of};
use super::{amounts, next_end, next_turn};

/// Number of shown markets: those with the highest volume.
const MOST_MARKETS: u32 = 10;

/// The display data of a thread.
#[derive(Debug, Clone)]
pub struct ThreadFace {
    pub id: ThreadId,
    pub title: String,
    /// Markdown.
    pub description: Option<String>,
    /// `upcoming`, `active` or `closed`.
    pub status: &'static str,
    pub volume: String,
    pub market_count: u64,
    pub markets: Vec<MarketFace>,
}

impl ThreadFace {
    /// Reads the markets of the thread. Also returns when the data expires even if nothing changes.
    pub async fn read(ctx: &Ctx, row: ThreadRow) -> Result<(Self, Option<Timestamp>), StoreError> {
        let filter = MarketFilter { thread_id: Some(row.thread.id), ..MarketFilter::default() };
        let listed = ctx
            .store
            .read(filter, |tx, filter| {
                let extent = PageRange { limit: MOST_MARKETS, offset: 0 };
                Box::pin(store::public::list_markets(
                    tx,
                    filter,
                    MarketSort::TotalVolume,
                    Order::Desc,
                    extent,
                ))
            })
            .await;
        let (listed, now) = (listed?.items, ctx.now());
        let turn = next_turn(std::iter::once(&row), now);
        let end = next_end(listed.iter().map(|listed| &listed.market), now);
        let markets =
            listed.iter().map(|listed| MarketFace::new(&listed.market, &listed.outcomes, now)).collect();
        // The earlier of the thread's change and the first market's end.
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

    /// Returns the number of markets that are not shown.
    pub fn more(&self) -> u64 {
        self.market_count.saturating_sub(self.markets.len() as u64)
    }

    /// Formats the number of markets, e.g. `1 market` or `3 markets`.
    pub fn count(&self) -> String {
        amounts::count(self.market_count, "market")
    }

    /// Returns a hash of the shown state.
    pub fn version(&self) -> String {
        version_of(&format!("{self:?}"))
    }
}
