//! Estimates the height of a page, for sites that create the iframe before they load the page.
//!
//! The style sets every line height in pixels, so only the number of lines depends on the reader's
//! fonts. It is estimated with wide letters: an iframe that is too high shows an empty strip, but
//! one that is too low cuts off the page.

use super::{MarketFace, ThreadFace, chart};

/// Maximum width of a page's content.
const MOST_WIDTH: u32 = 720;
/// Space around the content.
const PADDING: u32 = 16;
/// Line heights.
const TITLE: u32 = 25;
const BODY: u32 = 21;
const SMALL: u32 = 18;
const TINY: u32 = 16;
/// Height of the bar below an outcome or a market, with the space above it.
const BAR: u32 = 3 + 6;
/// Space between two rows of a list.
const ROW_GAP: u32 = 10;
/// Space between two columns.
const COLUMN_GAP: u32 = 12;
/// Minimum width of a name in the legend.
const LEGEND_COLUMN: u32 = 120;
/// Height of the line above the footer, with the spaces around it.
const RULE: u32 = 14 + 1 + 10;

/// Returns the height of a market's page in an iframe of width `frame`.
pub fn of_market(face: &MarketFace, has_about: bool, frame: u32) -> u32 {
    let width = content(frame);
    let standing = [face.standing.as_str(), &format!("{} traded", face.volume)];
    let mut height = head(&face.question, &standing, width) + chart(face, width) + COLUMN_GAP;
    let rows = face.outcomes.iter().map(|outcome| {
        let label = width.saturating_sub(COLUMN_GAP + measure(&outcome.percent, 15));
        lines(&outcome.label, 15, label) * BODY + BAR
    });
    height += stacked(rows) + if face.more > 0 { 8 + SMALL } else { 0 };
    height + foot(has_about)
}

/// Returns the height of a thread's page in an iframe of width `frame`.
pub fn of_thread(face: &ThreadFace, has_about: bool, frame: u32) -> u32 {
    let width = content(frame);
    let standing = [face.status, &face.count(), &format!("{} traded", face.volume)];
    let mut height = head(&face.title, &standing, width) + COLUMN_GAP;
    let rows = face.markets.iter().map(|market| market_row(market, width));
    height += if face.markets.is_empty() { SMALL } else { stacked(rows) };
    height += if face.more() > 0 { 8 + SMALL } else { 0 };
    height + foot(has_about)
}

fn market_row(market: &MarketFace, width: u32) -> u32 {
    let price = market.first().map(|it| format!("{}  {}", it.label, it.percent)).unwrap_or_default();
    let most = width * 9 / 20;
    let price_width = measure(&price, 15).min(most);
    let question = lines(&market.question, 15, width.saturating_sub(COLUMN_GAP + price_width));
    let first = question.max(lines(&price, 15, most)) * BODY;
    let state = if market.status == "open" { 0 } else { 3 + lines(&market.standing, 13, width) * SMALL };
    first + state + BAR
}

fn content(frame: u32) -> u32 {
    frame.min(MOST_WIDTH).saturating_sub(2 * PADDING).max(1)
}

fn head(title: &str, standing: &[&str], width: u32) -> u32 {
    let in_one_line: u32 = standing.iter().map(|text| measure(text, 13) + 14).sum();
    // Each text has a gap of 14 px after it, except the last one.
    let standing = if in_one_line <= width + 14 {
        SMALL
    } else {
        standing.iter().map(|text| lines(text, 13, width) * SMALL + 2).sum::<u32>() - 2
    };
    PADDING + lines(title, 19, width) * TITLE + 6 + standing
}

fn chart(face: &MarketFace, width: u32) -> u32 {
    let columns = ((width + COLUMN_GAP) / (LEGEND_COLUMN + COLUMN_GAP)).max(1);
    let names = u32::try_from(chart::lines_of(face)).unwrap_or_default();
    let rows = names.div_ceil(columns);
    let plot = u32::try_from(chart::HEIGHT).unwrap_or_default();
    14 + plot + 2 + TINY + 6 + rows * (TINY + 2) - 2
}

fn foot(has_about: bool) -> u32 {
    let about = if has_about { COLUMN_GAP + SMALL } else { 0 };
    about + RULE + SMALL + PADDING
}

fn stacked(rows: impl Iterator<Item = u32>) -> u32 {
    rows.map(|row| row + ROW_GAP).sum::<u32>().saturating_sub(ROW_GAP)
}

/// Returns the number of lines of a text at this size and width: at least one.
fn lines(text: &str, size: u32, width: u32) -> u32 {
    let (mut lines, mut used) = (1, 0);
    for word in text.split_whitespace() {
        let (word, space) = (measure(word, size), if used > 0 { measure(" ", size) } else { 0 });
        if used + space + word <= width {
            used += space + word;
            continue;
        }
        // A word that is wider than a line is broken across lines.
        lines += u32::from(used > 0) + word.saturating_sub(1) / width;
        used = word - word.saturating_sub(1) / width * width;
    }
    lines
}

/// Returns an upper bound of a text's width in common fonts.
fn measure(text: &str, size: u32) -> u32 {
    let hundredths: u32 = text.chars().map(hundredths).sum();
    (hundredths * size).div_ceil(100)
}

/// Returns a character's width in hundredths of the font size.
const fn hundredths(character: char) -> u32 {
    match character {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 28,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '-' | '/' => 40,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' => 52,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 92,
        'A'..='Z' => 66,
        '\u{0}'..='\u{7f}' => 60,
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{80}'..='\u{10ff}' => 66,
        _ => 110,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_texts_and_narrower_pages_take_more_lines() {
        assert_eq!((lines("", 15, 100), lines("one", 15, 100)), (1, 1));
        let text = "Will it rain in the capital on the first day of the month?";
        assert_eq!((lines(text, 19, 2_000), lines(text, 19, 568)), (1, 1));
        assert_eq!(lines(text, 19, 288), 2);
        assert_eq!(lines(&"n".repeat(100), 10, 60), 10);
    }

    #[test]
    fn a_line_that_is_just_full_does_not_wrap() {
        assert_eq!(lines("nn nn", 100, 60 * 4 + 28), 1);
        assert_eq!(lines("nn nn", 100, 60 * 4 + 27), 2);
    }
}
