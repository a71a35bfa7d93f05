//! Sending an event again, and sending one to try a receiver.

use domain::ErrorCode;
use domain::event::{self, EventKind, TestData};
use domain::ids::{EventId, UserId};
use store::StoreError;
use store::events::NewEvent;
use store::webhooks::{Delivery, Redelivered};

use crate::keys::Caller;
use crate::{AppError, Ctx};

/// Puts the user's event at the end of its key's queue once more: `RESOURCE_NOT_FOUND`, `WEBHOOK_NOT_CONFIGURED`,
/// `WEBHOOK_REPLAY_LIMIT_REACHED`.
pub async fn redeliver(ctx: &Ctx, user_id: UserId, id: EventId) -> Result<Delivery, AppError> {
    let redelivered: Result<_, StoreError> = ctx
        .write_of_user(user_id, (user_id, id, ctx.now()), |tx, (user_id, id, now)| {
            Box::pin(store::webhooks::redeliver(tx, *user_id, *id, *now))
        })
        .await;
    match redelivered.map_err(|error| AppError::from(error).of_one_unit())? {
        Redelivered::Queued(delivery) => Ok(*delivery),
        Redelivered::NotFound => Err(AppError::new(ErrorCode::ResourceNotFound)),
        Redelivered::NoUrl => Err(AppError::new(ErrorCode::WebhookNotConfigured)),
        Redelivered::LimitReached => {
            Err(AppError::new(ErrorCode::WebhookReplayLimitReached).with("permanent", true))
        }
    }
}

/// Queues an event that tells nothing for the receiver of the caller's key: `WEBHOOK_NOT_CONFIGURED`. The key's row is asked,
/// and not what was read of it a moment ago: what is answered as queued is queued.
pub async fn send_test(ctx: &Ctx, caller: &Caller) -> Result<Delivery, AppError> {
    let (id, user_id, key_id, at) =
        (EventId::of_test(ctx.uuid()), caller.user_id(), caller.key.id, ctx.now());
    let kind = EventKind::Test;
    let body = event::body(id, kind, at, &TestData { test: true, api_key_id: key_id });
    let body = body.map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
    let test = NewEvent { id, user_id, kind, key_id: Some(key_id), trade_id: None, body, at };
    ctx.write_of_user(user_id, (key_id, test), |tx, (key_id, test)| {
        Box::pin(async move {
            let key = store::keys::find(tx, *key_id).await?;
            if key.is_none_or(|key| key.webhook_url.is_none()) {
                return Err(AppError::new(ErrorCode::WebhookNotConfigured));
            }
            store::events::emit(tx, test.clone());
            Ok(())
        })
    })
    .await
    .map_err(AppError::of_one_unit)?;
    let found: Result<_, StoreError> = ctx
        .store
        .read((user_id, id), |tx, (user_id, id)| Box::pin(store::webhooks::find(tx, *user_id, *id)))
        .await;
    found?.ok_or_else(|| AppError::new(ErrorCode::InternalError))
}
