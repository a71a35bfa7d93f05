//! What a run will do, item by item.

use domain::Usdc;
use store::catalog::{Chapter, Organization, Partner, Thread};
use store::imports::Import;

use super::Kind;
use crate::markets::NewMarket;

/// What is done about an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is new.
    Create,
    /// A market whose creation was cut short before it was on chain.
    Finish,
    /// It says something else than before.
    Update,
    /// It says what it said before. What was changed meanwhile by other means stays.
    Skip,
}

impl Action {
    /// The word of what is printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Finish => "finish",
            Self::Update => "update",
            Self::Skip => "skip",
        }
    }
}

/// One item and what is done about it.
#[derive(Debug, Clone)]
pub struct Step {
    /// What it is.
    pub kind: Kind,
    /// What is done.
    pub action: Action,
    pub(super) import: Import,
    pub(super) row: Row,
    pub(super) changed: Vec<String>,
}

impl Step {
    /// Its author's key.
    pub fn key(&self) -> &str {
        &self.import.key
    }

    /// The id of its row.
    pub fn id(&self) -> &str {
        &self.import.row_id
    }

    /// The members of the row that a run changes, by their names in the API.
    pub fn changed(&self) -> &[String] {
        if self.action == Action::Update { &self.changed } else { &[] }
    }

    /// Whether it needs a market on chain.
    pub fn is_for_the_chain(&self) -> bool {
        self.kind == Kind::Market && matches!(self.action, Action::Create | Action::Finish)
    }
}

/// What the row is to hold.
#[derive(Debug, Clone)]
pub(super) enum Row {
    Organization(Organization),
    Partner(Partner),
    Thread(Thread),
    Chapter(Chapter),
    Market(Box<NewMarket>),
}

/// A whole catalogue that can be imported.
#[derive(Debug, Clone)]
pub struct Plan {
    /// In the order of the work: what others stand under comes first.
    pub steps: Vec<Step>,
    /// What the markets that are still to be made on chain take from the resolver, at the most.
    pub funding: Usdc,
}

impl Plan {
    /// How many steps are so.
    pub fn count(&self, action: Action) -> usize {
        self.steps.iter().filter(|step| step.action == action).count()
    }
}
