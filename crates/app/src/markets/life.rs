//! The operator's moves of a market. Each move is a transaction of a role. The sync updates the
//! tables from its event.

use alloy_primitives::{Bytes, U256};
use chain::{Call, ChainMarketStatus, EventKind, Receipt, Revert, Role, calls};
use domain::ids::MarketId;
use domain::{ErrorCode, Timestamp};
use serde_json::{Value, json};
use store::audit_log::{Act, Filter, Phase};
use store::markets::Market;

use crate::roles::{ActResult, ActSender, RoleAct, Senders, perform};
use crate::{AppError, Ctx, audit_log};

/// The action in the audit log.
const CANCEL: &str = "market.cancel";
/// The maximum number of audit entries that are read for the reason of a cancellation.
const MOST_ATTEMPTS: u32 = 100;

/// A move of a market that is on chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Stops trading. The reason is set if the market is frozen in order to be cancelled.
    Freeze { reason: Option<String> },
    /// Resumes trading. The resolver cannot do this if the guardian has frozen the market.
    Unfreeze,
    /// Opens a listed market after its listing delay.
    Open,
    /// Proposes the payouts of the outcomes in WAD per token, which sum to exactly one. Final at
    /// once without a veto window.
    Resolve { payouts: Vec<U256>, source: Option<String> },
    /// Proposes the cancel. Final at once without a veto window.
    ProposeCancel { reason: Option<String> },
    /// Removes the proposed result or cancel.
    Veto,
    /// Makes the proposed result or cancel final, after its veto window.
    Finalize,
}

impl Move {
    /// A freeze without a reason.
    pub const FREEZE: Self = Self::Freeze { reason: None };

    /// Returns the addresses that may make the move.
    pub const fn senders(&self) -> Senders {
        match self {
            Self::Freeze { .. } | Self::Unfreeze => Senders::Roles(&[Role::Guardian, Role::Resolver]),
            Self::Resolve { .. } | Self::ProposeCancel { .. } => Senders::Roles(&[Role::Resolver]),
            Self::Veto => Senders::Roles(&[Role::Guardian]),
            Self::Open | Self::Finalize => Senders::Anyone,
        }
    }

    /// The action in the audit log.
    const fn action(&self) -> &'static str {
        match self {
            Self::Freeze { .. } => "market.freeze",
            Self::Unfreeze => "market.unfreeze",
            Self::Open => "market.open",
            Self::Resolve { .. } => "market.resolve",
            Self::ProposeCancel { .. } => CANCEL,
            Self::Veto => "market.veto",
            Self::Finalize => "market.finalize",
        }
    }

    fn terms(&self) -> Value {
        match self {
            Self::Resolve { payouts, source } => {
                let payouts: Vec<String> = payouts.iter().map(ToString::to_string).collect();
                json!({ "payoutsWad": payouts, "source": source })
            }
            Self::ProposeCancel { reason } | Self::Freeze { reason: reason @ Some(_) } => {
                json!({ "reason": reason })
            }
            _ => Value::Null,
        }
    }

    fn data(&self, number: u64) -> Bytes {
        match self {
            Self::Freeze { .. } => calls::freeze(number),
            Self::Unfreeze => calls::unfreeze(number),
            Self::Open => calls::open(number),
            Self::Resolve { payouts, .. } => calls::propose(number, payouts.clone()),
            Self::ProposeCancel { .. } => calls::propose_cancel(number),
            Self::Veto => calls::veto(number),
            Self::Finalize => calls::finalize(number),
        }
    }

    /// Returns the error for a revert that has a known state as its cause.
    async fn explain(&self, ctx: &Ctx, number: u64, revert: &Revert) -> Result<Option<AppError>, AppError> {
        let state = match revert {
            Revert::TransitionInvalid => return self.invalid_transition(ctx, number).await.map(Some),
            Revert::ResultTooLate => "past the deadline of its result: it can only be cancelled".to_owned(),
            Revert::VetoesUsedUp => {
                "past the deadline of its result, and two of its cancels were vetoed: this one cannot be"
                    .to_owned()
            }
            Revert::VetoWindowOpen => {
                let proposal = ctx.chain.schedule(number).await?.proposal;
                let at_s = proposal.map(|proposal| proposal.finalizable_at_s).unwrap_or_default();
                format!("FROZEN, and its proposal can be vetoed until {}", Timestamp::from_s(at_s))
            }
            Revert::NotAuthorized if *self == Self::Unfreeze && ctx.chain.schedule(number).await?.is_held => {
                "frozen by the guardian, and only the guardian can unfreeze it".to_owned()
            }
            _ => return Ok(None),
        };
        Ok(Some(invalid(&state)))
    }

    /// Returns the error of a move that the market's current state does not allow.
    async fn invalid_transition(&self, ctx: &Ctx, number: u64) -> Result<AppError, AppError> {
        let name = match ctx.chain.market(number).await?.status {
            ChainMarketStatus::None => "not on chain",
            ChainMarketStatus::Listed => "LISTED",
            ChainMarketStatus::Open => "OPEN",
            ChainMarketStatus::Frozen => "FROZEN",
            ChainMarketStatus::Resolved => "RESOLVED",
            ChainMarketStatus::Cancelled => "CANCELLED",
        };
        let has_proposal = ctx.chain.schedule(number).await?.proposal.is_some();
        Ok(match self {
            Self::Veto | Self::Finalize => invalid(&format!("{name} and has no proposal")),
            _ if has_proposal => invalid(&format!("{name} and has a proposal")),
            _ => invalid(name),
        })
    }
}

fn invalid(state: &str) -> AppError {
    AppError::invalid_state(ErrorCode::MarketNotTradeable, format!("the market is {state}"))
}

/// Makes a move, or checks it and returns it unsent.
///
/// # Errors
/// `InvalidState` if the contracts do not allow the move now.
pub async fn make_move<'a>(
    ctx: &Ctx,
    sender: impl Into<ActSender<'a>>,
    id: MarketId,
    wanted: Move,
) -> Result<ActResult, AppError> {
    let (market, number) = number_of(ctx, id).await?;
    let act = RoleAct {
        act: Act::new(wanted.action(), subject(id)).before(json!({ "status": market.status.as_str() })),
        terms: wanted.terms(),
        call: Call::new(ctx.chain.contracts().hub, wanted.data(number)),
        prevented: None,
    };
    let sent =
        perform(ctx, sender.into(), act, async |revert| wanted.explain(ctx, number, revert).await).await?;
    if let Move::Resolve { source, .. } = wanted
        && source != market.resolution_source
    {
        ctx.store
            .write((id, source), |tx, (id, source)| {
                Box::pin(store::markets::set_resolution_source(tx, *id, source.as_deref()))
            })
            .await?;
    }
    ctx.wake.sync.notify_waiters();
    Ok(sent)
}

/// The progress of a market's cancel.
#[derive(Debug, Clone)]
pub enum Cancelling {
    /// Trading has ended. The cancel can be proposed from `cancellable_at`. The receipt is `None` if
    /// the market was frozen before.
    Frozen { receipt: Option<Receipt>, cancellable_at: Timestamp },
    /// The cancel can be vetoed until `finalizable_at` and finalized from then on. The receipt is
    /// `None` if it was proposed before.
    Proposed { receipt: Option<Receipt>, finalizable_at: Timestamp },
    /// Every token pays its reference price.
    Cancelled(Receipt),
    /// The wallet has to send the next step.
    Printed(Call),
}

/// Returns the addresses that may cancel a market: the resolver, or any address after the deadline
/// of the market's result.
pub async fn cancel_senders(ctx: &Ctx, id: MarketId) -> Result<Senders, AppError> {
    let number = number_of(ctx, id).await?.1;
    let due_at_s = ctx.chain.schedule(number).await?.result_due_at_s;
    Ok(match is_reached(ctx, due_at_s.saturating_add(1)).await? {
        true => Senders::Anyone,
        false => Senders::Roles(&[Role::Resolver]),
    })
}

/// Makes the next steps of a market's cancel that are possible now: freezes the market, proposes the
/// cancel after the minimum freeze, and finalizes it after the veto window. For a wallet it returns
/// only the first of these steps. The reason is stored in the audit log.
pub async fn cancel<'a>(
    ctx: &Ctx,
    sender: impl Into<ActSender<'a>>,
    id: MarketId,
    reason: Option<String>,
) -> Result<Cancelling, AppError> {
    let sender = sender.into();
    let number = number_of(ctx, id).await?.1;
    let mut receipt = None;
    loop {
        let schedule = ctx.chain.schedule(number).await?;
        let step = match (schedule.frozen_at_s, schedule.proposal) {
            (None, _) => Move::Freeze { reason: reason.clone() },
            (_, None) => {
                let cancellable_at_s = schedule.cancellable_at_s.unwrap_or_default();
                if !is_reached(ctx, cancellable_at_s).await? {
                    let cancellable_at = Timestamp::from_s(cancellable_at_s);
                    return Ok(Cancelling::Frozen { receipt, cancellable_at });
                }
                Move::ProposeCancel { reason: reason.clone() }
            }
            (_, Some(proposal)) if !proposal.is_cancel => {
                return Err(Move::ProposeCancel { reason }.invalid_transition(ctx, number).await?);
            }
            (_, Some(proposal)) => {
                if !is_reached(ctx, proposal.finalizable_at_s).await? {
                    let finalizable_at = Timestamp::from_s(proposal.finalizable_at_s);
                    return Ok(Cancelling::Proposed { receipt, finalizable_at });
                }
                Move::Finalize
            }
        };
        match make_move(ctx, sender, id, step).await? {
            ActResult::Printed(call) => return Ok(Cancelling::Printed(call)),
            ActResult::Mined(mined) if is_cancelled(&mined) => return Ok(Cancelling::Cancelled(mined)),
            ActResult::Mined(mined) => receipt = Some(mined),
        }
    }
}

/// Returns whether the next block is at that time (Unix seconds) or later.
async fn is_reached(ctx: &Ctx, at_s: u64) -> Result<bool, AppError> {
    let head_s = ctx.chain.head().await?.timestamp_s;
    Ok(at_s <= head_s.max(ctx.now().s()))
}

fn is_cancelled(receipt: &Receipt) -> bool {
    receipt.events.iter().any(|event| matches!(event.kind, EventKind::MarketCancelled { .. }))
}

/// Returns the reason of a market's cancellation, if one was given.
pub async fn cancel_reason(ctx: &Ctx, id: MarketId) -> Result<Option<String>, AppError> {
    let filter = Filter { action: Some(CANCEL.to_owned()), subject: Some(subject(id)), ..Filter::default() };
    let entries = audit_log::list(ctx, filter, i64::MAX, MOST_ATTEMPTS).await?;
    let made = [Phase::Done, Phase::Printed].map(Phase::as_str);
    let made = entries.iter().find(|entry| made.contains(&entry.phase.as_str()));
    // The process may have died after the act and before its last entry: use the newest entry.
    let entry = made.or_else(|| entries.first());
    let after = entry.and_then(|entry| entry.after.as_deref());
    let after: Option<Value> = after.and_then(|text| serde_json::from_str(text).ok());
    Ok(after.and_then(|after| after["reason"].as_str().map(str::to_owned)))
}

/// Returns the pending result or cancel of a market, read from the chain.
pub async fn proposal(ctx: &Ctx, id: MarketId) -> Result<Option<chain::Proposal>, AppError> {
    let number = number_of(ctx, id).await?.1;
    Ok(ctx.chain.schedule(number).await?.proposal)
}

/// Returns the market's row and its number on the hub.
async fn number_of(ctx: &Ctx, id: MarketId) -> Result<(Market, u64), AppError> {
    let market = ctx.store.read(id, |tx, id| Box::pin(store::markets::find(tx, *id))).await;
    let market = market?.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
    let number = market.chain_market_id.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
    Ok((market, number))
}

fn subject(id: MarketId) -> String {
    format!("market:{id}")
}
