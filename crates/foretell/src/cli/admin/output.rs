//! Output of admin commands: aligned text for people, JSON for programs.

use std::io::{IsTerminal, Write};

use domain::text::is_control;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::start_error::StartError;

/// The members of an output record, in print order.
#[derive(Debug, Clone, Default)]
pub struct OutputRecord(Vec<(&'static str, Value)>);

impl OutputRecord {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Serialize) -> Self {
        // Records only contain strings, numbers and lists of them, so serialization cannot fail.
        self.0.push((name, serde_json::to_value(value).unwrap_or_default()));
        self
    }

    /// Appends the members of another record.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn text(&self, name: &str) -> String {
        self.0
            .iter()
            .find(|(member, _)| *member == name)
            .map_or_else(String::new, |(_, value)| text_of(value, true))
    }
}

impl Serialize for OutputRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The result of a command.
#[derive(Debug, Clone)]
pub enum CommandOutput {
    One(OutputRecord),
    /// Records, and the members that are the columns of the text table.
    Many(Vec<OutputRecord>, &'static [&'static str]),
    /// A file for another program: JSON, also on a terminal.
    Json(OutputRecord),
    /// The command has already printed everything.
    Printed,
}

impl CommandOutput {
    /// Prints the result to standard output. Without a terminal it is always JSON.
    pub fn print(&self, json: bool) -> Result<(), StartError> {
        if matches!(self, Self::Printed) {
            return Ok(());
        }
        let out = std::io::stdout();
        // Scripts get JSON even without `--json`.
        let is_json = json || matches!(self, Self::Json(_)) || !out.is_terminal();
        print_line(&if is_json { self.to_json() } else { self.to_text() })
    }

    fn to_json(&self) -> String {
        match self {
            Self::One(record) | Self::Json(record) => serde_json::to_string_pretty(record),
            Self::Many(records, _) => serde_json::to_string_pretty(records),
            Self::Printed => Ok(String::new()),
        }
        .unwrap_or_default()
    }

    fn to_text(&self) -> String {
        match self {
            Self::One(record) | Self::Json(record) => {
                let members =
                    record.0.iter().map(|(name, value)| vec![(*name).to_owned(), text_of(value, false)]);
                align(&members.collect::<Vec<_>>())
            }
            Self::Printed => String::new(),
            Self::Many(records, _) if records.is_empty() => "none".to_owned(),
            Self::Many(records, columns) => {
                let head = columns.iter().map(|column| column.to_uppercase()).collect();
                let rows =
                    records.iter().map(|record| columns.iter().map(|column| record.text(column)).collect());
                align(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
            }
        }
    }
}

/// Prints one line to standard output.
pub fn print_line(text: &str) -> Result<(), StartError> {
    match writeln!(std::io::stdout(), "{text}") {
        // The reader, e.g. `head`, has read enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| StartError::File { path: "standard output".to_owned(), source }),
    }
}

/// Aligns cells in columns, two spaces apart. Further lines of a cell are indented.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).filter_map(|cell| cell.lines().next());
        cells.map(|line| line.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let missing = width.saturating_sub(cell.lines().next().unwrap_or_default().chars().count());
            format!("{}{}", cell.replace('\n', "\n    "), " ".repeat(missing))
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the text of a value. A cell of a table has one line, unless it lists objects.
fn text_of(value: &Value, is_cell: bool) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if is_cell => printable(text).replace('\n', " "),
        Value::String(text) => printable(text),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().map(|item| format!("\n{}", text_of(item, is_cell))).collect()
        }
        Value::Array(items) => items.iter().map(|item| text_of(item, is_cell)).collect::<Vec<_>>().join(", "),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{name}={}", text_of(value, is_cell)))
            .collect::<Vec<_>>()
            .join("  "),
        other => other.to_string(),
    }
}

/// Replaces control characters except line breaks. Texts of users, such as names from before they were
/// checked, must not control the operator's terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_control(c) && c != '\n' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_the_members_order() {
        let record = OutputRecord::new().with("key", "k").with("id", 1);
        assert_eq!(serde_json::to_string(&record).unwrap(), r#"{"key":"k","id":1}"#);
    }

    #[test]
    fn a_table_shows_the_named_members_in_columns() {
        let rows =
            ["ada", "bo"].map(|name| OutputRecord::new().with("name", name).with("hidden", 1).with("n", 2));
        let text = CommandOutput::Many(rows.to_vec(), &["name", "n"]).to_text();
        assert_eq!(text, "NAME  N\nada   2\nbo    2");
    }

    #[test]
    fn a_record_shows_absent_and_nested_members() {
        let nested = serde_json::json!([{"index": 0, "label": "Yes"}]);
        let record = OutputRecord::new().with("id", 7).with("logo", None::<String>).with("outcomes", nested);
        assert_eq!(
            CommandOutput::One(record).to_text(),
            "id        7\nlogo      -\noutcomes  \n    index=0  label=Yes"
        );
    }

    #[test]
    fn names_of_users_do_not_control_the_terminal() {
        let record = OutputRecord::new().with("name", "eve\u{1b}[31m\r\nadmin\u{202e}");
        let table = CommandOutput::Many(vec![record.clone()], &["name"]).to_text();
        assert_eq!(table, "NAME\neve [31m  admin");
        assert_eq!(CommandOutput::One(record).to_text(), "name  eve [31m \n    admin");
    }
}
