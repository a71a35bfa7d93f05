//! The desk: creates the trades of several requests in one transaction.
//!
//! A transaction costs PostgreSQL about the same for one trade and for many, and while a trade holds
//! its key's row, no other trade of this key can be created. So requests wait in one of a few
//! queues, and each queue has a task that takes all waiting requests as one group. The user selects
//! the queue, so requests that need the same rows meet in one transaction. A task never waits for a
//! group to grow: one request that comes alone runs alone.
//!
//! A rejection affects only its own request. If a group fails as a whole, for example because a row
//! stays locked, its requests run alone. SQLite needs no desk, because its writer thread groups all
//! units.

mod group;

use std::sync::Arc;
use std::time::Instant;

use store::{BoxFuture, StoreError, Tx};
use tokio::sync::oneshot;

use self::group::{Alone, Undone, create_all};
use crate::process::desk::{Queue, Refused, Served, Submitted, Waiting};
use crate::{AppError, Ctx};

/// Creates the trade, in one transaction with the trades of other requests if there are any.
pub(super) async fn create(ctx: &Ctx, submitted: Submitted) -> Result<(), Refused> {
    if !ctx.store.profits_from_groups() {
        return create_alone(ctx, submitted).await;
    }
    let (reply, outcome) = oneshot::channel();
    let queue = ctx.process.desk.queue_of(submitted.creation.trade.user_id);
    if queue.push(Waiting { submitted, since: Instant::now(), reply }) {
        tokio::spawn(serve(ctx.clone(), Arc::clone(queue)));
    }
    // The task has ended while it held the request.
    let ended = || StoreError::CommitUnknown("the desk has ended".to_owned());
    outcome.await.unwrap_or_else(|_| Err(ended().into()))
}

/// Serves a queue until it is empty.
async fn serve(ctx: Ctx, queue: Arc<Queue>) {
    let served = Served(queue);
    while let Some(group) = served.0.take(Instant::now()) {
        serve_group(&ctx, group).await;
    }
}

async fn serve_group(ctx: &Ctx, group: Vec<Waiting>) {
    let (submitted, replies): (Vec<_>, Vec<_>) =
        group.into_iter().map(|waiting| (waiting.submitted, waiting.reply)).unzip();
    ctx.process.metrics.desk_group(replies.len());
    let submitted = Arc::new(submitted);
    let done = ctx.store.for_groups().try_write(Arc::clone(&submitted), in_group).await;
    let outcomes = match done {
        Ok(outcomes) | Err(Undone::Rejected(outcomes)) => outcomes,
        // Another group would fail in the same way, or may already have been committed.
        Err(Undone::Store(error @ (StoreError::Unavailable(_) | StoreError::CommitUnknown(_)))) => {
            replies.iter().map(|_| Err(error.clone().into())).collect()
        }
        Err(Undone::Store(error)) => return run_alone(ctx, submitted, replies, &error),
    };
    for (reply, outcome) in replies.into_iter().zip(outcomes) {
        // The client may have disconnected. Its trade is created nevertheless.
        let _ = reply.send(outcome);
    }
}

fn in_group<'a>(
    tx: &'a mut Tx,
    submitted: &'a Arc<Vec<Submitted>>,
) -> BoxFuture<'a, Result<Vec<Result<(), Refused>>, Undone>> {
    Box::pin(create_all(tx, submitted, Alone::No))
}

/// Runs the requests of a failed group alone, so that only those fail that cannot be created. Each
/// has a task of its own: the next groups do not wait for them.
fn run_alone(
    ctx: &Ctx,
    submitted: Arc<Vec<Submitted>>,
    replies: Vec<oneshot::Sender<Result<(), Refused>>>,
    error: &StoreError,
) {
    tracing::debug!(%error, trades = replies.len(), "the trades of a group are created one by one");
    let Some(submitted) = Arc::into_inner(submitted) else {
        // The unit has ended, so nothing else holds the requests.
        tracing::error!("a failed group still runs");
        return;
    };
    for (submitted, reply) in submitted.into_iter().zip(replies) {
        let ctx = ctx.clone();
        tokio::spawn(async move {
            let outcome = create_alone(&ctx, submitted).await;
            let _ = reply.send(outcome);
        });
    }
}

async fn create_alone(ctx: &Ctx, submitted: Submitted) -> Result<(), Refused> {
    let user_id = submitted.creation.trade.user_id;
    let done = ctx
        .write_of_user(user_id, [submitted], |tx, submitted| Box::pin(create_all(tx, submitted, Alone::Yes)))
        .await;
    match done {
        Ok(outcomes) | Err(Undone::Rejected(outcomes)) => {
            outcomes.into_iter().next().unwrap_or_else(|| Err(AppError::internal("no outcome").into()))
        }
        // Another unit has created a trade with the same `clientRequestId`.
        Err(Undone::Store(error)) if error.is_conflict_on("trades_client_request") => Err(Refused::Raced),
        Err(Undone::Store(error)) => Err(error.into()),
    }
}
