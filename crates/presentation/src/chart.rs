//! The chart of a market's prices over a range of time: lines as SVG, and the texts around them. Pages
//! and cards share it.

use std::fmt::Write as _;

use app::markets::{MarketHistory, Range};
use app::{AppError, Ctx};
use domain::candle::distance;
use domain::time::DAY_MS;
use domain::{ErrorCode, Timestamp, Wad};
use pulldown_cmark_escape::escape_html;
use store::markets::{Market, Outcome};

use super::amounts::MONTHS;
use super::market_face::{MarketFace, Shown, ppm};
use super::numbers;

/// Size of the plot in units. On a page, one unit of height is one pixel, and the width is
/// stretched.
pub const WIDTH: i64 = 500;
pub const HEIGHT: i64 = 150;
/// Space above and below the lines.
const MARGIN: i64 = 8;
/// Size of a sparkline in units, and the space above and below it.
pub const SPARK_WIDTH: i64 = 120;
pub const SPARK_HEIGHT: i64 = 40;
const SPARK_MARGIN: i64 = 5;
/// Maximum number of lines. More cannot be distinguished.
const MOST_LINES: usize = 4;
/// Possible tops of the scale, in percent. In a market with many outcomes, no price may come near
/// 100%.
const TOPS: [i64; 3] = [20, 50, 100];
const PERCENT_PPM: i64 = 10_000;
/// From this span on, the time axis shows only days.
const SPAN_OF_DAYS_MS: i64 = 3 * DAY_MS;

/// The smallest part of the scale that a fitted chart shows, and the step of its ends, in percent.
const LEAST_FITTED: i64 = 10;
const FITTED_STEP: i64 = 5;

/// The vertical scale of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// From 0, to 100 or to the next lower top that holds all prices of several outcomes.
    #[default]
    FromZero,
    /// Only the part that holds the prices.
    Fitted,
}

/// The price lines of some of a market's outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    from: Timestamp,
    to: Timestamp,
    lines: Vec<Line>,
    scale: Scale,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// The outcome's index.
    index: u8,
    label: String,
    colour: usize,
    /// Times, with the price in millionths from that time on.
    points: Vec<(Timestamp, u32)>,
}

impl Chart {
    /// Reads the chart of the first outcomes of `face` over seven days. Returns `None` while the
    /// history is being built, so that the page can render without it.
    pub async fn read(
        ctx: &Ctx,
        market: &Market,
        outcomes: &[Outcome],
        face: &MarketFace,
    ) -> Result<Option<Self>, AppError> {
        Self::read_range(ctx, (market, outcomes), face, Range::SevenDays, Scale::FromZero).await
    }

    /// Like [`Chart::read`], with another range and scale.
    pub async fn read_range(
        ctx: &Ctx,
        (market, outcomes): (&Market, &[Outcome]),
        face: &MarketFace,
        range: Range,
        scale: Scale,
    ) -> Result<Option<Self>, AppError> {
        let span = range.span(market, outcomes.len(), None, ctx.now());
        // The page must render even while the history is unavailable.
        let history = match app::markets::history(ctx, market, outcomes, span).await {
            Ok(history) => history,
            Err(error) if error.code == ErrorCode::DependencyUnavailable => return Ok(None),
            Err(error) => return Err(error),
        };
        let end = span.to.unwrap_or(history.to);
        Ok(Some(Self { scale, ..Self::of(market, face, &history, end) }))
    }

    fn of(market: &Market, face: &MarketFace, history: &MarketHistory, end: Timestamp) -> Self {
        let line =
            |shown: &Shown| {
                let price = |cost: Wad, quantity: Wad| {
                    ppm(numbers::probability(Wad::ZERO, distance(cost, quantity), market.liquidity))
                };
                let index = usize::from(shown.index);
                let quantity = |quantities: &[Wad]| quantities.get(index).copied().unwrap_or_default();
                let opening = price(history.opening.cost, quantity(&history.opening.quantities));
                let mut points = vec![(history.from, opening)];
                // A bucket may end after the chart does.
                points.extend(history.buckets.iter().map(|bucket| {
                    (bucket.at.min(end), price(bucket.cost.close, quantity(&bucket.quantities)))
                }));
                Line { index: shown.index, label: shown.label.clone(), colour: shown.colour, points }
            };
        let lines = face.outcomes.iter().take(lines_of(face)).map(line).collect();
        Self { from: history.from, to: end, lines, scale: Scale::FromZero }
    }

    /// Returns the lines and their grid as SVG, of size [`WIDTH`] by [`HEIGHT`]. Colors are CSS
    /// classes: `s0` to `s7` for strokes, `f0` to `f7` for fills, and `grid`.
    pub fn lines(&self) -> String {
        self.draw_all(|_| String::new())
    }

    /// Like [`Chart::lines`], with each line's outcome in the attributes `data-outcome` and
    /// `data-label`, for scripts.
    pub fn marked_lines(&self) -> String {
        self.draw_all(|line| {
            format!(r#" data-outcome="{}" data-label="{}""#, line.index, escape_attribute(&line.label))
        })
    }

    fn draw_all(&self, marks: impl Fn(&Line) -> String) -> String {
        let mut svg = String::new();
        for percent in self.percents() {
            let y = tenths(self.y(percent * PERCENT_PPM));
            let _ = write!(svg, r#"<path class="grid" d="M0 {y}H{WIDTH}"/>"#);
        }
        // The first line is the most important one, so it is drawn last, above the others.
        for line in self.lines.iter().rev() {
            self.draw(line, &marks(line), &mut svg);
        }
        svg
    }

    fn draw(&self, line: &Line, marks: &str, svg: &mut String) {
        let Line { colour, points, .. } = line;
        let mut path = String::new();
        let mut last_y = 0;
        for (at, price) in points {
            let (x, y) = (self.x(*at), self.y(i64::from(*price)));
            let _ = match path.is_empty() {
                // Prices are constant between trades, so the line consists of horizontal and
                // vertical steps.
                true => write!(path, "M{} {}", tenths(x), tenths(y)),
                false => write!(path, "H{}V{}", tenths(x), tenths(y)),
            };
            last_y = y;
        }
        let (bottom, end) = (tenths(self.y(self.bottom() * PERCENT_PPM)), tenths(last_y));
        let _ = write!(path, "H{WIDTH}");
        if self.lines.len() == 1 {
            let _ = write!(svg, r#"<path class="f{colour} area" d="{path}V{bottom}H0Z"/>"#);
        }
        // The end point is a zero-length path with round caps. Unlike a circle, it stays round when
        // the chart is stretched.
        let _ = write!(
            svg,
            r#"<path class="s{colour} line"{marks} d="{path}"/><path class="s{colour} end" d="M{WIDTH} {end}h.01"/>"#
        );
    }

    /// Returns the prices of the grid lines in percent, from the top.
    pub fn percents(&self) -> [i64; 3] {
        let (top, bottom) = (self.top(), self.bottom());
        [top, i64::midpoint(top, bottom), bottom]
    }

    /// Returns the change of the first line's price over the last day, in points. `None` if the chart
    /// begins later.
    pub fn change_in_a_day(&self) -> Option<i64> {
        let points = &self.lines.first()?.points;
        let day_ago = self.to.plus_ms(-DAY_MS);
        let before = points.iter().rfind(|(at, _)| *at <= day_ago)?;
        let points_of = |ppm: u32| (i64::from(ppm) + PERCENT_PPM / 2) / PERCENT_PPM;
        Some(points_of(points.last()?.1) - points_of(before.1))
    }

    /// Returns the first line as SVG of size [`SPARK_WIDTH`] by [`SPARK_HEIGHT`], fitted to its prices.
    pub fn spark(&self) -> String {
        let Some(line) = self.lines.first() else { return String::new() };
        let prices = || line.points.iter().map(|(_, ppm)| i64::from(*ppm));
        let low = prices().min().unwrap_or_default();
        let span = (prices().max().unwrap_or_default() - low).max(2 * PERCENT_PPM);
        let height = (SPARK_HEIGHT - 2 * SPARK_MARGIN) * 10;
        let place = |(at, ppm): &(Timestamp, u32)| {
            let y = SPARK_MARGIN * 10 + height - height * (i64::from(*ppm) - low) / span;
            (self.x(*at) * SPARK_WIDTH / WIDTH, y)
        };
        let mut path = String::new();
        let mut end = 0;
        for (x, y) in line.points.iter().map(place) {
            let command = if path.is_empty() { ('M', ' ') } else { ('H', 'V') };
            let _ = write!(path, "{}{}{}{}", command.0, tenths(x), command.1, tenths(y));
            end = y;
        }
        let (colour, end) = (line.colour, tenths(end));
        format!(
            r#"<path class="s{colour} line" d="{path}H{SPARK_WIDTH}"/><path class="s{colour} end" d="M{SPARK_WIDTH} {end}h.01"/>"#
        )
    }

    /// Returns the labels of the time axis, at equal distances from its start to its end. Times are
    /// UTC.
    pub fn times(&self) -> Vec<String> {
        time_labels(self.from, self.to)
    }

    /// Returns the start and the end of the time axis.
    pub const fn span(&self) -> (Timestamp, Timestamp) {
        (self.from, self.to)
    }

    /// Returns the color and the name of each line.
    pub fn legend(&self) -> Vec<(usize, &str)> {
        self.lines.iter().map(|line| (line.colour, line.label.as_str())).collect()
    }

    /// Returns the x coordinate in tenths of a unit.
    fn x(&self, at: Timestamp) -> i64 {
        let (gone, whole) = (at.since_ms(self.from).max(0), self.to.since_ms(self.from).max(1));
        WIDTH * 10 * gone.min(whole) / whole
    }

    /// Returns the y coordinate in tenths of a unit.
    fn y(&self, ppm: i64) -> i64 {
        let (top, bottom) = (self.top() * PERCENT_PPM, self.bottom() * PERCENT_PPM);
        MARGIN * 10 + (HEIGHT - 2 * MARGIN) * 10 * (top - ppm) / (top - bottom)
    }

    /// Returns the top of the scale in percent.
    fn top(&self) -> i64 {
        let highest = self.prices().max().unwrap_or_default();
        match self.scale {
            // A single line's scale always ends at 100.
            Scale::FromZero => {
                let holds = |top: &i64| self.lines.len() > 1 && highest <= top * PERCENT_PPM;
                TOPS.into_iter().find(holds).unwrap_or(100)
            }
            Scale::Fitted => {
                let step = FITTED_STEP * PERCENT_PPM;
                let fitted = (highest + step - 1) / step * FITTED_STEP;
                fitted.clamp(LEAST_FITTED, 100)
            }
        }
    }

    /// Returns the bottom of the scale in percent.
    fn bottom(&self) -> i64 {
        match self.scale {
            Scale::FromZero => 0,
            Scale::Fitted => {
                let lowest =
                    self.prices().min().unwrap_or_default() / (FITTED_STEP * PERCENT_PPM) * FITTED_STEP;
                lowest.min(self.top() - LEAST_FITTED)
            }
        }
    }

    fn prices(&self) -> impl Iterator<Item = i64> {
        self.lines.iter().flat_map(|line| &line.points).map(|(_, price)| i64::from(*price))
    }
}

/// Returns the number of lines in a market's chart. With two outcomes, one line implies the other.
pub fn lines_of(face: &MarketFace) -> usize {
    if face.is_of_two() { 1 } else { MOST_LINES.min(face.outcomes.len()) }
}

/// Formats a time as `22 Nov`, or as `22 Nov 14:05`.
/// Returns the labels of a time axis, at equal distances from its start to its end. Times are UTC.
pub fn time_labels(from: Timestamp, to: Timestamp) -> Vec<String> {
    let span = to.since_ms(from).max(0);
    let (count, has_clock) = if span >= SPAN_OF_DAYS_MS { (4, false) } else { (3, true) };
    let at = |n: i64| from.plus_ms(span * n / (count - 1));
    (0..count).map(|n| time_text(at(n), has_clock)).collect()
}

fn time_text(at: Timestamp, has_clock: bool) -> String {
    let iso = at.to_string();
    let part = |range: std::ops::Range<usize>| iso.get(range).unwrap_or_default();
    let month = part(5..7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    let day = format!("{} {}", part(8..10).trim_start_matches('0'), month.copied().unwrap_or_default());
    if has_clock { format!("{day} {}", part(11..16)) } else { day }
}

/// Escapes a text for a double-quoted attribute.
fn escape_attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    // Writing to a string cannot fail.
    let _ = escape_html(&mut escaped, text);
    escaped
}

pub fn tenths(value: i64) -> String {
    format!("{}.{}", value / 10, value % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lines: Vec<Vec<(i64, u32)>>) -> Chart {
        let at = Timestamp::from_ms;
        let line = |(colour, points): (usize, Vec<(i64, u32)>)| Line {
            index: u8::try_from(colour).unwrap(),
            label: format!("Outcome {colour}"),
            colour,
            points: points.into_iter().map(|(ms, ppm)| (at(ms), ppm)).collect(),
        };
        let lines = lines.into_iter().enumerate().map(line).collect();
        Chart { from: at(0), to: at(1_000), lines, scale: Scale::FromZero }
    }

    #[test]
    fn a_fitted_scale_holds_every_price_and_at_least_ten_points() {
        let fitted = |prices: &[u32]| {
            let points = prices.iter().map(|ppm| (0, *ppm)).collect();
            Chart { scale: Scale::Fitted, ..chart(vec![points]) }.percents()
        };
        assert_eq!(fitted(&[520_000, 585_000]), [60, 55, 50]);
        assert_eq!(fitted(&[630_000]), [65, 60, 55]);
        assert_eq!(fitted(&[1_000]), [10, 5, 0]);
        assert_eq!(fitted(&[0, 1_000_000]), [100, 50, 0]);
    }

    #[test]
    fn the_change_in_a_day_is_in_whole_points() {
        let chart = |points| {
            let to = Timestamp::from_ms(2 * DAY_MS);
            Chart { to, ..chart(vec![points]) }.change_in_a_day()
        };
        assert_eq!(chart(vec![(0, 500_000), (2 * DAY_MS - 1, 544_000)]), Some(4));
        assert_eq!(chart(vec![(0, 500_000)]), Some(0));
        assert_eq!(chart(vec![(2 * DAY_MS - 1, 544_000)]), None);
    }

    #[test]
    fn a_price_is_constant_until_the_next_trade() {
        let svg = chart(vec![vec![(0, 500_000), (500, 1_000_000)]]).lines();
        assert!(svg.contains(r#"class="s0 line" d="M0.0 75.0H250.0V8.0H500""#), "{svg}");
        assert!(svg.contains(r#"class="f0 area""#), "{svg}");
        assert!(svg.contains(r#"class="s0 end" d="M500 8.0h.01""#), "{svg}");
    }

    #[test]
    fn several_lines_have_no_area_and_the_first_is_on_top() {
        let chart = chart(vec![vec![(0, 500_000)], vec![(0, 0)]]);
        let svg = chart.lines();
        assert!(!svg.contains("area"), "{svg}");
        assert!(svg.find("s1 line") < svg.find("s0 line"), "{svg}");
        assert_eq!(chart.percents(), [50, 25, 0]);
        assert_eq!(chart.legend(), [(0, "Outcome 0"), (1, "Outcome 1")]);
    }

    #[test]
    fn the_chart_contains_no_text() {
        assert!(!chart(vec![vec![(0, 500_000)]]).lines().contains("<text"));
    }

    #[test]
    fn the_time_axis_names_days_or_hours() {
        let from = Timestamp::from_ms(1_777_464_000_000);
        let times = |span_ms| {
            let to = from.plus_ms(span_ms);
            Chart { from, to, lines: Vec::new(), scale: Scale::FromZero }.times()
        };
        assert_eq!(times(6 * DAY_MS), ["29 Apr", "1 May", "3 May", "5 May"]);
        assert_eq!(times(DAY_MS / 2), ["29 Apr 12:00", "29 Apr 18:00", "30 Apr 00:00"]);
        assert_eq!(times(0)[0], times(0)[2]);
    }
}
