//! A builder of SQL conditions with bound values.

use crate::SqlValue;

/// SQL conditions that are combined with AND.
#[derive(Default)]
pub struct Clauses {
    sql: String,
    pub bound: Vec<SqlValue<'static>>,
}

impl Clauses {
    /// Adds a condition. Each `?` in it is replaced by the placeholder of the next value.
    pub fn and<const N: usize>(&mut self, condition: &str, values: [SqlValue<'static>; N]) {
        self.sql.push_str(" AND ");
        let mut values = values.into_iter();
        for (n, piece) in condition.split('?').enumerate() {
            if n > 0 {
                let placeholder = values.next().map(|value| self.bind(value));
                self.sql.push_str(&placeholder.unwrap_or_default());
            }
            self.sql.push_str(piece);
        }
    }

    /// Binds a value and returns its placeholder. Placeholders must be used in the statement in the
    /// order in which they were bound.
    pub fn bind(&mut self, value: SqlValue<'static>) -> String {
        self.bound.push(value);
        format!("${}", self.bound.len())
    }

    /// The conditions, each preceded by ` AND `.
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

/// Formats strings as a list of SQL literals. Only for constants of this crate: nothing is escaped.
pub fn literals<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ")
}
