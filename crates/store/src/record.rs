//! Rows with many columns: the type, its select list, its reader and its values, declared once by
//! [`record!`].

use crate::engine::Columns;
use crate::{Row, SqlValue, StoreError};

/// A type that is read from consecutive columns of a row.
pub(crate) trait Record: Sized {
    /// The select list.
    const COLUMNS: &'static str;

    /// Reads the columns of the select list.
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError>;

    /// Reads a row that begins with the select list.
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Self::read(&mut row.columns())
    }
}

/// A record that is written as a whole. Its columns are plain names.
pub(crate) trait Insert: Record {
    /// The number of columns.
    const COUNT: usize;

    /// The placeholders of an insert that begins with the record's columns: `$1, $2, ...`.
    const PLACEHOLDERS: &'static str = placeholders(Self::COUNT);

    /// Appends the values of the columns.
    fn push_values<'a>(&'a self, values: &mut Vec<SqlValue<'a>>) -> Result<(), StoreError>;

    /// Returns the values of the columns.
    fn values(&self) -> Result<Vec<SqlValue<'_>>, StoreError> {
        let mut values = Vec::with_capacity(Self::COUNT);
        self.push_values(&mut values)?;
        Ok(values)
    }
}

/// Returns the values of each record, for a statement that runs once for each.
pub(crate) fn all_values<T: Insert>(records: &[T]) -> Result<Vec<Vec<SqlValue<'_>>>, StoreError> {
    records.iter().map(Insert::values).collect()
}

/// Returns the first placeholders. A record with more columns than the list does not compile.
const fn placeholders(count: usize) -> &'static str {
    const ALL: &str = "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
        $21, $22, $23, $24,";
    let mut end = 0;
    let mut left = count;
    while left > 0 {
        if ALL.as_bytes()[end] == b',' {
            left -= 1;
        }
        end += 1;
    }
    // Without the last comma.
    ALL.split_at(end - 1).0
}

/// A type that a column is encoded from.
pub(crate) trait ToColumn {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError>;
}

/// Declares a struct that is a [`Record`].
///
/// A field is read from the column of its name. `= "column"` names another column, or the
/// expression that a statement with several tables selects: `= "m.id"`, `= "COUNT(*) AS trades"`.
/// `= ..` reads the columns of a field that is a record itself.
///
/// ```text
/// record! {
///     pub struct Held {
///         pub account: Address,
///         pub position: Position = ..,
///         pub updated_at: Timestamp = "updated_at_ms",
///     }
/// }
/// tx.list(concatcp!("SELECT ", Held::COLUMNS, " FROM positions"), &[], Held::from_row)
/// ```
///
/// `impl Position { .. }` with fields in the same form makes a struct that is declared elsewhere a
/// record. `struct Movement: Insert { .. }` and `impl Position: Insert { .. }` also declare the
/// values of its columns.
macro_rules! record {
    (@column $field:ident) => { stringify!($field) };
    (@column $field:ident $column:expr) => { $column };
    (@columns $field:ident $type:ty, ..) => { <$type as $crate::record::Record>::COLUMNS };
    (@columns $field:ident $type:ty $(, $column:expr)?) => {
        $crate::record::record!(@column $field $($column)?)
    };
    (@read $columns:ident $field:ident $type:ty, ..) => {
        <$type as $crate::record::Record>::read($columns)?
    };
    (@read $columns:ident $field:ident $type:ty $(, $column:expr)?) => {
        $columns.next::<$type>($crate::record::record!(@column $field $($column)?))?
    };
    (@count $type:ty, ..) => { <$type as $crate::record::Insert>::COUNT };
    (@count $type:ty $(, $column:expr)?) => { 1 };
    (@push $values:ident $value:expr, $type:ty, ..) => {
        <$type as $crate::record::Insert>::push_values($value, $values)?
    };
    (@push $values:ident $value:expr, $type:ty $(, $column:expr)?) => {
        $values.push(<$type as $crate::record::ToColumn>::to_column($value)?)
    };
    (impl $record:ident: Insert { $($field:ident: $type:ty $(= $column:tt)?),+ $(,)? }) => {
        impl $crate::record::Insert for $record {
            const COUNT: usize = 0 $(+ $crate::record::record!(@count $type $(, $column)?))+;

            fn push_values<'a>(
                &'a self,
                values: &mut Vec<$crate::SqlValue<'a>>,
            ) -> ::core::result::Result<(), $crate::StoreError> {
                $($crate::record::record!(@push values &self.$field, $type $(, $column)?);)+
                Ok(())
            }
        }

        $crate::record::record!(impl $record { $($field: $type $(= $column)?),+ });
    };
    (impl $record:ty { $($field:ident: $type:ty $(= $column:tt)?),+ $(,)? }) => {
        impl $crate::record::Record for $record {
            const COLUMNS: &'static str = {
                const LIST: &str = const_format::concatcp!(
                    $(", ", $crate::record::record!(@columns $field $type $(, $column)?)),+
                );
                // Without the separator in front of the first column.
                LIST.split_at(2).1
            };

            fn read(
                columns: &mut $crate::engine::Columns<'_>,
            ) -> ::core::result::Result<Self, $crate::StoreError> {
                Ok(Self {
                    $($field: $crate::record::record!(@read columns $field $type $(, $column)?)),+
                })
            }
        }
    };
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident $(: $insert:ident)? {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $type:ty $(= $column:tt)?),+
            $(,)?
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $type),+
        }

        $crate::record::record!(impl $name $(: $insert)? { $($field: $type $(= $column)?),+ });
    };
}

pub(crate) use record;
