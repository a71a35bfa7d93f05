//! The embedded fonts of the cards: Latin, Greek, Cyrillic, symbols and emoji.
//!
//! A single missing character is drawn as [`FALLBACK`]. A text in an unsupported script would
//! consist only of these, so callers check [`Fonts::can_draw`] and use another text if necessary.

use std::sync::Arc;

use epaint_default_fonts::{HACK_REGULAR, NOTO_EMOJI_REGULAR, UBUNTU_LIGHT};
use resvg::usvg::fontdb::Database;
use skrifa::instance::{LocationRef, Size};
use skrifa::raw::TableProvider;
use skrifa::{FontRef, MetadataProvider};

/// Width of a character that no font contains, in thousandths of the font size.
const UNKNOWN: u32 = 600;
/// Replaces a character that the fonts lack.
const FALLBACK: char = '□';

/// The fonts, for measuring and drawing.
#[derive(Debug)]
pub struct Fonts {
    /// Font database of the renderer.
    pub database: Arc<Database>,
    faces: Vec<FontFace>,
}

struct FontFace {
    font: FontRef<'static>,
    units_per_em: u32,
}

impl std::fmt::Debug for FontFace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FontFace").field("units_per_em", &self.units_per_em).finish_non_exhaustive()
    }
}

impl Fonts {
    /// Loads the embedded fonts.
    pub fn read() -> Self {
        let mut database = Database::new();
        let mut faces = Vec::new();
        // The order is the lookup order for characters.
        for data in [UBUNTU_LIGHT, NOTO_EMOJI_REGULAR, HACK_REGULAR] {
            database.load_font_data(data.to_vec());
            if let Ok(font) = FontRef::new(data) {
                let units_per_em = font.head().map_or(1_000, |head| u32::from(head.units_per_em()));
                faces.push(FontFace { font, units_per_em });
            }
        }
        Self { database: Arc::new(database), faces }
    }

    /// Returns whether the fonts contain more than half of the text's visible characters.
    pub fn can_draw(&self, text: &str) -> bool {
        let visible = text.chars().filter(|c| !c.is_whitespace() && !is_format(*c) && !is_mark(*c));
        let (known, unknown): (Vec<char>, Vec<char>) = visible.partition(|c| self.width_of(*c).is_some());
        known.len() > unknown.len()
    }

    /// Returns the text as it is drawn: without control characters, direction marks and joiners,
    /// and with [`FALLBACK`] for missing characters.
    pub fn drawable(&self, text: &str) -> String {
        let drawn = |c: char| match c {
            c if c.is_whitespace() || self.width_of(c).is_some() => Some(c),
            c if is_format(c) || is_mark(c) => None,
            _ => Some(FALLBACK),
        };
        let known = text.chars().filter_map(drawn);
        known.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Breaks `text` into lines of at most `width`. If it needs more than `most` lines, the last
    /// one ends in an ellipsis.
    pub fn wrapped(&self, text: &str, size: u32, width: u32, most: usize) -> Vec<String> {
        let (mut lines, mut line) = (Vec::new(), String::new());
        for word in text.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if self.measure(&longer, size) <= width {
                line = longer;
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            // A word that is wider than a line is broken.
            for letter in word.chars() {
                line.push(letter);
                if self.measure(&line, size) > width {
                    line.pop();
                    lines.push(std::mem::replace(&mut line, letter.to_string()));
                }
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                *last = self.shortened(&format!("{last}…"), size, width);
            }
        }
        lines
    }

    /// Truncates `text` to `width`, with an ellipsis if anything was cut off.
    pub fn shortened(&self, text: &str, size: u32, width: u32) -> String {
        // The caller may already have appended an ellipsis.
        let mut kept = text.trim_end_matches('…').to_owned();
        if kept.len() == text.len() && self.measure(text, size) <= width {
            return kept;
        }
        while !kept.is_empty() && self.measure(&format!("{kept}…"), size) > width {
            kept.pop();
        }
        format!("{}…", kept.trim_end_matches([' ', ',', '.', ':', ';']))
    }

    /// Returns the width of the text in pixels.
    pub fn measure(&self, text: &str, size: u32) -> u32 {
        let thousandths: u32 = text.chars().map(|c| self.width_of(c).unwrap_or(UNKNOWN)).sum();
        (thousandths * size).div_ceil(1_000)
    }

    /// Returns a character's width in thousandths of the font size, from the first font that
    /// contains it.
    fn width_of(&self, character: char) -> Option<u32> {
        if is_format(character) {
            return None;
        }
        self.faces.iter().find_map(|face| {
            let glyph = face.font.charmap().map(character).filter(|glyph| glyph.to_u32() != 0)?;
            let metrics = face.font.glyph_metrics(Size::unscaled(), LocationRef::default());
            metrics.advance_width(glyph).map(|units| thousandths(units, face.units_per_em))
        })
    }
}

/// Returns whether a character is never drawn: control characters, joiners, direction marks,
/// selectors, tags.
fn is_format(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns whether a character modifies the one before it: accents and skin tones.
const fn is_mark(character: char) -> bool {
    matches!(
        character,
        '\u{300}'..='\u{36f}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}' | '\u{1f3fb}'..='\u{1f3ff}'
    )
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "font units are whole and small")]
fn thousandths(units: f32, units_per_em: u32) -> u32 {
    (units.max(0.0) as u32) * 1_000 / units_per_em.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_other_scripts_cannot_be_drawn() {
        let fonts = Fonts::read();
        for text in ["Will it rain?", "Größe 100 €", "Победит ли Спартак?", "Θα βρέξει;", "Gold 🏆 or ☂"]
        {
            assert!(fonts.can_draw(text), "{text}");
        }
        for text in ["هل ستمطر؟", "האם ירד גשם?", "明天会下雨吗", "", "  ", "\u{202e}"]
        {
            assert!(!fonts.can_draw(text), "{text}");
        }
    }

    #[test]
    fn only_unknown_characters_are_replaced() {
        let fonts = Fonts::read();
        assert!(fonts.width_of(FALLBACK).is_some());
        for (text, drawn) in [
            ("Will 東 win the cup?", "Will □ win the cup?"),
            ("Gold \u{1fae8} or silver", "Gold □ or silver"),
            ("Price of \u{e000}5", "Price of □5"),
        ] {
            assert!(fonts.can_draw(text), "{text}");
            assert_eq!(fonts.drawable(text), drawn);
        }
    }

    #[test]
    fn control_and_joining_characters_are_removed() {
        let fonts = Fonts::read();
        assert_eq!(fonts.drawable("a\u{202e}b\u{0}c\n d\u{200d}\u{fe0f}"), "abc d");
    }

    #[test]
    fn lines_fit_the_width_and_a_cut_last_line_ends_with_an_ellipsis() {
        let fonts = Fonts::read();
        let text = "one two three four five six seven eight nine ten ".repeat(5);
        for (text, most) in [(text.as_str(), 3), (&"x".repeat(500), 2), (&"W ".repeat(200), 1)] {
            let lines = fonts.wrapped(text, 50, 600, most);
            assert_eq!(lines.len(), most);
            assert!(lines.iter().all(|line| fonts.measure(line, 50) <= 600), "{lines:?}");
            assert!(lines.last().unwrap().ends_with('…'), "{lines:?}");
        }
        assert_eq!(fonts.wrapped("one two", 50, 600, 3), ["one two"]);
        assert_eq!(fonts.shortened("one two", 50, 600), "one two");
    }
}
