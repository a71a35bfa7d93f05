//! Draws cards: a template produces SVG, which is rendered to PNG.

use std::sync::Arc;

use app::AppError;
use askama::Template;
use domain::ErrorCode;
use presentation::links::{CARD_HEIGHT as HEIGHT, CARD_WIDTH as WIDTH, SITE};
use presentation::{Chart, MarketFace, Shown, ThreadFace, chart};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::fonts::Fonts;

const MARGIN: u32 = 64;
const STYLE: &str = include_str!("../../templates/embeds/card.css");
/// Title of a card if the fonts lack the letters of the market's own title.
const UNNAMED_MARKET: &str = "A prediction market";
const UNNAMED_THREAD: &str = "Prediction markets";
/// Maximum number of rows of outcomes or markets.
const MOST_ROWS: usize = 4;
/// Position of the first row, and distance between rows.
const FIRST_ROW: u32 = 325;
const ROW: u32 = 60;
/// Maximum width of an outcome's bar.
const BAR: u32 = 440;
/// Font sizes of the lead text. The largest size that fits is used.
const LEAD_SIZES: [u32; 4] = [150, 110, 80, 56];
/// Maximum width of the lead text.
const LEAD_WIDTH: u32 = 470;

#[derive(Debug, Template)]
#[template(path = "embeds/market_card.svg")]
struct MarketCard<'a> {
    style: &'static str,
    site: &'static str,
    heading: Heading,
    lead: Option<Lead>,
    /// The likeliest outcomes, if there is no lead.
    rows: Vec<Row>,
    chart: Option<CardChart>,
    standing: String,
    volume: &'a str,
}

#[derive(Debug, Template)]
#[template(path = "embeds/thread_card.svg")]
struct ThreadCard<'a> {
    style: &'static str,
    site: &'static str,
    heading: Heading,
    rows: Vec<Row>,
    count: String,
    volume: &'a str,
}

/// A title, broken into lines.
#[derive(Debug)]
struct Heading {
    size: u32,
    lines: Vec<(u32, String)>,
}

impl Heading {
    fn new(fonts: &Fonts, text: &str) -> Self {
        // Long titles use a smaller font, and are truncated if that is not enough.
        let width = WIDTH - 2 * MARGIN;
        let size = if fonts.wrapped(text, 58, width, 3).len() <= 2 { 58 } else { 46 };
        let lines = fonts.wrapped(text, size, width, 3);
        let first = MARGIN + size;
        let lines = lines.into_iter().zip(0..).map(|(line, n)| (first + n * size * 5 / 4, line)).collect();
        Self { size, lines }
    }
}

/// The large text of a card: the result of a settled market, or the price of the first of two
/// outcomes.
#[derive(Debug)]
struct Lead {
    size: u32,
    text: String,
    caption: String,
}

impl Lead {
    fn new(fonts: &Fonts, text: &str, caption: &str) -> Self {
        let fits = |size: &u32| fonts.measure(text, *size) <= LEAD_WIDTH;
        let size = LEAD_SIZES.into_iter().find(fits).unwrap_or(LEAD_SIZES[3]);
        let text = fonts.shortened(text, size, LEAD_WIDTH);
        Self { size, text, caption: fonts.shortened(caption, 40, LEAD_WIDTH) }
    }

    /// Returns `None` if the card shows the outcomes in rows instead.
    fn of(fonts: &Fonts, face: &MarketFace) -> Option<Self> {
        if face.status == "cancelled" {
            return Some(Self::new(fonts, "Cancelled", "Positions are refunded"));
        }
        if let Some(winner) = face.winner() {
            return Some(Self::new(fonts, &named(fonts, winner), "Result"));
        }
        // More outcomes need rows: one price would not describe the market.
        let first = face.first().filter(|_| face.is_of_two() && face.status != "resolved")?;
        Some(Self::new(fonts, &first.percent, &named(fonts, first)))
    }
}

/// A chart with its texts, in the chart's units.
#[derive(Debug)]
struct CardChart {
    lines: String,
    /// Heights and texts.
    percents: Vec<(i64, String)>,
    /// Positions, anchors and texts.
    times: Vec<(i64, &'static str, String)>,
}

impl CardChart {
    fn new(chart: &Chart) -> Self {
        // Labels are centered on the grid lines; letters are 20 units high.
        let heights = [8, chart::HEIGHT / 2, chart::HEIGHT - 8].map(|y| y + 7);
        let percents = heights.into_iter().zip(chart.percents()).map(|(y, it)| (y, format!("{it}%")));
        let times = chart.times();
        let last = times.len().saturating_sub(1);
        let time = |(n, text): (usize, String)| {
            let place = |n: usize| i64::try_from(n).unwrap_or_default();
            let anchor = match n {
                0 => "start",
                n if n == last => "end",
                _ => "middle",
            };
            (chart::WIDTH * place(n) / place(last).max(1), anchor, text)
        };
        Self {
            lines: chart.lines(),
            percents: percents.collect(),
            times: times.into_iter().enumerate().map(time).collect(),
        }
    }
}

/// A row for an outcome or a market.
#[derive(Debug)]
struct Row {
    y: u32,
    label: String,
    percent: String,
    colour: usize,
    bar: u32,
}

/// Renders a market's card as SVG.
pub fn market(fonts: &Fonts, face: &MarketFace, chart: Option<&Chart>) -> Result<String, AppError> {
    let lead = Lead::of(fonts, face);
    let row = |(outcome, n): (&Shown, u32)| Row {
        y: FIRST_ROW + n * ROW,
        label: fonts.shortened(&named(fonts, outcome), 30, BAR - 100),
        percent: outcome.percent.clone(),
        colour: outcome.colour,
        bar: outcome.permille() * BAR / 1_000,
    };
    let most = if lead.is_some() { 0 } else { MOST_ROWS };
    let rows = face.outcomes.iter().zip(0..).take(most).map(row).collect();
    written(&MarketCard {
        style: STYLE,
        site: SITE,
        heading: Heading::new(fonts, &own_words(fonts, &face.question, UNNAMED_MARKET)),
        lead,
        rows,
        chart: chart.map(CardChart::new),
        standing: fonts.shortened(&own_words(fonts, &face.standing, "Resolved"), 28, 620),
        volume: &face.volume,
    })
}

/// Renders a thread's card as SVG.
pub fn thread(fonts: &Fonts, face: &ThreadFace) -> Result<String, AppError> {
    let row = |(market, n): (&MarketFace, u32)| {
        // A bar would suggest a price, which a cancelled market does not have.
        let first = market.first().filter(|_| market.status != "cancelled");
        let state = state(fonts, market);
        // The title gets the width that the state leaves.
        let width = (WIDTH - 2 * MARGIN - 30).saturating_sub(fonts.measure(&state, 30));
        Row {
            y: FIRST_ROW + n * ROW,
            label: fonts.shortened(&own_words(fonts, &market.question, UNNAMED_MARKET), 30, width),
            percent: state,
            colour: 0,
            bar: first.map_or(0, Shown::permille) * (WIDTH - 2 * MARGIN) / 1_000,
        }
    };
    written(&ThreadCard {
        style: STYLE,
        site: SITE,
        heading: Heading::new(fonts, &own_words(fonts, &face.title, UNNAMED_THREAD)),
        rows: face.markets.iter().zip(0..).take(MOST_ROWS).map(row).collect(),
        count: face.count(),
        volume: &face.volume,
    })
}

/// Describes a market's state in a few words: its result, or the price of its first outcome.
fn state(fonts: &Fonts, market: &MarketFace) -> String {
    let name = |outcome| fonts.shortened(&named(fonts, outcome), 30, 220);
    match (market.status.as_str(), market.winner(), market.first()) {
        ("cancelled", ..) => "Cancelled".to_owned(),
        (_, Some(winner), _) => format!("Result: {}", name(winner)),
        ("frozen", _, Some(first)) => format!("Stopped at {} {}", name(first), first.percent),
        (_, _, Some(first)) => format!("{} {}", name(first), first.percent),
        _ => String::new(),
    }
}

fn own_words(fonts: &Fonts, text: &str, otherwise: &str) -> String {
    if fonts.can_draw(text) { fonts.drawable(text) } else { otherwise.to_owned() }
}

fn named(fonts: &Fonts, outcome: &Shown) -> String {
    own_words(fonts, &outcome.label, &format!("Outcome {}", u32::from(outcome.index) + 1))
}

fn written(template: &impl Template) -> Result<String, AppError> {
    template.render().map_err(AppError::internal)
}

/// Renders SVG to PNG.
pub fn png(fonts: &Fonts, svg: &str) -> Result<Vec<u8>, AppError> {
    let failed = || AppError::new(ErrorCode::InternalError);
    let options = Options {
        fontdb: Arc::clone(&fonts.database),
        font_family: "Ubuntu".to_owned(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(|error| failed().caused_by(error))?;
    let mut pixmap = Pixmap::new(WIDTH, HEIGHT).ok_or_else(failed)?;
    resvg::render(&tree, Transform::default(), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| failed().caused_by(error))
}

#[cfg(test)]
mod tests {
    use domain::ids::MarketId;

    use super::*;

    fn face(status: &str, ppm: [u32; 2]) -> MarketFace {
        let outcome = |(index, label, ppm): (u8, &str, u32)| Shown {
            index,
            label: label.to_owned(),
            percent: format!("{}%", ppm / 10_000),
            ppm,
            colour: index.into(),
            won: status == "resolved" && ppm > 0,
        };
        MarketFace {
            id: MarketId(uuid::Uuid::nil()),
            question: "Will it rain?".to_owned(),
            status: status.to_owned(),
            standing: "Ends 2026-04-29 12:00 UTC".to_owned(),
            volume: "$1,000".to_owned(),
            outcomes: [(0, "Yes", ppm[0]), (1, "No", ppm[1])].map(outcome).to_vec(),
            more: 0,
            block: 1,
        }
    }

    fn lead(status: &str, ppm: [u32; 2]) -> Option<(String, String)> {
        Lead::of(&Fonts::read(), &face(status, ppm)).map(|lead| (lead.text, lead.caption))
    }

    #[test]
    fn a_card_leads_with_the_result_of_a_market_that_has_ended() {
        let pair = |text: &str, caption: &str| Some((text.to_owned(), caption.to_owned()));
        assert_eq!(lead("open", [600_000, 400_000]), pair("60%", "Yes"));
        assert_eq!(lead("resolved", [0, 1_000_000]), pair("No", "Result"));
        assert_eq!(lead("cancelled", [600_000, 400_000]), pair("Cancelled", "Positions are refunded"));
        // A market that pays two outcomes partially has no lead.
        assert_eq!(lead("resolved", [500_000, 500_000]), None);
    }

    #[test]
    fn a_row_of_a_thread_card_shows_the_state_of_its_market() {
        let fonts = Fonts::read();
        let state = |status, ppm| state(&fonts, &face(status, ppm));
        assert_eq!(state("open", [600_000, 400_000]), "Yes 60%");
        assert_eq!(state("frozen", [600_000, 400_000]), "Stopped at Yes 60%");
        assert_eq!(state("resolved", [0, 1_000_000]), "Result: No");
        assert_eq!(state("cancelled", [600_000, 400_000]), "Cancelled");
    }

    #[test]
    fn a_long_result_is_set_smaller_then_truncated() {
        let fonts = Fonts::read();
        let lead = |text: &str| Lead::new(&fonts, text, "Result");
        assert_eq!(lead("Yes").size, 150);
        assert!(lead("Northern Republic").size < 110);
        let long = lead(&"Northern Republic ".repeat(5));
        assert!(long.size == 56 && long.text.ends_with('…'), "{long:?}");
        assert!(fonts.measure(&long.text, long.size) <= LEAD_WIDTH);
    }
}
