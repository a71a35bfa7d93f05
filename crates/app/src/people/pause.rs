//! The emergency stop of a person.

use crate::keys::{list_own, pause_noted, resume};
use crate::sessions::{Person, context_of};
use crate::{AppError, Ctx, PersonError};

/// Pauses trading of all the user's keys, the web application's included if the operator has not
/// revoked it. Needs no confirmation, because it only restricts. If it fails, some keys may be paused
/// already.
pub async fn pause_trading(ctx: &Ctx, person: &Person) -> Result<(), AppError> {
    let ctx = &context_of(ctx, person);
    // The web key first: whoever stole the session trades with it.
    let web_key = Some(person.web_key().id).filter(|_| !person.is_web_key_revoked());
    let keys = list_own(ctx, person.user_id()).await?;
    for id in web_key.into_iter().chain(keys.iter().map(|key| key.id)) {
        pause_noted(ctx, id).await?;
    }
    Ok(())
}

/// Resumes trading with the user's web key. Requires a step-up: the thief of a session may stop
/// trading, but not begin it again.
pub async fn resume_trading(ctx: &Ctx, person: &Person) -> Result<(), PersonError> {
    person.require_step_up(ctx.now())?;
    resume(&context_of(ctx, person), person.caller()?.key.id).await?;
    Ok(())
}
