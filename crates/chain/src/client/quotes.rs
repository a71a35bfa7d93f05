//! Quotes: the amounts that trades would move.

use std::collections::{HashMap, HashSet};

use alloy::eips::BlockId;
use alloy_primitives::{B256, U256};
use futures::{StreamExt, stream};

use super::chain::Chain;
use super::intent::IntentSide;
use super::state::{Fill, u64_of};
use crate::bindings::MarketHub;
use crate::error::ChainError;

/// The maximum number of quotes in one call. A quote of a market with 250 outcomes uses up to a million gas, and
/// nodes limit the gas of a call.
const QUOTES_PER_CALL: usize = 25;
/// The maximum number of requests to the chain that one task has in flight.
pub const MAX_CONCURRENT_CALLS: usize = 16;

/// A trade to quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuoteRequest {
    pub market_id: u64,
    pub outcome: u8,
    pub side: IntentSide,
    /// In USDC atomic or tokens WAD, whichever amount is exact for the side. For `SellAll` it is the
    /// token balance.
    pub amount: U256,
}

impl Chain {
    /// Returns the amounts that a trade would move now. [`QuoteRequest`] describes the arguments.
    ///
    /// # Errors
    ///
    /// `Reverted` for the same reasons as the trade itself.
    pub async fn quote(
        &self,
        market_id: u64,
        outcome: u8,
        side: IntentSide,
        amount: U256,
    ) -> Result<Fill, ChainError> {
        self.quote_in(self.reads_at, QuoteRequest { market_id, outcome, side, amount }).await
    }

    /// Returns the amounts that a trade would have moved right after the block with this hash.
    ///
    /// # Errors
    ///
    /// As for [`Self::quote`]. `Rejected` if the node lacks that block's state, `Decode` if the hub
    /// did not exist yet.
    pub async fn quote_at(
        &self,
        block: B256,
        market_id: u64,
        outcome: u8,
        side: IntentSide,
        amount: U256,
    ) -> Result<Fill, ChainError> {
        self.quote_in(BlockId::hash(block), QuoteRequest { market_id, outcome, side, amount }).await
    }

    /// Returns the quote of each different trade, as if it were the only one. Asks for many trades in one call. On a live
    /// chain, several calls may see different blocks.
    pub async fn quotes(
        &self,
        trades: impl IntoIterator<Item = QuoteRequest>,
    ) -> HashMap<QuoteRequest, Result<Fill, ChainError>> {
        let different: HashSet<QuoteRequest> = trades.into_iter().collect();
        let mut one_by_one = Vec::from_iter(different);
        let mut quotes = HashMap::with_capacity(one_by_one.len());
        if one_by_one.len() > 1 {
            let pages: Vec<Vec<QuoteRequest>> =
                one_by_one.chunks(QUOTES_PER_CALL).map(<[_]>::to_vec).collect();
            let answers = stream::iter(pages).map(async |page| (self.quote_page(&page).await, page));
            let answers: Vec<_> = answers.buffer_unordered(MAX_CONCURRENT_CALLS).collect().await;
            one_by_one.clear();
            for (answer, page) in answers {
                match answer {
                    Ok(fills) if fills.len() == page.len() => quotes.extend(page.into_iter().zip(fills)),
                    Err(error @ ChainError::Unreachable(_)) => {
                        quotes.extend(page.into_iter().map(|trade| (trade, Err(error.clone()))));
                    }
                    // One of them reverts, and with it the whole call. Or the node refuses calls of this size.
                    _ => one_by_one.extend(page),
                }
            }
        }
        let each = stream::iter(one_by_one);
        let each = each.map(async |trade| (trade, self.quote_in(self.reads_at, trade).await));
        quotes.extend(each.buffer_unordered(MAX_CONCURRENT_CALLS).collect::<Vec<_>>().await);
        quotes
    }

    /// # Errors
    ///
    /// `Reverted` if one of the quotes reverts.
    async fn quote_page(&self, page: &[QuoteRequest]) -> Result<Vec<Result<Fill, ChainError>>, ChainError> {
        let calls: Vec<_> = page.iter().map(QuoteRequest::call).collect();
        let fills = self.view_each(&calls, QUOTES_PER_CALL).await?;
        Ok(fills.into_iter().map(fill_of).collect())
    }

    async fn quote_in(&self, block: BlockId, request: QuoteRequest) -> Result<Fill, ChainError> {
        fill_of(self.view_at(self.contracts.hub, request.call(), block).await?)
    }
}

impl QuoteRequest {
    fn call(&self) -> MarketHub::quoteCall {
        // The hub cannot quote `SellAll`. The caller passes the balance, so quote a sale of exact
        // tokens.
        let side = if self.side == IntentSide::SellAll { IntentSide::SellTokens } else { self.side };
        MarketHub::quoteCall {
            marketId: self.market_id,
            index: self.outcome,
            side: side as u8,
            amount: self.amount,
        }
    }
}

fn fill_of(fill: MarketHub::Fill) -> Result<Fill, ChainError> {
    Ok(Fill {
        usdc_atomic: u64_of(fill.usdc, "usdc")?,
        tokens_wad: fill.tokens,
        fee_atomic: u64_of(fill.fee, "fee")?,
        cost_before_wad: fill.costBefore,
        cost_after_wad: fill.costAfter,
        quantity_before_wad: fill.quantityBefore,
        quantity_after_wad: fill.quantityAfter,
    })
}

#[cfg(test)]
mod tests {
    use alloy::providers::{Provider, ProviderBuilder, mock::Asserter};
    use alloy_primitives::{Address, Bytes};

    use super::*;
    use crate::Contracts;

    #[tokio::test]
    async fn a_node_that_refuses_large_calls_is_asked_for_each_quote() {
        let node = Asserter::new();
        node.push_failure_msg("out of gas: gas required exceeds the limit");
        // The seven words of a fill.
        let answer = Bytes::from(U256::from(7).to_be_bytes::<32>().repeat(7));
        node.push_success(&answer);
        node.push_success(&answer);
        let address = Address::ZERO;
        let contracts = Contracts {
            usdc: address,
            authority: address,
            hub: address,
            gate: address,
            account_factory: address,
        };
        let provider = ProviderBuilder::default().connect_mocked_client(node.clone()).erased();
        let order = |amount: u64| QuoteRequest {
            market_id: 1,
            outcome: 0,
            side: IntentSide::BuyForUsdc,
            amount: U256::from(amount),
        };

        let quotes = Chain::of(provider, contracts, 1).quotes([order(1), order(2)]).await;

        assert!(node.read_q().is_empty());
        for amount in [1, 2] {
            assert_eq!(quotes[&order(amount)].as_ref().map(|fill| fill.usdc_atomic), Ok(7));
        }
    }
}
