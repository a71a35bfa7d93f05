//! The one watcher that reads for all open streams of this process, and wakes them.

use async_trait::async_trait;
use domain::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::rounds::Rounds;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// Users of open pages whose last events one statement reads. As few are read at every wake-up, more
/// only once in a round.
const FEW_USERS: usize = 32;

/// The worker that wakes streams.
///
/// One statement reads the last events of all listening users, another the changed markets. This
/// process's own events wake it. The timer finds events of other processes.
#[derive(Debug, Default)]
pub struct Watcher {
    /// The time at which many users were read last.
    users_read_at: Mutex<Option<Timestamp>>,
    rounds: Rounds,
}

#[async_trait]
impl Worker for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }

    fn signal<'a>(&self, ctx: &'a Ctx) -> Option<&'a Notify> {
        Some(ctx.store.events_written())
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        self.watch_users(ctx).await?;
        self.rounds.run(ctx).await?;
        Ok(Progress::Idle)
    }
}

impl Watcher {
    async fn watch_users(&self, ctx: &Ctx) -> Result<(), AppError> {
        let hub = &ctx.process.feed;
        let mut users = hub.listened();
        let followed = hub.followed();
        // Thousands of open pages must not be read for each trade.
        if followed.len() <= FEW_USERS || super::rounds::is_due(&mut self.users_read_at.lock(), ctx.now()) {
            users.extend(followed);
        }
        if !users.is_empty() {
            let last = ctx.store.read(users, |tx, users| Box::pin(store::events::list_last(tx, users))).await;
            last?.into_iter().for_each(|(user, last)| hub.notify_user(user, last));
        }
        Ok(())
    }
}
