//! Markets as the trading API returns them.

use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use domain::market::MarketStatus;
use domain::{Cents, Timestamp, Usdc, Wad};
use serde::Serialize;
use store::markets::{Market, Outcome};
use utoipa::ToSchema;

use super::numbers;
use crate::openapi::formats::{Address, TxHash};

/// A market. Times are ISO 8601 instants.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Market)]
#[serde(rename_all = "camelCase")]
pub struct MarketRecord {
    id: MarketId,
    question: String,
    description: Option<String>,
    status: MarketStatus,
    outcomes: Vec<OutcomeRecord>,
    category: Option<String>,
    tags: Vec<String>,
    thread_id: Option<ThreadId>,
    organization_id: Option<OrganizationId>,
    partner_id: Option<PartnerId>,
    chapter_id: Option<String>,
    /// USDC traded so far.
    total_volume: Cents,
    trade_count: u64,
    /// The market maker's liquidity parameter `b`. The larger it is, the less a trade moves the
    /// price.
    liquidity: Usdc,
    /// The fee in hundredths of a percent.
    fee_bps: u16,
    chain_id: u64,
    #[schema(value_type = Address)]
    contract_address: alloy_primitives::Address,
    created_at: Timestamp,
    /// The time at which trading ends.
    end_time: Timestamp,
    frozen_at: Option<Timestamp>,
    resolved_at: Option<Timestamp>,
    resolution: Option<ResolutionRecord>,
    as_of: AsOf,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Outcome)]
#[serde(rename_all = "camelCase")]
struct OutcomeRecord {
    /// The index of the outcome. The first index is 0.
    index: u8,
    label: String,
    /// From 0 to 1, rounded for display.
    #[schema(minimum = 0, maximum = 1)]
    probability: f64,
    /// USDC for one token: the probability or, once the market is settled, the payout.
    price: f64,
    /// The outcome token's id in the contract.
    token_id: Option<String>,
    /// Tokens in circulation.
    supply: Wad,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Resolution, example = json!({
    "outcomeIndex": 0,
    "payouts": ["1000000000000000000", "0"],
    "source": "The final score on the league's website",
    "txHash": "0x8f1c2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddeeff0",
}))]
#[serde(rename_all = "camelCase")]
struct ResolutionRecord {
    /// The winning outcome. Null if several outcomes share the payout.
    outcome_index: Option<usize>,
    /// The payout of one token of each outcome, in USDC.
    payouts: Vec<Wad>,
    source: Option<String>,
    #[schema(value_type = Option<TxHash>)]
    tx_hash: Option<alloy_primitives::B256>,
}

/// The block at which the data was read.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct AsOf {
    /// The number of the block.
    pub block: u64,
    /// The time of the block.
    pub at: Timestamp,
}

impl MarketRecord {
    /// Builds the record of `market` as of `now`.
    pub fn new(market: Market, outcomes: Vec<Outcome>, now: Timestamp) -> Self {
        // Computed first: the record takes the members of the market apart.
        let probabilities: Vec<f64> =
            outcomes.iter().map(|outcome| numbers::of_outcome(&market, outcome)).collect();
        let outcomes = outcomes.into_iter().zip(probabilities).map(|(outcome, probability)| OutcomeRecord {
            index: outcome.index,
            probability,
            price: probability,
            token_id: market.token_id(outcome.index).map(|id| id.to_string()),
            supply: outcome.supply(),
            label: outcome.label,
        });
        Self {
            id: market.id,
            status: market.status_at(now),
            outcomes: outcomes.collect(),
            resolution: resolution(&market),
            question: market.question,
            description: market.description,
            category: market.category,
            tags: market.tags,
            thread_id: market.thread_id,
            organization_id: market.organization_id,
            partner_id: market.partner_id,
            chapter_id: market.chapter_id,
            total_volume: market.volume.to_cents_floor(),
            trade_count: market.trade_count,
            liquidity: market.liquidity,
            fee_bps: market.fee_bps,
            chain_id: market.chain_id,
            contract_address: market.contract_address,
            created_at: market.created_at,
            end_time: market.end_time,
            frozen_at: market.frozen_at,
            resolved_at: market.resolved_at,
            as_of: AsOf { block: market.as_of_block, at: market.as_of },
        }
    }
}

fn resolution(market: &Market) -> Option<ResolutionRecord> {
    let payouts = market.payouts.clone()?;
    let mut whole =
        payouts.iter().enumerate().filter(|(_, payout)| **payout == Wad::ONE).map(|(index, _)| index);
    // A split payout has no single winner.
    let outcome_index = match (whole.next(), whole.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    let (source, tx_hash) = (market.resolution_source.clone(), market.resolution_tx_hash);
    Some(ResolutionRecord { outcome_index, payouts, source, tx_hash })
}

#[cfg(test)]
pub mod testing {
    //! A sample market for tests.

    use super::*;
    use uuid::Uuid;

    /// Returns an open market of two equally likely outcomes with `b` = 100 USDC, which ends at
    /// 1,000,000 ms.
    pub fn market() -> (Market, Vec<Outcome>) {
        let id = MarketId(Uuid::from_u128(1));
        let cost = Wad::from(69_314_718_055_994_530_941u128);
        let at = Timestamp::from_ms(0);
        let market = Market {
            id,
            chain_id: 31_337,
            contract_address: alloy_primitives::Address::with_last_byte(0xaa),
            chain_market_id: Some(2),
            question: "Will it rain?".into(),
            description: None,
            category: Some("weather".into()),
            tags: vec!["rain".into()],
            thread_id: None,
            organization_id: None,
            partner_id: None,
            chapter_id: None,
            source_url: None,
            status: MarketStatus::Open,
            fee_bps: 100,
            liquidity: Usdc::from_whole(100),
            opening_cost: cost,
            cost,
            volume: Usdc::from_atomic(12_345_678),
            trade_count: 3,
            payouts: None,
            resolution_tx_hash: None,
            resolution_source: None,
            end_time: Timestamp::from_ms(1_000_000),
            frozen_at: None,
            resolved_at: None,
            as_of_block: 7,
            as_of: at,
            created_at: at,
            featured_position: None,
            quarantined_at: None,
        };
        let outcome = |index: u8, label: &str| Outcome {
            market_id: id,
            index,
            label: label.into(),
            opening: Wad::ZERO,
            quantity: Wad::ZERO,
            volume: Usdc::ZERO,
            trade_count: 0,
        };
        (market, vec![outcome(0, "Yes"), outcome(1, "No")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_market_has_the_documented_members() {
        let (market, outcomes) = testing::market();
        let record = MarketRecord::new(market, outcomes, Timestamp::from_ms(5));
        insta::assert_snapshot!(serde_json::to_string_pretty(&record).unwrap());
    }

    #[test]
    fn an_open_market_past_its_end_reads_frozen() {
        let (market, _) = testing::market();
        assert_eq!(market.status_at(market.end_time.plus_ms(-1)), MarketStatus::Open);
        assert_eq!(market.status_at(market.end_time), MarketStatus::Frozen);
    }

    #[test]
    fn a_settled_market_shows_its_payouts() {
        let (mut market, outcomes) = testing::market();
        market.status = MarketStatus::Resolved;
        market.payouts = Some(vec![Wad::ZERO, Wad::ONE]);
        let record = MarketRecord::new(market.clone(), outcomes.clone(), Timestamp::from_ms(5));
        assert_eq!(record.outcomes[1].probability, 1.0);
        assert_eq!(record.resolution.and_then(|resolution| resolution.outcome_index), Some(1));
        market.payouts = Some(vec![Wad::from(Wad::ONE.to_u128().unwrap() / 2); 2]);
        let record = MarketRecord::new(market, outcomes, Timestamp::from_ms(5));
        assert_eq!(record.outcomes[0].probability, 0.5);
        assert_eq!(record.resolution.and_then(|resolution| resolution.outcome_index), None);
    }
}
