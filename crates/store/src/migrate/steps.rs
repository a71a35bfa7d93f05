//! The steps of a migration.

use crate::engine::{Engine, dialect};

/// The mark of an index that is built while others write. Only PostgreSQL has the last word.
const CONCURRENTLY: &str = "INDEX CONCURRENTLY ";

/// The mark of a statement that waits until no transaction uses its table.
const ALTER: &str = "ALTER TABLE ";

/// A part of a migration that is done as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Statements of one transaction.
    Transaction(String),
    /// An index that PostgreSQL builds outside of any transaction.
    Index { name: String, sql: String },
}

impl Step {
    pub(super) fn sql(&self) -> &str {
        match self {
            Self::Transaction(sql) | Self::Index { sql, .. } => sql,
        }
    }
}

/// Splits a migration into its steps on `engine`.
///
/// On PostgreSQL, a migration that alters a table has a step for each statement. A transaction that alters two tables
/// would deadlock with the requests that use both, for as long as there are such requests.
pub(super) fn of(engine: Engine, sql: &str) -> Vec<Step> {
    let sql = dialect::for_engine(engine, sql);
    let alters = sql.contains(ALTER);
    if engine == Engine::Sqlite || !(alters || sql.contains(CONCURRENTLY)) {
        return vec![Step::Transaction(sql.replace(CONCURRENTLY, "INDEX "))];
    }
    let mut steps = Vec::new();
    let mut together = Vec::new();
    for statement in statements(&sql) {
        match index_name(statement) {
            None => {
                together.push(statement);
                if alters {
                    close(&mut together, &mut steps);
                }
            }
            Some(name) => {
                close(&mut together, &mut steps);
                steps.push(Step::Index { name: name.to_owned(), sql: statement.to_owned() });
            }
        }
    }
    close(&mut together, &mut steps);
    steps
}

fn close(together: &mut Vec<&str>, steps: &mut Vec<Step>) {
    if !together.is_empty() {
        steps.push(Step::Transaction(together.join(";\n")));
        together.clear();
    }
}

/// Returns the name of the index if the statement builds one while others write.
fn index_name(statement: &str) -> Option<&str> {
    let (create, rest) = statement.split_once(CONCURRENTLY)?;
    let is_create = matches!(create.trim(), "CREATE" | "CREATE UNIQUE");
    is_create.then(|| rest.split_whitespace().next()).flatten()
}

/// Splits SQL at the semicolons outside of quoted text and comments. Drops comments between
/// statements.
fn statements(sql: &str) -> Vec<&str> {
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    let bytes = sql.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"') => at += 1 + sql[at + 1..].find(char::from(quote)).unwrap_or(sql.len()),
            b'-' if sql[at..].starts_with("--") => {
                let end = sql[at..].find('\n').map_or(sql.len(), |length| at + length);
                if sql[start..at].trim().is_empty() {
                    start = end;
                }
                at = end;
            }
            b';' => {
                found.push(sql[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    found.push(sql[start.min(sql.len())..].trim());
    found.retain(|statement| !statement.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "-- Adds a table; and its index.
        CREATE TABLE lanes (lane BIGINT);
        UPDATE trades SET note = 'a; b' WHERE note IS NULL;
        -- Used by the queue.
        CREATE INDEX CONCURRENTLY trades_lane ON trades (lane);
        CREATE UNIQUE INDEX CONCURRENTLY trades_note ON trades (note);
        DROP INDEX trades_old;";

    fn transaction(sql: &str) -> Step {
        Step::Transaction(sql.to_owned())
    }

    #[test]
    fn an_index_that_is_built_while_others_write_is_a_step_of_its_own() {
        let steps = of(Engine::Postgres, MIXED);
        let index = |name: &str, sql: &str| Step::Index { name: name.to_owned(), sql: sql.to_owned() };
        assert_eq!(
            steps,
            [
                transaction(
                    "CREATE TABLE lanes (lane BIGINT);\nUPDATE trades SET note = 'a; b' WHERE note IS NULL"
                ),
                index("trades_lane", "CREATE INDEX CONCURRENTLY trades_lane ON trades (lane)"),
                index("trades_note", "CREATE UNIQUE INDEX CONCURRENTLY trades_note ON trades (note)"),
                transaction("DROP INDEX trades_old"),
            ]
        );
    }

    #[test]
    fn each_statement_of_a_migration_that_alters_tables_is_a_step_of_its_own() {
        let alters = "ALTER TABLE users ADD COLUMN a TEXT; ALTER TABLE keys ADD COLUMN b TEXT; DROP INDEX i;";
        assert_eq!(
            of(Engine::Postgres, alters),
            [
                transaction("ALTER TABLE users ADD COLUMN a TEXT"),
                transaction("ALTER TABLE keys ADD COLUMN b TEXT"),
                transaction("DROP INDEX i"),
            ]
        );
        assert_eq!(of(Engine::Sqlite, alters), [transaction(alters)]);
    }

    #[test]
    fn other_migrations_are_one_step() {
        let plain = "CREATE TABLE t (id TEXT); CREATE INDEX t_id ON t (id);";
        assert_eq!(of(Engine::Postgres, plain), [transaction(plain)]);
        assert_eq!(of(Engine::Sqlite, MIXED), [transaction(&MIXED.replace(" CONCURRENTLY", ""))]);
    }
}
