//! One round: publishes the next events of some users, and stores how far it got.
//!
//! A user's events are published one after the other, each after the acknowledgement of the one
//! before. Otherwise a lost message could be stored behind a later one. Users are independent.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::Timestamp;
use domain::event::{FeedPosition, feed_body};
use domain::ids::UserId;
use futures::StreamExt;
use store::leases::Lease;
use store::sink_positions::{SinkEvent, SinkProgress};

use super::publisher::{Acknowledgement, EventPublisher, OutgoingEvent, PublishError};
use super::search::USERS;
use crate::lease::{self, Turn};
use crate::metrics::SinkOutcome;
use crate::{AppError, Ctx};

/// The maximum number of events of one user in a round. It bounds the memory of a round.
const EVENTS: u64 = 64;

/// The inputs of a round, in addition to its users.
pub(super) struct Round<'a> {
    pub ctx: &'a Ctx,
    pub lease: &'a Lease,
    pub publisher: &'a dyn EventPublisher,
    pub generation: u64,
    pub turn: Turn,
}

/// The result of a round.
pub(super) struct RoundResult {
    /// The users who still have unpublished events.
    pub behind: Vec<SinkProgress>,
    /// The time of the oldest event that was to be published.
    pub oldest: Option<Timestamp>,
    pub failure: Option<PublishError>,
}

/// A user's part of a round.
struct Part {
    progress: SinkProgress,
    events: Vec<SinkEvent>,
    /// The number up to which everything is published, or was deleted.
    reached: u64,
    published: u64,
    duplicates: u64,
    /// The number of events that were deleted before they were published.
    lost: u64,
    failure: Option<PublishError>,
}

impl Part {
    fn new(progress: SinkProgress, events: Vec<SinkEvent>) -> Self {
        let reached = progress.published.unwrap_or(0);
        Self { progress, events, reached, published: 0, duplicates: 0, lost: 0, failure: None }
    }

    /// Advances to `seq`. Numbers have no gaps, so those in between were deleted. Before a user's first
    /// published event they are not lost: the stream begins with what is stored.
    fn skip_to(&mut self, seq: u64) {
        if self.progress.published.is_some() || self.published + self.duplicates > 0 {
            self.lost += seq.saturating_sub(self.reached);
        }
        self.reached = self.reached.max(seq);
    }
}

/// Returns the time of the oldest next event of these users.
pub(super) async fn find_oldest(ctx: &Ctx, users: &[SinkProgress]) -> Result<Option<Timestamp>, AppError> {
    let events = read_next(ctx, users, 1).await?;
    Ok(events.iter().map(|event| event.emitted_at).min())
}

/// Reads the next events of each user, at most `limit`.
async fn read_next(ctx: &Ctx, users: &[SinkProgress], limit: u64) -> Result<Vec<SinkEvent>, AppError> {
    let range = |user: &SinkProgress| {
        let after = user.published.unwrap_or(0);
        (user.user_id, after, user.last.min(after + limit))
    };
    let ranges: Vec<_> = users.iter().map(range).collect();
    let events =
        ctx.store.read(ranges, |tx, ranges| Box::pin(store::sink_positions::list_events(tx, ranges))).await;
    Ok(events?)
}

impl Round<'_> {
    /// Publishes the next events of these users.
    pub async fn run(&self, users: Vec<SinkProgress>) -> Result<RoundResult, AppError> {
        let parts = self.read(users).await?;
        let oldest = parts.iter().filter_map(|part| part.events.first()).map(|event| event.emitted_at).min();
        let has_failed = AtomicBool::new(false);
        let parts: Vec<Part> = futures::stream::iter(parts)
            .map(|part| self.publish(part, &has_failed))
            .buffer_unordered(USERS)
            .collect()
            .await;
        self.store(&parts).await?;
        let behind = parts.iter().filter(|part| part.reached < part.progress.last);
        let behind = behind.map(|part| SinkProgress { published: Some(part.reached), ..part.progress });
        let failure = parts.iter().find_map(|part| part.failure.clone());
        Ok(RoundResult { behind: behind.collect(), oldest, failure })
    }

    async fn read(&self, users: Vec<SinkProgress>) -> Result<Vec<Part>, AppError> {
        let events = read_next(self.ctx, &users, EVENTS).await?;
        let mut of_users: HashMap<UserId, Vec<SinkEvent>> = HashMap::new();
        events.into_iter().for_each(|event| of_users.entry(event.user_id).or_default().push(event));
        let mut parts = Vec::with_capacity(users.len());
        for progress in users {
            let mut part = Part::new(progress, of_users.remove(&progress.user_id).unwrap_or_default());
            if part.events.is_empty() {
                part.skip_to(self.find_end_of_gap(&part).await?);
            }
            parts.push(part);
        }
        Ok(parts)
    }

    /// Returns the number before the next event that is stored. The events of a whole range were deleted.
    async fn find_end_of_gap(&self, part: &Part) -> Result<u64, AppError> {
        let input = (part.progress.user_id, part.reached);
        let next = self
            .ctx
            .store
            .read(input, |tx, (user, after)| Box::pin(store::sink_positions::find_next(tx, *user, *after)))
            .await?;
        Ok(next.map_or(part.progress.last, |next| next.saturating_sub(1)))
    }

    async fn publish(&self, mut part: Part, has_failed: &AtomicBool) -> Part {
        for event in std::mem::take(&mut part.events) {
            part.skip_to(event.seq.saturating_sub(1));
            match self.publisher.publish(&self.outgoing(&event)).await {
                Ok(Acknowledgement::Stored) => part.published += 1,
                Ok(Acknowledgement::Duplicate) => part.duplicates += 1,
                Err(failure) => {
                    has_failed.store(true, Ordering::Relaxed);
                    part.failure = Some(failure);
                    break;
                }
            }
            part.reached = event.seq;
            // After a failure, further events would only wait for their timeouts.
            if has_failed.load(Ordering::Relaxed) || self.turn.is_over() {
                break;
            }
        }
        part
    }

    fn outgoing(&self, event: &SinkEvent) -> OutgoingEvent {
        OutgoingEvent {
            id: event.id,
            user_id: event.user_id,
            kind: event.kind,
            position: FeedPosition { generation: self.generation, sequence: event.seq },
            body: feed_body(event.seq, event.key_id, &event.body),
        }
    }

    /// Stores the positions. A process that was replaced meanwhile stores none.
    async fn store(&self, parts: &[Part]) -> Result<(), AppError> {
        let (ctx, now) = (self.ctx, self.ctx.now());
        let moved = parts.iter().filter(|part| part.reached > part.progress.published.unwrap_or(0));
        let positions: Vec<_> = moved.map(|part| (part.progress.user_id, part.reached)).collect();
        if !positions.is_empty() {
            let input = Arc::new((self.lease.clone(), self.publisher.stream().to_owned(), positions, now));
            ctx.store
                .try_write(input, |tx, input| {
                    Box::pin(async move {
                        let (lease, stream, positions, now) = input.as_ref();
                        lease::check(tx, lease).await?;
                        Ok::<_, AppError>(store::sink_positions::put(tx, stream, positions, *now).await?)
                    })
                })
                .await?;
        }
        let sum = |count: fn(&Part) -> u64| parts.iter().map(count).sum::<u64>();
        let lost = sum(|part| part.lost);
        ctx.process.metrics.sink_events(SinkOutcome::Published, sum(|part| part.published));
        ctx.process.metrics.sink_events(SinkOutcome::Duplicate, sum(|part| part.duplicates));
        ctx.process.metrics.sink_events(SinkOutcome::Lost, lost);
        if lost > 0 {
            let users = parts.iter().filter(|part| part.lost > 0).count();
            tracing::error!(
                worker = super::NAME,
                events = lost,
                users,
                "events were deleted before they were published: readers of the stream miss them"
            );
        }
        Ok(())
    }
}
