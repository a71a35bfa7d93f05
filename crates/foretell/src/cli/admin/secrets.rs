//! `foretell admin secrets`: re-encrypts stored secrets when the sealing key changes.

use app::webhooks::rewrap::{Rewrapped, rewrap};
use clap::Subcommand;
use domain::ErrorCode;

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::refuse;
use crate::start_error::StartError;

/// Commands for encrypted secrets.
#[derive(Debug, Subcommand)]
pub enum SecretsCommand {
    /// Encrypt every secret again with `sealingKey` that is encrypted with one of
    /// `otherSealingKeys`. The service may run
    Rewrap,
}

pub async fn run(command: SecretsCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        SecretsCommand::Rewrap => answer(&rewrap(&admin.ctx()?).await?),
    }
}

/// Builds the result. Old sealing keys may only be removed after a result without an error.
fn answer(done: &Rewrapped) -> Result<CommandOutput, StartError> {
    if let Some(first) = done.unreadable.first() {
        let count = done.unreadable.len();
        return Err(refuse(
            ErrorCode::InternalError,
            format!(
                "{} secrets were encrypted again. No configured sealing key can decrypt the webhook secrets of {count} keys, the first of which is {first}: add the sealing key that encrypted them to otherSealingKeys.",
                done.rewrapped
            ),
        ));
    }
    if !done.complete {
        return Err(refuse(
            ErrorCode::InternalError,
            format!(
                "{} secrets were encrypted again, but processes still encrypt new ones with an old sealing key: restart those processes, then run this command again.",
                done.rewrapped
            ),
        ));
    }
    Ok(CommandOutput::One(OutputRecord::new().with("rewrapped", done.rewrapped)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_rewrap_succeeds() {
        let error_of = |done: Rewrapped| answer(&done).err().map(|error| error.to_string());
        let complete = Rewrapped { rewrapped: 3, complete: true, ..Rewrapped::default() };
        assert_eq!(error_of(complete.clone()), None);
        let unreadable = Rewrapped {
            unreadable: vec!["018f0000-0000-7000-8000-000000000001".parse().unwrap()],
            ..complete.clone()
        };
        assert!(error_of(unreadable).unwrap().contains("can decrypt the webhook secrets of 1 keys"));
        assert!(
            error_of(Rewrapped { complete: false, ..complete }).unwrap().contains("still encrypt new ones")
        );
    }
}
