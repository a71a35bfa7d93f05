//! A catalogue as its author writes it.

use domain::Timestamp;
use serde::Serialize;

/// All that one file says. Items name each other by key: those of this file, or of one that was imported before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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

impl Catalogue {
    /// The number of items.
    pub const fn items(&self) -> usize {
        let Self { organizations, partners, threads, chapters, markets } = self;
        organizations.len() + partners.len() + threads.len() + chapters.len() + markets.len()
    }
}

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationItem {
    /// Its author's key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its name in addresses.
    pub slug: String,
    /// Markdown.
    pub description: Option<String>,
    /// An image's URL.
    pub logo: Option<String>,
    /// A URL.
    pub website: Option<String>,
}

/// A partner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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
    pub description: Option<String>,
    /// An image's URL.
    pub logo: Option<String>,
    /// A URL.
    pub website: Option<String>,
    /// Whether it is shown as active.
    pub active: bool,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadItem {
    /// Its author's key.
    pub key: String,
    /// Its title.
    pub title: String,
    /// The key of its organization; its partner's where absent.
    pub organization: Option<String>,
    /// The key of its partner.
    pub partner: Option<String>,
    /// Markdown.
    pub description: Option<String>,
    /// A cover's URL.
    pub image: Option<String>,
    /// A background's URL.
    pub background_image: Option<String>,
    /// Such as `sports`.
    pub category: Option<String>,
    /// Free words.
    pub tags: Vec<String>,
    /// When it starts; already started where absent.
    pub start_time: Option<Timestamp>,
    /// When it ends; never where absent.
    pub end_time: Option<Timestamp>,
}

/// A chapter. Chapters of a thread stand in the order of the file, unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChapterItem {
    /// Its author's key.
    pub key: String,
    /// The key of its thread, which it stays with.
    pub thread: String,
    /// Its title.
    pub title: String,
    /// Its place in the thread, from zero.
    pub position: Option<u32>,
}

/// A market.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MarketItem {
    /// Its author's key.
    pub key: String,
    /// What is asked.
    pub question: String,
    /// The outcomes' names.
    pub outcomes: Vec<String>,
    /// The outcomes' odds at the opening, summing to exactly one; all equal where absent.
    pub opening_odds: Vec<Decimal>,
    /// The market maker's `b`, USDC.
    pub liquidity: Decimal,
    /// The fee, hundredths of a percent.
    pub fee_bps: u16,
    /// When trading ends.
    pub end_time: Timestamp,
    /// The key of its thread; its chapter's where absent.
    pub thread: Option<String>,
    /// The key of its chapter.
    pub chapter: Option<String>,
    /// Markdown.
    pub description: Option<String>,
    /// Such as `sports`; its thread's where absent.
    pub category: Option<String>,
    /// Free words; its thread's where absent.
    pub tags: Option<Vec<String>>,
    /// Its place among the featured markets, the least first.
    pub featured: Option<u32>,
    /// The URL of the post it came from.
    pub source_url: Option<String>,
}

/// A decimal as it was written, in quotes or as a number. JSON's readers round numbers of more than 15 digits, so those must
/// be in quotes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Decimal(pub String);

impl From<&str> for Decimal {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
