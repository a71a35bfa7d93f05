//! Deletes rows that are no longer needed, and ends acts that were not signed in time. Runs in every
//! process without a lease, because both are idempotent.

use async_trait::async_trait;
use domain::time::DAY_MS;
use domain::usage;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx, request_log};

/// The maximum number of rows of each kind per tick, to keep the transaction short.
const AT_ONCE: u32 = 500;
/// The retention of ended batches, for investigations.
const KEEP_BATCHES_MS: i64 = 7 * DAY_MS;
/// The retention of acts that no owner has signed.
const KEEP_UNSIGNED_ACTS_MS: i64 = 7 * DAY_MS;
/// The retention of failed authentications.
const KEEP_AUDIT_MS: i64 = 90 * DAY_MS;

/// The retention of users' logs, except accepted terms.
const KEEP_USER_LOG_MS: i64 = 400 * DAY_MS;

/// The retention of sessions after their last use. They have expired long before.
const KEEP_SESSIONS_MS: i64 = 100 * DAY_MS;
/// The retention of challenges after their expiry, and of admins' acts that were not confirmed.
const KEEP_CHALLENGES_MS: i64 = DAY_MS;

/// The retention of undelivered events for redelivery. After that they are archived.
const KEEP_GIVEN_UP_MS: i64 = 30 * DAY_MS;
/// The retention of feed events that are not posted, and of test events: one day more than the
/// documented time for resuming.
const KEEP_FEED_MS: i64 = 31 * DAY_MS;

#[derive(Debug, Default)]
pub struct Cleaner;

#[async_trait]
impl Worker for Cleaner {
    fn name(&self) -> &'static str {
        "cleaner"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let now = ctx.now();
        let removed = ctx
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
                    let expired = store::owner_acts::expire_prepared(tx, *now, AT_ONCE).await?;
                    let before = now.plus_ms(-KEEP_UNSIGNED_ACTS_MS);
                    let unsigned = store::owner_acts::delete_unsigned(tx, before, AT_ONCE).await?;
                    let before = now.plus_ms(-KEEP_FEED_MS);
                    let events = store::events::prune(tx, before, AT_ONCE).await?;
                    let tests = store::webhooks::delete_tests(tx, before, AT_ONCE).await?;
                    let user_log =
                        store::user_log::delete_before(tx, now.plus_ms(-KEEP_USER_LOG_MS), AT_ONCE).await?;
                    let before = now.plus_ms(-KEEP_SESSIONS_MS);
                    let sessions = store::sessions::delete_before(tx, before, AT_ONCE).await?;
                    let before = now.plus_ms(-KEEP_CHALLENGES_MS);
                    let challenges = store::challenges::delete_expired(tx, before, AT_ONCE).await?;
                    let admin = store::admin_acts::delete_unconfirmed(tx, before, AT_ONCE).await?;
                    let before = now.plus_ms(-request_log::KEEP_MS);
                    let requests = store::requests::delete_before(tx, before, AT_ONCE).await?;
                    let people = sessions
                        .max(user_log)
                        .max(challenges)
                        .max(admin)
                        .max(expired)
                        .max(unsigned)
                        .max(requests);
                    let events = events.max(tests).max(given_up);
                    Ok(people.max(keys).max(batches).max(hours).max(audit).max(events))
                })
            })
            .await?;
        Ok(if removed >= u64::from(AT_ONCE) { Progress::More } else { Progress::Idle })
    }
}
