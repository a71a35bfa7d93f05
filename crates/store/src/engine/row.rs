//! Typed access to a result row, the same for both engines.

use std::str::FromStr;

use domain::Timestamp;
use rusqlite::types::ValueRef;
use tokio_postgres::types::{FromSql, Type};

use crate::StoreError;

/// One row of a statement's result. Columns are counted from 0; a value of another type than asked for is
/// [`StoreError::Corrupt`] with the column's name.
pub struct Row<'a>(Inner<'a>);

enum Inner<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

/// A stored value as it lies in the row.
enum Cell<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Row<'a> {
    pub(super) const fn sqlite(row: &'a rusqlite::Row<'a>) -> Self {
        Self(Inner::Sqlite(row))
    }

    pub(super) const fn postgres(row: &'a tokio_postgres::Row) -> Self {
        Self(Inner::Postgres(row))
    }

    /// An integer.
    pub fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.opt_int(column)?.ok_or_else(|| self.corrupt(column, "NULL, not an integer"))
    }

    /// An integer or NULL.
    pub fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.cell(column)? {
            Cell::Null => Ok(None),
            Cell::Int(n) => Ok(Some(n)),
            _ => Err(self.corrupt(column, "not an integer")),
        }
    }

    /// An integer that fits `T`, such as a `u64` or a `u16`.
    pub fn number<T: TryFrom<i64>>(&self, column: usize) -> Result<T, StoreError> {
        T::try_from(self.int(column)?).map_err(|_| self.corrupt_type::<T>(column))
    }

    /// An integer that fits `T`, or NULL.
    pub fn opt_number<T: TryFrom<i64>>(&self, column: usize) -> Result<Option<T>, StoreError> {
        let number = |n| T::try_from(n).map_err(|_| self.corrupt_type::<T>(column));
        self.opt_int(column)?.map(number).transpose()
    }

    /// A text, borrowed from the row.
    pub fn str(&self, column: usize) -> Result<&str, StoreError> {
        self.opt_str(column)?.ok_or_else(|| self.corrupt(column, "NULL, not a text"))
    }

    /// A text, borrowed from the row, or NULL.
    pub fn opt_str(&self, column: usize) -> Result<Option<&str>, StoreError> {
        match self.cell(column)? {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            _ => Err(self.corrupt(column, "not a text")),
        }
    }

    /// A text.
    pub fn text(&self, column: usize) -> Result<String, StoreError> {
        self.str(column).map(str::to_owned)
    }

    /// A text or NULL.
    pub fn opt_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        Ok(self.opt_str(column)?.map(str::to_owned))
    }

    /// Bytes.
    pub fn bytes(&self, column: usize) -> Result<Vec<u8>, StoreError> {
        self.opt_bytes(column)?.ok_or_else(|| self.corrupt(column, "NULL, not bytes"))
    }

    /// Bytes or NULL.
    pub fn opt_bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        match self.cell(column)? {
            Cell::Null => Ok(None),
            Cell::Bytes(bytes) => Ok(Some(bytes.to_vec())),
            _ => Err(self.corrupt(column, "not bytes")),
        }
    }

    /// An instant, stored as milliseconds since the epoch.
    pub fn timestamp(&self, column: usize) -> Result<Timestamp, StoreError> {
        self.int(column).map(Timestamp::from_ms)
    }

    /// An instant or NULL.
    pub fn opt_timestamp(&self, column: usize) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.opt_int(column)?.map(Timestamp::from_ms))
    }

    /// A text parsed as a `T`.
    pub fn parse<T: FromStr>(&self, column: usize) -> Result<T, StoreError> {
        self.str(column)?.parse().map_err(|_| self.corrupt_type::<T>(column))
    }

    /// A text parsed as a `T`, or NULL.
    pub fn opt_parse<T: FromStr>(&self, column: usize) -> Result<Option<T>, StoreError> {
        let parse = |text: &str| text.parse().map_err(|_| self.corrupt_type::<T>(column));
        self.opt_str(column)?.map(parse).transpose()
    }

    /// The error for a value that the caller itself cannot read. `detail` says what was expected, never the value.
    pub fn corrupt(&self, column: usize, detail: impl Into<String>) -> StoreError {
        StoreError::Corrupt {
            column: self.column_name(column).to_owned(),
            row: self.id(),
            detail: detail.into(),
        }
    }

    fn corrupt_type<T>(&self, column: usize) -> StoreError {
        let path = std::any::type_name::<T>();
        self.corrupt(column, format!("not a {}", path.rsplit("::").next().unwrap_or(path)))
    }

    /// The row's id for messages: its first column, if that is called an id, since any other may be a secret.
    fn id(&self) -> String {
        let name = self.column_name(0);
        match self.cell(0) {
            Ok(Cell::Text(text)) if name == "id" || name.ends_with("_id") => text.to_owned(),
            Ok(Cell::Int(n)) if name == "id" || name.ends_with("_id") => n.to_string(),
            _ => "?".to_owned(),
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
                Ok(ValueRef::Text(text)) => {
                    std::str::from_utf8(text).map(Cell::Text).map_err(|_| self.corrupt(column, "not UTF-8"))
                }
                Ok(ValueRef::Blob(bytes)) => Ok(Cell::Bytes(bytes)),
                Ok(ValueRef::Real(_)) => Err(self.corrupt(column, "a floating-point number")),
                Err(_) => Err(self.no_column(column)),
            },
            Inner::Postgres(row) => match row.try_get::<_, Option<PgCell<'_>>>(column) {
                Ok(cell) => Ok(cell.map_or(Cell::Null, |cell| cell.0)),
                Err(_) if column >= row.len() => Err(self.no_column(column)),
                Err(_) => Err(self.corrupt(column, format!("of type {}", row.columns()[column].type_()))),
            },
        }
    }

    fn no_column(&self, column: usize) -> StoreError {
        StoreError::driver(format!("the statement's result has no column {column}"))
    }
}

struct PgCell<'a>(Cell<'a>);

impl<'a> FromSql<'a> for PgCell<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(match *ty {
            Type::INT8 => Cell::Int(i64::from_sql(ty, raw)?),
            Type::INT4 => Cell::Int(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Cell::Int(i16::from_sql(ty, raw)?.into()),
            // SQLite has no truth values: `SELECT EXISTS (..)` is 0 or 1 there.
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
