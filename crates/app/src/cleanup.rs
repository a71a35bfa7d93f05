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

/// For how long an event that was given up can be asked for again; the archive has it from then on.
const KEEP_GIVEN_UP_MS: i64 = 30 * DAY_MS;
/// For how long the feed keeps what is never posted: a day longer than it promises to be resumable.
const KEEP_FEED_MS: i64 = 31 * DAY_MS;

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
                    let before = now.plus_ms(-KEEP_GIVEN_UP_MS);
                    let given_up = store::webhooks::archive_given_up(tx, before, *now, AT_ONCE).await?;
                    let told = store::events::prune(tx, now.plus_ms(-KEEP_FEED_MS), AT_ONCE).await?;
                    Ok(keys.max(batches).max(hours).max(audit).max(given_up).max(told))
                })
            })
            .await;
        Ok(if removed? >= u64::from(AT_ONCE) { Progress::More } else { Progress::Idle })
    }
}
