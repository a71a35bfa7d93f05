//! What a trade takes of the budgets of users who pay nothing: the service pays the gas, and stores the
//! metadata with the trade and with each of its events.

use std::net::IpAddr;

use domain::Timestamp;
use domain::ids::UserId;
use domain::key::Tier;
use domain::trade::Side;
use store::trades::Trade;

use crate::caller::Caller;
use crate::limits::budget::Budget;
use crate::{AppError, Ctx};

/// The multiple of each share that sales may use. Money must not be kept from its owner, so a user whose
/// buys have used up the share can still sell. Sales have a limit, too: a client can send any number of
/// them for the same tokens at once, and all but one fail on chain.
const SALES: u64 = 2;

/// What was taken for a trade that is not created yet.
#[derive(Debug)]
pub(super) struct TakenShare {
    client: (IpAddr, UserId),
    at: Timestamp,
    taken: Vec<(Budget, u64)>,
}

impl TakenShare {
    /// Takes the share of a trade.
    pub(super) async fn take(ctx: &Ctx, caller: &Caller, trade: &Trade) -> Result<Self, AppError> {
        let (client, at) = ((caller.ip(), caller.user_id()), trade.created_at);
        let mut share = Self { client, at, taken: Vec::new() };
        if caller.key.tier != Tier::Free {
            return Ok(share);
        }
        let multiple = match trade.side {
            Side::Buy => 1,
            Side::Sell => SALES,
        };
        ctx.budgets().spend_multiple(Budget::Trades, client, (1, multiple), at).await?;
        share.taken.push((Budget::Trades, 1));
        let bytes: usize = trade.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > 0 {
            let bytes = bytes as u64;
            if let Err(error) = ctx.budgets().spend_amount(Budget::MetadataBytes, client, bytes, at).await {
                share.give_back(ctx).await;
                return Err(error.into());
            }
            share.taken.push((Budget::MetadataBytes, bytes));
        }
        Ok(share)
    }

    /// Gives the share back if the trade is not created.
    pub(super) async fn give_back(&self, ctx: &Ctx) {
        for (budget, amount) in &self.taken {
            ctx.budgets().give_back(*budget, self.client, *amount, self.at).await;
        }
    }
}
