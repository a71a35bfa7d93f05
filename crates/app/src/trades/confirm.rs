//! Releases trades that were held for confirmation.

use domain::ids::TradeId;
use domain::lane::assign;
use domain::trade::{
    ConfirmRefusal, ConfirmationKey, KEY_ENDED, State, Status, Transition, check_confirmation,
};
use domain::{ErrorCode, Timestamp};
use store::Tx;
use store::keys::TradingStop;
use store::trades::{Moved, StatusHistory, Trade};

use crate::caller::Caller;
use crate::keys::stopped;
use crate::{AppError, Ctx, Submission};

/// The data that a client needs to confirm a held trade.
#[derive(Clone)]
pub struct Confirmation {
    pub token: String,
    /// The end of the confirmation window.
    pub expires_at: Timestamp,
}

/// Returns the confirmation of a trade that can still be confirmed. Every replay of the request
/// returns the same token.
pub fn confirmation_of(ctx: &Ctx, trade: &Trade) -> Option<Confirmation> {
    match trade.state {
        State::PendingConfirmation { expires_at } if expires_at > ctx.now() => {
            Some(Confirmation { token: key(ctx).ok()?.token(trade.id), expires_at })
        }
        _ => None,
    }
}

/// Releases a held trade of the caller's user. Returns the trade and its statuses.
///
/// Any trading key of the user may confirm, not only the one that created the trade. Market and
/// client deadline are not checked here, because the risk engine does so next. If the client set no
/// deadline, the intent's lifetime begins now.
pub async fn confirm(
    ctx: &Ctx,
    caller: &Caller,
    id: &str,
    token: &str,
) -> Result<(Trade, StatusHistory), AppError> {
    let id: Option<TradeId> = id.parse().ok();
    let (now, key) = (ctx.now(), key(ctx)?);
    let input = Input {
        caller: caller.clone(),
        id,
        token_fits: id.is_some_and(|id| key.accepts(id, token)),
        now,
        longest: now.plus_ms(ctx.config.intent_lifetime_ms),
    };
    let released =
        ctx.write_of_user(caller.user_id(), input, |tx, input| Box::pin(confirm_held(tx, input))).await;
    let released = released.map_err(|error: AppError| {
        // Errors without a submission come from the database. The result is unknown: an earlier
        // confirm may have released the trade.
        let is_told = error.extensions.contains_key("submission");
        if is_told { error } else { error.submission(Submission::Unknown) }
    })?;
    ctx.wake.executor.notify_waiters();
    Ok(released)
}

fn key(ctx: &Ctx) -> Result<ConfirmationKey, AppError> {
    Ok(ConfirmationKey::derive(ctx.config.pepper()?.expose()))
}

struct Input {
    caller: Caller,
    /// `None` if the path segment is not a valid id: then no trade has it.
    id: Option<TradeId>,
    token_fits: bool,
    now: Timestamp,
    /// The latest deadline of an intent that is released now.
    longest: Timestamp,
}

async fn confirm_held(tx: &mut Tx, input: &Input) -> Result<(Trade, StatusHistory), AppError> {
    let Input { caller, id, token_fits, now, longest } = input;
    if let Some(stop) = store::keys::find_trading_stop(tx, caller.key.id, *now).await? {
        return Err(stopped(stop));
    }
    let confirm = Transition::confirm(Status::PendingConfirmation, *now).map_err(AppError::internal)?;
    let not_found = || AppError::new(ErrorCode::ResourceNotFound).submission(Submission::NotSubmitted);
    let id = id.ok_or_else(not_found)?;
    // Try twice: if another confirm or the expiry is faster, the second round reports the new
    // state.
    for _ in 0..2 {
        let trade = store::trades::find(tx, caller.user_id(), id).await?.ok_or_else(not_found)?;
        check_confirmation(&trade.state, trade.held_until, *now, *token_fits)
            .map_err(|refusal| refused(&trade, refusal))?;
        if let Some(stop) = store::keys::find_trading_stop(tx, trade.key_id, *now).await? {
            return Err(key_stopped(&trade, stop));
        }
        let deadline = trade.deadline.min(*longest);
        let lane = assign(trade.account, &store::lanes::list_assignable(tx).await?);
        if store::trades::enqueue_confirmed(tx, &trade, &confirm, deadline, lane).await? == Moved::Moved {
            let history = store::trades::history(tx, trade.id).await?;
            return Ok((Trade { state: State::Pending, deadline, updated_at: *now, ..trade }, history));
        }
    }
    Err(AppError::internal("a held trade was neither confirmed nor found unchanged"))
}

/// The error for a trade whose own key can no longer trade.
///
/// The caller's key may be a different, valid one. An error code about the key would make the
/// client stop using it.
fn key_stopped(trade: &Trade, stop: TradingStop) -> AppError {
    let refusal = match stop {
        TradingStop::Paused => stopped(stop)
            .detail("The key that created this trade is paused. The trade stays held until it expires."),
        TradingStop::Revoked | TradingStop::Expired => AppError::new(ErrorCode::WalletDelegationNotEnabled)
            .detail(KEY_ENDED)
            .submission(Submission::NotSubmitted),
    };
    refusal.trade(trade.id)
}

fn refused(trade: &Trade, refusal: ConfirmRefusal) -> AppError {
    let code = match refusal {
        ConfirmRefusal::KeyEnded => return key_stopped(trade, TradingStop::Revoked),
        ConfirmRefusal::NeverHeld => ErrorCode::TradeNotAwaitingConfirmation,
        ConfirmRefusal::Expired => ErrorCode::ConfirmationExpired,
        ConfirmRefusal::WrongToken => ErrorCode::ConfirmationTokenInvalid,
        ConfirmRefusal::Used => ErrorCode::ConfirmationTokenUsed,
    };
    AppError::new(code).submission(submission_of(&trade.state)).trade(trade.id)
}

/// Returns whether a trade was submitted to the chain, or will be without further action by the
/// client.
fn submission_of(state: &State) -> Submission {
    match state {
        State::PendingConfirmation { .. } | State::Rejected(_) => Submission::NotSubmitted,
        State::Failed(failure) if failure.tx_hash.is_none() => Submission::NotSubmitted,
        _ => Submission::Submitted,
    }
}
