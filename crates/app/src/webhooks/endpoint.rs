//! A key's receiver: its health, and what holds its queue back.

use domain::webhook::{Admission, Breaker, due};
use domain::{ErrorCode, Timestamp};
use store::StoreError;
use store::webhooks::{Head, Secrets};

use crate::keys::Caller;
use crate::{AppError, Ctx};

/// What is known of a key's receiver.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What the breaker says of it.
    pub admission: Admission,
    /// What the queue waits for, and when it is attempted next; the past means now.
    pub head: Option<(Head, Timestamp)>,
    /// The events and replays that wait, the head among them.
    pub waiting: u64,
    /// The secrets, sealed.
    pub secrets: Secrets,
}

/// The receiver of the caller's key.
pub async fn endpoint(ctx: &Ctx, caller: &Caller) -> Result<Endpoint, AppError> {
    let read: Result<_, StoreError> = ctx
        .store
        .read(caller.key.id, |tx, key_id| {
            Box::pin(async move {
                let secrets = store::webhooks::find_secrets(tx, *key_id).await?;
                Ok((store::webhooks::find_endpoint(tx, *key_id).await?, secrets))
            })
        })
        .await;
    let (found, secrets) = read?;
    let secrets = secrets.ok_or_else(|| AppError::new(ErrorCode::ApiKeyInvalid))?;
    let Some(found) = found else {
        return Ok(Endpoint { admission: Admission::Send, head: None, waiting: 0, secrets });
    };
    let breaker = match found.breaker.as_str() {
        "" => Breaker::default(),
        text => text.parse().map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?,
    };
    let admission = breaker.admits(ctx.now());
    let head = found.head.map(|head| {
        let at = due(head.due_at, admission);
        (head, at)
    });
    Ok(Endpoint { admission, head, waiting: found.waiting, secrets })
}
