//! Compares the hub's arithmetic with the logarithmic market scoring rule, computed to 80 digits
//! from its definition. The tests draw hundreds of cases. Each result may differ only by a few wei
//! and never in the trader's favor.

use alloy_primitives::{B256, U256};
use chain::{ChainError, Fill, IntentSide, MarketOnChain, MarketTerms, Revert, calls};
use dashu_float::DBig;

use crate::world::{Node, TOKEN, USDC, World, hub_buy, terms};

const DIGITS: usize = 80;
const BPS: u64 = 10_000;

#[tokio::test]
async fn quotes_equal_the_curve_rounded_for_the_pool() {
    let world = World::new(Node::embedded()).await;
    let mut draw = Draw(0x5eed);
    let mut compared = [0; 4];
    for n in 0..24 {
        let market = a_market(&world, &mut draw, n).await;
        let state = world.chain.market(market).await.unwrap();
        for _ in 0..32 {
            let outcome = draw.below(state.outcomes.len() as u64) as u8;
            let side = IntentSide::ALL[draw.below(4) as usize];
            let amount = an_amount(&mut draw, side, &state, outcome);
            match world.chain.quote(market, outcome, side, amount).await {
                Ok(fill) => {
                    check(&state, side, amount, &fill);
                    compared[side as usize] += 1;
                }
                Err(ChainError::Reverted(
                    Revert::AmountZero | Revert::LiquidityInsufficient | Revert::InsufficientPosition,
                )) => {}
                Err(other) => panic!("{side} {amount}: {other}"),
            }
        }
    }
    assert!(compared.iter().all(|cases| *cases > 60), "{compared:?}");
}

#[tokio::test]
async fn cost_stays_at_the_log_sum_and_prices_sum_to_one() {
    let world = World::new(Node::embedded()).await;
    let mut draw = Draw(77);
    for n in 0..8 {
        let market = a_market(&world, &mut draw, n).await;
        let state = world.chain.market(market).await.unwrap();
        let b = big(state.liquidity_usdc_atomic) * big(1_000_000_000_000_u64);
        let sum = state.outcomes.iter().fold(big(0), |sum, it| sum + (big(it.quantity_wad) / &b).exp());
        let above = big(state.cost_wad) - &b * sum.ln();
        let trades: u32 = state.outcomes.iter().map(|outcome| outcome.trades).sum();
        assert!(above >= big(0), "the pool is short by {above}");
        assert!(above <= (&b / big(TOKEN) + big(1)) * big(50 + 50 * trades), "{above} after {trades} trades");
        let prices = world.chain.prices(market).await.unwrap();
        assert!(prices.iter().sum::<U256>().abs_diff(U256::from(TOKEN)) < U256::from(1_000_000_000));
    }
}

/// Creates a market with random terms and executes some random trades.
async fn a_market(world: &World, draw: &mut Draw, n: u8) -> u64 {
    let outcomes = 2 + draw.below(9) as u8;
    let reference = B256::repeat_byte(n + 100);
    let size = 10_u64.pow(1 + draw.below(6) as u32);
    let liquidity_usdc_atomic = USDC + draw.below(size * USDC);
    let fee_bps = draw.below(1_001) as u16;
    let mut opening_odds_wad = Vec::new();
    if draw.below(2) == 1 {
        // Weights between 1 and 50. The last outcome gets the rounding remainder.
        let weights: Vec<u64> = (0..outcomes).map(|_| 1 + draw.below(50)).collect();
        let total: u64 = weights.iter().sum();
        let share = |weight: &u64| U256::from(TOKEN) * U256::from(*weight) / U256::from(total);
        opening_odds_wad = weights.iter().map(share).collect();
        let rest: U256 = opening_odds_wad[1..].iter().sum();
        opening_odds_wad[0] = U256::from(TOKEN) - rest;
    }
    let terms =
        MarketTerms { fee_bps, liquidity_usdc_atomic, opening_odds_wad, ..terms(reference, outcomes) };
    world.hub(&world.resolver, calls::create_market(&terms)).await.unwrap();
    let market = world.chain.market_of(reference).await.unwrap().unwrap();
    for _ in 0..draw.below(8) {
        let outcome = draw.below(outcomes.into()) as u8;
        let usdc_atomic = 1_000 + draw.below(liquidity_usdc_atomic * 2);
        world.hub(&world.resolver, hub_buy(market, outcome, usdc_atomic)).await.unwrap();
    }
    market
}

/// Draws an amount from dust up to several times the liquidity. A sale never exceeds the supply.
fn an_amount(draw: &mut Draw, side: IntentSide, state: &MarketOnChain, outcome: u8) -> U256 {
    let scale = 1_000_000 / 10_u64.pow(draw.below(6) as u32);
    let part = U256::from(1 + draw.below(scale));
    let million = U256::from(1_000_000);
    let b = U256::from(state.liquidity_usdc_atomic);
    match side {
        IntentSide::BuyForUsdc => b * U256::from(4) * part / million,
        IntentSide::BuyTokens => b * U256::from(4_000_000_000_000_u64) * part / million,
        IntentSide::SellTokens | IntentSide::SellAll => {
            state.outcomes[usize::from(outcome)].quantity_wad * part / million
        }
        IntentSide::SellForUsdc => b * part / million / U256::from(4),
    }
}

fn check(state: &MarketOnChain, side: IntentSide, amount: U256, fill: &Fill) {
    let b = big(state.liquidity_usdc_atomic) * big(1_000_000_000_000_u64);
    let v = big(fill.cost_before_wad - fill.quantity_before_wad) / &b;
    let fee_bps = u64::from(state.fee_bps);
    let cost_moved = fill.cost_after_wad.abs_diff(fill.cost_before_wad);
    assert_eq!(fill.quantity_after_wad.abs_diff(fill.quantity_before_wad), fill.tokens_wad);
    let (x, tokens, moved) = (big(cost_moved) / &b, big(fill.tokens_wad), big(cost_moved));
    let d = &tokens / &b;
    let one = big(1);

    // `gap` is the rounding gain of the pool. `conditioning` is the factor by which an error of one
    // wei grows, in units of b.
    let (gap, conditioning) = match side {
        IntentSide::BuyForUsdc => {
            let fee = (fill.usdc_atomic * fee_bps).div_ceil(BPS);
            assert_eq!((U256::from(fill.usdc_atomic), fill.fee_atomic), (amount, fee));
            let exact = &b * (&one + (x.exp() - &one) * v.exp()).ln();
            (exact - tokens, &one + v.exp())
        }
        IntentSide::BuyTokens => {
            let net = cost_moved.div_ceil(U256::from(1_000_000_000_000_u64)).to::<u64>();
            assert_eq!((fill.tokens_wad, fill.usdc_atomic), (amount, net + fill.fee_atomic));
            assert_eq!(fill.fee_atomic, (net * fee_bps).div_ceil(BPS - fee_bps));
            let exact = &b * (&one + (-v).exp() * (d.exp() - &one)).ln();
            (moved - exact, one)
        }
        IntentSide::SellTokens | IntentSide::SellAll => {
            let gross = (cost_moved / U256::from(1_000_000_000_000_u64)).to::<u64>();
            assert_eq!((fill.tokens_wad, fill.usdc_atomic), (amount, gross - fill.fee_atomic));
            assert_eq!(fill.fee_atomic, (gross * fee_bps).div_ceil(BPS));
            let left = &one - (-v).exp() * (&one - (-d).exp());
            (-(&b * left.ln()) - moved, &one + &one / left)
        }
        IntentSide::SellForUsdc => {
            assert_eq!(U256::from(fill.usdc_atomic), amount);
            assert_eq!(fill.fee_atomic, (fill.usdc_atomic * fee_bps).div_ceil(BPS - fee_bps));
            let left = &one - (&one - (-x).exp()) * v.exp();
            (tokens + &b * left.ln(), &one + v.exp() / left)
        }
    };
    assert!(gap >= big(0), "{side} {amount}: the trader gains {gap} wei");
    let most = (&b / big(TOKEN) + big(1)) * big(10) * conditioning;
    assert!(gap <= most, "{side} {amount}: the pool gains {gap} wei, more than {most}");
}

fn big(value: impl ToString) -> DBig {
    let value: DBig = value.to_string().parse().unwrap();
    value.with_precision(DIGITS).value()
}

/// SplitMix64 with a fixed seed, so that every run uses the same cases.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
