//! The cleaner: forgets what nobody will ask for again. Any process may do it at any time; doing it twice changes nothing.

use domain::time::DAY_MS;
use domain::usage;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The most rows of each kind that one tick removes, so that it never holds others up for long.
const AT_ONCE: u32 = 500;
/// For how long ended batches are kept, for looking into what happened.
const KEEP_BATCHES_MS: i64 = 7 * DAY_MS;
/// For how long failed authentications are kept.
const KEEP_AUDIT_MS: i64 = 90 * DAY_MS;

/// The cleaner's worker.
#[derive(Debug, Default)]
pub struct Cleaner;

impl Worker for Cleaner {
    fn name(&self) -> &'static str {
        "cleaner"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let now = ctx.now();
        let removed: Result<u64, store::StoreError> = ctx
            .store
            .write(now, |tx, now| {
                Box::pin(async move {
                    let keys = store::trades::delete_expired_idempotency(tx, *now, AT_ONCE).await?;
                    let batches =
                        store::batches::delete_ended(tx, now.plus_ms(-KEEP_BATCHES_MS), AT_ONCE).await?;
                    let hours =
                        store::usage::delete_before(tx, now.plus_ms(-usage::KEEP_MS), AT_ONCE).await?;
                    let audit = store::audit::delete_before(tx, now.plus_ms(-KEEP_AUDIT_MS), AT_ONCE).await?;
                    Ok(keys.max(batches).max(hours).max(audit))
                })
            })
            .await;
        Ok(if removed? >= u64::from(AT_ONCE) { Progress::More } else { Progress::Idle })
    }
}
