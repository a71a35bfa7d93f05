//! The parsed form of a catalog file.

use domain::Timestamp;
use serde::Serialize;

/// The content of one file. Items refer to each other by keys of this file, or of files that were
/// imported before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Catalog {
    pub organizations: Vec<OrganizationItem>,
    pub partners: Vec<PartnerItem>,
    pub threads: Vec<ThreadItem>,
    pub chapters: Vec<ChapterItem>,
    pub markets: Vec<MarketItem>,
}

impl Catalog {
    pub const fn items(&self) -> usize {
        let Self { organizations, partners, threads, chapters, markets } = self;
        organizations.len() + partners.len() + threads.len() + chapters.len() + markets.len()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationItem {
    /// The author's key.
    pub key: String,
    pub name: String,
    /// The name in URLs.
    pub slug: String,
    /// Markdown.
    pub description: Option<String>,
    /// An image URL.
    pub logo: Option<String>,
    pub website: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartnerItem {
    /// The author's key.
    pub key: String,
    /// The key of its organization. It cannot change.
    pub organization: String,
    pub name: String,
    /// The name in URLs.
    pub slug: String,
    /// Markdown.
    pub description: Option<String>,
    /// An image URL.
    pub logo: Option<String>,
    pub website: Option<String>,
    pub active: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadItem {
    /// The author's key.
    pub key: String,
    pub title: String,
    /// The key of its organization. Defaults to the partner's organization.
    pub organization: Option<String>,
    /// The key of its partner.
    pub partner: Option<String>,
    /// Markdown.
    pub description: Option<String>,
    /// The URL of a cover image.
    pub image: Option<String>,
    /// The URL of a background image.
    pub background_image: Option<String>,
    /// For example `sports`.
    pub category: Option<String>,
    pub tags: Vec<String>,
    /// The start. `None` means that it has already started.
    pub start_time: Option<Timestamp>,
    /// The end. `None` means that it never ends.
    pub end_time: Option<Timestamp>,
}

/// A chapter. Chapters are in the order of the file unless they have a `position`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChapterItem {
    /// The author's key.
    pub key: String,
    /// The key of its thread. It cannot change.
    pub thread: String,
    pub title: String,
    /// The position in the thread, from zero.
    pub position: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MarketItem {
    /// The author's key.
    pub key: String,
    pub question: String,
    /// The outcomes' labels.
    pub outcomes: Vec<String>,
    /// The outcomes' opening odds, which must sum to exactly one. Empty means equal odds.
    pub opening_odds: Vec<Decimal>,
    /// The market maker's `b` in USDC.
    pub liquidity: Decimal,
    /// The fee in basis points.
    pub fee_bps: u16,
    /// The end of trading.
    pub end_time: Timestamp,
    /// The key of its thread. Defaults to the chapter's thread.
    pub thread: Option<String>,
    /// The key of its chapter.
    pub chapter: Option<String>,
    /// Markdown.
    pub description: Option<String>,
    /// For example `sports`. Defaults to the thread's category.
    pub category: Option<String>,
    /// Defaults to the thread's tags.
    pub tags: Option<Vec<String>>,
    /// The position among the featured markets, lowest first.
    pub featured: Option<u32>,
    /// The URL of the original post.
    pub source_url: Option<String>,
}

/// A decimal as written, quoted or as a number. JSON parsers round numbers of more than 15 digits,
/// so longer ones must be quoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Decimal(pub String);

impl From<&str> for Decimal {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
