//! The table that a run ends with.

use crate::sample::median;

/// What a ratio is held to.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// Not below it.
    AtLeast(f64),
    /// Not above it.
    AtMost(f64),
}

impl Goal {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(least) => format!("at least {least:.2}"),
            Self::AtMost(most) => format!("at most {most:.2}"),
        }
    }
}

/// A figure, and what it is held against.
#[derive(Debug)]
pub struct Row {
    what: String,
    figure: String,
    limit: String,
    ratio: Option<f64>,
    goal: Option<Goal>,
}

impl Row {
    /// A figure that informs.
    pub const fn new(what: String, figure: String) -> Self {
        Self { what, figure, limit: String::new(), ratio: None, goal: None }
    }

    /// Against this limit, with the ratio of each round.
    #[must_use]
    pub fn against(mut self, limit: String, ratios: impl IntoIterator<Item = f64>) -> Self {
        self.limit = limit;
        self.ratio = Some(median(ratios));
        self
    }

    /// Held to this goal by the median of the ratios.
    #[must_use]
    pub const fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    fn is_missed(&self) -> bool {
        // A ratio that is no number meets no goal.
        self.goal.is_some_and(|goal| !goal.is_met(self.ratio.unwrap_or(f64::NAN)))
    }

    fn cells(&self) -> [String; 6] {
        let verdict = match self.goal {
            None => "",
            Some(_) if self.is_missed() => "MISSED",
            Some(_) => "ok",
        };
        [
            self.what.clone(),
            self.figure.clone(),
            self.limit.clone(),
            self.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            self.goal.map_or_else(String::new, Goal::words),
            verdict.to_owned(),
        ]
    }
}

/// Rows and remarks, in their order.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    /// Adds a row.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a remark.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Whether a goal is missed.
    pub fn missed(&self) -> bool {
        self.rows.iter().any(Row::is_missed)
    }

    /// Prints a table that reads as text and as Markdown.
    pub fn print(&self) {
        const HEAD: [&str; 6] = ["what", "figure", "limit", "ratio", "goal", ""];
        let cells: Vec<[String; 6]> =
            std::iter::once(HEAD.map(str::to_owned)).chain(self.rows.iter().map(Row::cells)).collect();
        let widths: [usize; 6] = std::array::from_fn(|column| {
            cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default().max(3)
        });
        for note in &self.notes {
            println!("{note}");
        }
        println!();
        for (index, row) in cells.iter().enumerate() {
            let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            println!("| {} |", padded.collect::<Vec<_>>().join(" | "));
            if index == 0 {
                println!("| {} |", widths.map(|width| "-".repeat(width)).join(" | "));
            }
        }
    }
}
