//! Statements that process many rows at once.
//!
//! Such a statement reads its rows from `ROWS($1 TEXT, $2 BIGINT) AS x(user_id, amount)`. There are
//! two ways to run it, and the driver chooses:
//!
//! - **Once for all rows**: each placeholder is bound to an array. PostgreSQL runs more than a few
//!   rows this way, which costs a fraction of single statements.
//! - **Once for each row, in order**: the row's values replace its columns. SQLite runs all rows this
//!   way, which is faster than unpacking JSON arrays, and PostgreSQL a few rows.
//!
//! The statement must therefore give the same result either way: no two rows may name the same row
//! of the written table, and no row may depend on the effect of an earlier one.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, LazyLock};

use bytes::BytesMut;
use parking_lot::RwLock;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::{Engine, SqlValue};
use crate::StoreError;

/// A statement that is translated for one engine.
#[derive(Debug)]
pub(super) struct RowsStatement {
    /// Runs once for each row.
    pub(super) single: String,
    /// Runs once for all rows. Used on PostgreSQL only.
    pub(super) arrays: String,
    /// The types of the columns.
    pub(super) columns: Vec<ColumnType>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    Int,
    Text,
    Bytes,
}

impl ColumnType {
    fn named(name: &str) -> Option<Self> {
        match name {
            "BIGINT" => Some(Self::Int),
            "TEXT" => Some(Self::Text),
            "BYTES" => Some(Self::Bytes),
            _ => None,
        }
    }

    const fn postgres_name(self) -> &'static str {
        match self {
            Self::Int => "bigint",
            Self::Text => "text",
            Self::Bytes => "bytea",
        }
    }

    pub(super) const fn postgres_type(self) -> Type {
        match self {
            Self::Int => Type::INT8,
            Self::Text => Type::TEXT,
            Self::Bytes => Type::BYTEA,
        }
    }

    pub(super) const fn array_type(self) -> Type {
        match self {
            Self::Int => Type::INT8_ARRAY,
            Self::Text => Type::TEXT_ARRAY,
            Self::Bytes => Type::BYTEA_ARRAY,
        }
    }

    const fn holds(self, value: &SqlValue<'_>) -> bool {
        matches!(
            (self, value),
            (_, SqlValue::Null)
                | (Self::Int, SqlValue::Int(_))
                | (Self::Text, SqlValue::Text(_))
                | (Self::Bytes, SqlValue::Bytes(_))
        )
    }
}

type Translated = HashMap<(&'static str, bool), Arc<RowsStatement>>;

/// The translations so far. The crate's statements are constants, so their number is bounded.
static TRANSLATED: LazyLock<RwLock<Translated>> = LazyLock::new(RwLock::default);

/// Translates a statement for `engine`.
///
/// # Errors
/// `Driver` if it does not read `ROWS(..) AS name(..)`.
pub(super) fn translate(engine: Engine, sql: &'static str) -> Result<Arc<RowsStatement>, StoreError> {
    let key = (sql, engine == Engine::Sqlite);
    if let Some(known) = TRANSLATED.read().get(&key) {
        return Ok(Arc::clone(known));
    }
    let new = parse(engine, sql).ok_or_else(|| StoreError::driver(format!("no rows are read by {sql}")))?;
    let new = Arc::new(new);
    TRANSLATED.write().insert(key, Arc::clone(&new));
    Ok(new)
}

fn parse(engine: Engine, sql: &str) -> Option<RowsStatement> {
    let (before, rest) = sql.split_once("FROM ROWS(")?;
    let (placeholders, rest) = rest.split_once(')')?;
    let (alias, rest) = rest.trim_start().strip_prefix("AS ")?.split_once('(')?;
    let (names, after) = rest.split_once(')')?;
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let columns: Option<Vec<ColumnType>> = placeholders
        .split(',')
        .enumerate()
        .map(|(at, placeholder)| {
            let (number, name) = placeholder.trim().split_once(' ')?;
            (number == format!("${}", at + 1)).then(|| ColumnType::named(name))?
        })
        .collect();
    let columns = columns?;
    if names.len() != columns.len() {
        return None;
    }
    let all: Vec<String> = (1..)
        .zip(&columns)
        .map(|(number, column)| format!("${number}::{}[]", column.postgres_name()))
        .collect();
    let arrays = format!("{before}FROM UNNEST({}) AS {alias}({}){after}", all.join(", "), names.join(", "));
    // The values of the only row replace its columns, so the row needs no table, and a subquery needs no
    // LATERAL, which SQLite does not have.
    let joined = after.trim_start().strip_prefix("CROSS JOIN ");
    let joined = joined.map(|after| format!("FROM {}", after.strip_prefix("LATERAL ").unwrap_or(after)));
    let single = match insert_values(before, after) {
        Some(insert) => insert,
        None => format!("{before}{}", joined.as_deref().unwrap_or(after)),
    };
    let single = with_values(&single, alias, &names);
    let single = match engine {
        // SQLite numbers `$1` by its first appearance, and `?1` by its number.
        Engine::Sqlite => without_locks(&single).replace('$', "?"),
        Engine::Postgres => single,
    };
    Some(RowsStatement { single, arrays, columns })
}

/// Returns the INSERT of one row with VALUES instead of SELECT, if it reads no table. An INSERT with
/// SELECT could fail after some of its rows, so SQLite would copy each page before it changes it.
fn insert_values(before: &str, after: &str) -> Option<String> {
    let (insert, selected) = before.strip_prefix("INSERT INTO ")?.split_once("SELECT ")?;
    let after = after.trim_start();
    let rest = after.strip_prefix("WHERE true").unwrap_or(after).trim_start();
    let reads_no_table =
        rest.is_empty() || rest.starts_with("ON CONFLICT ") || rest.starts_with("RETURNING ");
    reads_no_table.then(|| format!("INSERT INTO {insert}VALUES ({}) {rest}", selected.trim_end()))
}

/// Replaces each column of the rows by its placeholder.
fn with_values(sql: &str, alias: &str, names: &[&str]) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let dotted = format!("{alias}.");
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find(&dotted) {
        let (before, from) = rest.split_at(at);
        let name = &from[dotted.len()..];
        let length = name.find(|c| !is_word(c)).unwrap_or(name.len());
        let number = names.iter().position(|known| *known == &name[..length]);
        out.push_str(before);
        match number {
            Some(number) if !before.ends_with(is_word) => out.push_str(&format!("${}", number + 1)),
            _ => out.push_str(&from[..dotted.len() + length]),
        }
        rest = &name[length..];
    }
    out.push_str(rest);
    out
}

/// Removes the clause at the end of a query that locks its rows. SQLite has no such clause, and its
/// only writer needs none.
fn without_locks(sql: &str) -> &str {
    let locks = [" FOR UPDATE OF ", " FOR SHARE OF "];
    let end = locks.iter().find_map(|lock| sql.find(lock)).unwrap_or(sql.len());
    &sql[..end]
}

impl RowsStatement {
    /// Checks that each row, followed by the values that all rows share, fits the placeholders.
    pub(super) fn check(&self, rows: &[Vec<SqlValue<'_>>]) -> Result<(), StoreError> {
        let fits = |row: &Vec<SqlValue<'_>>| {
            row.len() == self.columns.len()
                && row.iter().zip(&self.columns).all(|(value, column)| column.holds(value))
        };
        if rows.iter().all(fits) {
            Ok(())
        } else {
            Err(StoreError::driver(format!("a row does not fit the columns of {}", self.single)))
        }
    }
}

/// The values of one column, bound to a placeholder as an array.
#[derive(Debug)]
pub(super) enum Column {
    Int(Vec<Option<i64>>),
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Column {
    fn new(column: ColumnType, rows: usize) -> Self {
        match column {
            ColumnType::Int => Self::Int(Vec::with_capacity(rows)),
            ColumnType::Text => Self::Text(Vec::with_capacity(rows)),
            ColumnType::Bytes => Self::Bytes(Vec::with_capacity(rows)),
        }
    }

    /// Appends a value, which has been checked to be of this column's type.
    fn push(&mut self, value: SqlValue<'_>) {
        match (self, value) {
            (Self::Int(column), SqlValue::Int(n)) => column.push(Some(n)),
            (Self::Int(column), _) => column.push(None),
            (Self::Text(column), SqlValue::Text(text)) => column.push(Some(text.into_owned())),
            (Self::Text(column), _) => column.push(None),
            (Self::Bytes(column), SqlValue::Bytes(bytes)) => column.push(Some(bytes.into_owned())),
            (Self::Bytes(column), _) => column.push(None),
        }
    }
}

/// Turns checked rows into their columns.
pub(super) fn columns(types: &[ColumnType], rows: Vec<Vec<SqlValue<'_>>>) -> Vec<Column> {
    let mut columns: Vec<Column> = types.iter().map(|column| Column::new(*column, rows.len())).collect();
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    columns
}

impl ToSql for Column {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Int(column) => column.to_sql(ty, out),
            Self::Text(column) => column.to_sql(ty, out),
            Self::Bytes(column) => column.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT8_ARRAY | Type::TEXT_ARRAY | Type::BYTEA_ARRAY)
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQL: &str = "UPDATE t SET a = x.a FROM ROWS($1 TEXT, $2 BIGINT, $3 BYTES) AS x(id, a, b) WHERE t.id = x.id AND max.a < $4";

    #[test]
    fn rows_are_arrays_or_the_values_of_one_row() {
        let postgres = parse(Engine::Postgres, SQL).unwrap();
        assert_eq!(
            postgres.arrays,
            "UPDATE t SET a = x.a FROM UNNEST($1::text[], $2::bigint[], $3::bytea[]) AS x(id, a, b) \
             WHERE t.id = x.id AND max.a < $4"
        );
        assert_eq!(postgres.single, "UPDATE t SET a = $2  WHERE t.id = $1 AND max.a < $4");
        assert_eq!(postgres.columns, [ColumnType::Text, ColumnType::Int, ColumnType::Bytes]);
        let sqlite = parse(Engine::Sqlite, SQL).unwrap();
        assert_eq!(sqlite.single, "UPDATE t SET a = ?2  WHERE t.id = ?1 AND max.a < ?4");
    }

    #[test]
    fn an_insert_of_a_row_that_reads_no_table_has_values() {
        let single = |sql| parse(Engine::Sqlite, sql).unwrap().single;
        let sql = "INSERT INTO t (a, b) SELECT x.a, (SELECT MAX(b) FROM t WHERE a = x.a) FROM ROWS($1 TEXT) AS x(a)";
        assert_eq!(single(sql), "INSERT INTO t (a, b) VALUES (?1, (SELECT MAX(b) FROM t WHERE a = ?1)) ");
        let sql =
            "INSERT INTO t (a) SELECT x.a FROM ROWS($1 TEXT) AS x(a) WHERE true ON CONFLICT (a) DO NOTHING";
        assert_eq!(single(sql), "INSERT INTO t (a) VALUES (?1) ON CONFLICT (a) DO NOTHING");
        let sql = "INSERT INTO t (a) SELECT x.a FROM ROWS($1 TEXT) AS x(a) WHERE x.a > 'b'";
        assert_eq!(single(sql), "INSERT INTO t (a) SELECT ?1  WHERE ?1 > 'b'");
        let sql = "INSERT INTO t (a) SELECT u.a FROM ROWS($1 TEXT) AS x(a) CROSS JOIN u WHERE u.a = x.a";
        assert_eq!(single(sql), "INSERT INTO t (a) SELECT u.a FROM u WHERE u.a = ?1");
    }

    #[test]
    fn a_table_that_is_joined_with_the_rows_stays_alone() {
        let sql = "SELECT t.a FROM ROWS($1 TEXT) AS x(id) CROSS JOIN t WHERE t.id = x.id ORDER BY t.id FOR UPDATE OF t";
        let postgres = parse(Engine::Postgres, sql).unwrap();
        assert!(
            postgres
                .arrays
                .ends_with("AS x(id) CROSS JOIN t WHERE t.id = x.id ORDER BY t.id FOR UPDATE OF t")
        );
        assert_eq!(postgres.single, "SELECT t.a FROM t WHERE t.id = $1 ORDER BY t.id FOR UPDATE OF t");
        // SQLite cannot lock rows.
        assert_eq!(
            parse(Engine::Sqlite, sql).unwrap().single,
            "SELECT t.a FROM t WHERE t.id = ?1 ORDER BY t.id"
        );
        let sql = "SELECT t.a FROM ROWS($1 TEXT) AS x(id) CROSS JOIN LATERAL (SELECT a FROM t WHERE id = x.id LIMIT 9) AS t";
        let single = parse(Engine::Sqlite, sql).unwrap().single;
        assert_eq!(single, "SELECT t.a FROM (SELECT a FROM t WHERE id = ?1 LIMIT 9) AS t");
    }

    #[test]
    fn a_statement_without_rows_or_with_unknown_types_is_rejected() {
        for rows in
            ["counters c", "ROWS($1 REAL) AS x(a)", "ROWS($1 TEXT) AS x(a, b)", "ROWS($2 TEXT) AS x(a)"]
        {
            assert!(parse(Engine::Postgres, &format!("SELECT * FROM {rows}")).is_none(), "{rows}");
        }
    }

    #[test]
    fn a_row_must_fit_the_columns() {
        let statement = parse(Engine::Sqlite, SQL).unwrap();
        let row = |a: SqlValue<'static>| vec![SqlValue::from("id"), a, SqlValue::Null];
        assert_eq!(statement.check(&[row(SqlValue::Int(1)), row(SqlValue::Null)]), Ok(()));
        for rows in [vec![row(SqlValue::Int(1)), row(SqlValue::from("1"))], vec![vec![SqlValue::Int(1)]]] {
            assert!(matches!(statement.check(&rows), Err(StoreError::Driver(_))));
        }
    }
}
