//! The trades that are signed again: as the same intents, except those whose nonce another intent had used. Such an intent
//! never ran and never will, so its trade gets another nonce.

use domain::ErrorCode;
use store::{StoreError, Tx};

use super::{Executor, ToSign};
use crate::trades::intents::account_of;
use crate::trades::risk::Candidate;
use crate::{AppError, Ctx};

/// A trade that is signed again.
pub(super) enum Again {
    /// With the nonce that it has.
    Same(Candidate),
    /// With another nonce.
    Renewed(ToSign),
}

impl Again {
    pub fn candidate(&self) -> &Candidate {
        match self {
            Self::Same(candidate) | Self::Renewed(ToSign { candidate, .. }) => candidate,
        }
    }

    /// The nonce of the trade's intent, taken now if it has none.
    pub async fn take_nonce(&self, tx: &mut Tx) -> Result<u32, AppError> {
        match self {
            Self::Same((trade, _)) => trade.nonce.ok_or_else(|| AppError::new(ErrorCode::InternalError)),
            Self::Renewed(ToSign { candidate: (trade, _), highest_nonce }) => {
                let nonce = store::keys::take_nonce(tx, trade.key_id, *highest_nonce).await?;
                if store::trades::put_renewed_nonce(tx, trade.id, nonce).await? {
                    return Ok(nonce);
                }
                Err(AppError::new(ErrorCode::InternalError).detail("A trade moved while it was signed."))
            }
        }
    }
}

impl Executor {
    /// Sorts the trades that a batch lost. One that gets another nonce must not have been decided by the chain: the chain
    /// itself is asked, since an event may be there that the tables do not have.
    pub(super) async fn sort_lost(&self, ctx: &Ctx, trades: Vec<Candidate>) -> Result<Vec<Again>, AppError> {
        let mut again = Vec::with_capacity(trades.len());
        for candidate in trades {
            let trade = &candidate.0;
            if trade.nonce.is_some() {
                again.push(Again::Same(candidate));
                continue;
            }
            let account = account_of(trade)?;
            let created_at = trade.created_at;
            let from: Result<u64, StoreError> =
                ctx.store.read(created_at, |tx, at| Box::pin(store::sync::find_block_before(tx, *at))).await;
            if let Some(event) = ctx.chain.settle_event(trade.id.0, account, from?).await? {
                tracing::error!(trade.id = %trade.id, block = event.block_number,
                    "a trade without a nonce was decided by the chain; it is not signed again");
                continue;
            }
            let highest_nonce = ctx.chain.policy(account, trade.key_index).await?.nonce_top;
            again.push(Again::Renewed(ToSign { candidate, highest_nonce }));
        }
        Ok(again)
    }
}
