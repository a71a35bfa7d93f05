//! What a card looks like: SVG by a template, which becomes a PNG here.

use std::sync::Arc;

use app::AppError;
use askama::Template;
use domain::ErrorCode;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::fonts::Fonts;
use crate::public::embeds::SITE;
use crate::public::embeds::face::{MarketFace, Shown};
use crate::public::embeds::thread_face::ThreadFace;

/// A card's size in pixels, which previews of links everywhere take.
pub const WIDTH: u32 = 1_200;
pub const HEIGHT: u32 = 630;

const MARGIN: u32 = 64;
const STYLE: &str = include_str!("../../../../templates/embeds/card.css");
/// What a card says where the fonts do not have the letters of the market's own words.
const UNNAMED_MARKET: &str = "A prediction market";
const UNNAMED_THREAD: &str = "Prediction markets";
/// The most rows of outcomes or markets.
const MOST_ROWS: usize = 4;
/// Where the rows begin and how far apart they stand.
const FIRST_ROW: u32 = 325;
const ROW: u32 = 60;
/// How wide the bars of outcomes are.
const BAR: u32 = 440;

#[derive(Debug, Template)]
#[template(path = "embeds/market_card.svg")]
struct MarketCard<'a> {
    style: &'static str,
    site: &'static str,
    heading: Heading,
    /// Of two outcomes: the first one's price in large.
    price: Option<(&'a str, String)>,
    /// Of more: the likeliest.
    rows: Vec<Row>,
    chart: Option<&'a str>,
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

/// A title in as many lines as it takes.
#[derive(Debug)]
struct Heading {
    size: u32,
    lines: Vec<(u32, String)>,
}

impl Heading {
    fn new(fonts: &Fonts, text: &str) -> Self {
        // Long questions are set smaller, and cut where that is not enough.
        let width = WIDTH - 2 * MARGIN;
        let size = if fonts.wrapped(text, 58, width, 3).len() <= 2 { 58 } else { 46 };
        let lines = fonts.wrapped(text, size, width, 3);
        let first = MARGIN + size;
        let lines = lines.into_iter().zip(0..).map(|(line, n)| (first + n * size * 5 / 4, line)).collect();
        Self { size, lines }
    }
}

/// An outcome or a market.
#[derive(Debug)]
struct Row {
    y: u32,
    label: String,
    percent: String,
    colour: usize,
    bar: u32,
}

/// A market's card.
pub fn market(fonts: &Fonts, face: &MarketFace, chart: Option<&str>) -> Result<String, AppError> {
    let is_of_two = face.outcomes.len() + face.more <= 2;
    let label = |outcome: &Shown, size, width| fonts.shortened(&named(fonts, outcome), size, width);
    let price = face.first().filter(|_| is_of_two);
    let row = |(outcome, n): (&Shown, u32)| Row {
        y: FIRST_ROW + n * ROW,
        label: label(outcome, 30, BAR - 100),
        percent: outcome.percent.clone(),
        colour: outcome.colour,
        bar: outcome.permille() * BAR / 1_000,
    };
    let rows = face.outcomes.iter().zip(0..).take(if is_of_two { 0 } else { MOST_ROWS }).map(row).collect();
    written(&MarketCard {
        style: STYLE,
        site: SITE,
        heading: Heading::new(fonts, &own_words(fonts, &face.question, UNNAMED_MARKET)),
        price: price.map(|outcome| (outcome.percent.as_str(), label(outcome, 40, BAR))),
        rows,
        chart,
        standing: fonts.shortened(&own_words(fonts, &face.standing, "Resolved"), 28, 620),
        volume: &face.volume,
    })
}

/// A thread's card.
pub fn thread(fonts: &Fonts, face: &ThreadFace) -> Result<String, AppError> {
    let row = |(market, n): (&MarketFace, u32)| {
        let first = market.first();
        let percent =
            first.map(|it| format!("{} {}", fonts.shortened(&named(fonts, it), 30, 220), it.percent));
        Row {
            y: FIRST_ROW + n * ROW,
            label: fonts.shortened(&own_words(fonts, &market.question, UNNAMED_MARKET), 30, 720),
            percent: percent.unwrap_or_default(),
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

fn own_words(fonts: &Fonts, text: &str, otherwise: &str) -> String {
    if fonts.can_draw(text) { fonts.drawable(text) } else { otherwise.to_owned() }
}

fn named(fonts: &Fonts, outcome: &Shown) -> String {
    own_words(fonts, &outcome.label, &format!("Outcome {}", u32::from(outcome.index) + 1))
}

fn written(template: &impl Template) -> Result<String, AppError> {
    template.render().map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))
}

/// The picture of this SVG.
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
