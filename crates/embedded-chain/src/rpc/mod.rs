//! Dispatches the JSON-RPC methods. `handle` blocks the thread while it waits for a send; `call` is
//! async. Their results are the same.

mod access;
mod blocks;
mod fees;
mod http;
mod logs;
mod params;
mod send;
mod state;

use alloy_primitives::U64;
use serde::Serialize;
use serde_json::value::RawValue;

use super::EmbeddedNode;
use super::error::RpcError;
use super::miner::{Job, MineResult};
use params::Params;

pub use access::Access;

/// The result of a method: JSON or an error.
pub type RpcResult = Result<Box<RawValue>, RpcError>;

/// A method that mines a block. It returns only after the block's commit.
enum Mining {
    /// Returns the transaction's hash.
    Send,
    /// Returns the transaction's receipt.
    SendSync,
    /// Returns the same result as Hardhat and Anvil.
    EvmMine,
    /// Returns the block's number.
    Mine,
}

impl Mining {
    /// Returns true for methods that mine a block without a transaction. Only tests need them.
    const fn is_for_tests(&self) -> bool {
        matches!(self, Self::EvmMine | Self::Mine)
    }

    fn of(method: &str) -> Option<Self> {
        Some(match method {
            "eth_sendRawTransaction" => Self::Send,
            "eth_sendRawTransactionSync" => Self::SendSync,
            "evm_mine" => Self::EvmMine,
            "foretell_mine" => Self::Mine,
            _ => return None,
        })
    }
}

impl EmbeddedNode {
    /// Executes one JSON-RPC call. A send blocks this thread until its block is durable.
    ///
    /// # Errors
    ///
    /// The error object of the JSON-RPC response.
    pub fn handle(&self, method: &str, params: Option<&RawValue>) -> RpcResult {
        self.handle_as(method, params, &Access::UNLIMITED)
    }

    /// Like [`Self::handle`], within the limits of `access`.
    fn handle_as(&self, method: &str, params: Option<&RawValue>, access: &Access) -> RpcResult {
        let params = Params::parse(params)?;
        match Mining::of(method) {
            // Report the same error as for an unknown method.
            Some(mining) if mining.is_for_tests() && !access.test_methods => Err(RpcError::method(method)),
            Some(mining) => match self.job(&mining, &params)? {
                Some(signed) => answer_mined(&mining, self.wait(|reply| Job::Transaction(signed, reply))),
                None => answer_mined(&mining, self.wait(Job::Empty)),
            },
            None => self.read(method, &params, access),
        }
    }

    /// Executes one JSON-RPC call. A send waits for its block's commit. Dropping the future does
    /// not cancel the send.
    ///
    /// # Errors
    ///
    /// The error object of the JSON-RPC response.
    pub async fn call(&self, method: &str, params: Option<&RawValue>) -> RpcResult {
        let params = Params::parse(params)?;
        match Mining::of(method) {
            Some(mining) => match self.job(&mining, &params)? {
                Some(signed) => {
                    answer_mined(&mining, self.submit(|reply| Job::Transaction(signed, reply)).await)
                }
                None => answer_mined(&mining, self.submit(Job::Empty).await),
            },
            None => self.read(method, &params, &Access::UNLIMITED),
        }
    }

    /// Executes the read-only methods. Any other method is unknown.
    fn read(&self, method: &str, params: &Params<'_>, access: &Access) -> RpcResult {
        match method {
            "eth_chainId" => json(&U64::from(self.chain_id())),
            "net_version" => json(&self.chain_id().to_string()),
            "net_listening" => json(&true),
            "web3_clientVersion" => json(&concat!("foretell/", env!("CARGO_PKG_VERSION"))),
            "eth_syncing" => json(&false),
            "eth_accounts" => json(&[(); 0]),
            "eth_blockNumber" => json(&U64::from(self.head().0)),
            "eth_gasPrice" => self.gas_price(),
            // Transactions never compete for a block, so a tip has no benefit.
            "eth_maxPriorityFeePerGas" => json(&U64::ZERO),
            // The protocol's minimum: blobs are not supported.
            "eth_blobBaseFee" => json(&U64::from(1)),
            "eth_feeHistory" => self.fee_history(params),
            "eth_getBalance" => self.balance(params),
            "eth_getCode" => self.code(params),
            "eth_getTransactionCount" => self.transaction_count(params),
            "eth_getStorageAt" => self.storage_at(params),
            "eth_call" => self.message_call(params, access.call_gas),
            "eth_estimateGas" => self.estimate_gas(params, access.estimate_gas),
            "eth_getTransactionByHash" => self.transaction_by_hash(params),
            "eth_getRawTransactionByHash" => self.raw_transaction(params),
            "eth_getTransactionReceipt" => self.transaction_receipt(params),
            "eth_getTransactionByBlockNumberAndIndex" | "eth_getTransactionByBlockHashAndIndex" => {
                self.transaction_in_block(params)
            }
            "eth_getBlockByNumber" | "eth_getBlockByHash" => self.block(params),
            "eth_getBlockReceipts" => self.block_receipts(params),
            "eth_getBlockTransactionCountByNumber" | "eth_getBlockTransactionCountByHash" => {
                self.block_transaction_count(params)
            }
            "eth_getUncleCountByBlockNumber" | "eth_getUncleCountByBlockHash" => json(&U64::ZERO),
            "eth_getLogs" => self.logs(params, access.log_blocks),
            other => Err(RpcError::method(other)),
        }
    }
}

fn answer_mined(mining: &Mining, outcome: MineResult) -> RpcResult {
    let block = outcome?;
    match (mining, &block.mined) {
        (Mining::Send, Some(mined)) => json(&mined.hash()),
        (Mining::SendSync, Some(mined)) => json(&blocks::receipt_view(&block, mined)),
        (Mining::EvmMine, _) => json(&"0x0"),
        (_, _) => json(&U64::from(block.header.number)),
    }
}

fn json<T: Serialize + ?Sized>(value: &T) -> RpcResult {
    serde_json::value::to_raw_value(value).map_err(|error| RpcError::internal(error.to_string()))
}
