//! The result table of a run.

use crate::sample::median;

/// The goal of a ratio.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
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

/// A figure with its baseline and goal.
#[derive(Debug)]
pub struct Row {
    what: String,
    figure: String,
    limit: String,
    ratio: Option<f64>,
    goal: Option<Goal>,
}

impl Row {
    /// Creates an informative row.
    pub const fn new(what: String, figure: String) -> Self {
        Self { what, figure, limit: String::new(), ratio: None, goal: None }
    }

    /// Sets the baseline, with the ratio of each round.
    #[must_use]
    pub fn against(mut self, limit: String, ratios: impl IntoIterator<Item = f64>) -> Self {
        self.limit = limit;
        self.ratio = Some(median(ratios));
        self
    }

    /// Sets the goal for the median of the ratios.
    #[must_use]
    pub const fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    /// Sets the goal if it applies here.
    #[must_use]
    pub const fn goal_if(self, applies: bool, goal: Goal) -> Self {
        if applies { self.goal(goal) } else { self }
    }

    fn is_missed(&self) -> bool {
        // NaN meets no goal, so a missing measurement counts as missed.
        self.goal.is_some_and(|goal| !goal.is_met(self.ratio.unwrap_or(f64::NAN)))
    }

    fn cells(&self) -> [String; 6] {
        let mark = match self.goal {
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
            mark.to_owned(),
        ]
    }
}

/// Rows and notes, in order.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Returns whether a goal is missed.
    pub fn missed(&self) -> bool {
        self.rows.iter().any(Row::is_missed)
    }

    /// Prints a table that is readable as text and valid as Markdown.
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
