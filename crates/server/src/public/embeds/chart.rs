//! The course of a market's prices over seven days as lines of SVG, the same on pages and on cards.

use std::fmt::Write as _;

use app::markets::{History, Range};
use domain::candle::distance;
use domain::{Timestamp, Wad};
use store::markets::{Market, Outcome};

use super::face::{MarketFace, ppm};
use crate::http::Shared;
use crate::numbers;
use crate::public::{Code, Refusal};

/// Its width and height.
pub const WIDTH: i64 = 560;
pub const HEIGHT: i64 = 150;
/// What the labels beside and the line widths above and below take.
const RIGHT: i64 = 40;
const MARGIN: i64 = 8;
/// The most lines: more of them are not told apart.
const MOST_LINES: usize = 4;
/// What the scale may end at, in percent: of many outcomes none may come near the whole.
const TOPS: [i64; 3] = [20, 50, 100];
const PERCENT_PPM: i64 = 10_000;

/// The lines of some of a market's outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    from: Timestamp,
    to: Timestamp,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    colour: usize,
    /// Instants and the prices, in millionths, that hold from them on.
    points: Vec<(Timestamp, u32)>,
}

impl Chart {
    /// That of the outcomes which `face` shows first; of a market of two the first says all. `None` while the history is
    /// being put together.
    pub async fn read(
        app: &Shared,
        market: &Market,
        outcomes: &[Outcome],
        face: &MarketFace,
    ) -> Result<Option<Self>, Refusal> {
        let span = Range::SevenDays.span(market, outcomes.len(), None, app.ctx.now());
        let history = match app::markets::history(&app.ctx, market, outcomes, span).await {
            Ok(history) => history,
            Err(error) => {
                let refusal = Refusal::from(error);
                return if refusal.code() == Code::DependencyUnavailable { Ok(None) } else { Err(refusal) };
            }
        };
        let end = span.to.unwrap_or(history.to);
        Ok(Some(Self::of(market, face, &history, end)))
    }

    fn of(market: &Market, face: &MarketFace, history: &History, end: Timestamp) -> Self {
        let most = if outcomes_of_two(face) { 1 } else { MOST_LINES };
        let line =
            |shown: &super::face::Shown| {
                let price = |cost: Wad, quantity: Wad| {
                    ppm(numbers::probability(Wad::ZERO, distance(cost, quantity), market.liquidity))
                };
                let index = usize::from(shown.index);
                let quantity = |quantities: &[Wad]| quantities.get(index).copied().unwrap_or_default();
                let opening = price(history.opening.cost, quantity(&history.opening.quantities));
                let mut points = vec![(history.from, opening)];
                points.extend(history.buckets.iter().map(|bucket| {
                    (bucket.at.min(end), price(bucket.cost.close, quantity(&bucket.quantities)))
                }));
                Line { colour: shown.colour, points }
            };
        let lines = face.outcomes.iter().take(most).map(line).collect();
        Self { from: history.from, to: end, lines }
    }

    /// The lines, their grid and its labels, within [`WIDTH`] and [`HEIGHT`]. Colours come from classes: `s0` to `s7` for
    /// strokes, `f0` to `f7` for fills, `grid`, `axis`.
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        for percent in [self.top(), self.top() / 2, 0] {
            let (y, right) = (tenths(self.y(percent * PERCENT_PPM)), WIDTH - RIGHT);
            let _ = write!(
                svg,
                r#"<path class="grid" d="M0 {y}H{right}"/><text class="axis" x="{WIDTH}" y="{y}" dy="4" text-anchor="end">{percent}%</text>"#
            );
        }
        // The first line is the one that matters most: it is drawn above the others.
        for line in self.lines.iter().rev() {
            self.draw(line, &mut svg);
        }
        svg
    }

    fn draw(&self, line: &Line, svg: &mut String) {
        let Line { colour, points } = line;
        let mut path = String::new();
        let mut last_y = 0;
        for (at, price) in points {
            let (x, y) = (self.x(*at), self.y(i64::from(*price)));
            let _ = match path.is_empty() {
                true => write!(path, "M{} {}", tenths(x), tenths(y)),
                false => write!(path, "H{}V{}", tenths(x), tenths(y)),
            };
            last_y = y;
        }
        let (right, bottom) = (tenths(self.x(self.to)), tenths(self.y(0)));
        let _ = write!(path, "H{right}");
        if self.lines.len() == 1 {
            let _ = write!(svg, r#"<path class="f{colour} area" d="{path}V{bottom}H0Z"/>"#);
        }
        let _ = write!(
            svg,
            r#"<path class="s{colour} line" d="{path}"/><circle class="f{colour}" cx="{right}" cy="{}" r="4"/>"#,
            tenths(last_y)
        );
    }

    /// In tenths of a unit.
    fn x(&self, at: Timestamp) -> i64 {
        let (gone, whole) = (at.since_ms(self.from).max(0), self.to.since_ms(self.from).max(1));
        (WIDTH - RIGHT - MARGIN) * 10 * gone.min(whole) / whole
    }

    /// In tenths of a unit.
    fn y(&self, ppm: i64) -> i64 {
        let top = self.top() * PERCENT_PPM;
        MARGIN * 10 + (HEIGHT - 2 * MARGIN) * 10 * (top - ppm) / top
    }

    /// Where the scale ends, in percent. A single line is read against the whole.
    fn top(&self) -> i64 {
        let highest =
            self.lines.iter().flat_map(|line| &line.points).map(|(_, price)| i64::from(*price)).max();
        let holds = |top: &i64| self.lines.len() > 1 && highest.unwrap_or_default() <= top * PERCENT_PPM;
        TOPS.into_iter().find(holds).unwrap_or(100)
    }
}

fn outcomes_of_two(face: &MarketFace) -> bool {
    face.outcomes.len() + face.more <= 2
}

fn tenths(value: i64) -> String {
    format!("{}.{}", value / 10, value % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lines: Vec<Vec<(i64, u32)>>) -> Chart {
        let at = Timestamp::from_ms;
        let line = |(colour, points): (usize, Vec<(i64, u32)>)| Line {
            colour,
            points: points.into_iter().map(|(ms, ppm)| (at(ms), ppm)).collect(),
        };
        Chart { from: at(0), to: at(1_000), lines: lines.into_iter().enumerate().map(line).collect() }
    }

    #[test]
    fn a_price_holds_until_the_next_trade() {
        let svg = chart(vec![vec![(0, 500_000), (500, 1_000_000)]]).svg();
        assert!(svg.contains(r#"class="s0 line" d="M0.0 75.0H256.0V8.0H512.0""#), "{svg}");
        assert!(svg.contains(r#"class="f0 area""#), "{svg}");
    }

    #[test]
    fn several_lines_have_no_area_and_the_first_lies_above() {
        let svg = chart(vec![vec![(0, 500_000)], vec![(0, 0)]]).svg();
        assert!(!svg.contains("area"), "{svg}");
        assert!(svg.find("s1 line") < svg.find("s0 line"), "{svg}");
        assert!(svg.contains(">50%<") && !svg.contains(">100%<"), "{svg}");
    }
}
