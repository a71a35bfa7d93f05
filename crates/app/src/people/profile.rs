//! A user's own name, and the name that the user shows to others.

use domain::public_name::PublicName;
use serde_json::json;
use store::audit_log::note;

use crate::accounts;
use crate::sessions::{Person, act_of};
use crate::{AppError, Ctx, PersonError, user_log};

/// Renames a user. The name is not public.
pub async fn rename(ctx: &Ctx, person: &Person, name: &str) -> Result<(), PersonError> {
    let (user_id, before, name) = (person.user_id(), person.user().name.clone(), check_name(name)?);
    let store = user_log::acting(ctx, user_id, person.session().ip, None);
    let renamed = store.write((user_id, before, name), |tx, (user_id, before, name)| {
        Box::pin(async move {
            store::users::rename(tx, *user_id, name).await?;
            let act = act_of(*user_id, "user.rename").before(json!({ "name": before }));
            note(tx, act.after(json!({ "name": name })));
            Ok(())
        })
    });
    let renamed = renamed.await;
    ctx.process.session_cache.forget(user_id);
    Ok(renamed?)
}

/// Returns the name that the user shows on the leaderboard, if there is one.
pub async fn find_public_name(ctx: &Ctx, person: &Person) -> Result<Option<String>, AppError> {
    let user_id = person.user_id();
    Ok(ctx.store.read(user_id, |tx, id| Box::pin(store::public_names::find(tx, *id))).await?)
}

/// Sets the name that the user shows on the leaderboard. An empty text removes it.
///
/// # Errors
/// A field error of `/publicName` if the name is not allowed, or another user has a similar one.
pub async fn set_public_name(ctx: &Ctx, person: &Person, text: &str) -> Result<(), AppError> {
    const TAKEN: &str = "must not look like the name of another person";
    let name = match text.trim() {
        "" => None,
        text => {
            let parsed = text.parse::<PublicName>();
            Some(parsed.map_err(|error| AppError::wrong_value("/publicName", &error.to_string(), text))?)
        }
    };
    let user_id = person.user_id();
    let store = user_log::acting(ctx, user_id, person.session().ip, None);
    let set = store.write((user_id, name), |tx, (user_id, name)| {
        Box::pin(async move {
            let before = store::public_names::find(tx, *user_id).await?;
            store::public_names::set(tx, *user_id, name.as_ref()).await?;
            let act = act_of(*user_id, "user.public-name").before(json!({ "publicName": before }));
            note(tx, act.after(json!({ "publicName": name.as_ref().map(PublicName::as_str) })));
            Ok(())
        })
    });
    match set.await {
        Err(error) if error.is_conflict_on("users_public_name") => {
            Err(AppError::wrong_value("/publicName", TAKEN, text))
        }
        set => Ok(set?),
    }
}

/// Returns a name without spaces around it.
pub(super) fn check_name(name: &str) -> Result<String, AppError> {
    let name = name.trim();
    accounts::check_name(name)?;
    Ok(name.to_owned())
}
