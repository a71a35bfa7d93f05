//! Computes what a recovery would change, without changing anything.

use alloy_primitives::Address;
use domain::ids::{KeyId, TradeId};
use domain::trade::Status;

use super::lost::{Carriers, rebuild};
use super::run::highest_nonces;
use crate::lost_data::{Decisions, LostTradeResult, default_from, unknown};
use crate::{AppError, Ctx};

/// The changes that a recovery would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryPlan {
    /// The first compared block.
    pub from_block: u64,
    /// The last compared block.
    pub until_block: u64,
    /// Keys whose next nonce is already used on chain.
    pub raised_nonces: Vec<RaisedNonce>,
    /// Trades whose rows do not agree with the chain.
    pub trades: Vec<LostTrade>,
}

/// A key whose next nonce would be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RaisedNonce {
    pub key_id: KeyId,
    /// The current next nonce.
    pub from: u32,
    /// The next nonce after the recovery.
    pub to: u32,
}

/// A trade that would be restored or corrected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostTrade {
    pub trade_id: TradeId,
    pub account: Address,
    /// The block that decided the trade.
    pub block_number: u64,
    /// The status in the database, if the trade exists.
    pub status: Option<Status>,
    /// The status after the recovery.
    pub becomes: Status,
    /// The trade's user, key and market are in the database. Otherwise it cannot be restored.
    pub is_attributed: bool,
}

/// Returns the changes that a recovery from `from_block` on would make now.
pub async fn plan(ctx: &Ctx, from_block: Option<u64>) -> Result<RecoveryPlan, AppError> {
    let from_block = match from_block {
        Some(from_block) => from_block,
        None => default_from(ctx).await?,
    };
    let until_block = ctx.chain.head().await?.number;
    let trades = lost_trades(ctx, from_block, until_block).await?;
    Ok(RecoveryPlan { from_block, until_block, raised_nonces: raised_nonces(ctx).await?, trades })
}

async fn raised_nonces(ctx: &Ctx) -> Result<Vec<RaisedNonce>, AppError> {
    let (mut after, mut raised) = (None, Vec::new());
    loop {
        let highest = highest_nonces(ctx, &ctx.chain, after).await?;
        let Some((last, _)) = highest.last() else { return Ok(raised) };
        after = Some(last.id);
        let behind = highest.iter().filter(|(key, highest)| key.next_nonce <= *highest);
        raised.extend(behind.map(|(key, highest)| RaisedNonce {
            key_id: key.id,
            from: key.next_nonce,
            to: highest + 1,
        }));
    }
}

async fn lost_trades(ctx: &Ctx, from: u64, until: u64) -> Result<Vec<LostTrade>, AppError> {
    let mut decisions = Decisions::new(from, until);
    let (mut carriers, mut lost) = (Carriers::default(), Vec::new());
    let chain_id = ctx.chain.chain_id();
    while let Some(some) = decisions.next(ctx).await? {
        let found = ctx.store.read(some, |tx, some| Box::pin(unknown(tx, some))).await?;
        for (decision, status) in found {
            let intent = carriers.intent_of(ctx, &decision).await?;
            let rebuilt = ctx
                .store
                .read((decision.clone(), intent, chain_id), |tx, (decision, intent, chain_id)| {
                    Box::pin(async move {
                        let Some(intent) = intent else { return Ok(false) };
                        Ok(rebuild(tx, decision, intent, *chain_id).await?.is_some())
                    })
                })
                .await;
            let becomes = match decision.result {
                LostTradeResult::Made(_) => Status::Completed,
                LostTradeResult::Failed(_) | LostTradeResult::Duplicate(_) => Status::Failed,
            };
            lost.push(LostTrade {
                trade_id: decision.trade_id,
                account: decision.account,
                block_number: decision.block_number,
                status,
                becomes,
                is_attributed: status.is_some() || rebuilt?,
            });
        }
    }
    Ok(lost)
}
