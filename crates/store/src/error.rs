//! What can go wrong between a caller and the database.

/// A failure of the store. Its text holds no bound values and no connection secrets, so it may be logged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is closed, is out of room or gave up on the transaction. Nothing of the unit
    /// of work was kept.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Another transaction held a row for longer than a statement may wait. Nothing of the unit of work was kept.
    #[error("the store is unavailable: a row stayed locked: {0}")]
    Locked(String),
    /// The answer to the COMMIT was lost: the unit of work may have been kept. Look before doing it again.
    #[error("the store is unavailable: a commit was not answered: {0}")]
    CommitUnknown(String),
    /// A newer version of the program has migrated the database.
    #[error(
        "the database's schema is at {database}, and this program knows it up to {program}: run the version of the \
         program that migrated the database, or a newer one"
    )]
    SchemaTooNew {
        /// The newest migration of the database.
        database: String,
        /// The newest migration that this program knows.
        program: String,
    },
    /// A unique rule refused the row. The name is the same on both engines: the index's name for a named unique
    /// index, `{table}_pkey` for a primary key, `{table}_{columns}_key` for a `UNIQUE` written in the table.
    #[error("a row that already exists conflicts on {constraint}")]
    Conflict {
        /// The unique rule's name.
        constraint: String,
    },
    /// A stored value is not what the code can read.
    #[error("stored value of column {column} (row {row}) is corrupt: {detail}")]
    Corrupt {
        /// The column's name in the statement's result.
        column: String,
        /// The row's first column where that is an id, `?` otherwise.
        row: String,
        /// What was expected of the value.
        detail: String,
    },
    /// The statement, the schema or the unit of work is at fault: a bug, not a condition to retry.
    #[error("the storage driver failed: {0}")]
    Driver(String),
}

impl StoreError {
    /// Whether a unique rule refused the row.
    pub const fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether the unique rule of this name refused the row.
    pub fn is_conflict_on(&self, name: &str) -> bool {
        matches!(self, Self::Conflict { constraint } if constraint == name)
    }

    /// Whether the database is at fault for now, and another try makes sense.
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Locked(_) | Self::CommitUnknown(_))
    }

    pub(crate) fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable(why.into())
    }

    pub(crate) fn commit_unknown(why: impl Into<String>) -> Self {
        Self::CommitUnknown(why.into())
    }

    pub(crate) fn driver(why: impl Into<String>) -> Self {
        Self::Driver(why.into())
    }
}
