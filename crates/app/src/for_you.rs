//! Markets for a person: open ones in the threads and categories that the person has traded.

use std::collections::HashSet;

use alloy_primitives::Address;
use domain::ids::{ThreadId, UserId};
use store::StoreError;
use store::Tx;
use store::listed::ListStatus;
use store::public::{ListedMarket, MarketFilter, MarketSort, Order, PageRange, Traded};

use crate::accounts::account_of;
use crate::{AppError, Ctx};

/// The maximum number of listed markets.
pub const MOST_FOR_YOU: usize = 50;
/// The threads and the categories that count, those that were traded most.
const MOST_GROUPS: usize = 5;
/// The maximum number of markets of one thread, and of one category.
const MOST_OF_THREAD: u32 = 10;
const MOST_OF_CATEGORY: u32 = 20;

/// Lists the markets for a user: first those of the traded threads, then those of the traded
/// categories, each by the number of the user's trades, then by volume.
pub async fn list_for_you(ctx: &Ctx, user_id: UserId) -> Result<Vec<ListedMarket>, AppError> {
    let account = account_of(ctx, user_id).await?.address;
    Ok(ctx.store.read(account, |tx, account| Box::pin(list(tx, *account))).await?)
}

async fn list(tx: &mut Tx, account: Address) -> Result<Vec<ListedMarket>, StoreError> {
    let traded = store::public::list_traded(tx, account).await?;
    let threads = most_traded(&traded, |group| group.thread_id);
    let categories = most_traded(&traded, |group| group.category.clone());
    let of_thread =
        |id: ThreadId| (MarketFilter { thread_id: Some(id), ..MarketFilter::default() }, MOST_OF_THREAD);
    let of_category = |category: String| {
        (MarketFilter { category: Some(category), ..MarketFilter::default() }, MOST_OF_CATEGORY)
    };
    let groups = threads.into_iter().map(of_thread).chain(categories.into_iter().map(of_category));
    let (mut listed, mut known) = (Vec::new(), HashSet::new());
    for (filter, limit) in groups {
        let filter = MarketFilter { statuses: vec![ListStatus::Open], ..filter };
        let page = PageRange { offset: 0, limit };
        let found =
            store::public::list_markets(tx, &filter, MarketSort::TotalVolume, Order::Desc, page).await?;
        listed.extend(found.items.into_iter().filter(|found| known.insert(found.market.id)));
    }
    listed.truncate(MOST_FOR_YOU);
    Ok(listed)
}

/// Returns the groups with the most trades, most first.
fn most_traded<G: Ord>(traded: &[Traded], group: impl Fn(&Traded) -> Option<G>) -> Vec<G> {
    let mut counts = std::collections::BTreeMap::new();
    for traded in traded {
        if let Some(group) = group(traded) {
            *counts.entry(group).or_insert(0) += traded.trades;
        }
    }
    let mut groups: Vec<(G, u64)> = counts.into_iter().collect();
    groups.sort_by_key(|(_, trades)| std::cmp::Reverse(*trades));
    groups.into_iter().map(|(group, _)| group).take(MOST_GROUPS).collect()
}
