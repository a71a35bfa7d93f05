//! Access to one chain through several nodes, with failover and a check that all nodes serve the
//! same chain.
//!
//! Reads go to one node as long as it answers well. If it fails, the next best node is used. Signed
//! transactions go to all nodes.
//!
//! A node is checked before its first use, after each failure, and every second: its chain id, its
//! genesis block and the last settled block. A node that serves another chain is not used until it
//! passes the check again.

mod agreement;
mod endpoint;
mod form;
mod health;
mod identity;
mod node;
mod observer;
mod route;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use alloy::providers::{DynProvider, Provider as _, ProviderBuilder};
use alloy::rpc::client::RpcClient;
use alloy_primitives::B256;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;

pub use self::endpoint::{AskedBy, MAX_NODE_CONNECTIONS, NodeEndpoint};
pub use self::identity::ChainIdentity;
pub use self::node::{NodeReport, NodeStatus};
pub use self::observer::{RPC_METHODS, RpcObserver};

use self::identity::Expected;
use self::node::{Field, Node};
use self::observer::Observer;
use crate::error::ChainError;

/// The timeout per request if there are several nodes.
const FAILOVER_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout per request if there is only one node.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The contracts that the chain of a node must have.
pub trait DeploymentVerifier: fmt::Debug + Send + Sync {
    /// Checks that the contracts exist on the provider's chain.
    ///
    /// # Errors
    ///
    /// `Decode`, `Rejected` or `Reverted` if a contract is missing or is not the expected one.
    fn verify(&self, provider: DynProvider) -> BoxFuture<'_, Result<(), ChainError>>;
}

/// The nodes of one chain.
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<Arc<Node>>,
    /// The number of nodes that must report the same block before it is final.
    agreement: usize,
    expected: Mutex<Expected>,
    /// The index of the node that answered last.
    current: AtomicUsize,
    /// The height that answers should include.
    wanted: AtomicU64,
    observer: Observer,
}

impl Nodes {
    /// Creates a client of the nodes at these URLs, in order of preference. Connects to none of
    /// them yet.
    ///
    /// # Errors
    ///
    /// `Rejected` if there are no URLs, a URL is invalid, or `agreement` is not between 1 and their
    /// number.
    pub fn new(
        urls: &[impl AsRef<str>],
        agreement: usize,
        contracts: &(impl DeploymentVerifier + Clone + 'static),
    ) -> Result<Arc<Self>, ChainError> {
        if !(1..=urls.len()).contains(&agreement) {
            let detail = format!("{agreement} of {} nodes cannot agree", urls.len());
            return Err(ChainError::Rejected(detail));
        }
        let timeout = if urls.len() > 1 { FAILOVER_TIMEOUT } else { REQUEST_TIMEOUT };
        let contracts: Arc<dyn DeploymentVerifier> = Arc::new(contracts.clone());
        let observer = Observer::default();
        let nodes: Result<Vec<Arc<Node>>, ChainError> = urls
            .iter()
            .map(|url| {
                let endpoint = NodeEndpoint::new(url.as_ref(), timeout)?;
                Ok(Arc::new(Node::new(endpoint, Arc::clone(&contracts), observer.clone())))
            })
            .collect();
        Ok(Arc::new(Self {
            nodes: nodes?,
            agreement,
            expected: Mutex::default(),
            current: AtomicUsize::new(0),
            wanted: AtomicU64::new(0),
            observer,
        }))
    }

    /// Reports each request to `observer`, unless there is one already.
    pub fn observe(&self, observer: Arc<dyn RpcObserver>) {
        self.observer.set(observer);
    }

    /// Returns a provider over all nodes, without fillers.
    pub fn provider(self: &Arc<Self>, by: AskedBy) -> DynProvider {
        let client = RpcClient::new(route::Route { nodes: Arc::clone(self), by }, false);
        ProviderBuilder::default().connect_client(client).erased()
    }

    pub fn identity(&self) -> Option<ChainIdentity> {
        self.expected.lock().identity
    }

    /// Restricts the nodes to this chain. All nodes are checked again before their next use.
    pub fn expect(&self, identity: ChainIdentity) {
        let mut expected = self.expected.lock();
        if expected.identity != Some(identity) {
            expected.identity = Some(identity);
            self.nodes.iter().for_each(|node| node.distrust());
        }
    }

    /// Restricts the nodes to those with this block or a lower height. Applies from each node's
    /// next check.
    pub fn expect_settled(&self, settled: Option<(u64, B256)>) {
        let mut expected = self.expected.lock();
        expected.settled = settled;
        // The agreed block is either settled now, or the operator has reverted it.
        if expected.agreed.is_some_and(|(agreed, _)| settled.is_none_or(|(number, _)| number >= agreed)) {
            expected.agreed = None;
        }
    }

    /// Prefers nodes that have the block of this height. Other nodes are used only if no such node
    /// is available.
    pub fn want_height(&self, height: u64) {
        // Only a hint for the ranking, so a relaxed store is enough.
        self.wanted.store(height, Ordering::Relaxed);
    }

    pub fn report(&self) -> Vec<NodeReport> {
        self.nodes.iter().map(|node| node.report()).collect()
    }

    /// Returns true if at least one node can be used.
    pub fn is_available(&self) -> bool {
        self.nodes.iter().any(|node| node.is_usable() && node.is_open())
    }

    /// Checks every node that is not paused.
    pub async fn check_all(&self) {
        let expected = *self.expected.lock();
        join_all(self.nodes.iter().filter(|node| !node.is_paused()).map(|node| node.check(&expected))).await;
        // The identity was just learned: check again, so that nodes become usable.
        if self.learn() {
            let expected = *self.expected.lock();
            let open = self.nodes.iter().filter(|node| node.is_open());
            join_all(open.map(|node| node.check(&expected))).await;
        }
        // The agreed block was not final, and no node may have it any more. Drop it, or it would
        // exclude all nodes.
        if !self.nodes.iter().any(|node| node.is_usable()) {
            self.expected.lock().agreed = None;
        }
    }

    /// Adopts the identity on which the configured number of nodes agree, if it is not known yet.
    /// Returns true if it was adopted.
    fn learn(&self) -> bool {
        let mut expected = self.expected.lock();
        if expected.identity.is_some_and(|known| known.genesis_hash.is_some()) {
            return false;
        }
        let open = || self.nodes.iter().filter(|node| node.is_open()).filter_map(|node| node.claim());
        let is_new = |claim: &ChainIdentity| match expected.identity {
            // The id is known, but not the genesis block: complete it without changing the id.
            Some(known) => known.chain_id == claim.chain_id && claim.genesis_hash.is_some(),
            None => true,
        };
        let agreed = |claim: &ChainIdentity| open().filter(|other| other == claim).count() >= self.agreement;
        let Some(identity) = open().find(|claim| is_new(claim) && agreed(claim)) else { return false };
        expected.identity = Some(identity);
        true
    }

    /// Confirms with a request that the node in use still serves the expected chain.
    ///
    /// # Errors
    ///
    /// `Unreachable` if no node can be used. `Inconsistent` if the node in use serves another
    /// chain.
    pub async fn confirm(&self) -> Result<(), ChainError> {
        let mut failure = None;
        let mut tried = Vec::new();
        while let Some((index, node)) = self.next(&tried).await {
            tried.push(index);
            let expected = *self.expected.lock();
            match node.confirm(&expected).await {
                Ok(()) => {
                    self.current.store(index, Ordering::Relaxed);
                    return Ok(());
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| ChainError::of_read(self.unavailable())))
    }

    fn unavailable(&self) -> alloy::transports::TransportError {
        node::unavailable(self.nodes.iter().map(AsRef::as_ref))
    }

    /// Returns the best usable node that is not in `tried`, and checks it first if necessary.
    async fn next(&self, tried: &[usize]) -> Option<(usize, &Arc<Node>)> {
        if self.identity().is_none() {
            self.check_all().await;
        }
        let expected = *self.expected.lock();
        for index in self.ranked() {
            let node = self.nodes.get(index)?;
            if !tried.contains(&index) && node.admit(&expected).await {
                return Some((index, node));
            }
        }
        None
    }

    /// Returns the indexes of the nodes that may be used, best first.
    fn ranked(&self) -> Vec<usize> {
        let usable = self.nodes.iter().filter(|node| node.is_usable());
        let head = usable.map(|node| node.head()).max().unwrap_or_default();
        let settled = self.expected.lock().settled.map_or(0, |(number, _)| number);
        let field = Field { head, wanted: self.wanted.load(Ordering::Relaxed).max(settled) };
        let current = self.current.load(Ordering::Relaxed);
        let open = self.nodes.iter().enumerate().filter(|(_, node)| node.is_open());
        let mut ranked: Vec<_> =
            open.map(|(index, node)| (node.rank(field, index == current), index)).collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, index)| index).collect()
    }
}
