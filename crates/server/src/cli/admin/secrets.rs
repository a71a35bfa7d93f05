//! `foretell admin secrets`: what is stored sealed, when the key that seals it changes.

use app::keys::rewrap::{Rewrapped, rewrap};
use clap::Subcommand;
use domain::ErrorCode;

use super::ctx::AdminCtx;
use super::output::{Answer, Record};
use super::refuse;
use crate::run::StartError;

/// What can be done with sealed secrets.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Seal everything again under `sealingKey` that is sealed under one of `otherSealingKeys`; the service may run
    Rewrap,
}

pub async fn run(verb: Verb, admin: &AdminCtx) -> Result<Answer, StartError> {
    match verb {
        Verb::Rewrap => answer(&rewrap(&admin.ctx()?).await?),
    }
}

/// The old keys may go only after an answer without an error.
fn answer(done: &Rewrapped) -> Result<Answer, StartError> {
    if let Some(first) = done.unreadable.first() {
        let count = done.unreadable.len();
        return Err(refuse(
            ErrorCode::InternalError,
            format!(
                "{} secrets were sealed again. None of the sealing keys opens the webhook secret of {count} keys, the first of them {first}: add the key that sealed them to otherSealingKeys.",
                done.rewrapped
            ),
        ));
    }
    if !done.complete {
        return Err(refuse(
            ErrorCode::InternalError,
            format!(
                "{} secrets were sealed again, and new ones under an old key keep coming: restart the processes that still seal under it, then run this again.",
                done.rewrapped
            ),
        ));
    }
    Ok(Answer::One(Record::new().with("rewrapped", done.rewrapped)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_complete_is_no_error() {
        let told = |done: Rewrapped| answer(&done).err().map(|error| error.to_string());
        let complete = Rewrapped { rewrapped: 3, complete: true, ..Rewrapped::default() };
        assert_eq!(told(complete.clone()), None);
        let unreadable = Rewrapped {
            unreadable: vec!["018f0000-0000-7000-8000-000000000001".parse().unwrap()],
            ..complete.clone()
        };
        assert!(told(unreadable).unwrap().contains("opens the webhook secret of 1 keys"));
        assert!(told(Rewrapped { complete: false, ..complete }).unwrap().contains("keep coming"));
    }
}
