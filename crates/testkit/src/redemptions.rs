//! Claims of settled positions, and the results of their markets.

use alloy_primitives::U256;
use app::AppError;
use app::markets::{self, Move};
use app::redemptions::{ClaimResult, NewClaim, claim};
use chain::{Receipt, calls};
use domain::ids::RedemptionId;
use domain::page::Page;
use domain::redemption::RedemptionStatus;
use store::redemptions::{Redemption, RedemptionListFilter};

use crate::{TestApp, TestKey, TestMarket, TestUser};

impl TestKey {
    /// Claims a position.
    pub async fn redeem(&self, market: &TestMarket, outcome: u8) -> Result<ClaimResult, AppError> {
        let new = NewClaim {
            market_id: market.id.to_string(),
            outcome_index: outcome.into(),
            correlation_id: None,
        };
        claim(&self.ctx, &self.caller, new).await
    }

    /// Creates a claim.
    ///
    /// # Panics
    /// If the position already has one.
    pub async fn redeemed(&self, market: &TestMarket, outcome: u8) -> Redemption {
        match self.redeem(market, outcome).await.unwrap() {
            ClaimResult::Created(claim) => claim,
            ClaimResult::Existing(claim) => panic!("the claim is not new: {claim:?}"),
        }
    }

    /// Repeats a claim and returns the existing one.
    ///
    /// # Panics
    /// If a new claim is created.
    pub async fn redeemed_before(&self, market: &TestMarket, outcome: u8) -> Redemption {
        match self.redeem(market, outcome).await.unwrap() {
            ClaimResult::Existing(claim) => claim,
            ClaimResult::Created(claim) => panic!("the claim is new: {claim:?}"),
        }
    }
}

impl TestApp {
    /// Resolves the market to a payout for each outcome, in percent of a USDC per token.
    pub async fn resolve_in_parts(&self, market: TestMarket, percents: &[u64]) {
        let percent = U256::from(10_000_000_000_000_000u64);
        let payouts = percents.iter().map(|part| U256::from(*part) * percent).collect();
        let result = Move::Resolve { payouts, source: None };
        markets::make_move(&self.ctx, &self.roles.resolver, market.id, result).await.unwrap();
    }

    /// Redeems a user's position from an account that does not belong to the service.
    pub async fn stranger_redeems(&self, user: &TestUser, market: TestMarket, outcome: u8) -> Receipt {
        let hub = self.ctx.chain.contracts().hub;
        let data = calls::redeem(user.account, market.number, outcome);
        self.send(&self.roles.stranger, hub, data).await
    }

    /// Lists the user's claims, newest first, at most 100.
    pub async fn claims(&self, user: &TestUser) -> Vec<Redemption> {
        let page = Page { limit: 100, after: None };
        let listed = self
            .ctx
            .store
            .read((user.id, page), |tx, (user_id, page)| {
                Box::pin(async move {
                    store::redemptions::list(tx, *user_id, &RedemptionListFilter::default(), page).await
                })
            })
            .await;
        listed.unwrap()
    }

    /// Returns the user's claim with this id.
    pub async fn claim(&self, user: &TestUser, id: RedemptionId) -> Redemption {
        let claims = self.claims(user).await;
        claims.into_iter().find(|claim| claim.id == id).expect("the claim is stored")
    }

    /// Returns the status of the user's claim.
    pub async fn claim_status(&self, user: &TestUser, id: RedemptionId) -> RedemptionStatus {
        self.claim(user, id).await.status
    }
}
