//! Markets that are traded most of late.

use std::collections::HashMap;

use domain::Usdc;
use domain::ids::MarketId;

use super::markets::{ListedMarket, rows_with_ids};
use crate::{StoreError, Tx, params};

/// What trades are ranked over: it ends now and begins at a whole five minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Window {
    /// An hour.
    OneHour,
    /// 24 hours.
    #[default]
    OneDay,
    /// Seven days.
    SevenDays,
}

impl Window {
    /// Every window, the shortest first.
    pub const ALL: [Self; 3] = [Self::OneHour, Self::OneDay, Self::SevenDays];

    /// Its length.
    pub const fn ms(self) -> i64 {
        match self {
            Self::OneHour => 3_600_000,
            Self::OneDay => 86_400_000,
            Self::SevenDays => 604_800_000,
        }
    }
}

/// A market with its trades of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrendingMarket {
    /// The market.
    pub listed: ListedMarket,
    /// Trades in the window.
    pub trade_count: u64,
    /// USDC traded in it.
    pub volume: Usdc,
    /// The accounts that traded in it.
    pub unique_traders: u64,
    /// The score, in ten-thousandths.
    pub score_e4: i64,
}

pub(super) const FIGURES: &str = "SELECT t.market_id, t.trade_count, t.volume_usdc_atomic, t.unique_traders, t.score_e4
    FROM trending_markets t CROSS JOIN listed_markets l
    WHERE t.window_ms = $1 AND l.market_id = t.market_id AND l.list_status = 'OPEN' AND ($2 = '' OR l.category = $2)
    ORDER BY t.score_e4 DESC, l.volume_usdc_atomic DESC, t.market_id DESC LIMIT $3";

/// The open markets with a trade in the window, the highest score first; ties by total volume, then id.
pub async fn list_trending(
    tx: &mut Tx,
    window: Window,
    category: Option<&str>,
    limit: u32,
) -> Result<Vec<TrendingMarket>, StoreError> {
    let bound = params![window.ms(), category.unwrap_or_default(), limit];
    let figures = tx
        .list(FIGURES, &bound, |row| {
            Ok((row.parse::<MarketId>(0)?, row.number(1)?, row.usdc(2)?, row.number(3)?, row.int(4)?))
        })
        .await?;
    let ids: Vec<MarketId> = figures.iter().map(|(id, ..)| *id).collect();
    let listed = rows_with_ids(tx, &ids).await?.into_iter();
    let mut listed: HashMap<MarketId, ListedMarket> = listed.map(|row| (row.market.id, row)).collect();
    let ranked = figures.into_iter().filter_map(|(id, trade_count, volume, unique_traders, score_e4)| {
        let listed = listed.remove(&id)?;
        Some(TrendingMarket { listed, trade_count, volume, unique_traders, score_e4 })
    });
    Ok(ranked.collect())
}
