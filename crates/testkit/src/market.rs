//! Markets of tests, moved as the operator moves them.

use alloy_primitives::U256;
use app::markets::{self, NewMarket};
use chain::{Fill, Side};
use domain::ids::MarketId;
use domain::time::DAY_MS;
use domain::{Usdc, Wad};
use store::StoreError;
use store::markets::{Market, Outcome};

use crate::{TestApp, TestUser};

/// A market on chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestMarket {
    /// The market's id.
    pub id: MarketId,
    /// The hub's number for it.
    pub number: u64,
}

/// A market with these outcomes at equal odds, a liquidity of 1,000 USDC, a fee of 1 % and 30 days to go.
pub fn market_of(app: &TestApp, labels: &[&str]) -> NewMarket {
    NewMarket {
        id: None,
        question: "Will it happen?".to_owned(),
        description: None,
        category: None,
        tags: Vec::new(),
        outcomes: labels.iter().map(|label| (*label).to_owned()).collect(),
        opening_odds: Vec::new(),
        liquidity: Usdc::from_whole(1_000),
        fee_bps: 100,
        end_time: app.ctx.now().plus_ms(30 * DAY_MS),
        thread_id: None,
        organization_id: None,
        partner_id: None,
        chapter_id: None,
        source_url: None,
        featured_position: None,
    }
}

impl TestApp {
    /// An open market with these outcomes, known to the sync.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub async fn market(&self, labels: &[&str]) -> TestMarket {
        self.market_with(labels, |_| ()).await
    }

    /// The same with other terms.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub async fn market_with(&self, labels: &[&str], change: impl FnOnce(&mut NewMarket)) -> TestMarket {
        let mut new = market_of(self, labels);
        change(&mut new);
        let id = markets::create(&self.ctx, &self.roles.resolver, new).await.unwrap();
        self.workers.synchronise(&self.ctx).await;
        let number = self.ctx.chain.market_of(markets::reference_of(id)).await.unwrap();
        TestMarket { id, number: number.expect("the market is on chain") }
    }

    /// The guardian stops trading; the sync has not read it yet.
    ///
    /// # Panics
    /// Where the contracts refuse.
    pub async fn freeze(&self, market: TestMarket) {
        markets::freeze(&self.ctx, &self.roles.guardian, market.id).await.unwrap();
    }

    /// The guardian lets trading go on.
    ///
    /// # Panics
    /// Where the contracts refuse.
    pub async fn unfreeze(&self, market: TestMarket) {
        markets::unfreeze(&self.ctx, &self.roles.guardian, market.id).await.unwrap();
    }

    /// The resolver decides for an outcome.
    ///
    /// # Panics
    /// Where the contracts refuse.
    pub async fn resolve(&self, market: TestMarket, winner: u8) {
        let (_, outcomes) = self.market_row(market).await;
        let payout = |outcome: &Outcome| if outcome.index == winner { Wad::ONE.0 } else { U256::ZERO };
        let payouts = outcomes.iter().map(payout).collect();
        markets::resolve(&self.ctx, &self.roles.resolver, market.id, payouts, None).await.unwrap();
    }

    /// The resolver calls the market off.
    ///
    /// # Panics
    /// Where the contracts refuse.
    pub async fn cancel(&self, market: TestMarket) {
        markets::cancel(&self.ctx, &self.roles.resolver, market.id, None).await.unwrap();
    }

    /// The market as it is stored, with its outcomes.
    ///
    /// # Panics
    /// Where there is none.
    pub async fn market_row(&self, market: TestMarket) -> (Market, Vec<Outcome>) {
        let read: Result<_, StoreError> = self
            .ctx
            .store
            .read(market.id, |tx, id| {
                Box::pin(async move {
                    let market = store::markets::find(tx, *id).await?;
                    Ok((market, store::markets::outcomes(tx, *id).await?))
                })
            })
            .await;
        let (market, outcomes) = read.unwrap();
        (market.expect("the market is stored"), outcomes)
    }

    /// What the contracts would move now.
    ///
    /// # Panics
    /// Where they refuse.
    pub async fn quote(&self, market: TestMarket, outcome: u8, side: Side, amount: U256) -> Fill {
        self.ctx.chain.quote(market.number, outcome, side, amount).await.unwrap()
    }

    /// The user's tokens on chain.
    ///
    /// # Panics
    /// Where the chain does not answer.
    pub async fn tokens(&self, user: &TestUser, market: TestMarket, outcome: u8) -> Wad {
        Wad(self.ctx.chain.position(user.account, market.number, outcome).await.unwrap().tokens_wad)
    }
}
