//! Imports a catalog file: organizations, partners, threads, chapters and markets.
//!
//! Each item has a stable key chosen by its author. The transaction that creates an item also
//! stores its key, with digests of the item's content. So another run, after a change or a crash,
//! only does what is left and creates nothing twice. The whole catalog is validated first, and all
//! problems are reported together.
//!
//! A market's terms are fixed on chain and cannot change, but its listing can. Its row and key are
//! written first, then the market is created on chain with the row's id. If a run finds the row
//! without the market on chain, it finishes the creation.

mod document;
mod file;
mod known;
mod plan;
mod planner;
mod run;

pub use document::{Catalog, ChapterItem, Decimal, MarketItem, OrganizationItem, PartnerItem, ThreadItem};
pub use file::{Format, read};
pub use plan::{ImportAction, ImportPlan, Step};
pub use planner::plan;
pub use run::{check_funding, run};

use std::fmt;

use store::StoreError;

use crate::AppError;

/// The kinds of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImportKind {
    Organization,
    Partner,
    Thread,
    Chapter,
    Market,
}

impl ImportKind {
    /// The identifier in the database and in output.
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

impl fmt::Display for ImportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A problem that prevents the import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProblem {
    /// A JSON pointer such as `/markets/3/endTime`. Empty for the whole file.
    pub path: String,
    /// The line in the file, if known.
    pub line: Option<u32>,
    /// The requirement that is not met.
    pub detail: String,
}

impl ImportProblem {
    pub fn new(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, detail: detail.into() }
    }
}

impl fmt::Display for ImportProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        let path = if self.path.is_empty() { "the file" } else { &self.path };
        write!(f, "{path}: {}", self.detail)
    }
}

/// The reason why a catalog was not imported, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Nothing was written; the catalog has these problems.
    #[error("the catalog has {} problems", .0.len())]
    Refused(Vec<ImportProblem>),
    /// The import was interrupted. Another run continues it.
    #[error(transparent)]
    Failed(#[from] AppError),
}

impl ImportError {
    /// Adds the lines to the problems of a YAML file, which a plan does not know.
    #[must_use]
    pub fn locate(mut self, text: &str, format: Format) -> Self {
        if let Self::Refused(problems) = &mut self {
            file::locate(text, format, problems);
        }
        self
    }
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}
