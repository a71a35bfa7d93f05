//! The one watcher that wakes the listeners of this process.

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The worker that wakes listeners.
///
/// One statement reads the last events of all listening users, another the changed markets. This
/// process's own events wake it. The timer finds events of other processes.
#[derive(Debug, Default)]
pub struct Watcher {
    /// The last block whose markets were woken. `None` if no market has listeners.
    settled: Mutex<Option<u64>>,
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
        let users = ctx.process.feed.users();
        if !users.is_empty() {
            let last = ctx.store.read(users, |tx, users| Box::pin(store::events::list_last(tx, users))).await;
            last?.into_iter().for_each(|(user, last)| ctx.process.feed.notify_user(user, last));
        }
        self.watch_markets(ctx).await?;
        Ok(Progress::Idle)
    }
}

impl Watcher {
    /// Wakes listeners of markets that newly settled blocks have changed.
    async fn watch_markets(&self, ctx: &Ctx) -> Result<(), AppError> {
        if !ctx.process.feed.has_markets() {
            // Forget the block: a later listener would otherwise cause a scan of everything since.
            *self.settled.lock() = None;
            return Ok(());
        }
        let known = *self.settled.lock();
        let read = ctx
            .store
            .read(known, |tx, known| {
                Box::pin(async move {
                    let settled = store::sync::find_settled(tx).await?;
                    let from = known.map_or(Some(0), |known| known.checked_add(1)).unwrap_or(u64::MAX);
                    let touched = match (known, settled) {
                        (Some(_), Some(to)) if from <= to => {
                            store::market_statuses::list_touched(tx, from, to).await?
                        }
                        _ => Vec::new(),
                    };
                    Ok((settled, touched))
                })
            })
            .await;
        let (settled, touched) = read?;
        *self.settled.lock() = settled;
        // On the first look, wake all: blocks may have settled between a listener's own read and
        // this one.
        ctx.process.feed.tell_markets(known.map(|_| touched.as_slice()));
        Ok(())
    }
}
