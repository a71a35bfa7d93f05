//! Pages for developers: keys, webhooks and usage.

pub mod key;
pub mod keys;
pub mod requests;
pub mod usage;
pub mod webhooks;

use app::PersonError;
use app::caller::Caller;
use app::keys::find_own;
use app::sessions::Person;
use domain::ids::KeyId;
use http_kit::{Problem, Shared};
use std::sync::Arc;
use store::keys::Key;

use super::session::problem_of;

/// Reads the id of a key in a path. A malformed one is not found, like an unknown one.
fn key_id(id: &str) -> Result<KeyId, Problem> {
    id.parse().map_err(|_| Problem::not_found())
}

/// Returns an API key of the person.
async fn own_key(app: &Shared, person: &Person, id: &str) -> Result<Key, Problem> {
    Ok(find_own(&app.ctx, person.user_id(), key_id(id)?).await?)
}

/// Returns the result of a use case, or its refusal as a problem.
fn allowed<T>(app: &Shared, result: Result<T, PersonError>) -> Result<T, Problem> {
    result.map_err(|error| problem_of(error, app.ctx.now()))
}

/// Returns the caller of use cases that a key's holder would call.
fn caller_of(person: &Person, key: Key) -> Caller {
    Caller::new(Arc::new(key), person.session().ip)
}
