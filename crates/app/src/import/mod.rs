//! Importing a catalogue that an author keeps in a file: organizations, partners, threads, chapters and markets.
//!
//! Each item has a key that its author chose and that stays. What was made of a key is remembered with digests of what was
//! read, in the transaction that makes it, so that a run after a change, after a failure or after a kill does what is left
//! to do and nothing twice. The whole is judged before any of it is made, and everything that is wrong is told at once.
//!
//! A market's terms are the chain's and never change; how it is listed may. Its row and its key are written first, then the
//! market is made on chain under the row's id: a run that finds the row without the market finishes it.

mod document;
mod file;
mod known;
mod plan;
mod planner;
mod run;
mod yaml;

pub use document::{Catalogue, ChapterItem, Decimal, MarketItem, OrganizationItem, PartnerItem, ThreadItem};
pub use file::{Format, read};
pub use plan::{Action, Plan, Step};
pub use planner::plan;
pub use run::{check_funding, run};

use std::fmt;

use store::StoreError;

use crate::AppError;

/// What can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An organization.
    Organization,
    /// A partner.
    Partner,
    /// A thread.
    Thread,
    /// A chapter.
    Chapter,
    /// A market.
    Market,
}

impl Kind {
    /// The word of the store and of what is printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Organization => "organization",
            Self::Partner => "partner",
            Self::Thread => "thread",
            Self::Chapter => "chapter",
            Self::Market => "market",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something in a catalogue that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer to the member, such as `/markets/3/endTime`; empty for the file as a whole.
    pub path: String,
    /// The line in the file, if it is known.
    pub line: Option<u32>,
    /// The requirement that is not met.
    pub detail: String,
}

impl Problem {
    /// The member at `path` does not meet the requirement `detail`.
    pub fn new(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, detail: detail.into() }
    }

    fn at_line(path: &str, line: Option<u32>, detail: impl Into<String>) -> Self {
        Self { line, ..Self::new(path, detail) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        let path = if self.path.is_empty() { "the file" } else { &self.path };
        write!(f, "{path}: {}", self.detail)
    }
}

/// Why a catalogue was not imported, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Nothing was made: all that is wrong.
    #[error("the catalogue has {} problems", .0.len())]
    Refused(Vec<Problem>),
    /// It was cut short. Another run goes on from there.
    #[error(transparent)]
    Failed(#[from] AppError),
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}
