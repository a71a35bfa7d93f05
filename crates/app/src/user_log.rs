//! What users do with their own accounts: signing up and in, names, keys, credentials. They and the
//! operator can read it. Administrative acts are in the [audit log](crate::audit_log) instead, also
//! those of admins in the web application.

use std::net::IpAddr;
use std::sync::Arc;

use domain::Timestamp;
use domain::ids::{KeyId, UserId};
use domain::rate::Scope;
use store::Store;
pub use store::user_log::UserLogEntry;

use crate::limits::budget::Budget;
use crate::{AppError, Ctx};

/// Returns the store with which a user acts, or one of their API keys: it writes the user's log.
pub(crate) fn acting(ctx: &Ctx, user_id: UserId, ip: IpAddr, key_id: Option<KeyId>) -> Store {
    let max = ctx.budgets().share(Budget::LogEntries, Scope::User).limit().unwrap_or(u64::MAX);
    ctx.store.acting_as_user(user_id, ip, key_id, max, Arc::clone(&ctx.clock))
}

/// Returns the user's entries before `before`, newest first.
pub async fn list(
    ctx: &Ctx,
    user_id: UserId,
    before: Option<Timestamp>,
    limit: u32,
) -> Result<Vec<UserLogEntry>, AppError> {
    let before = before.unwrap_or(Timestamp::from_ms(i64::MAX));
    let input = (user_id, before, limit);
    let read = ctx.store.read(input, |tx, (user_id, before, limit)| {
        Box::pin(store::user_log::list(tx, *user_id, *before, *limit))
    });
    Ok(read.await?)
}
