//! A catalogue as its author writes it.

use std::fmt;

use domain::Timestamp;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// All that one file says. Items name each other by key: those of this file, or of one that was imported before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Catalogue {
    /// Organizations.
    pub organizations: Vec<OrganizationItem>,
    /// Partners of organizations.
    pub partners: Vec<PartnerItem>,
    /// Threads.
    pub threads: Vec<ThreadItem>,
    /// Chapters of threads.
    pub chapters: Vec<ChapterItem>,
    /// Markets.
    pub markets: Vec<MarketItem>,
}

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OrganizationItem {
    /// Its author's key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its name in addresses.
    pub slug: String,
    /// Markdown.
    #[serde(default)]
    pub description: Option<String>,
    /// An image's URL.
    #[serde(default)]
    pub logo: Option<String>,
    /// A URL.
    #[serde(default)]
    pub website: Option<String>,
}

/// A partner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PartnerItem {
    /// Its author's key.
    pub key: String,
    /// The key of its organization, which it stays with.
    pub organization: String,
    /// Its name.
    pub name: String,
    /// Its name in addresses.
    pub slug: String,
    /// Markdown.
    #[serde(default)]
    pub description: Option<String>,
    /// An image's URL.
    #[serde(default)]
    pub logo: Option<String>,
    /// A URL.
    #[serde(default)]
    pub website: Option<String>,
    /// Whether it is shown as active.
    #[serde(default = "yes")]
    pub active: bool,
}

const fn yes() -> bool {
    true
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ThreadItem {
    /// Its author's key.
    pub key: String,
    /// Its title.
    pub title: String,
    /// The key of its organization; its partner's where absent.
    #[serde(default)]
    pub organization: Option<String>,
    /// The key of its partner.
    #[serde(default)]
    pub partner: Option<String>,
    /// Markdown.
    #[serde(default)]
    pub description: Option<String>,
    /// A cover's URL.
    #[serde(default)]
    pub image: Option<String>,
    /// A background's URL.
    #[serde(default)]
    pub background_image: Option<String>,
    /// Such as `sports`.
    #[serde(default)]
    pub category: Option<String>,
    /// Free words.
    #[serde(default)]
    pub tags: Vec<String>,
    /// When it starts; already started where absent.
    #[serde(default)]
    pub start_time: Option<Timestamp>,
    /// When it ends; never where absent.
    #[serde(default)]
    pub end_time: Option<Timestamp>,
}

/// A chapter. Chapters of a thread stand in the order of the file, unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChapterItem {
    /// Its author's key.
    pub key: String,
    /// The key of its thread, which it stays with.
    pub thread: String,
    /// Its title.
    pub title: String,
    /// Its place in the thread, from zero.
    #[serde(default)]
    pub position: Option<u32>,
}

/// A market.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MarketItem {
    /// Its author's key.
    pub key: String,
    /// What is asked.
    pub question: String,
    /// The outcomes' names.
    pub outcomes: Vec<String>,
    /// The outcomes' odds at the opening, summing to exactly one; all equal where absent.
    #[serde(default)]
    pub opening_odds: Vec<Decimal>,
    /// The market maker's `b`, USDC.
    pub liquidity: Decimal,
    /// The fee, hundredths of a percent.
    pub fee_bps: u16,
    /// When trading ends.
    pub end_time: Timestamp,
    /// The key of its thread; its chapter's where absent.
    #[serde(default)]
    pub thread: Option<String>,
    /// The key of its chapter.
    #[serde(default)]
    pub chapter: Option<String>,
    /// Markdown.
    #[serde(default)]
    pub description: Option<String>,
    /// Such as `sports`; its thread's where absent.
    #[serde(default)]
    pub category: Option<String>,
    /// Free words; its thread's where absent.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Its place among the featured markets, the least first.
    #[serde(default)]
    pub featured: Option<u32>,
    /// The URL of the post it came from.
    #[serde(default)]
    pub source_url: Option<String>,
}

/// A decimal as it was written, in quotes or as a number. Readers of numbers round what has more digits than they keep, so
/// that a number of more than 15 digits must be in quotes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Decimal(pub String);

impl From<&str> for Decimal {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DecimalVisitor)
    }
}

struct DecimalVisitor;

impl Visitor<'_> for DecimalVisitor {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decimal, in quotes where it has more than 15 digits")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Decimal, E> {
        Ok(Decimal(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Decimal, E> {
        Ok(Decimal(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Decimal, E> {
        Ok(Decimal(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Decimal, E> {
        // The shortest text that reads as this number is the author's own, as long as that has at most 15 digits.
        let text = number.to_string();
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let leading =
            text.bytes().take_while(|b| matches!(b, b'0' | b'.' | b'-')).filter(|b| *b == b'0').count();
        if digits - leading <= 15 {
            Ok(Decimal(text))
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(json: &str) -> Result<String, String> {
        serde_json::from_str::<Decimal>(json).map(|decimal| decimal.0).map_err(|error| error.to_string())
    }

    #[test]
    fn a_decimal_is_what_was_written() {
        for (json, text) in [
            ("\"0.10\"", "0.10"),
            ("0.35", "0.35"),
            ("5000", "5000"),
            ("0.000001", "0.000001"),
            ("123456789.012345", "123456789.012345"),
            ("-1", "-1"),
            ("\"0.333333333333333334\"", "0.333333333333333334"),
        ] {
            assert_eq!(decimal(json).as_deref(), Ok(text), "{json}");
        }
    }

    #[test]
    fn a_number_that_a_reader_would_round_must_be_in_quotes() {
        for json in ["0.333333333333333334", "1e300", "123456789012.345678", "true", "null", "[]"] {
            assert!(decimal(json).is_err(), "{json}");
        }
    }
}
