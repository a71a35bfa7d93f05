//! The chart of a profit over time.

use std::fmt::Write as _;

use domain::{Timestamp, UsdcDelta};

use crate::amounts;
use crate::chart::{HEIGHT, WIDTH, tenths, time_labels};

/// Space above and below the line.
const MARGIN: i64 = 8;
/// The smallest part of the scale: one dollar.
const LEAST_SPAN: i64 = 1_000_000;

/// The line of a profit, and the texts around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfitChart {
    /// The grid and the line as SVG, of the size of a market's chart.
    pub lines: String,
    /// The amounts of the grid lines, from the top.
    pub amounts: [String; 3],
    /// The labels of the time axis.
    pub times: Vec<String>,
}

impl ProfitChart {
    /// Draws points, which must be sorted by time. Returns `None` if there are fewer than two.
    pub fn new(points: &[(Timestamp, UsdcDelta)]) -> Option<Self> {
        let ((from, _), (to, _)) = (points.first()?, points.last()?);
        let span_ms = to.since_ms(*from);
        if span_ms <= 0 {
            return None;
        }
        let values = || points.iter().map(|(_, value)| value.0);
        // The scale always contains 0.
        let bottom = values().min()?.min(0);
        let top = values().max()?.max(0).max(bottom.saturating_add(LEAST_SPAN));
        let y = |value: i64| {
            let below = i128::from(top) - i128::from(value);
            let height = i128::from((HEIGHT - 2 * MARGIN) * 10);
            let offset = height * below / (i128::from(top) - i128::from(bottom));
            MARGIN * 10 + i64::try_from(offset).unwrap_or_default()
        };
        let middle = i64::midpoint(top, bottom);
        let mut lines = String::new();
        for value in [top, middle, bottom, 0] {
            let _ = write!(lines, r#"<path class="grid" d="M0 {}H{WIDTH}"/>"#, tenths(y(value)));
        }
        let mut path = String::new();
        for (at, value) in points {
            let x = tenths(WIDTH * 10 * at.since_ms(*from) / span_ms);
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{x} {}", tenths(y(value.0)));
        }
        let zero = tenths(y(0));
        let _ = write!(
            lines,
            r#"<path class="f0 area" d="{path}V{zero}H0Z"/><path class="s0 line" d="{path}"/>"#
        );
        let amounts = [top, middle, bottom].map(short_profit);
        Some(Self { lines, amounts, times: time_labels(*from, *to) })
    }
}

/// Formats an amount of the scale, which has little room: cents below ten dollars, then dollars, then
/// thousands.
fn short_profit(atomic: i64) -> String {
    const DOLLAR: u64 = 1_000_000;
    let dollars = atomic.unsigned_abs() / DOLLAR;
    let short = match dollars {
        0..10 => return amounts::profit(UsdcDelta(atomic)),
        10..10_000 => amounts::grouped(dollars),
        10_000..10_000_000 => format!("{}k", amounts::grouped(dollars / 1_000)),
        _ => format!("{}M", amounts::grouped(dollars / 1_000_000)),
    };
    format!("{}${short}", if atomic < 0 { "−" } else { "+" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[i64]) -> Option<ProfitChart> {
        let points: Vec<_> = (0..)
            .zip(values)
            .map(|(hour, value)| (Timestamp::from_ms(hour * 3_600_000), UsdcDelta(value * 1_000_000)))
            .collect();
        ProfitChart::new(&points)
    }

    #[test]
    fn the_scale_holds_all_values_and_zero() {
        let amounts = |values: &[i64]| chart(values).unwrap().amounts;
        assert_eq!(amounts(&[0, 10]), ["+$10", "+$5.00", "$0.00"]);
        assert_eq!(amounts(&[-3_000, -10]), ["$0.00", "−$1,500", "−$3,000"]);
        assert_eq!(amounts(&[0, 24_000_000]), ["+$24M", "+$12M", "$0.00"]);
        assert_eq!(amounts(&[0, 24_000]), ["+$24k", "+$12k", "$0.00"]);
        assert_eq!(amounts(&[0, 0]), ["+$1.00", "+$0.50", "$0.00"]);
    }

    #[test]
    fn the_line_begins_at_the_left_and_ends_at_the_right() {
        let lines = chart(&[0, 10, 5]).unwrap().lines;
        assert!(lines.contains(r#"class="s0 line" d="M0.0 142.0L250.0 8.0L500.0 75.0""#), "{lines}");
        assert_eq!((chart(&[]), chart(&[1])), (None, None));
    }
}
