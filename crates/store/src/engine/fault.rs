//! A driver's error together with what it means for the unit of work it happened in.

use crate::StoreError;

/// A failed operation of a driver.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: StoreError,
    pub(super) after: After,
}

/// What can be done after a failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The unit may go on: the database did what it was told, the code could not read the answer.
    GoOn,
    /// The unit cannot be kept.
    GiveUp,
    /// The unit cannot be kept, and the database asks for it to be run again.
    Again,
    /// The connection is gone, and with it all that was not committed.
    Lost,
    /// The connection does not answer. Whatever comes of it, it is not used again.
    Hung,
}

impl Fault {
    pub(super) fn give_up(error: StoreError) -> Self {
        Self { error, after: After::GiveUp }
    }
}

/// The caller's own reading of a row failed, not the database.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self { error, after: After::GoOn }
    }
}
