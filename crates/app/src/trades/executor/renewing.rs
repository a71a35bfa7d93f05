//! Prepares trades that must be signed again.
//!
//! They keep their intents, except those whose nonce another intent used. Such an intent never ran
//! and never will, so its trade gets another nonce.

use std::collections::{BTreeSet, HashMap};

use domain::ids::KeyId;
use domain::trade::{IllegalMove, Status, Transition};
use domain::{ErrorCode, Timestamp};
use store::Tx;
use store::keys::{Nonce, TradingStop};
use store::trades::Trade;

use super::{Executor, ToSign};
use crate::lost_data::LostData;
use crate::trades::risk::{self, Candidate};
use crate::{AppError, Ctx};

pub(super) enum RenewedTrade {
    /// With its present nonce.
    Same(Candidate),
    Renewed(ToSign),
}

impl RenewedTrade {
    pub fn candidate(&self) -> &Candidate {
        match self {
            Self::Same(candidate) | Self::Renewed(ToSign { candidate, .. }) => candidate,
        }
    }

    /// Returns the nonce of the trade's intent, and assigns one if needed. `None` if the trade's
    /// key can no longer trade.
    pub async fn take_nonce(&self, tx: &mut Tx, now: Timestamp) -> Result<Option<u32>, AppError> {
        match self {
            Self::Same((trade, _)) => match trade.nonce {
                Some(nonce) => Ok(Some(nonce)),
                None => Err(AppError::new(ErrorCode::InternalError)),
            },
            Self::Renewed(ToSign { candidate: (trade, _), highest_nonce }) => {
                let taken = take_nonces(tx, &[(trade, *highest_nonce)], now).await?;
                let Some(nonce) = taken.into_iter().next().flatten() else { return Ok(None) };
                if store::trades::put_renewed_nonce(tx, trade.id, nonce).await? {
                    return Ok(Some(nonce));
                }
                Err(AppError::new(ErrorCode::InternalError)
                    .detail("A trade changed while it was being signed."))
            }
        }
    }
}

/// Assigns the next nonce of each trade's key. `None` if the key can no longer trade. Each trade comes
/// with the highest nonce of its key that the Gate has seen.
///
/// # Errors
/// [`LostData`] if the Gate has already seen that nonce: the database lacks trades that were
/// signed.
pub(super) async fn take_nonces(
    tx: &mut Tx,
    trades: &[(&Trade, u32)],
    now: Timestamp,
) -> Result<Vec<Option<u32>>, AppError> {
    let wanted: Vec<_> = trades.iter().map(|(trade, highest_nonce)| (trade.key_id, *highest_nonce)).collect();
    let taken = store::keys::take_nonces(tx, &wanted, now).await?;
    let nonce_of = |(taken, (key_id, highest_nonce))| match taken {
        Nonce::Taken(nonce) => Ok(Some(nonce)),
        Nonce::Stopped => Ok(None),
        Nonce::UsedOnChain => {
            let detail = format!(
                "the Gate has used nonce {highest_nonce} of the key {key_id}, which this database has not assigned"
            );
            Err(LostData { detail }.into_error())
        }
    };
    taken.into_iter().zip(wanted).map(nonce_of).collect()
}

/// The trades of lost batches that can be signed again or ended now.
#[derive(Default)]
pub(super) struct Lost {
    pub again: Vec<RenewedTrade>,
    pub ended: Vec<(Trade, Result<Transition, IllegalMove>)>,
}

impl Executor {
    /// Sorts trades of lost batches into those to sign again and those to end.
    ///
    /// A trade that gets another nonce, or that ends here, must not have been decided by the chain.
    /// So the chain itself is asked, because the database may lack the event.
    ///
    /// Nothing is signed with a stopped key. The trades of a revoked or expired key end: a batch is
    /// lost only once a final block proves it, so no earlier transaction can still carry them. The
    /// trades of a paused key wait until their deadline.
    pub(super) async fn sort_lost(&self, ctx: &Ctx, trades: Vec<Candidate>) -> Result<Lost, AppError> {
        let stops = stops(ctx, &trades).await?;
        let now = ctx.now();
        let mut lost = Lost::default();
        for candidate in trades {
            let trade = &candidate.0;
            let stop = stops.get(&trade.key_id);
            if trade.nonce.is_some() && stop.is_none() {
                // The same intent cannot execute twice, so no state of the chain is read.
                lost.again.push(RenewedTrade::Same(candidate));
                continue;
            }
            let created_at = trade.created_at;
            let from = ctx
                .store
                .read(created_at, |tx, at| Box::pin(store::sync::find_block_before(tx, *at)))
                .await?;
            if let Some(event) = ctx.chain.settle_event(trade.id.0, trade.account, from).await? {
                tracing::error!(trade.id = %trade.id, block = event.block_number,
                    "the chain has decided a trade without a nonce: it is not signed again");
                continue;
            }
            match stop {
                Some(_) if trade.deadline <= now => {
                    let failed = Transition::fail(Status::Executing, risk::expired(trade), now);
                    lost.ended.push((candidate.0, failed));
                }
                // Paused: in neither list, so it is looked at again in the next tick.
                Some(TradingStop::Paused) => {}
                Some(TradingStop::Revoked | TradingStop::Expired) => {
                    lost.ended.push((candidate.0, Transition::end_with_key(Status::Executing, now)));
                }
                None => {
                    let highest_nonce = ctx.chain.policy(trade.account, trade.key_index).await?.nonce_top;
                    lost.again.push(RenewedTrade::Renewed(ToSign { candidate, highest_nonce }));
                }
            }
        }
        Ok(lost)
    }
}

/// Returns the keys of these trades that can no longer trade.
async fn stops(ctx: &Ctx, trades: &[Candidate]) -> Result<HashMap<KeyId, TradingStop>, AppError> {
    let keys: BTreeSet<KeyId> = trades.iter().map(|(trade, _)| trade.key_id).collect();
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    Ok(ctx
        .store
        .read((keys, ctx.now()), |tx, (keys, now)| {
            Box::pin(async move {
                let mut stops = HashMap::new();
                for key in keys {
                    let stop = store::keys::find_trading_stop(tx, *key, *now).await?;
                    stops.extend(stop.map(|stop| (*key, stop)));
                }
                Ok(stops)
            })
        })
        .await?)
}
