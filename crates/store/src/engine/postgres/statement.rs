//! A statement with its bound values, ready to be sent.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::super::SqlValue;
use super::super::fault::EngineFault;
use super::super::rows::{Column, RowsStatement, columns};
use crate::StoreError;

/// A statement that runs once for each of its executions.
pub(super) struct Bound<'a> {
    pub(super) sql: Cow<'a, str>,
    pub(super) types: Vec<Type>,
    /// The values of each execution.
    pub(super) executions: Vec<Vec<Param<'a>>>,
    pub(super) wanted: Wanted,
}

/// The part of the answer that the caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Affected,
    Rows,
}

/// The answer to one execution.
pub(super) enum Answer {
    Affected(u64),
    Rows(Vec<Row>),
}

impl Answer {
    pub(super) const fn affected(&self) -> u64 {
        match self {
            Self::Affected(rows) => *rows,
            Self::Rows(_) => 0,
        }
    }

    pub(super) fn into_rows(self) -> Vec<Row> {
        match self {
            Self::Affected(_) => Vec::new(),
            Self::Rows(rows) => rows,
        }
    }
}

/// The value of a placeholder.
#[derive(Debug)]
pub(super) enum Param<'a> {
    One(SqlValue<'a>),
    All(Column),
}

impl<'a> Bound<'a> {
    /// One execution with these values.
    pub(super) fn one(sql: Cow<'a, str>, params: &'a [SqlValue<'_>], wanted: Wanted) -> Self {
        let types = params.iter().map(SqlValue::postgres_type).collect();
        let executions = vec![params.iter().map(|value| Param::One(value.into())).collect()];
        Self { sql, types, executions, wanted }
    }

    /// An execution for each row. All share one prepared statement, so the type of a column is taken
    /// from the first row in which it is not NULL.
    pub(super) fn each(
        sql: Cow<'a, str>,
        rows: impl Iterator<Item = Vec<SqlValue<'a>>>,
        wanted: Wanted,
    ) -> Result<Self, EngineFault> {
        let rows: Vec<Vec<SqlValue<'_>>> = rows.collect();
        let width = rows.first().map_or(0, Vec::len);
        let types: Vec<Type> = (0..width).map(|column| column_type(&rows, column)).collect();
        // Checked before anything is sent: a row that cannot be sent must not leave the others of a
        // transaction to be committed.
        let fits = |value: &SqlValue<'_>, ty: &Type| *value == SqlValue::Null || value.postgres_type() == *ty;
        if !rows
            .iter()
            .all(|row| row.len() == width && row.iter().zip(&types).all(|(value, ty)| fits(value, ty)))
        {
            let text = format!("the rows of a statement have different types: {sql}");
            return Err(EngineFault::give_up(StoreError::driver(text)));
        }
        let executions = rows.into_iter().map(|row| row.into_iter().map(Param::One).collect()).collect();
        Ok(Self { sql, types, executions, wanted })
    }

    /// An execution for each row of a statement over many rows.
    pub(super) fn single_rows(
        statement: &RowsStatement,
        rows: Vec<Vec<SqlValue<'a>>>,
        shared: &'a [SqlValue<'_>],
        wanted: Wanted,
    ) -> Self {
        let types = statement.columns.iter().map(|column| column.postgres_type());
        let types = types.chain(shared.iter().map(SqlValue::postgres_type)).collect();
        let with_shared = |row: Vec<SqlValue<'a>>| {
            row.into_iter().chain(shared.iter().map(SqlValue::from)).map(Param::One).collect()
        };
        let executions = rows.into_iter().map(with_shared).collect();
        Self { sql: Cow::Owned(statement.single.clone()), types, executions, wanted }
    }

    /// One execution for all rows of a statement over many rows.
    pub(super) fn arrays(
        statement: &RowsStatement,
        rows: Vec<Vec<SqlValue<'a>>>,
        shared: &'a [SqlValue<'_>],
        wanted: Wanted,
    ) -> Self {
        let types = statement.columns.iter().map(|column| column.array_type());
        let types = types.chain(shared.iter().map(SqlValue::postgres_type)).collect();
        let all = columns(&statement.columns, rows).into_iter().map(Param::All);
        let params = all.chain(shared.iter().map(|value| Param::One(value.into()))).collect();
        Self { sql: Cow::Owned(statement.arrays.clone()), types, executions: vec![params], wanted }
    }

    /// Reports whether the statement changes nothing if it runs outside of a transaction. It may lock
    /// rows.
    pub(super) fn is_query(&self) -> bool {
        self.sql.trim_start().starts_with("SELECT")
    }

    /// The number of executions.
    pub(super) fn times(&self) -> usize {
        self.executions.len()
    }

    pub(super) fn into_static(self) -> Bound<'static> {
        let executions = self.executions.into_iter();
        Bound {
            sql: Cow::Owned(self.sql.into_owned()),
            types: self.types,
            executions: executions
                .map(|params| params.into_iter().map(Param::into_static).collect())
                .collect(),
            wanted: self.wanted,
        }
    }
}

impl Param<'_> {
    fn into_static(self) -> Param<'static> {
        match self {
            Self::One(value) => Param::One(value.into_static()),
            Self::All(column) => Param::All(column),
        }
    }
}

/// The type of a column of parameters, taken from the first row in which it is not NULL.
fn column_type(rows: &[Vec<SqlValue<'_>>], column: usize) -> Type {
    let typed = rows.iter().filter_map(|params| params.get(column)).find(|value| **value != SqlValue::Null);
    typed.unwrap_or(&SqlValue::Null).postgres_type()
}

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::One(value) => value.to_sql(ty, out),
            Self::All(column) => column.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        <SqlValue<'_> as ToSql>::accepts(ty) || <Column as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}
