//! Every position that trades can create is closed completely, through the use cases that the API and
//! the site call. Afterwards nothing is open, held or claimable.

use alloy_primitives::U256;
use app::markets::{QuoteRequest, quote};
use app::portfolio::{ValuedPosition, summary};
use app::redemptions::claim_own;
use domain::trade::{Side, Status};
use domain::{ErrorCode, Usdc, Wad};
use store::Store;
use testkit::{Request, TestApp, TestMarket};

use crate::scene::Scene;

const TRADES: u32 = 12;
/// The first outcomes of a market, which the walk trades. Its other outcomes only lower the prices.
const TRADED: u8 = 4;

/// A splitmix64 generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// A market that Ada trades at random.
struct Walk {
    scene: Scene,
    market: TestMarket,
    random: Random,
    name: String,
}

impl Walk {
    /// Starts on a market with this many outcomes. `skew` USDC push the first one towards 1.
    async fn new(app: TestApp, outcomes: usize, skew: &str, seed: u64) -> Self {
        let scene = Scene::of(app).await;
        let labels: Vec<String> = (0..outcomes).map(|index| format!("Outcome {index}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let market = scene.app.market(&labels).await;
        if skew != "0" {
            scene.app.stranger_buys(market, 0, skew).await;
            scene.app.run_workers().await;
        }
        let name = format!("{outcomes} outcomes, skew {skew}, seed {seed}");
        Self { scene, market, random: Random(seed), name }
    }

    fn outcome(&mut self, outcomes: usize) -> u8 {
        let traded = TRADED.min(u8::try_from(outcomes).unwrap());
        u8::try_from(self.random.below(traded.into())).unwrap()
    }

    /// From 0.01 to 100 USDC, each magnitude as likely as the others.
    fn amount(&mut self) -> Usdc {
        let magnitude = 10_u64.pow(u32::try_from(self.random.below(4)).unwrap());
        Usdc::from_atomic(10_000 * magnitude + self.random.below(90_000 * magnitude))
    }

    /// Buys, and sells parts, at random. A part may be too small to sell.
    async fn trade(&mut self, outcomes: usize) {
        for _ in 0..TRADES {
            let outcome = self.outcome(outcomes);
            let amount = self.amount();
            let is_buy = self.random.below(3) < 2;
            let held = self.scene.app.tokens(&self.scene.ada, self.market, outcome).await;
            let share = U256::from(self.random.below(1_001));
            let part = Wad(held.0 * share / U256::from(1_000));
            let in_usdc = self.random.below(2) == 0;
            let Scene { key, .. } = &self.scene;
            let request = match (is_buy, in_usdc) {
                (true, _) => key.buy(&self.market, outcome, &amount.to_decimal()),
                (false, true) => key.sell(&self.market, outcome, &amount.to_decimal()),
                (false, false) => key.sell(&self.market, outcome, &floor(part)).in_tokens(),
            };
            self.send(request, !is_buy).await;
        }
    }

    async fn send(&self, request: Request<'_>, may_be_refused: bool) {
        let app = &self.scene.app;
        let trade = match request.send().await {
            Ok(app::trades::Accepted::Created(trade)) => trade,
            Err(refusal) if may_be_refused => {
                let expected = [
                    ErrorCode::AmountTooSmall,
                    ErrorCode::InsufficientBalance,
                    ErrorCode::LiquidityInsufficient,
                    ErrorCode::ValidationFailed,
                ];
                assert!(expected.contains(&refusal.code), "{}: {refusal} {:?}", self.name, refusal.source);
                return;
            }
            other => panic!("{}: {other:?}", self.name),
        };
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed, "{}", self.name);
    }

    async fn positions(&self) -> Vec<ValuedPosition> {
        let Scene { app, key, .. } = &self.scene;
        summary(&app.ctx, &key.caller).await.unwrap().positions
    }

    /// Sells every position, each in another way: as a whole, as the site does, or in the amount that
    /// a client rounds to six decimals, down or up.
    async fn close(&self) {
        let Scene { app, key, .. } = &self.scene;
        for (way, position) in self.positions().await.iter().enumerate() {
            let (outcome, held) = (position.held.outcome_index, position.position().tokens);
            if held == Wad::ZERO {
                continue;
            }
            let request = match way % 4 {
                0 => key.sell_all(&self.market, outcome),
                1 => {
                    let action = QuoteRequest { side: Side::Sell, amount: held.0 };
                    let id = self.market.id.to_string();
                    let quoted = quote(&app.ctx, &id, outcome.into(), action, None).await.unwrap();
                    assert_eq!(quoted.fill.tokens_wad, held.0);
                    key.sell_all(&self.market, outcome).with(|draft| draft.max_slippage_bps = Some(0))
                }
                2 if held >= Wad::MIN_AMOUNT => key.sell(&self.market, outcome, &floor(held)).in_tokens(),
                _ => key.sell(&self.market, outcome, &ceil(held)).in_tokens(),
            };
            self.send(request, false).await;
        }
    }

    /// Asserts that Ada holds nothing that is worth anything, wherever she or others look.
    async fn assert_closed(&self) {
        let Scene { app, ada, .. } = &self.scene;
        for position in self.positions().await {
            let place = format!("outcome {} of {}", position.held.outcome_index, self.name);
            assert!(!position.is_open(), "{place} is open");
            assert!(!position.is_claimable, "{place} is claimable");
            assert_eq!(position.value, Usdc::ZERO, "value of {place}");
            if position.position().tokens == Wad::ZERO {
                assert_eq!(position.position().cost_basis, Usdc::ZERO, "cost of {place}");
            }
        }
        let (market, account) = (self.market.id, ada.account);
        let (holders, open) = app
            .ctx
            .store
            .read((market, account), |tx, (market, account)| {
                Box::pin(async move {
                    let holders = store::public::list_holders(tx, *market, 100).await?;
                    Ok((holders, store::public::list_open_positions(tx, *account, None, 1_000).await?))
                })
            })
            .await
            .unwrap();
        assert!(holders.iter().all(|holder| holder.account != account), "{}: {holders:?}", self.name);
        assert!(open.iter().all(|position| !position.is_open()), "{}: {open:?}", self.name);
        claim_own(&app.ctx, &app.person_of(ada).await, None).await.unwrap();
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn assert_holds_nothing(&self, outcomes: usize) {
        let Scene { app, ada, .. } = &self.scene;
        for outcome in 0..u8::try_from(outcomes).unwrap() {
            let tokens = app.tokens(ada, self.market, outcome).await;
            assert_eq!(tokens, Wad::ZERO, "outcome {outcome} of {}", self.name);
        }
    }
}

/// Tokens as a client writes them, with six decimals.
fn floor(tokens: Wad) -> String {
    Usdc::from_atomic((tokens.0 / Wad::MIN_AMOUNT.0).to()).to_decimal()
}

fn ceil(tokens: Wad) -> String {
    Usdc::from_atomic(tokens.0.div_ceil(Wad::MIN_AMOUNT.0).to()).to_decimal()
}

fn setup(store: Store) -> testkit::Setup {
    TestApp::with().on(store).minimum(Usdc::from_atomic(10_000))
}

async fn sell_out(app: TestApp, outcomes: usize, skew: &str, seed: u64) {
    let mut walk = Walk::new(app, outcomes, skew, seed).await;
    walk.trade(outcomes).await;
    walk.close().await;
    walk.assert_holds_nothing(outcomes).await;
    walk.assert_closed().await;
}

/// Walks, leaves millionths of tokens behind, and ends the market.
async fn settle(app: TestApp, outcomes: usize, seed: u64, end: End) {
    let mut walk = Walk::new(app, outcomes, "0", seed).await;
    walk.trade(outcomes).await;
    let Scene { app, ada, key, .. } = &walk.scene;
    for outcome in 0..2 {
        walk.send(key.buy(&walk.market, outcome, "5"), false).await;
        let held = app.tokens(ada, walk.market, outcome).await;
        let left = Wad(held.0 - Wad::MIN_AMOUNT.0 * U256::from(5));
        walk.send(key.sell(&walk.market, outcome, &floor(left)).in_tokens(), false).await;
    }
    match end {
        End::Resolved => app.resolve(walk.market, 0).await,
        End::Cancelled => app.cancel(walk.market).await,
    }
    app.run_workers().await;
    claim_own(&app.ctx, &app.person_of(ada).await, None).await.unwrap();
    app.run_workers().await;
    walk.assert_closed().await;
}

enum End {
    Resolved,
    Cancelled,
}

store::on_each_engine! {
    async fn every_position_of_two_outcomes_can_be_sold_completely(store: Store) {
        sell_out(setup(store).start().await, 2, "0", 1).await;
    }

    async fn every_position_near_a_certain_outcome_can_be_sold_completely(store: Store) {
        sell_out(setup(store).start().await, 5, "9500", 2).await;
    }

    async fn every_position_of_250_outcomes_can_be_sold_completely(store: Store) {
        sell_out(setup(store).start().await, 250, "0", 3).await;
    }

    async fn nothing_is_left_to_claim_after_a_result(store: Store) {
        settle(setup(store).start().await, 3, 4, End::Resolved).await;
    }

    async fn nothing_is_left_to_claim_after_a_cancel(store: Store) {
        settle(setup(store).start().await, 250, 5, End::Cancelled).await;
    }

    async fn nothing_is_left_to_claim_after_automatic_payment(store: Store) {
        settle(setup(store).automatic_redemptions().start().await, 3, 6, End::Resolved).await;
    }
}
