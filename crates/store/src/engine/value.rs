//! Values bound to a statement's placeholders.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use bytes::BytesMut;
use domain::Timestamp;
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::StoreError;

/// A value for a placeholder, borrowed if possible.
#[derive(Clone, PartialEq, Eq)]
pub enum SqlValue<'a> {
    /// NULL, for a column of any type.
    Null,
    Int(i64),
    /// A `TEXT`. It must not contain U+0000, which PostgreSQL cannot store.
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

impl SqlValue<'_> {
    pub(super) fn into_static(self) -> SqlValue<'static> {
        match self {
            Self::Null => SqlValue::Null,
            Self::Int(int) => SqlValue::Int(int),
            Self::Text(text) => SqlValue::Text(text.into_owned().into()),
            Self::Bytes(bytes) => SqlValue::Bytes(bytes.into_owned().into()),
        }
    }

    pub(super) fn to_static(&self) -> SqlValue<'static> {
        match self {
            Self::Null => SqlValue::Null,
            Self::Int(int) => SqlValue::Int(*int),
            Self::Text(text) => SqlValue::Text(text.clone().into_owned().into()),
            Self::Bytes(bytes) => SqlValue::Bytes(bytes.clone().into_owned().into()),
        }
    }

    /// The declared PostgreSQL type, so that `$1 + 1` is a `BIGINT` in every context. For NULL the
    /// server infers the type.
    pub(super) const fn postgres_type(&self) -> Type {
        match self {
            Self::Null => Type::UNKNOWN,
            Self::Int(_) => Type::INT8,
            Self::Text(_) => Type::TEXT,
            Self::Bytes(_) => Type::BYTEA,
        }
    }

    /// Rejects U+0000 on both engines. Only SQLite could store it.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match self {
            Self::Text(text) if text.contains('\0') => Err(StoreError::Nul),
            _ => Ok(()),
        }
    }
}

/// Prints only the kind and length: bound values may be secrets, and drivers log their parameters.
impl fmt::Debug for SqlValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Int(_) => f.write_str("Int"),
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
        }
    }
}

macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for SqlValue<'_> {
            fn from(n: $integer) -> Self {
                Self::Int(i64::from(n))
            }
        }
    )*};
}
from_integers!(i64, i32, i16, u32, u16, u8, bool);

impl TryFrom<u64> for SqlValue<'_> {
    type Error = StoreError;

    fn try_from(n: u64) -> Result<Self, StoreError> {
        i64::try_from(n).map(Self::Int).map_err(|_| StoreError::driver("a bound integer is above 2^63 - 1"))
    }
}

impl From<Timestamp> for SqlValue<'_> {
    /// Milliseconds since the epoch.
    fn from(at: Timestamp) -> Self {
        Self::Int(at.ms())
    }
}

impl<'a> From<&'a str> for SqlValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for SqlValue<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for SqlValue<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for SqlValue<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for SqlValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for SqlValue<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for SqlValue<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for SqlValue<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Cow::Owned(bytes))
    }
}

impl<'a> From<&'a SqlValue<'_>> for SqlValue<'a> {
    fn from(value: &'a SqlValue<'_>) -> Self {
        match value {
            SqlValue::Null => Self::Null,
            SqlValue::Int(n) => Self::Int(*n),
            SqlValue::Text(text) => Self::Text(Cow::Borrowed(text)),
            SqlValue::Bytes(bytes) => Self::Bytes(Cow::Borrowed(bytes)),
        }
    }
}

impl<'a, T: Into<SqlValue<'a>>> From<Option<T>> for SqlValue<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<'a> From<&'a Option<String>> for SqlValue<'a> {
    fn from(text: &'a Option<String>) -> Self {
        text.as_deref().into()
    }
}

/// The values of a statement's placeholders, in order: `params![id, now, reason.as_deref()]`.
#[macro_export]
macro_rules! params {
    () => { [] as [$crate::SqlValue<'static>; 0] };
    ($($value:expr),+ $(,)?) => { [$($crate::SqlValue::from($value)),+] };
}

impl rusqlite::ToSql for SqlValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(n) => ValueRef::Integer(*n),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl ToSql for SqlValue<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let is_text = matches!(*ty, Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME);
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(n) if *ty == Type::INT8 => n.to_sql(ty, out),
            Self::Int(n) if *ty == Type::INT4 => i32::try_from(*n)?.to_sql(ty, out),
            Self::Int(n) if *ty == Type::INT2 => i16::try_from(*n)?.to_sql(ty, out),
            Self::Text(text) if is_text => text.as_ref().to_sql(ty, out),
            Self::Bytes(bytes) if *ty == Type::BYTEA => bytes.as_ref().to_sql(ty, out),
            other => Err(format!("{other:?} is bound to a parameter of type {ty}").into()),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(
            *ty,
            Type::INT8
                | Type::INT4
                | Type::INT2
                | Type::TEXT
                | Type::VARCHAR
                | Type::BPCHAR
                | Type::NAME
                | Type::BYTEA
                // The declared type of NULL.
                | Type::UNKNOWN
        )
    }

    to_sql_checked!();
}
