//! Pages for developers: keys, webhooks and usage.

pub mod key;
pub mod keys;
pub mod requests;
pub mod usage;
pub mod webhooks;

use app::caller::Caller;
use app::keys::find_own;
use app::sessions::Person;
use http_kit::{Problem, Shared};
use std::sync::Arc;
use store::keys::Key;

/// Returns an API key of the person.
async fn own_key(app: &Shared, person: &Person, id: &str) -> Result<Key, Problem> {
    let id = id.parse().map_err(|_| Problem::not_found())?;
    Ok(find_own(&app.ctx, person.user_id(), id).await?)
}

/// Returns the caller of use cases that a key's holder would call.
fn caller_of(key: Key) -> Caller {
    Caller { key: Arc::new(key) }
}
