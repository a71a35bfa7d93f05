//! The handle on one chain and the contracts deployed on it.

use std::sync::Arc;
use std::time::Duration;

use alloy::consensus::Header;
use alloy::eips::BlockId;
use alloy::eips::BlockNumberOrTag;
use alloy::providers::{DynProvider, Provider, ProviderBuilder};
use alloy::rpc::client::RpcClient;
use alloy::rpc::types::TransactionRequest;
use alloy::sol_types::SolCall;
use alloy::transports::RpcError;
use alloy_primitives::{Address, B256, Bytes};
use serde::{Deserialize, Serialize};

use super::error::ChainError;
use super::event::Event;
use crate::embedded::EmbeddedNode;
use crate::nodes::{Endpoint, Nodes, REQUEST_TIMEOUT};

/// How often `transact` looks for a receipt, unless told otherwise.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Where the contracts stand on a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contracts {
    /// USDC, six decimals.
    pub usdc: Address,
    /// The MarketHub: all markets and positions.
    pub hub: Address,
    /// The Gate: delegations and intents.
    pub gate: Address,
    /// The factory of smart accounts.
    pub account_factory: Address,
}

/// A block, by its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its height.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// Its parent's hash: differs from the block known at `number - 1` after a reorganisation.
    pub parent_hash: B256,
    /// Its time, Unix seconds.
    pub timestamp_s: u64,
}

/// A provider, the contracts behind it and the chain's id. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Chain {
    pub(super) provider: DynProvider,
    /// The chain behind the provider, where it is in this process: calls and the newest block are asked of it without
    /// the JSON that a provider puts around them.
    pub(super) near: Option<Arc<EmbeddedNode>>,
    /// The nodes behind the provider, if there may be several.
    nodes: Option<Arc<Nodes>>,
    pub(super) contracts: Contracts,
    chain_id: u64,
    pub(super) poll_interval: Duration,
    /// The block whose state reads see unless they name another.
    pub(super) reads_at: BlockId,
}

/// A provider over HTTP to a JSON-RPC node, with a timeout of 10 s a request and no fillers: nothing is
/// filled in or sent again behind the caller's back. Does not connect yet.
///
/// # Errors
/// `Rejected` if `url` is no URL of HTTP.
pub fn http_provider(url: &str) -> Result<DynProvider, ChainError> {
    let rpc = RpcClient::new(Endpoint::new(url, REQUEST_TIMEOUT)?, false);
    Ok(ProviderBuilder::default().connect_client(rpc).erased())
}

impl Chain {
    /// Reads the chain's id. Whether the contracts are there is for [`super::deploy::verify`].
    ///
    /// # Errors
    /// `Unreachable` and what else a read gives.
    pub async fn connect(provider: DynProvider, contracts: Contracts) -> Result<Self, ChainError> {
        let chain_id = provider.get_chain_id().await.map_err(ChainError::of_read)?;
        Ok(Self::of(provider, contracts, chain_id))
    }

    /// The chain of that id behind `provider`. Asks nothing: it is there for who knows the id already, also while no node
    /// answers.
    pub fn of(provider: DynProvider, contracts: Contracts, chain_id: u64) -> Self {
        Self {
            provider,
            near: None,
            nodes: None,
            contracts,
            chain_id,
            poll_interval: POLL_INTERVAL,
            reads_at: BlockId::latest(),
        }
    }

    /// The embedded chain. What it answers is what [`Self::connect`] with its provider answers, only sooner.
    pub fn embedded(node: &Arc<EmbeddedNode>, contracts: Contracts) -> Self {
        let near = Some(Arc::clone(node));
        Self { near, ..Self::of(node.provider(), contracts, node.chain_id()) }
    }

    /// The chain behind several nodes. Which chain that is may not be known yet.
    pub fn over(nodes: &Arc<Nodes>, contracts: Contracts) -> Self {
        Self { nodes: Some(Arc::clone(nodes)), ..Self::of(nodes.provider(), contracts, 0) }
    }

    /// The nodes behind the provider; `None` for the embedded chain and for a single provider.
    pub fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.nodes.as_ref()
    }

    /// Confirms that the node in use answers for the expected chain: before something is signed, or taken back.
    ///
    /// # Errors
    /// `Unreachable` if no node answers, `Inconsistent` if it is another chain, or the node is behind the settled block.
    pub async fn confirm(&self) -> Result<(), ChainError> {
        match &self.nodes {
            Some(nodes) => nodes.confirm().await,
            None => Ok(()),
        }
    }

    /// Answers should come from nodes that have the block of this height, if there are several.
    pub fn want_height(&self, height: u64) {
        if let Some(nodes) = &self.nodes {
            nodes.want_height(height);
        }
    }

    /// The same with another interval between looks for a receipt.
    #[must_use]
    pub fn with_poll_interval(mut self, poll_interval: Duration) -> Self {
        self.poll_interval = poll_interval.max(Duration::from_millis(1));
        self
    }

    /// The same chain as it was right after the block with this hash. Every read sees the state of that block, or fails with
    /// `Rejected` or `Inconsistent` if the node does not have it.
    #[must_use]
    pub fn at_block(&self, block: B256) -> Self {
        Self { reads_at: BlockId::hash(block), ..self.clone() }
    }

    /// Whether the chain is in this process. It never contradicts itself and has no backends that lag.
    pub fn is_embedded(&self) -> bool {
        self.near.is_some()
    }

    /// Where the contracts stand.
    pub fn contracts(&self) -> &Contracts {
        &self.contracts
    }

    /// The chain's id (EIP-155); 0 as long as no node has said it and nothing else is known of it.
    pub fn chain_id(&self) -> u64 {
        match &self.nodes {
            Some(nodes) => nodes.identity().map_or(0, |identity| identity.chain_id),
            None => self.chain_id,
        }
    }

    /// The provider underneath.
    pub fn provider(&self) -> &DynProvider {
        &self.provider
    }

    /// The newest block.
    ///
    /// # Errors
    /// `Unreachable` and what else a read gives.
    pub async fn head(&self) -> Result<Block, ChainError> {
        if let Some(node) = &self.near {
            let (header, hash) = node.newest().into_parts();
            let Header { number, parent_hash, timestamp: timestamp_s, .. } = header;
            return Ok(Block { number, hash, parent_hash, timestamp_s });
        }
        let head = self.block_at(BlockNumberOrTag::Latest).await?;
        head.ok_or_else(|| ChainError::Decode("the node has no latest block".to_owned()))
    }

    /// The newest block that the node takes for final: it will not be reorganised away.
    ///
    /// # Errors
    /// `Unreachable` and what else a read gives; `None` where the node knows none yet.
    pub async fn finalized(&self) -> Result<Option<Block>, ChainError> {
        match &self.nodes {
            Some(nodes) => nodes.finalized().await,
            None => self.finalized_of_provider().await,
        }
    }

    pub(crate) async fn finalized_of_provider(&self) -> Result<Option<Block>, ChainError> {
        self.block_at(BlockNumberOrTag::Finalized).await
    }

    /// The block of that height on the present chain, if there is one.
    ///
    /// # Errors
    /// `Unreachable` and what else a read gives.
    pub async fn block(&self, number: u64) -> Result<Option<Block>, ChainError> {
        self.block_at(BlockNumberOrTag::Number(number)).await
    }

    /// The hash of the block of that height on which as many nodes agree as are configured to; `None` if they disagree,
    /// or too few of them have such a block. Whoever is about to take a block for final waits for it.
    ///
    /// # Errors
    /// `Unreachable` and what else a read gives.
    pub async fn agreed_hash(&self, number: u64) -> Result<Option<B256>, ChainError> {
        if let Some(node) = &self.near {
            let (newest, hash) = node.head();
            if newest == number {
                return Ok(Some(hash));
            }
        }
        if let Some(nodes) = &self.nodes {
            return nodes.agreed_hash(number).await;
        }
        Ok(self.block(number).await?.map(|block| block.hash))
    }

    async fn block_at(&self, tag: BlockNumberOrTag) -> Result<Option<Block>, ChainError> {
        let block = self.provider.get_block_by_number(tag).await.map_err(ChainError::of_read)?;
        Ok(block.map(|block| Block {
            number: block.header.number,
            hash: block.header.hash,
            parent_hash: block.header.parent_hash,
            timestamp_s: block.header.timestamp,
        }))
    }

    /// What hub and Gate logged from `from_block` to `to_block`, both included, in chain order. The caller
    /// bounds the range: nodes refuse wide ones with `Rejected`.
    ///
    /// # Errors
    /// `Decode` where a log of theirs is not as the contracts write it, and what else a read gives.
    pub async fn events(&self, from_block: u64, to_block: u64) -> Result<Vec<Event>, ChainError> {
        let filter = self.log_filter().from_block(from_block).to_block(to_block);
        self.events_of(&filter).await
    }

    /// Runs a transaction without sending it (`eth_call` on the newest block) and gives what it returns.
    ///
    /// # Errors
    /// `Reverted` where it would revert, and what else a read gives.
    pub async fn simulate(&self, from: Address, to: Address, data: Bytes) -> Result<Bytes, ChainError> {
        let request = TransactionRequest::default().from(from).to(to).input(data.into());
        self.call_at(request, self.reads_at).await
    }

    async fn call_at(&self, request: TransactionRequest, block: BlockId) -> Result<Bytes, ChainError> {
        match &self.near {
            Some(node) if block == BlockId::latest() => node
                .call_newest(request)
                .map_err(|error| ChainError::of_read(RpcError::ErrorResp(error.into()))),
            _ => self.provider.call(request).block(block).await.map_err(ChainError::of_read),
        }
    }

    /// Calls a view of one of the contracts.
    pub(super) async fn view<C: SolCall>(&self, to: Address, call: C) -> Result<C::Return, ChainError> {
        self.view_at(to, call, self.reads_at).await
    }

    pub(super) async fn view_at<C: SolCall>(
        &self,
        to: Address,
        call: C,
        block: BlockId,
    ) -> Result<C::Return, ChainError> {
        let request = TransactionRequest::default().to(to).input(Bytes::from(call.abi_encode()).into());
        let output = self.call_at(request, block).await?;
        if output.is_empty() {
            return Err(ChainError::Decode(format!("nothing answers {} at {to}", C::SIGNATURE)));
        }
        Ok(C::abi_decode_returns(&output)?)
    }
}
