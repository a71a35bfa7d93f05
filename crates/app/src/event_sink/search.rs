//! Finds users with unpublished events.
//!
//! Events have no order across users, and no index has the users who are behind: it would cost every
//! transaction that writes events. So each step looks at the events of the last seconds, and now and
//! then a sweep compares all feeds with their positions, in chunks.

use domain::Timestamp;
use domain::ids::UserId;
use store::Tx;
use store::sink_positions::SinkProgress;

use crate::{AppError, Ctx};

/// The maximum number of users of one step.
pub(super) const USERS: usize = 64;
/// The number of feeds that one step of a sweep compares.
const CHUNK: u32 = 1_000;
/// The age of the events that every step looks at. Longer than a transaction and the differences of
/// clocks; a sweep finds what is older.
const RECENT_MS: i64 = 5_000;
/// The pause between two sweeps, and the longest delay of an event that a slow transaction wrote.
const SWEEP_PAUSE_MS: i64 = 30_000;

/// The progress of the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sweep {
    /// The epoch of the lease. A new holder begins with a sweep, because it does not know what the
    /// last one left.
    epoch: i64,
    next: NextChunk,
    /// Whether a user was left behind, so that another sweep follows at once.
    is_unfinished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextChunk {
    /// After this user, or at the first one.
    After(Option<UserId>),
    /// Not before this time.
    At(Timestamp),
}

impl Sweep {
    pub fn begin(epoch: i64) -> Self {
        Self { epoch, next: NextChunk::After(None), is_unfinished: false }
    }

    /// Returns this sweep, or a new one if the lease has changed.
    pub fn under(self, epoch: i64) -> Self {
        if self.epoch == epoch { self } else { Self::begin(epoch) }
    }

    pub fn leave_behind(&mut self) {
        self.is_unfinished = true;
    }

    /// Returns the place of the next chunk, if one is due.
    fn due(self, now: Timestamp) -> Option<Option<UserId>> {
        match self.next {
            NextChunk::After(after) => Some(after),
            NextChunk::At(at) => (at <= now).then_some(None),
        }
    }

    fn end(&mut self, now: Timestamp) {
        self.next = match std::mem::take(&mut self.is_unfinished) {
            true => NextChunk::After(None),
            false => NextChunk::At(now.plus_ms(SWEEP_PAUSE_MS)),
        };
    }
}

/// Users with unpublished events.
#[derive(Debug)]
pub(super) struct Backlog {
    pub generation: u64,
    /// At most [`USERS`].
    pub users: Vec<SinkProgress>,
    /// There may be more of them.
    pub has_more: bool,
}

/// Finds the users of the next step, and advances the sweep.
pub(super) async fn find(ctx: &Ctx, stream: &str, sweep: &mut Sweep) -> Result<Backlog, AppError> {
    let now = ctx.now();
    let input = (stream.to_owned(), now.plus_ms(-RECENT_MS), sweep.due(now));
    let read = ctx.store.read(input, |tx, (stream, since, chunk)| Box::pin(read(tx, stream, *since, *chunk)));
    let (generation, mut users, chunk) = read.await?;
    let mut has_more = users.len() >= USERS / 2;
    if let Some(chunk) = chunk {
        let mut is_cut = false;
        let mut after = None;
        for progress in &chunk {
            let is_new = progress.is_behind() && users.iter().all(|user| user.user_id != progress.user_id);
            if is_new && users.len() == USERS {
                is_cut = true;
                break;
            }
            if is_new {
                users.push(*progress);
            }
            after = Some(progress.user_id);
        }
        if is_cut || chunk.len() == CHUNK as usize {
            sweep.next = NextChunk::After(after);
        } else {
            sweep.end(now);
        }
        has_more |= matches!(sweep.next, NextChunk::After(_));
    }
    Ok(Backlog { generation, users, has_more })
}

type Found = (u64, Vec<SinkProgress>, Option<Vec<SinkProgress>>);

async fn read(
    tx: &mut Tx,
    stream: &str,
    since: Timestamp,
    chunk: Option<Option<UserId>>,
) -> Result<Found, store::StoreError> {
    let generation = store::events::get_generation(tx).await?;
    // Half of the places are left for a sweep that is due, so that it advances under any load.
    let places = if chunk.is_some() { USERS / 2 } else { USERS };
    let recent = store::sink_positions::list_recent(tx, stream, since, places as u32).await?;
    let chunk = match chunk {
        Some(after) => Some(store::sink_positions::list_progress(tx, stream, after, CHUNK).await?),
        None => None,
    };
    Ok((generation, recent, chunk))
}
