//! The words of an act, and its result.

use alloy_primitives::{Address, U256};
use chain::{Call, Receipt};
use domain::Wad;
use serde::{Deserialize, Serialize};

use crate::AppError;
use crate::roles::{ActResult, ActSender};

/// The number of decimals of a [`Wad`].
const WAD_DECIMALS: usize = 18;

/// A value that belongs to an act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    pub label: String,
    pub value: String,
}

/// What an act does, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub title: String,
    pub facts: Vec<Fact>,
    /// One sentence for each effect.
    pub consequences: Vec<String>,
    /// The page that the act belongs to.
    pub path: String,
}

impl Summary {
    pub fn new(title: impl Into<String>, path: impl Into<String>) -> Self {
        Self { title: title.into(), facts: Vec::new(), consequences: Vec::new(), path: path.into() }
    }

    #[must_use]
    pub fn fact(mut self, label: impl Into<String>, value: impl ToString) -> Self {
        self.facts.push(Fact { label: label.into(), value: value.to_string() });
        self
    }

    /// Adds a value if there is one.
    #[must_use]
    pub fn maybe(self, label: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.fact(label, value),
            None => self,
        }
    }

    /// Adds a fact if a value changes.
    #[must_use]
    pub fn change(self, label: &str, old: &str, new: &str) -> Self {
        let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
        if old == new { self } else { self.fact(label, format!("{} → {}", or_none(old), or_none(new))) }
    }

    #[must_use]
    pub fn then(mut self, consequence: impl Into<String>) -> Self {
        self.consequences.push(consequence.into());
        self
    }
}

/// A call that the wallet of a role must send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedCall {
    pub from: Address,
    pub call: Call,
}

/// The result of an act.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The reason of the failure, if the act failed.
    pub error: Option<String>,
    /// What was done, one sentence each.
    pub notes: Vec<String>,
    /// The calls that a wallet must send, in this order.
    pub calls: Vec<PrintedCall>,
}

impl Outcome {
    pub fn done(note: impl Into<String>) -> Self {
        Self { notes: vec![note.into()], ..Self::default() }
    }

    pub fn failed(error: &AppError) -> Self {
        Self { error: Some(words_of(error)), ..Self::default() }
    }

    /// Adds the result of an act of a role.
    pub fn add(&mut self, sender: ActSender<'_>, result: ActResult) {
        match result {
            ActResult::Mined(receipt) => self.notes.push(mined(&receipt)),
            ActResult::Printed(call) => self.calls.push(PrintedCall { from: sender.address(), call }),
        }
    }
}

/// Says in which block a transaction is.
pub fn mined(receipt: &Receipt) -> String {
    format!("The transaction {} is in block {}.", receipt.tx_hash, receipt.block_number)
}

/// Returns an error with the requirements of its fields.
pub fn words_of(error: &AppError) -> String {
    let errors = error.extensions.get("errors").and_then(serde_json::Value::as_array);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let fields = errors.into_iter().flatten().map(|field| {
        let pointer = text(&field["pointer"]);
        format!(" {} {}.", pointer.trim_start_matches('/'), text(&field["detail"]))
    });
    std::iter::once(error.detail.clone()).chain(fields).collect()
}

/// Formats tokens or a share without trailing zeros.
pub fn decimal(wad: Wad) -> String {
    let padded = format!("{:0>width$}", wad.0.to_string(), width = WAD_DECIMALS + 1);
    let (whole, fraction) = padded.split_at(padded.len() - WAD_DECIMALS);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Formats a share as a percentage with at most two decimals, rounded down.
pub fn percent(share: U256) -> String {
    let hundredths = share * U256::from(10_000) / Wad::ONE.0;
    let hundredths = u64::try_from(hundredths).unwrap_or(u64::MAX);
    match hundredths % 100 {
        0 => format!("{}%", hundredths / 100),
        rest => format!("{}.{rest:02}%", hundredths / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_decimals_and_percentages_round_down() {
        let third = Wad::ONE.0 / U256::from(3);
        assert_eq!(percent(third), "33.33%");
        assert_eq!(percent(Wad::ONE.0), "100%");
        assert_eq!(decimal(Wad(Wad::ONE.0 / U256::from(4))), "0.25");
        assert_eq!(decimal(Wad::ZERO), "0");
    }

    #[test]
    fn the_words_of_an_error_name_its_fields() {
        let error = AppError::field("/endTime", "must be in the future");
        assert!(words_of(&error).ends_with(" endTime must be in the future."), "{}", words_of(&error));
        assert_eq!(
            words_of(&AppError::invalid_state(domain::ErrorCode::ValidationFailed, "it is over")),
            "It is over."
        );
    }
}
