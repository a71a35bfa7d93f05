//! A market in a list of pages: its display data, its category and its recent prices.

use app::{AppError, Ctx};
use domain::Timestamp;
use futures::future::try_join_all;
use store::markets::{Market, Outcome};

use super::amounts;
use super::chart::Chart;
use super::market_face::{MarketFace, Shown};

/// Number of outcomes that a tile shows of a market with more than two.
const MOST_SHOWN: usize = 3;

/// A market in a list.
#[derive(Debug, Clone)]
pub struct MarketTile {
    pub face: MarketFace,
    pub category: Option<String>,
    /// The day on which trading ends, or `None` if it has ended.
    pub ends: Option<String>,
    /// A sparkline of the first outcome, as SVG. `None` if it was not read, or is being computed.
    pub spark: Option<String>,
    /// The change of the first outcome's price over a day, in points.
    pub change: Option<i64>,
}

impl MarketTile {
    /// Builds a tile without recent prices.
    pub fn new(market: &Market, outcomes: &[Outcome], now: Timestamp) -> Self {
        let face = MarketFace::new(market, outcomes, now);
        let ends = (face.status == "open").then(|| amounts::day(market.end_time));
        Self { face, category: market.category.clone(), ends, spark: None, change: None }
    }

    /// Builds the tiles of `markets` with their recent prices.
    pub async fn read_all(
        ctx: &Ctx,
        markets: &[(Market, Vec<Outcome>)],
        now: Timestamp,
    ) -> Result<Vec<Self>, AppError> {
        try_join_all(markets.iter().map(|(market, outcomes)| Self::read(ctx, market, outcomes, now))).await
    }

    async fn read(
        ctx: &Ctx,
        market: &Market,
        outcomes: &[Outcome],
        now: Timestamp,
    ) -> Result<Self, AppError> {
        let tile = Self::new(market, outcomes, now);
        let chart = Chart::read(ctx, market, outcomes, &tile.face).await?;
        let spark = chart.as_ref().map(Chart::spark);
        Ok(Self { spark, change: chart.as_ref().and_then(Chart::change_in_a_day), ..tile })
    }

    /// Returns the outcomes that the tile shows.
    pub fn shown(&self) -> &[Shown] {
        let outcomes = self.face.outcomes.as_slice();
        outcomes.get(..MOST_SHOWN).unwrap_or(outcomes)
    }

    /// Returns the number of outcomes.
    pub fn outcome_count(&self) -> usize {
        self.face.outcomes.len() + self.face.more
    }
}
