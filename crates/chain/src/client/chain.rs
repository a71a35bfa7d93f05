//! A handle to one chain and the contracts deployed on it.

use std::path::Path;
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
use embedded_chain::{EmbeddedError, EmbeddedNode};
use serde::{Deserialize, Serialize};

use super::event::ChainEvent;
use crate::block::{self, Block};
use crate::error::ChainError;
use crate::nodes::{AskedBy, NodeEndpoint, Nodes, REQUEST_TIMEOUT};

/// Default interval between receipt queries in `transact`.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The addresses of the contracts on a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contracts {
    pub usdc: Address,
    /// Roles, and the delay for changing them.
    pub authority: Address,
    /// The MarketHub: all markets and positions.
    pub hub: Address,
    /// The Gate: delegations and intents.
    pub gate: Address,
    pub account_factory: Address,
}

/// A provider, the contracts behind it and the chain id. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Chain {
    pub(super) provider: DynProvider,
    /// The embedded chain, if it runs in this process. Calls and reads of the newest block go to it
    /// directly, which avoids the provider's JSON encoding.
    pub(super) near: Option<Arc<EmbeddedNode>>,
    /// The nodes behind the provider, if it was created from a list of nodes.
    nodes: Option<Arc<Nodes>>,
    pub(super) contracts: Contracts,
    chain_id: u64,
    pub(super) poll_interval: Duration,
    /// The block at which reads see the state unless they specify another.
    pub(super) reads_at: BlockId,
}

/// Creates an HTTP provider for a JSON-RPC node, with a timeout of 10 s per request. Does not
/// connect yet.
///
/// It has no fillers: it neither fills in fields nor sends a request twice.
///
/// # Errors
///
/// `Rejected` if `url` is not an HTTP URL.
pub fn http_provider(url: &str) -> Result<DynProvider, ChainError> {
    let rpc = RpcClient::new(NodeEndpoint::new(url, REQUEST_TIMEOUT)?, false);
    Ok(ProviderBuilder::default().connect_client(rpc).erased())
}

impl Chain {
    /// Connects and reads the chain id. Does not check the contracts: see
    /// [`super::deploy::verify`].
    pub async fn connect(provider: DynProvider, contracts: Contracts) -> Result<Self, ChainError> {
        let chain_id = provider.get_chain_id().await.map_err(ChainError::of_read)?;
        Ok(Self::of(provider, contracts, chain_id))
    }

    /// Creates a handle for a known chain id without any request, so that it also works while no
    /// node answers.
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

    /// Creates a handle to the embedded chain. Equivalent to [`Self::connect`] with its provider,
    /// but faster.
    pub fn embedded(node: &Arc<EmbeddedNode>, contracts: Contracts) -> Self {
        let near = Some(Arc::clone(node));
        Self { near, ..Self::of(node.provider(), contracts, node.chain_id()) }
    }

    /// Creates a handle to a chain behind several nodes. The chain id may not be known yet.
    pub fn over(nodes: &Arc<Nodes>, contracts: Contracts) -> Self {
        // `chain_id()` reads the id from the nodes, so this 0 is never returned.
        Self { nodes: Some(Arc::clone(nodes)), ..Self::of(nodes.provider(AskedBy::Requests), contracts, 0) }
    }

    /// Returns a handle for background workers, with connections to the nodes that clients' requests
    /// cannot use up.
    #[must_use]
    pub fn for_workers(&self) -> Self {
        match &self.nodes {
            Some(nodes) => Self { provider: nodes.provider(AskedBy::Workers), ..self.clone() },
            None => self.clone(),
        }
    }

    /// Returns the nodes behind the provider; `None` for the embedded chain and for a single
    /// provider.
    pub fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.nodes.as_ref()
    }

    /// Returns the file of the embedded chain. `None` for nodes, and for a chain in memory.
    pub fn file(&self) -> Option<&Path> {
        self.near.as_ref()?.path()
    }

    /// Proves that the embedded chain accepts writes. Blocks this thread for a disk sync.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub fn probe_write(&self) -> Result<(), EmbeddedError> {
        self.near.as_ref().map_or(Ok(()), |node| node.probe_write())
    }

    /// Confirms that the node in use belongs to the expected chain. Call this before signing
    /// anything or reverting anything that was recorded.
    ///
    /// # Errors
    ///
    /// `Unreachable` if no node answers. `Inconsistent` if the node belongs to another chain or
    /// lacks the last settled block.
    pub async fn confirm(&self) -> Result<(), ChainError> {
        match &self.nodes {
            Some(nodes) => nodes.confirm().await,
            None => Ok(()),
        }
    }

    /// Prefers nodes that have the block of this height, if there are several nodes.
    pub fn want_height(&self, height: u64) {
        if let Some(nodes) = &self.nodes {
            nodes.want_height(height);
        }
    }

    /// Sets the interval between receipt queries, at least 1 ms.
    #[must_use]
    pub fn with_poll_interval(mut self, poll_interval: Duration) -> Self {
        self.poll_interval = poll_interval.max(Duration::from_millis(1));
        self
    }

    /// Returns a handle whose reads see the state right after the block with this hash. Reads fail
    /// with `Rejected` or `Inconsistent` if the node lacks that state.
    #[must_use]
    pub fn at_block(&self, block: B256) -> Self {
        Self { reads_at: BlockId::hash(block), ..self.clone() }
    }

    /// Returns true if the chain runs in this process. Such a chain never contradicts itself and
    /// never lags.
    pub fn is_embedded(&self) -> bool {
        self.near.is_some()
    }

    pub fn contracts(&self) -> &Contracts {
        &self.contracts
    }

    /// Returns the chain id (EIP-155), or 0 if no node has reported it yet.
    pub fn chain_id(&self) -> u64 {
        match &self.nodes {
            Some(nodes) => nodes.identity().map_or(0, |identity| identity.chain_id),
            None => self.chain_id,
        }
    }

    pub fn provider(&self) -> &DynProvider {
        &self.provider
    }

    /// Returns the newest block.
    pub async fn head(&self) -> Result<Block, ChainError> {
        // The cheapest path: no JSON, no request.
        if let Some(node) = &self.near {
            let (header, hash) = node.newest().into_parts();
            let Header { number, parent_hash, timestamp: timestamp_s, .. } = header;
            return Ok(Block { number, hash, parent_hash, timestamp_s });
        }
        block::head(&self.provider).await
    }

    /// Returns the newest block that the node reports as final, so that no reorganization can
    /// remove it. `None` if the node does not know one yet.
    pub async fn finalized(&self) -> Result<Option<Block>, ChainError> {
        match &self.nodes {
            Some(nodes) => nodes.finalized().await,
            None => block::find(&self.provider, BlockNumberOrTag::Finalized).await,
        }
    }

    /// Returns the block of that height on the current chain.
    pub async fn block(&self, number: u64) -> Result<Option<Block>, ChainError> {
        block::find(&self.provider, BlockNumberOrTag::Number(number)).await
    }

    /// Returns the hash at this height on which the configured number of nodes agree. `None` if
    /// they disagree or too few of them have such a block. A caller must not treat a block as final
    /// before this returns its hash.
    pub async fn agreed_hash(&self, number: u64) -> Result<Option<B256>, ChainError> {
        // The embedded chain is its own only node: skip the request for its newest block.
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

    /// Returns the events of the hub and the Gate from `from_block` to `to_block`, both included,
    /// in chain order. The caller must limit the range: nodes reject large ranges with `Rejected`.
    ///
    /// # Errors
    ///
    /// `Decode` if a log does not name its block and transaction.
    pub async fn events(&self, from_block: u64, to_block: u64) -> Result<Vec<ChainEvent>, ChainError> {
        let filter = self.log_filter().from_block(from_block).to_block(to_block);
        self.events_of(&filter).await
    }

    /// Runs a transaction without sending it (`eth_call`) and returns its output.
    ///
    /// # Errors
    ///
    /// `Reverted` if it would revert.
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

    /// Calls a view function of one of the contracts.
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
        // A call to an address without code succeeds with an empty output.
        if output.is_empty() {
            return Err(ChainError::Decode(format!("nothing answers {} at {to}", C::SIGNATURE)));
        }
        Ok(C::abi_decode_returns(&output)?)
    }
}
