//! Releasing a trade that was held for its value.

use domain::ids::TradeId;
use domain::trade::{
    ConfirmRefusal, ConfirmationKey, KEY_ENDED, State, Status, Transition, judge_confirmation,
};
use domain::{ErrorCode, Timestamp};
use store::Tx;
use store::keys::TradingStop;
use store::trades::{History, Moved, Trade};

use crate::keys::{Caller, stopped};
use crate::{AppError, Ctx, Submission};

/// What a caller needs for confirming a held trade.
#[derive(Clone)]
pub struct Confirmation {
    /// The one-time token.
    pub token: String,
    /// The end of the window.
    pub expires_at: Timestamp,
}

/// What confirms `trade`, while it can be confirmed. The same for every replay of its request.
pub fn confirmation_of(ctx: &Ctx, trade: &Trade) -> Option<Confirmation> {
    match trade.state {
        State::PendingConfirmation { expires_at } if expires_at > ctx.now() => {
            Some(Confirmation { token: key(ctx).token(trade.id), expires_at })
        }
        _ => None,
    }
}

/// Releases a held trade of the caller's user, whichever of the user's keys made it; as it is then, with the statuses it
/// went through.
///
/// Neither the market nor a deadline of the caller's is judged here: the risk engine does that next. Where the caller has
/// set no deadline, the intent's lifetime begins now.
pub async fn confirm(
    ctx: &Ctx,
    caller: &Caller,
    id: &str,
    token: &str,
) -> Result<(Trade, History), AppError> {
    let id: Option<TradeId> = id.parse().ok();
    let now = ctx.now();
    let input = Input {
        caller: caller.clone(),
        id,
        token_fits: id.is_some_and(|id| key(ctx).accepts(id, token)),
        now,
        longest: now.plus_ms(ctx.config.intent_lifetime_ms),
    };
    let released = ctx.write_of_user(caller.user_id(), input, |tx, input| Box::pin(release(tx, input))).await;
    let released = released.map_err(|error: AppError| {
        // Without the database nothing is known of the trade: an earlier confirm may have released it.
        let is_told = error.extensions.contains_key("submission");
        if is_told { error } else { error.submission(Submission::Unknown) }
    })?;
    ctx.wake.executor.notify_waiters();
    Ok(released)
}

fn key(ctx: &Ctx) -> ConfirmationKey {
    ConfirmationKey::derive(&ctx.config.key_pepper)
}

struct Input {
    caller: Caller,
    /// None where the text in its place is no id: no trade has it.
    id: Option<TradeId>,
    token_fits: bool,
    now: Timestamp,
    /// The latest deadline that an intent released now may have.
    longest: Timestamp,
}

async fn release(tx: &mut Tx, input: &Input) -> Result<(Trade, History), AppError> {
    let Input { caller, id, token_fits, now, longest } = input;
    if let Some(stop) = store::keys::find_trading_stop(tx, caller.key.id, *now).await? {
        return Err(stopped(stop));
    }
    let confirm = Transition::confirm(Status::PendingConfirmation, *now)
        .map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
    let not_found = || AppError::new(ErrorCode::ResourceNotFound).submission(Submission::NotSubmitted);
    let id = id.ok_or_else(not_found)?;
    // Twice: where another confirm or the expiry is faster, what it made of the trade is judged.
    for _ in 0..2 {
        let trade = store::trades::find(tx, caller.user_id(), id).await?.ok_or_else(not_found)?;
        judge_confirmation(&trade.state, trade.held_until, *now, *token_fits)
            .map_err(|refusal| refused(&trade, refusal))?;
        if let Some(stop) = store::keys::find_trading_stop(tx, trade.key_id, *now).await? {
            return Err(key_stopped(&trade, stop));
        }
        let deadline = trade.deadline.min(*longest);
        if store::trades::release(tx, &trade, &confirm, deadline).await? == Moved::Moved {
            let history = store::trades::history(tx, trade.id).await?;
            return Ok((Trade { state: State::Pending, deadline, updated_at: *now, ..trade }, history));
        }
    }
    Err(AppError::new(ErrorCode::InternalError).caused_by("a held trade neither moved nor stood still"))
}

/// The refusal of a trade whose own key makes no trade any more. The caller's key may be another one, and good: the codes of
/// a key that was refused would tell it to stop using that.
fn key_stopped(trade: &Trade, stop: TradingStop) -> AppError {
    let refusal = match stop {
        TradingStop::Paused => stopped(stop)
            .detail("The key that made this trade is paused, so the trade stays held until it expires."),
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

/// Whether a trade was sent, or will be without anybody doing more for it.
fn submission_of(state: &State) -> Submission {
    match state {
        State::PendingConfirmation { .. } | State::Rejected(_) => Submission::NotSubmitted,
        State::Failed(failure) if failure.tx_hash.is_none() => Submission::NotSubmitted,
        _ => Submission::Submitted,
    }
}
