//! The plan of an import, item by item.

use domain::Usdc;
use store::catalog::{Chapter, Organization, Partner, Thread};
use store::imports::Import;

use super::ImportKind;
use crate::markets::NewMarket;

/// The action for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportAction {
    Create,
    /// Finish a market whose creation was interrupted before it was on chain.
    Finish,
    /// The item has changed since the last import.
    Update,
    /// The item has not changed. Changes that were made outside of imports are preserved.
    Skip,
}

impl ImportAction {
    /// The identifier in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Finish => "finish",
            Self::Update => "update",
            Self::Skip => "skip",
        }
    }
}

/// An item with its action.
#[derive(Debug, Clone)]
pub struct Step {
    pub kind: ImportKind,
    pub action: ImportAction,
    pub(super) import: Import,
    pub(super) row: ImportRow,
    pub(super) changed: Vec<String>,
}

impl Step {
    /// The author's key.
    pub fn key(&self) -> &str {
        &self.import.key
    }

    /// The id of the item's row.
    pub fn id(&self) -> &str {
        &self.import.row_id
    }

    /// The changed members of the row, by their API names.
    pub fn changed(&self) -> &[String] {
        if self.action == ImportAction::Update { &self.changed } else { &[] }
    }

    /// Returns whether the item needs a new market on chain.
    pub fn is_for_the_chain(&self) -> bool {
        self.kind == ImportKind::Market && matches!(self.action, ImportAction::Create | ImportAction::Finish)
    }
}

/// The new content of the row.
#[derive(Debug, Clone)]
pub(super) enum ImportRow {
    Organization(Organization),
    Partner(Partner),
    Thread(Thread),
    Chapter(Chapter),
    Market(Box<NewMarket>),
}

/// The plan of a valid catalog.
#[derive(Debug, Clone)]
pub struct ImportPlan {
    /// In the order of execution: parents come first.
    pub steps: Vec<Step>,
    /// The maximum USDC that the resolver needs for the markets that are not on chain yet.
    pub funding: Usdc,
}

impl ImportPlan {
    /// Returns the number of steps with this action.
    pub fn count(&self, action: ImportAction) -> usize {
        self.steps.iter().filter(|step| step.action == action).count()
    }
}
