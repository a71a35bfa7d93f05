//! Conditions put together into a statement, with the values of their placeholders.

use crate::Value;

/// Conditions that all hold.
#[derive(Default)]
pub struct Clauses {
    sql: String,
    pub bound: Vec<Value<'static>>,
}

impl Clauses {
    /// One more condition; each `?` in it is the next of these values.
    pub fn and<const N: usize>(&mut self, condition: &str, values: [Value<'static>; N]) {
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

    /// The placeholder of a value. It must come into the statement behind those before it.
    pub fn bind(&mut self, value: Value<'static>) -> String {
        self.bound.push(value);
        format!("${}", self.bound.len())
    }

    /// The conditions, each with ` AND ` before it.
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

/// Texts as a list of SQL literals. For words of this crate alone.
pub fn literals<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ")
}
