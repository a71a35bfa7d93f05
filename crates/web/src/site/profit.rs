//! The profit over time on the portfolio page.

use app::portfolio::{PortfolioPoint, Timeframe, read_over_time};
use app::sessions::Person;
use domain::UsdcDelta;
use http_kit::{Parameters, RawQuery, Shared};
use presentation::{ProfitChart, amounts};

use super::markets::ListLink;

/// The ranges of the chart: their word, their label, and their name in a sentence.
const RANGES: [(&str, Timeframe, &str, &str); 4] = [
    ("30d", Timeframe::ThirtyDays, "30 days", "in the last 30 days"),
    ("24h", Timeframe::OneDay, "24 hours", "in the last 24 hours"),
    ("7d", Timeframe::SevenDays, "7 days", "in the last 7 days"),
    ("all", Timeframe::All, "All", "since you signed up"),
];

/// The parameter `range`.
#[derive(Debug)]
pub struct ProfitQuery(Timeframe);

impl Parameters for ProfitQuery {
    const NAMES: &'static [&'static str] = &["range"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self(given.word("range", &RANGES.map(|(word, range, ..)| (word, range)))?))
    }
}

/// The chart with its links.
#[derive(Debug)]
pub struct ProfitSection {
    pub ranges: Vec<ListLink>,
    /// The profit within the range, and its name in a sentence.
    pub profit: String,
    pub is_loss: bool,
    pub when: &'static str,
    pub chart: ProfitChart,
}

impl ProfitSection {
    /// Reads the chart. Returns `None` if there is nothing to draw, or if the history cannot be read: the
    /// page must render without it.
    pub async fn read(app: &Shared, person: &Person, ProfitQuery(timeframe): &ProfitQuery) -> Option<Self> {
        let points = match read_over_time(&app.ctx, person, *timeframe).await {
            Ok(read) => read.points,
            Err(error) => {
                // Some nodes reject the queries that it needs.
                let user_id = person.user_id();
                tracing::warn!(user.id = %user_id, %error, cause = ?error.source, "could not read a portfolio over time");
                return None;
            }
        };
        let profits: Vec<_> = points.iter().map(|point| (point.at, point.profit())).collect();
        let chart = ProfitChart::new(&profits).filter(|_| points.iter().any(is_used))?;
        let (first, last) = (profits.first(), profits.last());
        let gained = |(_, profit): &(_, UsdcDelta)| profit.0;
        let profit = last.map_or(0, gained).saturating_sub(first.map_or(0, gained));
        let when = RANGES.iter().find(|(_, range, ..)| range == timeframe).map_or("", |(.., when)| when);
        let ranges = RANGES.map(|(word, range, label, _)| ListLink {
            label: label.to_owned(),
            url: format!("/portfolio?range={word}"),
            is_current: range == *timeframe,
        });
        let profit = UsdcDelta(profit);
        Some(Self {
            ranges: ranges.into(),
            profit: amounts::profit(profit),
            is_loss: profit.0 < 0,
            when,
            chart,
        })
    }
}

fn is_used(point: &PortfolioPoint) -> bool {
    point.value() > domain::Usdc::ZERO || point.deposited.0 != 0
}
