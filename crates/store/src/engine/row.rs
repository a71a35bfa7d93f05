//! Typed access to a result row, equal for both engines.

use std::borrow::Cow;

use rusqlite::types::ValueRef;
use tokio_postgres::types::{FromSql, Type};

use crate::StoreError;

/// A row of a statement's result. A value of an unexpected type gives [`StoreError::Corrupt`] with
/// the column's name.
pub struct Row<'a>(Inner<'a>);

enum Inner<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

/// A raw value of a row.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A type that a column is decoded to. `Option` decodes NULL to `None`; other types reject it.
pub trait FromColumn: Sized {
    /// Decodes a value, or describes why that is impossible. The description must not contain the
    /// value, because it may be a secret.
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>>;
}

impl<'a> Cell<'a> {
    pub(crate) const fn int(self) -> Result<i64, Cow<'static, str>> {
        match self {
            Self::Int(n) => Ok(n),
            Self::Null => Err(Cow::Borrowed("NULL, not an integer")),
            _ => Err(Cow::Borrowed("not an integer")),
        }
    }

    pub(crate) const fn text(self) -> Result<&'a str, Cow<'static, str>> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Null => Err(Cow::Borrowed("NULL, not a text")),
            _ => Err(Cow::Borrowed("not a text")),
        }
    }

    pub(crate) const fn bytes(self) -> Result<&'a [u8], Cow<'static, str>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Null => Err(Cow::Borrowed("NULL, not bytes")),
            _ => Err(Cow::Borrowed("not bytes")),
        }
    }
}

/// Describes a value that is not a `T`.
pub(crate) fn not_a<T>() -> Cow<'static, str> {
    let path = std::any::type_name::<T>();
    format!("not a {}", path.rsplit("::").next().unwrap_or(path)).into()
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        match cell {
            Cell::Null => Ok(None),
            cell => T::from_column(cell).map(Some),
        }
    }
}

impl<'a> Row<'a> {
    pub(super) const fn sqlite(row: &'a rusqlite::Row<'a>) -> Self {
        Self(Inner::Sqlite(row))
    }

    pub(super) const fn postgres(row: &'a tokio_postgres::Row) -> Self {
        Self(Inner::Postgres(row))
    }

    /// Decodes the column with this name. Computed columns need a name (`COUNT(*) AS count`),
    /// because the engines name them differently.
    ///
    /// # Errors
    /// `Corrupt` if the value is not a `T`. `Driver` if there is no such column.
    pub fn get<T: FromColumn>(&self, name: &str) -> Result<T, StoreError> {
        let column = (0..self.len()).find(|column| self.column_name(*column) == name);
        let missing = || StoreError::driver(format!("the statement's result has no column {name}"));
        self.decode(column.ok_or_else(missing)?)
    }

    /// Decodes the only column, which needs no name then.
    ///
    /// # Errors
    /// `Corrupt` if the value is not a `T`. `Driver` if the statement selects several columns.
    pub fn only<T: FromColumn>(&self) -> Result<T, StoreError> {
        match self.len() {
            1 => self.decode(0),
            columns => {
                Err(StoreError::driver(format!("the statement's result has {columns} columns, not one")))
            }
        }
    }

    /// Returns a reader of the columns in their order.
    pub(crate) const fn columns(&self) -> Columns<'_> {
        Columns { row: self, next: 0 }
    }

    /// An error for a value that the caller cannot decode. `detail` describes the expected form and
    /// must not contain the value.
    pub fn corrupt(&self, column: &str, detail: impl Into<String>) -> StoreError {
        StoreError::Corrupt { column: column.to_owned(), row: self.id(), detail: detail.into() }
    }

    fn decode<T: FromColumn>(&self, column: usize) -> Result<T, StoreError> {
        T::from_column(self.cell(column)?).map_err(|detail| self.corrupt(self.column_name(column), detail))
    }

    /// The row's id for error messages: its first column if it is named like an id. Any other
    /// column may contain a secret.
    fn id(&self) -> String {
        let name = self.column_name(0);
        match self.cell(0) {
            Ok(Cell::Text(text)) if name == "id" || name.ends_with("_id") => text.to_owned(),
            Ok(Cell::Int(n)) if name == "id" || name.ends_with("_id") => n.to_string(),
            _ => "?".to_owned(),
        }
    }

    fn len(&self) -> usize {
        match self.0 {
            Inner::Sqlite(row) => row.as_ref().column_count(),
            Inner::Postgres(row) => row.len(),
        }
    }

    fn column_name(&self, column: usize) -> &str {
        match self.0 {
            Inner::Sqlite(row) => row.as_ref().column_name(column).unwrap_or("?"),
            Inner::Postgres(row) => row.columns().get(column).map_or("?", |column| column.name()),
        }
    }

    fn cell(&self, column: usize) -> Result<Cell<'_>, StoreError> {
        match self.0 {
            Inner::Sqlite(row) => match row.get_ref(column) {
                Ok(ValueRef::Null) => Ok(Cell::Null),
                Ok(ValueRef::Integer(n)) => Ok(Cell::Int(n)),
                Ok(ValueRef::Text(text)) => std::str::from_utf8(text)
                    .map(Cell::Text)
                    .map_err(|_| self.corrupt(self.column_name(column), "not UTF-8")),
                Ok(ValueRef::Blob(bytes)) => Ok(Cell::Bytes(bytes)),
                Ok(ValueRef::Real(_)) => {
                    Err(self.corrupt(self.column_name(column), "a floating-point number"))
                }
                Err(_) => Err(self.no_column(column)),
            },
            Inner::Postgres(row) => match row.try_get::<_, Option<PgCell<'_>>>(column) {
                Ok(cell) => Ok(cell.map_or(Cell::Null, |cell| cell.0)),
                Err(_) if column >= row.len() => Err(self.no_column(column)),
                Err(_) => {
                    let column = &row.columns()[column];
                    Err(self.corrupt(column.name(), format!("of type {}", column.type_())))
                }
            },
        }
    }

    fn no_column(&self, column: usize) -> StoreError {
        StoreError::driver(format!("the statement's result has no column {column}"))
    }
}

/// Reads the columns of a row one after the other, without looking up their names.
pub(crate) struct Columns<'r> {
    row: &'r Row<'r>,
    next: usize,
}

impl Columns<'_> {
    /// Decodes the next column, which must be the one that `expression` selects.
    ///
    /// # Errors
    /// See [`Row::get`].
    pub(crate) fn next<T: FromColumn>(&mut self, expression: &str) -> Result<T, StoreError> {
        debug_assert_eq!(self.row.column_name(self.next), name_of(expression), "a column of a result");
        self.following()
    }

    /// Decodes the next column, whatever its name is.
    ///
    /// # Errors
    /// See [`Row::get`].
    pub(crate) fn following<T: FromColumn>(&mut self) -> Result<T, StoreError> {
        let column = self.next;
        self.next += 1;
        self.row.decode(column)
    }

    /// See [`Row::corrupt`].
    pub(crate) fn corrupt(&self, column: &str, detail: impl Into<String>) -> StoreError {
        self.row.corrupt(column, detail)
    }
}

/// Returns the name of the column that an expression selects: `id` of `keys.id`, `count` of
/// `COUNT(*) AS count`.
fn name_of(expression: &str) -> &str {
    expression.rsplit([' ', '.']).next().unwrap_or(expression)
}

struct PgCell<'a>(Cell<'a>);

impl<'a> FromSql<'a> for PgCell<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(match *ty {
            Type::INT8 => Cell::Int(i64::from_sql(ty, raw)?),
            Type::INT4 => Cell::Int(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Cell::Int(i16::from_sql(ty, raw)?.into()),
            // SQLite has no boolean type: `SELECT EXISTS (..)` returns 0 or 1.
            Type::BOOL => Cell::Int(bool::from_sql(ty, raw)?.into()),
            Type::BYTEA => Cell::Bytes(raw),
            _ => Cell::Text(<&str>::from_sql(ty, raw)?),
        }))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(
            *ty,
            Type::INT8
                | Type::INT4
                | Type::INT2
                | Type::BOOL
                | Type::BYTEA
                | Type::TEXT
                | Type::VARCHAR
                | Type::BPCHAR
                | Type::NAME
                | Type::UNKNOWN
        )
    }
}
