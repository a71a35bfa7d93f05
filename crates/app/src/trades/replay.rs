//! Looks up the trade of a repeated request, by idempotency key or `clientRequestId`.

use domain::ErrorCode;
use domain::trade::{TradeRequest, is_client_request_id};
use store::trades::Trade;

use super::create::{Accepted, IDEMPOTENCY_ROUTE, NewTrade};
use crate::caller::Caller;
use crate::{AppError, Ctx, Submission};

/// The error for a request whose predecessor with the same key is still running.
pub fn in_progress() -> AppError {
    AppError::new(ErrorCode::IdempotencyKeyConflict)
        .detail("The first request with this key is still running. Try again in 1 second.")
        .with("reason", "in_progress")
        .retry_after_s(1)
        .submission(Submission::Unknown)
}

/// Like [`find_replay`], for a request whose fingerprint was not computed yet.
pub async fn find_replay_of_unjudged(
    ctx: &Ctx,
    caller: &Caller,
    new: &NewTrade,
) -> Result<Option<Accepted>, AppError> {
    let fingerprint =
        TradeRequest::new(new.draft.clone()).ok().map(|request| hex::encode(request.fingerprint()));
    find_replay(ctx, caller, new, fingerprint.as_deref()).await
}

/// Returns the trade that the idempotency key or the `clientRequestId` refers to.
///
/// A malformed request has no fingerprint. It never equals an accepted request, so a key that is in
/// use gives a conflict.
pub async fn find_replay(
    ctx: &Ctx,
    caller: &Caller,
    new: &NewTrade,
    fingerprint: Option<&str>,
) -> Result<Option<Accepted>, AppError> {
    // No trade has a malformed id.
    let client_request_id = new.draft.client_request_id.clone().filter(|id| is_client_request_id(id));
    if new.idempotency_key.is_none() && client_request_id.is_none() {
        return Ok(None);
    }
    let input = (caller.user_id(), new.idempotency_key.clone(), client_request_id, ctx.now());
    let (by_key, by_client) = ctx
        .store
        .read(input, |tx, (user_id, key, client_request_id, now)| {
            Box::pin(async move {
                let by_key = match key {
                    Some(key) => {
                        store::trades::find_reuse(tx, *user_id, IDEMPOTENCY_ROUTE, key, *now).await?
                    }
                    None => None,
                };
                let by_key = match by_key {
                    Some(reuse) => store::trades::find(tx, *user_id, reuse.trade_id).await?,
                    None => None,
                };
                let by_client = match client_request_id {
                    Some(id) => store::trades::find_by_client_request(tx, *user_id, id).await?,
                    None => None,
                };
                Ok((by_key, by_client))
            })
        })
        .await?;
    let conflict = |code: ErrorCode, trade: &Trade| {
        AppError::new(code).submission(Submission::NotSubmitted).trade(trade.id)
    };
    for trade in [&by_key, &by_client].into_iter().flatten() {
        if fingerprint != Some(trade.request_hash.as_str()) {
            return Err(conflict(ErrorCode::IdempotencyKeyConflict, trade));
        }
    }
    // A key and a client id that refer to two trades are a mistake of the client: neither is the
    // right answer.
    match (by_key, by_client) {
        (Some(by_key), Some(by_client)) if by_key.id != by_client.id => {
            Err(conflict(ErrorCode::ClientRequestIdConflict, &by_client))
        }
        (Some(trade), _) => Ok(Some(Accepted::ReplayedByKey(trade))),
        (None, Some(trade)) => Ok(Some(Accepted::FoundByClientRequest(trade))),
        (None, None) => Ok(None),
    }
}
