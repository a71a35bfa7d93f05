//! The one watcher that wakes the listeners of this process.

use std::collections::HashMap;

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::SessionId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::process::feed_hub::Topic;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The worker that wakes listeners.
///
/// One statement reads the last events of all listening users, others the changed markets and the
/// keys and sessions that streams were opened with. This process's own events wake it. The timer
/// finds those of other processes.
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
            last?.into_iter().for_each(|(user, last)| ctx.process.feed.notify(Topic::User(user), last));
        }
        watch_keys(ctx).await?;
        watch_sessions(ctx).await?;
        self.watch_markets(ctx).await?;
        Ok(Progress::Idle)
    }
}

/// Wakes the streams of keys that have ended.
async fn watch_keys(ctx: &Ctx) -> Result<(), AppError> {
    let keys = ctx.process.feed.keys();
    if keys.is_empty() {
        return Ok(());
    }
    let ended = ctx
        .store
        .read((keys, ctx.now()), |tx, (keys, now)| Box::pin(store::keys::list_ended_of(tx, keys, *now)));
    ended.await?.into_iter().for_each(|id| ctx.process.feed.notify(Topic::Key(id), 1));
    Ok(())
}

/// Wakes the streams of sessions that have ended or have a new token.
async fn watch_sessions(ctx: &Ctx) -> Result<(), AppError> {
    let sessions = ctx.process.feed.sessions();
    if sessions.is_empty() {
        return Ok(());
    }
    let live = ctx.store.read((sessions.clone(), ctx.now()), |tx, (sessions, now)| {
        Box::pin(store::sessions::list_live_of(tx, sessions, *now))
    });
    let live: HashMap<SessionId, Timestamp> = live.await?.into_iter().collect();
    for id in sessions {
        let token_of = live.get(&id).map_or(u64::MAX, |at| at.ms().unsigned_abs());
        ctx.process.feed.notify(Topic::Session(id), token_of);
    }
    Ok(())
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
