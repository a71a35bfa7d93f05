//! The one watcher that reads for all open streams of this process, and wakes them.

use std::collections::HashMap;

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::SessionId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::rounds::{Rounds, is_due};
use crate::process::feed_hub::Topic;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// Users of open pages, keys or sessions that one statement reads. As few are read at every wake-up,
/// more only once in a round.
const FEW: usize = 32;

/// The worker that wakes streams.
///
/// One statement reads the last events of all listening users, others the changed markets and the
/// keys and sessions that streams were opened with. This process's own events wake it. The timer
/// finds those of other processes.
#[derive(Debug, Default)]
pub struct Watcher {
    /// The times at which many users, keys and sessions were read last.
    users_read_at: Mutex<Option<Timestamp>>,
    keys_read_at: Mutex<Option<Timestamp>>,
    sessions_read_at: Mutex<Option<Timestamp>>,
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
        self.watch_keys(ctx).await?;
        self.watch_sessions(ctx).await?;
        self.rounds.run(ctx).await?;
        Ok(Progress::Idle)
    }
}

/// Returns whether to read that many things that streams only wait for: few at every wake-up, more
/// only once in a round. Thousands of open pages must not be read for each trade.
fn is_turn(count: usize, read_at: &Mutex<Option<Timestamp>>, now: Timestamp) -> bool {
    count <= FEW || is_due(&mut read_at.lock(), now)
}

impl Watcher {
    async fn watch_users(&self, ctx: &Ctx) -> Result<(), AppError> {
        let hub = &ctx.process.feed;
        let mut users = hub.listened();
        let followed = hub.followed();
        if is_turn(followed.len(), &self.users_read_at, ctx.now()) {
            users.extend(followed);
        }
        if !users.is_empty() {
            let last = ctx.store.read(users, |tx, users| Box::pin(store::events::list_last(tx, users))).await;
            last?.into_iter().for_each(|(user, last)| hub.notify(Topic::User(user), last));
        }
        Ok(())
    }

    /// Wakes the streams of keys that have ended.
    async fn watch_keys(&self, ctx: &Ctx) -> Result<(), AppError> {
        let (hub, now) = (&ctx.process.feed, ctx.now());
        let keys = hub.keys();
        if keys.is_empty() || !is_turn(keys.len(), &self.keys_read_at, now) {
            return Ok(());
        }
        let ended = ctx
            .store
            .read((keys, now), |tx, (keys, now)| Box::pin(store::keys::list_ended_of(tx, keys, *now)));
        ended.await?.into_iter().for_each(|id| hub.notify(Topic::Key(id), 1));
        Ok(())
    }

    /// Wakes the streams of sessions that have ended or have a new token.
    async fn watch_sessions(&self, ctx: &Ctx) -> Result<(), AppError> {
        let (hub, now) = (&ctx.process.feed, ctx.now());
        let sessions = hub.sessions();
        if sessions.is_empty() || !is_turn(sessions.len(), &self.sessions_read_at, now) {
            return Ok(());
        }
        let live = ctx.store.read((sessions.clone(), now), |tx, (sessions, now)| {
            Box::pin(store::sessions::list_live_of(tx, sessions, *now))
        });
        let live: HashMap<SessionId, Timestamp> = live.await?.into_iter().collect();
        for id in sessions {
            let token_of = live.get(&id).map_or(u64::MAX, |at| at.ms().unsigned_abs());
            hub.notify(Topic::Session(id), token_of);
        }
        Ok(())
    }
}
