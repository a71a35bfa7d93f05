//! Releases trades that were held for confirmation.
//!
//! A program confirms its own trade with the token of the 202 response. An agent's trade has no
//! token: a model that was talked into a trade by the text of a market would send it back in its
//! next call. So the account's owner confirms it in the web application, after a step-up.

use alloy_primitives::U256;
use chain::IntentSide;
use domain::ids::TradeId;
use domain::key::Scope;
use domain::lane::assign;
use domain::trade::{
    AmountType, ConfirmRefusal, ConfirmationKey, KEY_ENDED, Side, State, Status, TradeWarning, Transition,
    check_confirmation,
};
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use store::Tx;
use store::keys::TradingStop;
use store::trades::{Moved, StatusHistory, Trade};

use crate::caller::Caller;
use crate::keys::stopped;
use crate::sessions::Person;
use crate::{AppError, Ctx, PersonError, Submission, markets};

/// The data that a client needs to confirm a held trade.
#[derive(Clone)]
pub struct Confirmation {
    /// `None` if only the account's owner can confirm the trade, and not the client.
    pub token: Option<String>,
    /// The end of the confirmation window.
    pub expires_at: Timestamp,
}

/// Returns the end of a trade's confirmation window, if the trade can still be confirmed.
pub fn held_until(ctx: &Ctx, trade: &Trade) -> Option<Timestamp> {
    match trade.state {
        State::PendingConfirmation { expires_at } if expires_at > ctx.now() => Some(expires_at),
        _ => None,
    }
}

/// Returns the warnings about a trade as it was ordered, at the current price. Without a quote there are
/// none: the trade's page must not depend on the nodes of the chain.
pub async fn warnings_of(ctx: &Ctx, trade: &Trade) -> Vec<TradeWarning> {
    let (side, amount) = match (trade.side, trade.amount_type) {
        (Side::Buy, AmountType::Tokens) => (IntentSide::BuyTokens, trade.intent_tokens.0),
        (Side::Buy, _) => (IntentSide::BuyForUsdc, U256::from(trade.intent_usdc.atomic())),
        // No sale has a warning, so it needs no quote.
        (Side::Sell, _) => return Vec::new(),
    };
    let quote = async {
        let (_, number) = markets::get(ctx, &trade.market_id.to_string()).await?;
        Ok::<_, AppError>(ctx.chain.quote(number, trade.outcome_index, side, amount).await?)
    };
    match quote.await {
        Ok(fill) => TradeWarning::list(trade.side, Usdc::from_atomic(fill.usdc_atomic), Wad(fill.tokens_wad)),
        Err(error) => {
            tracing::debug!(trade.id = %trade.id, %error, "a held trade has no quote");
            Vec::new()
        }
    }
}

/// Returns how `caller` confirms a trade that can still be confirmed. Every replay of the request
/// returns the same token.
pub fn confirmation_of(ctx: &Ctx, caller: &Caller, trade: &Trade) -> Option<Confirmation> {
    let expires_at = held_until(ctx, trade)?;
    let token = match needs_owner(caller, trade) {
        true => None,
        false => Some(key(ctx).ok()?.token(trade.id)),
    };
    Some(Confirmation { token, expires_at })
}

/// Returns whether only the account's owner can confirm this trade, and not `caller`. An agent
/// doesn't confirm other trades either: repeating a program's request would give it the token.
fn needs_owner(caller: &Caller, trade: &Trade) -> bool {
    trade.is_from_agent || caller.is_agent()
}

/// Releases a held trade of the caller's user. Returns the trade and its statuses.
///
/// Any trading key of the user may confirm, not only the one that created the trade. Market and
/// client deadline are not checked here, because the risk engine does so next. If the client set no
/// deadline, the intent's lifetime begins now.
///
/// # Errors
/// `OWNER_CONFIRMATION_REQUIRED` if an agent created the trade or calls this.
pub async fn confirm(
    ctx: &Ctx,
    caller: &Caller,
    id: &str,
    token: &str,
) -> Result<(Trade, StatusHistory), AppError> {
    caller.require(Scope::TradesWrite).map_err(|error| error.submission(Submission::NotSubmitted))?;
    let (key, parsed) = (key(ctx)?, id.parse().ok());
    let token_fits = parsed.is_some_and(|id| key.accepts(id, token));
    release(ctx, caller, parsed, Approval::Token { fits: token_fits }).await
}

/// Releases a held trade on behalf of the account's owner, an agent's trade included. Requires a
/// step-up instead of the token.
pub(crate) async fn confirm_as_owner(
    ctx: &Ctx,
    person: &Person,
    id: TradeId,
) -> Result<(Trade, StatusHistory), PersonError> {
    person.require_step_up(ctx.now())?;
    Ok(release(ctx, &person.caller()?, Some(id), Approval::Owner).await?)
}

/// What entitles the caller to release a trade.
#[derive(Debug, Clone, Copy)]
enum Approval {
    Token { fits: bool },
    Owner,
}

async fn release(
    ctx: &Ctx,
    caller: &Caller,
    id: Option<TradeId>,
    approval: Approval,
) -> Result<(Trade, StatusHistory), AppError> {
    let now = ctx.now();
    let longest = now.plus_ms(ctx.config.intent_lifetime_ms);
    let input = Input { caller: caller.clone(), id, approval, now, longest };
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
    approval: Approval,
    now: Timestamp,
    /// The latest deadline of an intent that is released now.
    longest: Timestamp,
}

async fn confirm_held(tx: &mut Tx, input: &Input) -> Result<(Trade, StatusHistory), AppError> {
    let Input { caller, id, approval, now, longest } = input;
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
        check_approval(caller, &trade, *approval, *now)?;
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

fn check_approval(
    caller: &Caller,
    trade: &Trade,
    approval: Approval,
    now: Timestamp,
) -> Result<(), AppError> {
    let check = |token_fits| {
        check_confirmation(&trade.state, trade.held_until, now, token_fits)
            .map_err(|refusal| refused(trade, refusal))
    };
    match approval {
        // The token isn't looked at, so an agent can't find out if it has guessed one.
        Approval::Token { .. } if needs_owner(caller, trade) => {
            check(true)?;
            let refusal = AppError::new(ErrorCode::OwnerConfirmationRequired);
            Err(refusal.submission(submission_of(&trade.state)).trade(trade.id))
        }
        Approval::Token { fits } => check(fits),
        Approval::Owner => check(true),
    }
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
