//! Rows with many columns: the type, its select list and its reader, declared once by [`record!`].

use crate::engine::Columns;
use crate::{Row, StoreError};

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

/// Declares a struct that is a [`Record`].
///
/// A field is read from the column of its name. `= "column"` names another column, or the
/// expression that a statement with several tables selects: `= "m.id"`, `= "COUNT(*) AS trades"`.
/// `= ..` reads the columns of a field that is a record itself.
///
/// ```text
/// record! {
///     pub struct Held {
///         pub account: String,
///         pub position: Position = ..,
///         pub updated_at: Timestamp = "updated_at_ms",
///     }
/// }
/// tx.list(concatcp!("SELECT ", Held::COLUMNS, " FROM positions"), &[], Held::from_row)
/// ```
///
/// `impl Position { .. }` with fields in the same form makes a struct that is declared elsewhere a
/// record.
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
        $visibility:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $type:ty $(= $column:tt)?),+
            $(,)?
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $type),+
        }

        $crate::record::record!(impl $name { $($field: $type $(= $column)?),+ });
    };
}

pub(crate) use record;
