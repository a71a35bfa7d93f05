//! The operator's moves of a market. Each is a transaction of the role that may make it; the sync follows from its event.

use alloy_primitives::{Bytes, U256};
use chain::{ChainError, MarketStatus as StatusOnChain, Receipt, Revert, Signer, calls};
use domain::ErrorCode;
use domain::ids::MarketId;
use serde_json::{Value, json};
use store::StoreError;
use store::audit_log::{Act, Filter, Phase};

use crate::{AppError, Ctx, audit_log};

/// The action in the audit log.
const CANCEL: &str = "market.cancel";
/// Entries of a market's cancellation that are read: a cancelled market cannot be cancelled again.
const MOST_ATTEMPTS: u32 = 100;

/// Why a move was refused: the market's state does not allow it. It is the source of the refusal's [`AppError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the market is {0}")]
pub struct InvalidState(pub &'static str);

/// Stops trading for the moment. `signer` is the guardian or the resolver.
pub async fn freeze(ctx: &Ctx, signer: &Signer, id: MarketId) -> Result<Receipt, AppError> {
    send(ctx, signer, id, "market.freeze", Value::Null, calls::freeze).await
}

/// Lets trading go on. `signer` is the guardian or the resolver.
pub async fn unfreeze(ctx: &Ctx, signer: &Signer, id: MarketId) -> Result<Receipt, AppError> {
    send(ctx, signer, id, "market.unfreeze", Value::Null, calls::unfreeze).await
}

/// Proposes what each outcome pays (WAD a token, at most one in all); at once final where the veto window is zero.
/// `signer` is the resolver.
pub async fn resolve(
    ctx: &Ctx,
    signer: &Signer,
    id: MarketId,
    payouts: Vec<U256>,
    source: Option<String>,
) -> Result<Receipt, AppError> {
    let paid: Vec<String> = payouts.iter().map(ToString::to_string).collect();
    let intent = json!({ "payoutsWad": paid, "source": source });
    let receipt =
        send(ctx, signer, id, "market.resolve", intent, |number| calls::propose(number, payouts)).await?;
    if let Some(source) = source {
        let noted: Result<(), StoreError> = ctx
            .store
            .write((id, source), |tx, (id, source)| {
                Box::pin(store::markets::set_resolution_source(tx, *id, source))
            })
            .await;
        noted?;
    }
    Ok(receipt)
}

/// Cancels a market: every holder is refunded what the position cost. `signer` is the resolver. The reason is for the audit
/// log.
pub async fn cancel(
    ctx: &Ctx,
    signer: &Signer,
    id: MarketId,
    reason: Option<String>,
) -> Result<Receipt, AppError> {
    send(ctx, signer, id, CANCEL, json!({ "reason": reason }), calls::cancel).await
}

/// The reason that a market was cancelled with; `None` if none was given.
pub async fn cancel_reason(ctx: &Ctx, id: MarketId) -> Result<Option<String>, AppError> {
    let filter = Filter { action: Some(CANCEL.to_owned()), subject: Some(subject(id)), ..Filter::default() };
    let entries = audit_log::list(ctx, filter, i64::MAX, MOST_ATTEMPTS).await?;
    let done = entries.iter().find(|entry| entry.phase == Phase::Done.as_str());
    // The process may have died before it logged the end of an act that the chain has.
    let entry = done.or_else(|| entries.first());
    let after = entry.and_then(|entry| entry.after.as_deref());
    let after: Option<Value> = after.and_then(|text| serde_json::from_str(text).ok());
    Ok(after.and_then(|after| after["reason"].as_str().map(str::to_owned)))
}

/// Opens a listed market whose listing delay is over. Anyone may.
pub async fn open(ctx: &Ctx, signer: &Signer, id: MarketId) -> Result<Receipt, AppError> {
    send(ctx, signer, id, "market.open", Value::Null, calls::open).await
}

/// Makes a proposed resolution final, once its veto window is over. Anyone may.
pub async fn finalize(ctx: &Ctx, signer: &Signer, id: MarketId) -> Result<Receipt, AppError> {
    send(ctx, signer, id, "market.finalize", Value::Null, calls::finalize).await
}

async fn send(
    ctx: &Ctx,
    signer: &Signer,
    id: MarketId,
    action: &'static str,
    intent: Value,
    call: impl FnOnce(u64) -> Bytes,
) -> Result<Receipt, AppError> {
    let market: Result<_, StoreError> =
        ctx.store.read(id, |tx, id| Box::pin(store::markets::find(tx, *id))).await;
    let market = market?.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
    let number = market.chain_market_id.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
    let call = call(number);
    let sent = async {
        match ctx.chain.transact(signer, Some(ctx.chain.contracts().hub), call).await {
            Ok(receipt) => Ok(receipt),
            Err(ChainError::Reverted(Revert::TransitionInvalid)) => Err(invalid_state(ctx, number).await?),
            Err(error) => Err(error.into()),
        }
    };
    let act = Act::new(action, subject(id)).before(json!({ "status": market.status.as_str() }));
    let act = if intent.is_null() { act } else { act.after(&intent) };
    let receipt = audit_log::around(ctx, act, sent, |receipt| with_intent(sent_as(receipt), intent)).await?;
    ctx.wake.sync.notify_waiters();
    Ok(receipt)
}

/// The refusal of a move that the market's state does not allow.
async fn invalid_state(ctx: &Ctx, number: u64) -> Result<AppError, AppError> {
    let state = InvalidState(match ctx.chain.market(number).await?.status {
        StatusOnChain::None => "not on chain",
        StatusOnChain::Listed => "LISTED",
        StatusOnChain::Open => "OPEN",
        StatusOnChain::Frozen => "FROZEN",
        StatusOnChain::Resolved => "RESOLVED",
        StatusOnChain::Cancelled => "CANCELLED",
    });
    Ok(AppError::new(ErrorCode::MarketNotTradeable)
        .detail(format!("The market is {}.", state.0))
        .caused_by(state))
}

fn subject(id: MarketId) -> String {
    format!("market:{id}")
}

/// The state after an act together with what was asked for.
fn with_intent(mut after: Value, intent: Value) -> Value {
    if let (Value::Object(after), Value::Object(intent)) = (&mut after, intent) {
        after.extend(intent);
    }
    after
}

/// What the audit log says about a transaction that was mined.
pub(super) fn sent_as(receipt: &Receipt) -> Value {
    json!({ "txHash": receipt.tx_hash.to_string(), "block": receipt.block_number })
}
