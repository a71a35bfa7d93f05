//! The error type of all database access.

/// A failure of the store. Its text contains no bound values and no connection secrets, so it is
/// safe to log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database is unreachable, closed, out of space, or aborted the transaction. The unit of
    /// work was rolled back.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Another transaction held a row lock for longer than the lock timeout. The unit of work was
    /// rolled back.
    #[error("the store is unavailable: a row stayed locked: {0}")]
    Locked(String),
    /// The answer to the COMMIT was lost, so the unit of work may have been committed. The caller
    /// must check before it retries.
    #[error("the store is unavailable: a commit was not answered: {0}")]
    CommitUnknown(String),
    /// A newer version of the program has migrated the database.
    #[error(
        "the database schema is at {database}, but this program only knows it up to {program}: \
         run the version of the program that migrated the database, or a newer one"
    )]
    SchemaTooNew { database: String, program: String },
    /// The file of a SQLite database is damaged, or is no database.
    #[error(
        "{path} is damaged or is not a SQLite database ({detail}): restore it from a backup with `foretell admin restore`"
    )]
    Damaged { path: String, detail: String },
    /// The file of a SQLite database belongs to another program.
    #[error(
        "{path} is the database of another program, with the table {table}: set database-url to a file of its own"
    )]
    Foreign {
        path: String,
        /// A table that this service does not have.
        table: String,
    },
    /// A unique constraint rejected the row.
    #[error("a row that already exists conflicts on {constraint}")]
    Conflict {
        /// The constraint's name, equal on both engines: the name of a unique index, `{table}_pkey`
        /// for a primary key, or `{table}_{columns}_key` for an inline `UNIQUE`.
        constraint: String,
    },
    /// A stored value cannot be decoded.
    #[error("stored value of column {column} (row {row}) is corrupt: {detail}")]
    Corrupt {
        /// The column's name in the result set.
        column: String,
        /// The row's first column if it is an id, otherwise `?`.
        row: String,
        /// The expected form of the value.
        detail: String,
    },
    /// A value contains U+0000, which PostgreSQL cannot store. Whoever sent it can correct it.
    #[error("a bound text contains U+0000")]
    Nul,
    /// A bug in a statement, the schema or a unit of work. Retrying does not help.
    #[error("the storage driver failed: {0}")]
    Driver(String),
}

impl StoreError {
    pub const fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    pub fn is_conflict_on(&self, name: &str) -> bool {
        matches!(self, Self::Conflict { constraint } if constraint == name)
    }

    /// Reports whether the failure is temporary, so that a retry makes sense.
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
