//! Consent to what cannot be undone: asked for on a terminal, and given by `--yes` in programs.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;

use crate::run::StartError;

/// Whether the operator has consented already.
#[derive(Debug, Clone, Copy, Args)]
pub struct ConsentArgs {
    /// Do not ask, although this cannot be undone; required if there is no terminal
    #[arg(long)]
    yes: bool,
}

/// What a command does if there is neither a terminal nor `--yes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutTerminal {
    /// Nothing: the command fails.
    Refuse,
    /// It goes on.
    Proceed,
}

impl ConsentArgs {
    /// Returns once the operator consents to `act`. The answer that counts as consent is `id` or `yes`.
    ///
    /// # Errors
    /// `Unconfirmed` if the operator does not consent.
    pub fn obtain(self, act: &str, id: &str, without_terminal: WithoutTerminal) -> Result<(), StartError> {
        if self.yes {
            return Ok(());
        }
        let (input, output) = (std::io::stdin(), std::io::stderr());
        if !(input.is_terminal() && output.is_terminal()) {
            return match without_terminal {
                WithoutTerminal::Proceed => Ok(()),
                WithoutTerminal::Refuse => Err(StartError::Unconfirmed(format!(
                    "{act} This cannot be undone: add --yes to do it without a terminal."
                ))),
            };
        }
        ask(act, id, &mut input.lock(), &mut output.lock())
    }
}

fn ask(act: &str, id: &str, input: &mut impl BufRead, output: &mut impl Write) -> Result<(), StartError> {
    let failed = |source| StartError::File { path: "the terminal".to_owned(), source };
    write!(output, "{act} This cannot be undone.\nType the id or \"yes\" to go on: ").map_err(failed)?;
    output.flush().map_err(failed)?;
    let mut answer = String::new();
    input.read_line(&mut answer).map_err(failed)?;
    let answer = answer.trim();
    if answer == id || answer.eq_ignore_ascii_case("yes") {
        return Ok(());
    }
    Err(StartError::Unconfirmed("Nothing was done.".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_or_yes_is_consent() {
        let consents = |answer: &str| {
            let mut shown = Vec::new();
            let asked = ask("Cancels market 7.", "7", &mut answer.as_bytes(), &mut shown);
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
