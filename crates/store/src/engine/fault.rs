//! A driver's error, and its effect on the unit of work in which it happened.

use crate::StoreError;

#[derive(Debug)]
pub(super) struct EngineFault {
    pub(super) error: StoreError,
    pub(super) after: After,
}

/// The state of the unit and its connection after a failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The unit may continue: the statement succeeded, but the code could not read its result.
    GoOn,
    /// The unit cannot be committed.
    GiveUp,
    /// The unit cannot be committed, and the database asks for a retry.
    Again,
    /// The unit cannot be committed. The session does not have the statements that were prepared in
    /// it, because a pooler has given the connection another one.
    Unprepared,
    /// The connection is closed, and uncommitted changes are lost.
    Lost,
    /// The connection does not answer. It must not be used again, even if an answer arrives later.
    Hung,
}

impl EngineFault {
    pub(super) fn give_up(error: StoreError) -> Self {
        Self { error, after: After::GiveUp }
    }
}

/// An error from the caller's mapping of a row. The database did not fail.
impl From<StoreError> for EngineFault {
    fn from(error: StoreError) -> Self {
        Self { error, after: After::GoOn }
    }
}
