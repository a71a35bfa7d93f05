//! Trending markets: those with the most recent trading.

use std::collections::HashMap;

use domain::Usdc;
use domain::ids::MarketId;

use super::markets::{ListedMarket, rows_with_ids};
use crate::traders::RankingWindow;
use crate::{StoreError, Tx, params};

/// A market with its figures of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrendingMarket {
    pub listed: ListedMarket,
    /// The number of trades in the window.
    pub trade_count: u64,
    /// USDC traded in the window.
    pub volume: Usdc,
    /// The number of accounts that traded in the window.
    pub unique_traders: u64,
    /// The score, multiplied by 10,000.
    pub score_e4: i64,
}

pub(super) const FIGURES: &str = "SELECT t.market_id, t.trade_count, t.volume_usdc_atomic, t.unique_traders, t.score_e4
    FROM trending_markets t CROSS JOIN listed_markets l
    WHERE t.window_ms = $1 AND l.market_id = t.market_id AND l.list_status = 'OPEN' AND ($2 = '' OR l.category = $2)
    ORDER BY t.score_e4 DESC, l.volume_usdc_atomic DESC, t.market_id DESC LIMIT $3";

/// Lists the open markets with a trade in the window, highest score first, then by total volume and
/// id.
pub async fn list_trending(
    tx: &mut Tx,
    window: RankingWindow,
    category: Option<&str>,
    limit: u32,
) -> Result<Vec<TrendingMarket>, StoreError> {
    let bound = params![window.ms(), category.unwrap_or_default(), limit];
    let figures = tx
        .list(FIGURES, &bound, |row| {
            Ok((
                row.get("market_id")?,
                row.get("trade_count")?,
                row.get("volume_usdc_atomic")?,
                row.get("unique_traders")?,
                row.get("score_e4")?,
            ))
        })
        .await?;
    let ids: Vec<MarketId> = figures.iter().map(|(id, ..)| *id).collect();
    let listed = rows_with_ids(tx, &ids).await?.into_iter();
    let mut listed: HashMap<MarketId, ListedMarket> = listed.map(|row| (row.market.id, row)).collect();
    let ranked = figures.into_iter().filter_map(|(id, trade_count, volume, unique_traders, score_e4)| {
        // A market that changed between the two reads may be missing from the second one.
        let listed = listed.remove(&id)?;
        Some(TrendingMarket { listed, trade_count, volume, unique_traders, score_e4 })
    });
    Ok(ranked.collect())
}
