//! The display data of a market, shared by pages and cards.

use domain::ids::MarketId;
use domain::market::MarketStatus;
use domain::{Timestamp, Usdc, Wad};
use store::markets::{Market, Outcome};
use xxhash_rust::xxh3::xxh3_64;

use super::{amounts, numbers};

/// Maximum number of shown outcomes. A market's own page lists all of them.
pub const MOST_OUTCOMES: usize = 10;
/// Number of colors for outcomes.
const COLOURS: usize = 8;
/// Part of every version. Increment it if the same state is drawn differently, so that cached cards
/// are not reused.
const DESIGN: u32 = 2;

/// The display data of a market.
#[derive(Debug, Clone)]
pub struct MarketFace {
    pub id: MarketId,
    pub question: String,
    /// `open`, `frozen`, `resolved`, `cancelled`.
    pub status: String,
    /// When the market ends, or its result.
    pub standing: String,
    pub volume: String,
    /// Two outcomes in their own order; more than two by descending price.
    pub outcomes: Vec<Shown>,
    /// Number of outcomes that are not shown.
    pub more: usize,
    /// The block of the market's state.
    pub block: u64,
}

/// The display data of an outcome.
#[derive(Debug, Clone)]
pub struct Shown {
    pub index: u8,
    pub label: String,
    /// The price as text, e.g. `63%`.
    pub percent: String,
    /// The price in millionths.
    pub ppm: u32,
    pub colour: usize,
    /// True if the settled market pays this outcome.
    pub won: bool,
}

impl MarketFace {
    /// Builds the display data of `market` as of `now`.
    pub fn new(market: &Market, outcomes: &[Outcome], now: Timestamp) -> Self {
        let mut shown = Shown::list(market, outcomes);
        let more = shown.len().saturating_sub(MOST_OUTCOMES);
        shown.truncate(MOST_OUTCOMES);
        let status = market.status_at(now);
        Self {
            id: market.id,
            question: market.question.clone(),
            status: status.as_str().to_ascii_lowercase(),
            standing: standing(market, outcomes, status),
            volume: dollars(market.volume),
            outcomes: shown,
            more,
            block: market.as_of_block,
        }
    }

    /// Returns whether the market has at most two outcomes.
    pub const fn is_of_two(&self) -> bool {
        self.outcomes.len() + self.more <= 2
    }

    /// Returns the outcome that the market was resolved to. `None` if it is not resolved, or pays
    /// several outcomes partially.
    pub fn winner(&self) -> Option<&Shown> {
        self.outcomes.iter().find(|outcome| outcome.won && outcome.ppm == 1_000_000)
    }

    /// Returns the outcome to show if there is only room for one: the first of two, or the
    /// likeliest of more.
    pub fn first(&self) -> Option<&Shown> {
        self.outcomes.first()
    }

    /// Returns a hash of the shown state, which changes whenever the state does.
    pub fn version(&self) -> String {
        version_of(&format!("{} {self:?}", self.block))
    }
}

/// Returns the version of a displayed state.
pub fn version_of(shown: &str) -> String {
    format!("{:016x}", xxh3_64(format!("{DESIGN} {shown}").as_bytes()))
}

impl Shown {
    /// Returns all outcomes: two in their own order, more than two by descending price.
    pub fn list(market: &Market, outcomes: &[Outcome]) -> Vec<Self> {
        let mut shown: Vec<Self> = outcomes.iter().map(|outcome| Self::new(market, outcome)).collect();
        if shown.len() > 2 {
            // Ties are ordered by index, so that equal states look equal.
            shown.sort_by_key(|outcome| (std::cmp::Reverse(outcome.ppm), outcome.index));
        }
        for (place, outcome) in shown.iter_mut().enumerate() {
            outcome.colour = place % COLOURS;
        }
        shown
    }

    fn new(market: &Market, outcome: &Outcome) -> Self {
        let payout = market.payouts.as_ref().and_then(|payouts| payouts.get(usize::from(outcome.index)));
        let ppm = ppm(numbers::of_outcome(market, outcome));
        Self {
            index: outcome.index,
            label: outcome.label.clone(),
            percent: percent(ppm, payout.is_some()),
            ppm,
            colour: 0,
            // A cancelled market pays every outcome, but none of them has won.
            won: payout.is_some_and(|payout| *payout > Wad::ZERO) && market.status == MarketStatus::Resolved,
        }
    }

    /// Returns the length of the outcome's bar, in permille.
    pub const fn permille(&self) -> u32 {
        self.ppm / 1_000
    }
}

/// Converts a price for display to millionths.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a display value between 0 and 1"
)]
pub fn ppm(price: f64) -> u32 {
    (price.clamp(0.0, 1.0) * 1_000_000.0).round() as u32
}

/// Formats whole percents. A market that is not settled never shows 0% or 100%.
fn percent(ppm: u32, settled: bool) -> String {
    match ppm {
        0..5_000 if !settled => "<1%".to_owned(),
        995_000.. if !settled => ">99%".to_owned(),
        _ => format!("{}%", (ppm + 5_000) / 10_000),
    }
}

fn standing(market: &Market, outcomes: &[Outcome], status: MarketStatus) -> String {
    match status {
        MarketStatus::Open => format!("Ends {}", minute(market.end_time)),
        MarketStatus::Frozen => "Trading has stopped".to_owned(),
        MarketStatus::Cancelled => "Cancelled".to_owned(),
        MarketStatus::Resolved => {
            let paid = |outcome: &&Outcome| {
                let payouts = market.payouts.as_deref().unwrap_or_default();
                payouts.get(usize::from(outcome.index)).is_some_and(|payout| *payout == Wad::ONE)
            };
            match outcomes.iter().find(paid) {
                Some(outcome) => format!("Resolved: {}", outcome.label),
                None => "Resolved in parts".to_owned(),
            }
        }
    }
}

/// Formats a time as `2026-04-29 12:00 UTC`.
pub fn minute(at: Timestamp) -> String {
    let iso = at.to_string();
    match (iso.get(..10), iso.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => iso,
    }
}

/// Formats whole dollars with thousands separators.
pub fn dollars(amount: Usdc) -> String {
    format!("${}", amounts::grouped(amount.atomic() / 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsettled_price_is_never_certain() {
        let cases = [(0, "<1%"), (4_999, "<1%"), (5_000, "1%"), (634_999, "63%"), (635_000, "64%")];
        for (ppm, text) in cases.into_iter().chain([(994_999, "99%"), (995_000, ">99%"), (1_000_000, ">99%")])
        {
            assert_eq!(percent(ppm, false), text, "{ppm}");
        }
        assert_eq!((percent(0, true), percent(1_000_000, true)), ("0%".to_owned(), "100%".to_owned()));
    }

    #[test]
    fn volumes_and_times_have_one_format() {
        for (whole, text) in [(0, "$0"), (999, "$999"), (1_000, "$1,000"), (1_234_567, "$1,234,567")] {
            assert_eq!(dollars(Usdc::from_whole(whole)), text);
        }
        assert_eq!(minute(Timestamp::from_ms(1_777_464_000_000)), "2026-04-29 12:00 UTC");
    }

    #[test]
    fn a_price_is_a_number_of_millionths() {
        for (price, expected) in [(0.0, 0), (0.5, 500_000), (1.0, 1_000_000), (1.5, 1_000_000), (-1.0, 0)] {
            assert_eq!(ppm(price), expected);
        }
    }
}
