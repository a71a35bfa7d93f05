//! The health of a key's receiver and the state of its queue.

use domain::webhook::{Admission, Breaker, due};
use domain::{ErrorCode, Timestamp};
use store::webhooks::{Head, Secrets};

use crate::caller::Caller;
use crate::{AppError, Ctx};

/// The state of a key's receiver.
#[derive(Debug, Clone)]
pub struct ReceiverState {
    /// The breaker's decision about the next attempt.
    pub admission: Admission,
    /// The head of the queue and the time of its next attempt. A time in the past means now.
    pub head: Option<(Head, Timestamp)>,
    /// The number of waiting events and replays, including the head.
    pub waiting: u64,
    /// Sealed.
    pub secrets: Secrets,
}

/// Returns the receiver of the caller's key.
pub async fn endpoint(ctx: &Ctx, caller: &Caller) -> Result<ReceiverState, AppError> {
    let (found, secrets) = ctx
        .store
        .read(caller.key.id, |tx, key_id| {
            Box::pin(async move {
                let secrets = store::webhooks::find_secrets(tx, *key_id).await?;
                Ok((store::webhooks::find_endpoint(tx, *key_id).await?, secrets))
            })
        })
        .await?;
    let secrets = secrets.ok_or_else(|| AppError::new(ErrorCode::ApiKeyInvalid))?;
    // No event was ever queued for this key.
    let Some(found) = found else {
        return Ok(ReceiverState { admission: Admission::Send, head: None, waiting: 0, secrets });
    };
    let breaker = match found.breaker.as_str() {
        "" => Breaker::default(),
        text => text.parse().map_err(AppError::internal)?,
    };
    let admission = breaker.admits(ctx.now());
    let head = found.head.map(|head| {
        let at = due(head.due_at, admission);
        (head, at)
    });
    Ok(ReceiverState { admission, head, waiting: found.waiting, secrets })
}
