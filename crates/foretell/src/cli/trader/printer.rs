//! Prints records of the API: as tables for people, as JSON for programs.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use foretell_client::{Usdc, Wad};
use serde_json::{Map, Value};

use super::failure::TraderError;

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputForm {
    /// Aligned columns, with amounts in whole units
    Table,
    /// One document, as the API returned it
    Json,
    /// One record on each line
    Ndjson,
}

/// The unit of a member in a table.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    Text,
    Usdc,
    Tokens,
}

/// A column of a table: its head, and the path of its member.
pub type Column = (&'static str, &'static str, Unit);

/// The printer of a command.
#[derive(Debug, Clone)]
pub struct Printer {
    form: OutputForm,
    fields: Vec<String>,
    is_terminal: bool,
}

impl Printer {
    pub fn new(form: Option<OutputForm>, fields: Vec<String>) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let form = form.unwrap_or(if is_terminal { OutputForm::Table } else { OutputForm::Json });
        Self { form, fields, is_terminal }
    }

    /// Returns true if the output is for programs.
    pub fn is_json(&self) -> bool {
        self.form != OutputForm::Table
    }

    /// Prints one record. In a table, each column is a line.
    pub fn print_one(&self, record: &Value, columns: &[Column]) -> Result<(), TraderError> {
        print_line(&match self.form {
            OutputForm::Table if self.fields.is_empty() => {
                let cells = columns.iter().map(|column| vec![column.0.to_owned(), cell(record, column)]);
                align(&cells.collect::<Vec<_>>())
            }
            OutputForm::Table => {
                let cells = self.fields.iter().map(|path| vec![path.clone(), text_of(member(record, path))]);
                align(&cells.collect::<Vec<_>>())
            }
            OutputForm::Json => format!("{:#}", self.select(record)),
            OutputForm::Ndjson => self.select(record).to_string(),
        })
    }

    /// Prints a list of records.
    pub fn print_list(&self, records: &[Value], columns: &[Column]) -> Result<(), TraderError> {
        match self.form {
            OutputForm::Table if records.is_empty() => print_line("none"),
            OutputForm::Table => {
                let (head, rows) = self.rows(records, columns);
                print_line(&align(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))
            }
            OutputForm::Json => {
                let selected: Value = records.iter().map(|record| self.select(record)).collect();
                print_line(&format!("{selected:#}"))
            }
            OutputForm::Ndjson => {
                records.iter().try_for_each(|record| print_line(&self.select(record).to_string()))
            }
        }
    }

    /// Prints the next record of a list without an end.
    pub fn print_next(&self, record: &Value, columns: &[Column]) -> Result<(), TraderError> {
        match self.form {
            OutputForm::Table => {
                let (_, rows) = self.rows(std::slice::from_ref(record), columns);
                print_line(&rows.concat().join("  "))
            }
            OutputForm::Json | OutputForm::Ndjson => print_line(&self.select(record).to_string()),
        }
    }

    fn rows(&self, records: &[Value], columns: &[Column]) -> (Vec<String>, Vec<Vec<String>>) {
        if self.fields.is_empty() {
            let head = columns.iter().map(|column| column.0.to_uppercase()).collect();
            let row = |record: &Value| columns.iter().map(|column| cell(record, column)).collect();
            (head, records.iter().map(row).collect())
        } else {
            let row = |record: &Value| self.fields.iter().map(|path| text_of(member(record, path))).collect();
            (self.fields.clone(), records.iter().map(row).collect())
        }
    }

    /// Returns only the members that were asked for.
    fn select(&self, record: &Value) -> Value {
        if self.fields.is_empty() {
            return record.clone();
        }
        let members = self.fields.iter().map(|path| (path.clone(), member(record, path).clone()));
        Value::Object(members.collect::<Map<_, _>>())
    }

    /// Tells a person what happens. Programs read only the result.
    pub fn note(&self, text: &str) {
        if self.is_terminal && !self.is_json() {
            eprintln!("{}", printable(text));
        }
    }
}

/// Replaces control characters. Texts of other users, such as questions and labels, must not control
/// the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the member at a path such as `outcomes.0.price`.
fn member<'a>(record: &'a Value, path: &str) -> &'a Value {
    record.pointer(&format!("/{}", path.replace('.', "/"))).unwrap_or(&Value::Null)
}

fn cell(record: &Value, (_, path, unit): &Column) -> String {
    let value = member(record, path);
    let whole = value.as_str().and_then(|text| match unit {
        Unit::Text => None,
        Unit::Usdc => Usdc::parse_atomic(text).ok().map(|amount| amount.to_string()),
        Unit::Tokens => Wad::parse_atomic(text).ok().map(|amount| amount.to_string()),
    });
    whole.unwrap_or_else(|| text_of(value))
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable(text),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn print_line(text: &str) -> Result<(), TraderError> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COLUMNS: &[Column] = &[
        ("id", "id", Unit::Text),
        ("value", "value", Unit::Usdc),
        ("first", "outcomes.0.price", Unit::Text),
    ];

    fn printer(fields: &[&str]) -> Printer {
        Printer::new(Some(OutputForm::Table), fields.iter().map(|field| (*field).to_owned()).collect())
    }

    #[test]
    fn tables_show_amounts_in_whole_units() {
        let records =
            [json!({"id": "a", "value": "1500000", "outcomes": [{"price": 0.25}]}), json!({"id": "bb"})];
        let (head, rows) = printer(&[]).rows(&records, COLUMNS);
        assert_eq!(head, ["ID", "VALUE", "FIRST"]);
        assert_eq!(rows, [["a", "1.5", "0.25"], ["bb", "-", "-"]]);
        assert_eq!(align(&rows), "a   1.5  0.25\nbb  -    -");
    }

    #[test]
    fn only_the_fields_that_were_asked_for_are_printed() {
        let record = json!({"id": "a", "value": "1500000", "outcomes": [{"price": 0.25}]});
        let printer = printer(&["value", "outcomes.0.price", "missing"]);
        let expected = json!({"value": "1500000", "outcomes.0.price": 0.25, "missing": null});
        assert_eq!(printer.select(&record), expected);
        assert_eq!(printer.rows(&[record], COLUMNS).1, [["1500000", "0.25", "-"]]);
    }

    #[test]
    fn texts_of_others_cannot_control_the_terminal() {
        assert_eq!(text_of(&json!("a\u{1b}[2Jb\nc")), "a [2Jb c");
    }
}
