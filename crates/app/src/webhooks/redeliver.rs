//! Redelivers events and sends test events.

use domain::ErrorCode;
use domain::event::{self, EventKind, TestData};
use domain::ids::{EventId, UserId};
use domain::key::{Scope, Tier};
use store::events::NewEvent;
use store::webhooks::{Delivery, Redelivered};

use crate::caller::Caller;
use crate::limits::budget::Budget;
use crate::{AppError, Ctx};

/// Adds an event of the caller's user to the end of its key's queue again.
///
/// # Errors
/// `RESOURCE_NOT_FOUND`, `WEBHOOK_NOT_CONFIGURED`, `WEBHOOK_REPLAY_LIMIT_REACHED`.
pub async fn redeliver(ctx: &Ctx, caller: &Caller, id: EventId) -> Result<Delivery, AppError> {
    caller.require(Scope::WebhooksManage)?;
    replay(ctx, caller.user_id(), id).await
}

/// Adds the user's event to the end of its key's queue again.
pub(crate) async fn replay(ctx: &Ctx, user_id: UserId, id: EventId) -> Result<Delivery, AppError> {
    let redelivered = ctx
        .write_of_user(user_id, (user_id, id, ctx.now()), |tx, (user_id, id, now)| {
            Box::pin(store::webhooks::redeliver(tx, *user_id, *id, *now))
        })
        .await;
    match redelivered.map_err(|error| AppError::from(error).of_one_unit())? {
        Redelivered::Queued(delivery) => Ok(*delivery),
        Redelivered::NotFound => Err(AppError::new(ErrorCode::ResourceNotFound)),
        Redelivered::NoUrl => Err(AppError::new(ErrorCode::WebhookNotConfigured)),
        Redelivered::Revoked => Err(revoked()),
        Redelivered::LimitReached => {
            Err(AppError::new(ErrorCode::WebhookReplayLimitReached).with("permanent", true))
        }
    }
}

/// The error for an event that somebody asks for, if its key is revoked: whoever has the receiver of
/// a stolen key must not get more than the events of trades that had begun.
fn revoked() -> AppError {
    AppError::new(ErrorCode::WebhookNotConfigured)
        .detail("The key of the event was revoked. Read its events with another key, from the feed.")
}

/// Queues a test event for the receiver of the caller's key.
///
/// # Errors
/// `WEBHOOK_NOT_CONFIGURED` if the key has no URL, or if it was revoked.
pub async fn send_test(ctx: &Ctx, caller: &Caller) -> Result<Delivery, AppError> {
    caller.require(Scope::WebhooksManage)?;
    queue_test(ctx, caller).await
}

/// Queues a test event for the receiver of a key, whatever its scopes are, within the budget of users
/// who pay nothing: the event and its delivery are stored.
pub(crate) async fn queue_test(ctx: &Ctx, caller: &Caller) -> Result<Delivery, AppError> {
    if caller.key.tier != Tier::Free {
        return insert_test(ctx, caller).await;
    }
    let (client, now) = ((caller.ip(), caller.user_id()), ctx.now());
    ctx.budgets().spend(Budget::WebhookTests, client, now).await?;
    let queued = insert_test(ctx, caller).await;
    if queued.is_err() {
        ctx.budgets().give_back(Budget::WebhookTests, client, 1, now).await;
    }
    queued
}

async fn insert_test(ctx: &Ctx, caller: &Caller) -> Result<Delivery, AppError> {
    let (id, user_id, key_id, at) =
        (EventId::of_test(ctx.uuid()), caller.user_id(), caller.key.id, ctx.now());
    let kind = EventKind::Test;
    let body = event::body(id, kind, at, &TestData { test: true, api_key_id: key_id });
    let body = body.map_err(AppError::internal)?;
    let test = NewEvent { id, user_id, kind, key_id: Some(key_id), trade_id: None, body, at };
    ctx.write_of_user(user_id, (key_id, test), |tx, (key_id, test)| {
        // Read the key's row again instead of using `caller`: the URL may have been removed since
        // authentication, and then nothing would be queued.
        Box::pin(async move {
            let key = store::keys::find(tx, *key_id).await?;
            let key = key.filter(|key| key.webhook_url.is_some());
            let key = key.ok_or_else(|| AppError::new(ErrorCode::WebhookNotConfigured))?;
            if key.revoked_at.is_some() {
                return Err(revoked());
            }
            store::events::emit(tx, test.clone());
            Ok(())
        })
    })
    .await
    .map_err(AppError::of_one_unit)?;
    let found = ctx
        .store
        .read((user_id, id), |tx, (user_id, id)| Box::pin(store::webhooks::find(tx, *user_id, *id)))
        .await?;
    found.ok_or_else(|| AppError::new(ErrorCode::InternalError))
}
