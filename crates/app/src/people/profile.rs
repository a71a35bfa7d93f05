//! A user's own name.

use serde_json::json;
use store::audit_log::note;

use crate::accounts;
use crate::sessions::{Person, act_of, store_of_user};
use crate::{AppError, Ctx, PersonError};

/// Renames a user. The name is not public.
pub async fn rename(ctx: &Ctx, person: &Person, name: &str) -> Result<(), PersonError> {
    let (user_id, before, name) = (person.user_id(), person.user().name.clone(), check_name(name)?);
    let store = store_of_user(ctx, user_id, person.session().ip);
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

/// Returns a name without spaces around it.
pub(super) fn check_name(name: &str) -> Result<String, AppError> {
    let name = name.trim();
    accounts::check_name(name)?;
    Ok(name.to_owned())
}
