//! Markets of tests, and operations of the market's operator.

use alloy_primitives::U256;
use app::markets::{self, Move, NewMarket};
use chain::{Fill, IntentSide};
use domain::ids::MarketId;
use domain::time::DAY_MS;
use domain::{Usdc, Wad};
use store::markets::{Market, Outcome};

use crate::{TestApp, TestUser};

/// A market on chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestMarket {
    pub id: MarketId,
    /// The market's number on the hub.
    pub number: u64,
}

/// Terms of a market with these outcomes at equal odds, a liquidity of 1,000 USDC, a fee of 1 % and
/// 30 days until its end.
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
    /// Creates an open market with these outcomes and runs the sync.
    pub async fn market(&self, labels: &[&str]) -> TestMarket {
        self.market_with(labels, |_| ()).await
    }

    /// Creates a market with changed terms.
    pub async fn market_with(&self, labels: &[&str], change: impl FnOnce(&mut NewMarket)) -> TestMarket {
        let mut new = market_of(self, labels);
        change(&mut new);
        let id = markets::create(&self.ctx, &self.roles.resolver, new).await.unwrap().id;
        self.workers.synchronise(&self.ctx).await;
        let number = self.ctx.chain.market_of(markets::reference_of(id)).await.unwrap();
        TestMarket { id, number: number.expect("the market is on chain") }
    }

    /// Freezes trading as the guardian. The sync has not read it yet.
    pub async fn freeze(&self, market: TestMarket) {
        markets::make_move(&self.ctx, &self.roles.guardian, market.id, Move::FREEZE).await.unwrap();
    }

    /// Resumes trading as the guardian.
    pub async fn unfreeze(&self, market: TestMarket) {
        markets::make_move(&self.ctx, &self.roles.guardian, market.id, Move::Unfreeze).await.unwrap();
    }

    /// Resolves the market to one outcome.
    pub async fn resolve(&self, market: TestMarket, winner: u8) {
        let (_, outcomes) = self.market_row(market).await;
        let payout = |outcome: &Outcome| if outcome.index == winner { Wad::ONE.0 } else { U256::ZERO };
        let payouts = outcomes.iter().map(payout).collect();
        let result = Move::Resolve { payouts, source: None };
        markets::make_move(&self.ctx, &self.roles.resolver, market.id, result).await.unwrap();
    }

    /// Freezes and cancels the market.
    ///
    /// # Panics
    /// Also if the cancel does not take effect at once.
    pub async fn cancel(&self, market: TestMarket) {
        let cancelling = markets::cancel(&self.ctx, &self.roles.resolver, market.id, None).await.unwrap();
        assert!(matches!(cancelling, markets::Cancelling::Cancelled(_)), "{cancelling:?}");
    }

    /// The refund for tokens of an outcome if the market were cancelled now.
    pub async fn refund(&self, market: TestMarket, outcome: u8, tokens: Wad) -> Usdc {
        let prices = self.ctx.chain.reference_prices(market.number).await.unwrap();
        let price = prices.get(usize::from(outcome)).copied().expect("the market has this outcome");
        tokens.worth_floor(Wad(price))
    }

    /// The stored market and its outcomes.
    pub async fn market_row(&self, market: TestMarket) -> (Market, Vec<Outcome>) {
        let read = self
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

    /// The contracts' current quote.
    pub async fn quote(&self, market: TestMarket, outcome: u8, side: IntentSide, amount: U256) -> Fill {
        self.ctx.chain.quote(market.number, outcome, side, amount).await.unwrap()
    }

    /// The user's tokens on chain.
    pub async fn tokens(&self, user: &TestUser, market: TestMarket, outcome: u8) -> Wad {
        Wad(self.ctx.chain.position(user.account, market.number, outcome).await.unwrap())
    }
}
