//! What users do with their own accounts: signing up and in, names, keys, credentials. They and the
//! operator can read it. Administrative acts are in the [audit log](crate::audit_log) instead, also
//! those of admins in the web application.

use domain::Timestamp;
use domain::ids::UserId;
pub use store::user_log::UserLogEntry;

use crate::{AppError, Ctx};

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
