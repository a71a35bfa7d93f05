//! Reads a user's feed.

use domain::ErrorCode;
use domain::event::{EventKind, FeedPosition};
use domain::ids::UserId;
use store::StoreError;
use store::events::{FeedEvent, FeedRange, Slice};

use crate::{AppError, Ctx};

/// The start of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedStart {
    /// The oldest event that is stored.
    Oldest,
    /// After the newest event.
    Latest,
    /// After the given event.
    Behind(FeedPosition),
}

/// A page of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The events of the requested kinds.
    pub events: Vec<FeedEvent>,
    /// The position to continue from. Events of other kinds up to here are included.
    pub position: FeedPosition,
    pub has_more: bool,
}

/// Returns at most `limit` events of the given kinds, oldest first.
///
/// # Errors
/// - `FEED_RESTARTED` if the position belongs to another generation of the feed.
/// - `CURSOR_EXPIRED` if events after the position were deleted, or the feed ends before the
///   position.
pub async fn read(
    ctx: &Ctx,
    user_id: UserId,
    place: FeedStart,
    kinds: &[EventKind],
    limit: u32,
) -> Result<Part, AppError> {
    let after = match place {
        FeedStart::Oldest => find_extent(ctx, user_id).await?.pruned,
        FeedStart::Behind(position) => position.sequence,
        FeedStart::Latest => {
            let FeedRange { generation, last, .. } = find_extent(ctx, user_id).await?;
            let position = FeedPosition { generation, sequence: last };
            return Ok(Part { events: Vec::new(), position, has_more: false });
        }
    };
    let mut slice = slice_after(ctx, user_id, after, kinds, limit + 1).await?;
    let generation = slice.extent.generation;
    if matches!(place, FeedStart::Behind(position) if position.generation != generation) {
        return Err(restarted(slice.extent));
    }
    if place == FeedStart::Oldest && after < slice.extent.pruned {
        // Old events were deleted between the two reads. That happens rarely, so one retry is
        // enough.
        slice = slice_after(ctx, user_id, slice.extent.pruned, kinds, limit + 1).await?;
    } else if after < slice.extent.pruned || after > slice.extent.last {
        return Err(expired(slice.extent));
    }
    let Slice { mut events, extent } = slice;
    let has_more = events.len() > limit as usize;
    events.truncate(limit as usize);
    let seen = events.last().map_or(0, |event| event.seq);
    // On the last page, skip events of other kinds too, so that the next read does not scan them
    // again.
    let sequence = if has_more { seen } else { seen.max(extent.last).max(extent.pruned) };
    let position = FeedPosition { generation, sequence };
    Ok(Part { events, position, has_more })
}

async fn find_extent(ctx: &Ctx, user_id: UserId) -> Result<FeedRange, StoreError> {
    ctx.store.read(user_id, |tx, user_id| Box::pin(store::events::extent(tx, *user_id))).await
}

async fn slice_after(
    ctx: &Ctx,
    user_id: UserId,
    after: u64,
    kinds: &[EventKind],
    limit: u32,
) -> Result<Slice, StoreError> {
    ctx.store
        .read((user_id, after, kinds.to_vec(), limit), |tx, (user_id, after, kinds, limit)| {
            Box::pin(store::events::slice_after(tx, *user_id, *after, kinds, *limit))
        })
        .await
}

fn restarted(extent: FeedRange) -> AppError {
    let restarted = AppError::new(ErrorCode::FeedRestarted).with("generation", extent.generation);
    restarted.with("oldestSequence", extent.pruned + 1)
}

fn expired(extent: FeedRange) -> AppError {
    AppError::new(ErrorCode::CursorExpired).with("oldestSequence", extent.pruned + 1)
}
