//! The operator's moves of a market. Each is a transaction of the role that may make it; the sync follows from its event.

use alloy_primitives::{Bytes, U256};
use chain::{Receipt, Signer, calls};
use domain::ErrorCode;
use domain::ids::MarketId;
use serde_json::{Value, json};
use store::StoreError;
use store::audit_log::Act;

use crate::{AppError, Ctx, audit_log};

/// Stops trading for the moment. `signer` is the guardian or the resolver.
pub async fn freeze(ctx: &Ctx, signer: &Signer, id: MarketId) -> Result<Receipt, AppError> {
    send(ctx, signer, id, Act::new("market.freeze", subject(id)), calls::freeze).await
}

/// Lets trading go on. `signer` is the guardian or the resolver.
pub async fn unfreeze(ctx: &Ctx, signer: &Signer, id: MarketId) -> Result<Receipt, AppError> {
    send(ctx, signer, id, Act::new("market.unfreeze", subject(id)), calls::unfreeze).await
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
    let act = Act::new("market.resolve", subject(id)).after(json!({ "payoutsWad": paid, "source": source }));
    let receipt = send(ctx, signer, id, act, |number| calls::propose(number, payouts)).await?;
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

/// Calls a market off: every holder is refunded what the position cost. `signer` is the resolver.
pub async fn cancel(ctx: &Ctx, signer: &Signer, id: MarketId) -> Result<Receipt, AppError> {
    send(ctx, signer, id, Act::new("market.cancel", subject(id)), calls::cancel).await
}

/// Opens a listed market whose listing delay is over. Anyone may.
pub async fn open(ctx: &Ctx, signer: &Signer, id: MarketId) -> Result<Receipt, AppError> {
    send(ctx, signer, id, Act::new("market.open", subject(id)), calls::open).await
}

/// Makes a proposed resolution final, once its veto window is over. Anyone may.
pub async fn finalize(ctx: &Ctx, signer: &Signer, id: MarketId) -> Result<Receipt, AppError> {
    send(ctx, signer, id, Act::new("market.finalize", subject(id)), calls::finalize).await
}

async fn send(
    ctx: &Ctx,
    signer: &Signer,
    id: MarketId,
    act: Act,
    call: impl FnOnce(u64) -> Bytes,
) -> Result<Receipt, AppError> {
    let market: Result<_, StoreError> =
        ctx.store.read(id, |tx, id| Box::pin(store::markets::find(tx, *id))).await;
    let market = market?.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
    let number = market.chain_market_id.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
    let call = call(number);
    let sent = async { Ok(ctx.chain.transact(signer, Some(ctx.chain.contracts().hub), call).await?) };
    let act = act.before(json!({ "status": market.status.as_str() }));
    let receipt = audit_log::around(ctx, act, sent, sent_as).await?;
    ctx.wake.sync.notify_waiters();
    Ok(receipt)
}

fn subject(id: MarketId) -> String {
    format!("market:{id}")
}

/// What the audit log says about a transaction that was mined.
pub(super) fn sent_as(receipt: &Receipt) -> Value {
    json!({ "txHash": receipt.tx_hash.to_string(), "block": receipt.block_number })
}
