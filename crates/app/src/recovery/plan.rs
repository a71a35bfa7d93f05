//! What a recovery would do, without doing it.

use domain::ids::{KeyId, TradeId};
use domain::trade::Status;
use store::StoreError;

use super::decision::{Decisions, Verdict, unknown};
use super::detect::default_from;
use super::lost::{Carriers, Place, rebuild};
use super::run::highest_nonces;
use crate::{AppError, Ctx};

/// What a recovery would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The first block whose trades were compared.
    pub from_block: u64,
    /// The last one.
    pub until_block: u64,
    /// Keys whose next nonce the chain has used.
    pub raised_nonces: Vec<RaisedNonce>,
    /// Trades that do not fit the chain.
    pub trades: Vec<LostTrade>,
}

/// A key's nonce that would be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RaisedNonce {
    /// The key.
    pub key_id: KeyId,
    /// Its next nonce.
    pub from: u32,
    /// Its next nonce afterwards.
    pub to: u32,
}

/// A trade that would be written again or corrected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostTrade {
    /// The trade.
    pub trade_id: TradeId,
    /// The account that traded.
    pub account: String,
    /// The block that decided it.
    pub block_number: u64,
    /// Its status in the database, if it is there.
    pub status: Option<Status>,
    /// Its status afterwards.
    pub becomes: Status,
    /// Whether its user, key and market are in the database: otherwise it cannot be written again.
    pub is_attributed: bool,
}

/// What a recovery from `from_block` on would do now.
pub async fn plan(ctx: &Ctx, from_block: Option<u64>) -> Result<Plan, AppError> {
    let from_block = match from_block {
        Some(from_block) => from_block,
        None => default_from(ctx).await?,
    };
    let until_block = ctx.chain.head().await?.number;
    let trades = lost_trades(ctx, from_block, until_block).await?;
    Ok(Plan { from_block, until_block, raised_nonces: raised_nonces(ctx).await?, trades })
}

async fn raised_nonces(ctx: &Ctx) -> Result<Vec<RaisedNonce>, AppError> {
    let (mut after, mut raised) = (None, Vec::new());
    loop {
        let highest = highest_nonces(ctx, after).await?;
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
    let place = Place { chain_id: ctx.chain.chain_id(), lanes: ctx.config.lanes };
    while let Some(some) = decisions.next(ctx).await? {
        let found: Result<_, StoreError> = ctx.store.read(some, |tx, some| Box::pin(unknown(tx, some))).await;
        for (decision, status) in found? {
            let intent = carriers.intent_of(ctx, &decision).await?;
            let rebuilt: Result<bool, StoreError> = ctx
                .store
                .read((decision.clone(), intent, place), |tx, (decision, intent, place)| {
                    Box::pin(async move {
                        let Some(intent) = intent else { return Ok(false) };
                        Ok(rebuild(tx, decision, intent, *place).await?.is_some())
                    })
                })
                .await;
            let becomes = match decision.verdict {
                Verdict::Made(_) => Status::Completed,
                Verdict::Failed(_) | Verdict::Duplicate(_) => Status::Failed,
            };
            lost.push(LostTrade {
                trade_id: decision.trade_id,
                account: decision.account_text(),
                block_number: decision.block_number,
                status,
                becomes,
                is_attributed: status.is_some() || rebuilt?,
            });
        }
    }
    Ok(lost)
}
