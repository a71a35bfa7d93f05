//! Fee methods. The base fee is constant and transactions never compete for a block, so the results
//! hardly vary.

use alloy::consensus::Transaction as _;
use alloy::eips::BlockNumberOrTag;
use alloy::rpc::types::FeeHistory;
use alloy_primitives::U64;
use serde::Deserialize;

use super::params::Params;
use super::{RpcResult, json};
use crate::EmbeddedNode;
use crate::block::SealedBlock;
use crate::error::RpcError;

/// The maximum number of blocks in one history; the same as geth's.
const MAX_BLOCKS: u64 = 1_024;
/// The maximum number of percentiles in one history.
const MAX_PERCENTILES: usize = 100;

/// A block count. Some libraries send a hex quantity, others a plain number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Count {
    Plain(u64),
    Quantity(U64),
}

impl EmbeddedNode {
    pub(super) fn gas_price(&self) -> RpcResult {
        json(&U64::from(self.shared.chain.read().head().header.base_fee_per_gas.unwrap_or_default()))
    }

    pub(super) fn fee_history(&self, params: &Params<'_>) -> RpcResult {
        let count = match params.get(0)? {
            Count::Plain(count) => count,
            Count::Quantity(count) => count.to(),
        };
        let newest: BlockNumberOrTag = params.get(1)?;
        let percentiles = params.find::<Vec<f64>>(2)?.unwrap_or_default();
        if percentiles.len() > MAX_PERCENTILES {
            return Err(RpcError::params(format!("over the query limit {MAX_PERCENTILES}")));
        }
        let chain = self.shared.chain.read();
        let newest = self.number_of(&chain, newest);
        if newest > chain.head().header.number {
            return Err(RpcError::refused("request beyond head block"));
        }
        let count = count.min(MAX_BLOCKS).min(newest + 1);
        let mut history = FeeHistory { oldest_block: newest + 1 - count, ..FeeHistory::default() };
        if count == 0 {
            history.oldest_block = 0;
            return json(&history);
        }
        for number in history.oldest_block..=newest {
            let block = self.find_block(&chain, number.into())?;
            let block = block.ok_or_else(|| RpcError::refused("header not found"))?;
            history.base_fee_per_gas.push(base_fee(&block).into());
            history.gas_used_ratio.push(gas_ratio(&block));
            history.base_fee_per_blob_gas.push(1);
            history.blob_gas_used_ratio.push(0.0);
            if !percentiles.is_empty() {
                // Each block has a single transaction, whose tip is every percentile.
                history.reward.get_or_insert_default().push(vec![tip(&block); percentiles.len()]);
            }
        }
        // The format has one entry more than blocks: the base fee of the next block.
        history.base_fee_per_gas.push(base_fee(chain.head()).into());
        history.base_fee_per_blob_gas.push(1);
        json(&history)
    }
}

fn base_fee(block: &SealedBlock) -> u64 {
    block.header.base_fee_per_gas.unwrap_or_default()
}

fn tip(block: &SealedBlock) -> u128 {
    let tip = block
        .mined
        .as_ref()
        .and_then(|mined| mined.transaction.envelope.effective_tip_per_gas(base_fee(block)));
    tip.unwrap_or_default()
}

#[expect(
    clippy::float_arithmetic,
    reason = "the wire format of eth_feeHistory is a fraction; nothing is reckoned with it"
)]
fn gas_ratio(block: &SealedBlock) -> f64 {
    block.header.gas_used as f64 / block.header.gas_limit.max(1) as f64
}
