//! Compares a market's rows with the contract's state after one block.

use chain::{ChainMarketStatus, MarketOnChain};
use domain::Wad;
use domain::market::MarketStatus;
use store::markets::{Market, Outcome};
use store::{StoreError, Tx};

/// The number of positions per page.
const PAGE: u32 = 1_000;

/// A market's rows and, for each outcome, the sum of its positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketRows {
    pub market: Market,
    pub outcomes: Vec<Outcome>,
    /// The sum of all accounts' tokens of each outcome.
    pub held: Vec<Wad>,
}

impl MarketRows {
    /// Reads a market's rows. `None` if the market is not on chain.
    pub async fn read(tx: &mut Tx, id: domain::ids::MarketId) -> Result<Option<Self>, StoreError> {
        let found = store::markets::find(tx, id).await?.filter(|market| market.chain_market_id.is_some());
        let Some(market) = found else { return Ok(None) };
        let outcomes = store::markets::outcomes(tx, id).await?;
        let mut held = vec![Wad::ZERO; outcomes.len()];
        let mut after = None;
        loop {
            let page = store::movements::list_holdings(tx, id, after, PAGE).await?;
            let Some((account, outcome_index, _)) = page.last() else { break };
            after = Some((*account, *outcome_index));
            for (_, outcome_index, tokens) in &page {
                if let Some(sum) = held.get_mut(usize::from(*outcome_index)) {
                    *sum = sum.checked_add(*tokens).unwrap_or(Wad(alloy_primitives::U256::MAX));
                }
            }
        }
        Ok(Some(Self { market, outcomes, held }))
    }

    /// Returns the differences from the contract's state. Empty if there are none.
    pub fn differences(&self, on_chain: &MarketOnChain) -> Vec<String> {
        let Self { market, outcomes, held } = self;
        let mut differences = Vec::new();
        let mut compare = |what: String, stored: String, chain: String| {
            if stored != chain {
                differences.push(format!("{what}: {stored} stored, {chain} on chain"));
            }
        };
        // The contract freezes an open market at its end time by itself, without an event. In the
        // database the clock does it, slightly earlier or later.
        let is_at_its_end =
            market.status == MarketStatus::Open && on_chain.status == ChainMarketStatus::Frozen;
        let is_noted_early =
            market.frozen_at == Some(market.end_time) && on_chain.status == ChainMarketStatus::Open;
        if !is_at_its_end && !is_noted_early {
            compare("status".to_owned(), market.status.to_string(), status_of(on_chain.status).to_string());
        }
        compare("cost".to_owned(), market.cost.to_string(), on_chain.cost_wad.to_string());
        compare("outcomes".to_owned(), outcomes.len().to_string(), on_chain.outcomes.len().to_string());
        let is_settled =
            matches!(on_chain.status, ChainMarketStatus::Resolved | ChainMarketStatus::Cancelled);
        for ((row, held), outcome) in outcomes.iter().zip(held).zip(&on_chain.outcomes) {
            let of = |what: &str| format!("{what} of outcome {}", row.index);
            compare(of("quantity"), row.quantity.to_string(), outcome.quantity_wad.to_string());
            compare(of("volume"), row.volume.atomic().to_string(), outcome.volume_usdc_atomic.to_string());
            compare(of("trades"), row.trade_count.to_string(), outcome.trades.to_string());
            if !is_settled {
                // The contract's supply does not count redemptions, so the sums differ after the
                // settlement.
                compare(of("positions"), held.to_string(), outcome.supply_wad.to_string());
            }
        }
        differences
    }
}

/// Returns the status that the service shows for a contract status.
pub const fn status_of(status: ChainMarketStatus) -> MarketStatus {
    match status {
        ChainMarketStatus::Open => MarketStatus::Open,
        ChainMarketStatus::Resolved => MarketStatus::Resolved,
        ChainMarketStatus::Cancelled => MarketStatus::Cancelled,
        ChainMarketStatus::None | ChainMarketStatus::Listed | ChainMarketStatus::Frozen => {
            MarketStatus::Frozen
        }
    }
}
