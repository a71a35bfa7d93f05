//! Confirmation of irreversible actions: a prompt on a terminal, `--yes` in scripts.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;

use super::output::printable;
use crate::start_error::StartError;

/// The operator's confirmation.
#[derive(Debug, Clone, Copy, Args)]
pub struct ConsentArgs {
    /// Confirm without a prompt. Without a terminal this is required if the action cannot be undone
    #[arg(long)]
    yes: bool,
}

/// The behavior of a command if there is neither a terminal nor `--yes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutTerminal {
    /// The command fails.
    Refuse,
    /// The command continues.
    Proceed,
}

impl ConsentArgs {
    /// Returns once the operator confirms `act`. The operator must type `id` or `yes`.
    ///
    /// # Errors
    ///
    /// `Unconfirmed` if the operator does not confirm.
    pub fn obtain(self, act: &str, id: &str, without_terminal: WithoutTerminal) -> Result<(), StartError> {
        if self.yes {
            return Ok(());
        }
        let (input, output) = (std::io::stdin(), std::io::stderr());
        // Both are needed: the question is printed to standard error and the answer read from
        // standard input.
        if !(input.is_terminal() && output.is_terminal()) {
            return match without_terminal {
                WithoutTerminal::Proceed => Ok(()),
                WithoutTerminal::Refuse => {
                    Err(StartError::Unconfirmed(format!("{act} Set --yes to confirm it without a terminal.")))
                }
            };
        }
        ask(act, id, &mut input.lock(), &mut output.lock())
    }
}

fn ask(act: &str, id: &str, input: &mut impl BufRead, output: &mut impl Write) -> Result<(), StartError> {
    let failed = |source| StartError::File { path: "the terminal".to_owned(), source };
    let act = printable(act);
    write!(output, "{act}\nType the id or \"yes\" to continue: ").map_err(failed)?;
    output.flush().map_err(failed)?;
    let mut answer = String::new();
    input.read_line(&mut answer).map_err(failed)?;
    let answer = answer.trim();
    if answer == id || answer.eq_ignore_ascii_case("yes") {
        return Ok(());
    }
    Err(StartError::Unconfirmed("Cancelled: nothing was changed.".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_or_yes_is_accepted_as_consent() {
        let consents = |answer: &str| {
            let mut shown = Vec::new();
            let asked =
                ask("Cancels market 7. This cannot be undone.", "7", &mut answer.as_bytes(), &mut shown);
            assert!(
                String::from_utf8(shown).unwrap().starts_with("Cancels market 7. This cannot be undone.\n")
            );
            asked.is_ok()
        };
        for answer in ["7\n", " yes\n", "YES"] {
            assert!(consents(answer), "{answer:?}");
        }
        for answer in ["", "\n", "y\n", "no\n", "77\n", "yes please\n"] {
            assert!(!consents(answer), "{answer:?}");
        }
    }
}
