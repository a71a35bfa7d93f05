//! Markets as the public API returns them.

use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use domain::market::{MarketStatus, round_for_display};
use domain::{Cents, Timestamp, Wad};
use presentation::numbers;
use serde::Serialize;
use store::markets::{Market, Outcome};
use utoipa::ToSchema;

use crate::openapi::formats::TxHash;

/// A market in the lists of all markets, of a thread and of an organization. Outcome 0 is YES.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Market, description = "A market in a list. Outcome 0 is YES.")]
#[serde(rename_all = "camelCase")]
pub struct MarketRecord {
    id: MarketId,
    question: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The probability of outcome 0, from 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    probability: f64,
    /// USDC for one token of outcome 0: its probability or, once the market is settled, its payout.
    yes_price: f64,
    /// USDC for one token of outcome 1. With more than two outcomes: the sum of all outcomes except
    /// outcome 0.
    no_price: f64,
    /// USDC traded so far.
    total_volume: Cents,
    trade_count: u64,
    status: MarketStatus,
    /// The time at which trading ends, in milliseconds since the Unix epoch.
    end_time: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    /// The thread of the market.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<ThreadId>,
    /// The chapter within the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    chapter_id: Option<String>,
    created_at: Timestamp,
    /// The URL of the post that the market originates from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_tweet_url: Option<String>,
    /// Only for markets with more than two outcomes.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcomes: Option<Vec<OutcomeRecord>>,
}

/// One outcome of a market.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Outcome)]
#[serde(rename_all = "camelCase")]
struct OutcomeRecord {
    /// The index of the outcome. The first index is 0.
    index: u8,
    label: String,
    #[schema(minimum = 0, maximum = 1)]
    probability: f64,
    /// USDC for one token: the probability or, once the market is settled, the payout.
    price: f64,
    /// USDC traded on the outcome.
    total_volume: Cents,
    trade_count: u64,
}

/// A market with all of its details.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MarketDetail)]
#[serde(rename_all = "camelCase")]
pub struct MarketDetail {
    id: MarketId,
    question: String,
    /// Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The probability of outcome 0, from 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    probability: f64,
    /// USDC for one token of outcome 0: its probability or, once the market is settled, its payout.
    yes_price: f64,
    /// USDC for one token of outcome 1. With more than two outcomes: the sum of all outcomes except
    /// outcome 0.
    no_price: f64,
    /// USDC traded so far.
    total_volume: Cents,
    trade_count: u64,
    status: MarketStatus,
    /// The time at which trading ends, in milliseconds since the Unix epoch.
    end_time: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    tags: Vec<String>,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_at: Option<Timestamp>,
    /// The URL of the post that the market originates from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_tweet_url: Option<String>,
    outcomes: Vec<OutcomeRecord>,
    /// The result. Only set once the market is settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<ResolutionRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<ThreadId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization_id: Option<OrganizationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partner_id: Option<PartnerId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chapter_id: Option<String>,
}

/// The result of a settled market.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Resolution, example = json!({
    "outcomeIndex": 0,
    "payouts": [1.0, 0.0],
    "source": "The final score on the league's website",
    "txHash": "0x8f1c2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddeeff0",
}))]
#[serde(rename_all = "camelCase")]
struct ResolutionRecord {
    /// The winning outcome. Omitted if several outcomes share the payout.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome_index: Option<usize>,
    /// The payout of one token of each outcome, in USDC.
    payouts: Vec<f64>,
    /// The source of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[schema(value_type = Option<TxHash>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_hash: Option<alloy_primitives::B256>,
}

/// The prices of YES and NO.
#[derive(Debug, Clone, Copy)]
pub struct Prices {
    pub yes: f64,
    pub no: f64,
}

impl Prices {
    /// Returns the prices of a market with these outcomes. With more than two outcomes, NO
    /// means all except the first.
    #[expect(clippy::float_arithmetic, reason = "a display value")]
    pub fn of(market: &Market, outcomes: &[Outcome]) -> Self {
        let price = |outcome: &Outcome| numbers::of_outcome(market, outcome);
        let yes = outcomes.first().map(price).unwrap_or_default();
        let no = match outcomes {
            [_, no] => price(no),
            _ => round_for_display(1.0 - yes, 6),
        };
        Self { yes, no }
    }
}

impl MarketRecord {
    /// Builds the record of `market` as of `now`.
    pub fn new(market: Market, outcomes: Vec<Outcome>, now: Timestamp) -> Self {
        let Prices { yes, no } = Prices::of(&market, &outcomes);
        let more_than_two = outcomes.len() > 2;
        Self {
            outcomes: more_than_two.then(|| records(&market, outcomes)),
            id: market.id,
            status: market.status_at(now),
            question: market.question,
            description: market.description,
            probability: yes,
            yes_price: yes,
            no_price: no,
            total_volume: market.volume.to_cents_floor(),
            trade_count: market.trade_count,
            end_time: market.end_time.ms(),
            category: market.category,
            thread_id: market.thread_id,
            chapter_id: market.chapter_id,
            created_at: market.created_at,
            source_tweet_url: market.source_url,
        }
    }
}

impl MarketDetail {
    /// Builds the record of `market` as of `now`.
    pub fn new(market: Market, outcomes: Vec<Outcome>, now: Timestamp) -> Self {
        let Prices { yes, no } = Prices::of(&market, &outcomes);
        Self {
            outcomes: records(&market, outcomes),
            resolution: resolution(&market),
            id: market.id,
            status: market.status_at(now),
            question: market.question,
            description: market.description,
            probability: yes,
            yes_price: yes,
            no_price: no,
            total_volume: market.volume.to_cents_floor(),
            trade_count: market.trade_count,
            end_time: market.end_time.ms(),
            category: market.category,
            tags: market.tags,
            created_at: market.created_at,
            resolved_at: market.resolved_at,
            source_tweet_url: market.source_url,
            thread_id: market.thread_id,
            organization_id: market.organization_id,
            partner_id: market.partner_id,
            chapter_id: market.chapter_id,
        }
    }
}

fn records(market: &Market, outcomes: Vec<Outcome>) -> Vec<OutcomeRecord> {
    let record = |outcome: Outcome| {
        let price = numbers::of_outcome(market, &outcome);
        OutcomeRecord {
            index: outcome.index,
            probability: price,
            price,
            total_volume: outcome.volume.to_cents_floor(),
            trade_count: outcome.trade_count,
            label: outcome.label,
        }
    };
    outcomes.into_iter().map(record).collect()
}

fn resolution(market: &Market) -> Option<ResolutionRecord> {
    let payouts = market.payouts.as_ref()?;
    let whole: Vec<_> = payouts
        .iter()
        .enumerate()
        .filter(|(_, payout)| **payout == Wad::ONE)
        .map(|(index, _)| index)
        .collect();
    // A split payout has no single winner.
    let outcome_index = if let [only] = whole[..] { Some(only) } else { None };
    Some(ResolutionRecord {
        outcome_index,
        payouts: payouts.iter().map(|payout| numbers::price(*payout)).collect(),
        source: market.resolution_source.clone(),
        tx_hash: market.resolution_tx_hash,
    })
}
