//! The nodes through which one chain is reached: failover between them, and the check that all of them answer for the
//! same chain.
//!
//! Reads go to one node for as long as it answers well; if it fails, the next best is asked. Signed transactions go to all
//! nodes. A node is checked before it is used for the first time, after every failure, and every second: its chain id, its
//! first block, and the last block that was settled. One that answers for another chain is not used until it answers for
//! the right one again.

mod agreement;
mod endpoint;
mod form;
mod health;
mod identity;
mod node;
mod route;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use alloy::providers::{DynProvider, Provider as _, ProviderBuilder};
use alloy::rpc::client::RpcClient;
use alloy_primitives::B256;
use futures::future::join_all;
use parking_lot::Mutex;

pub use self::endpoint::Endpoint;
pub use self::identity::ChainIdentity;
pub use self::node::{NodeReport, Standing};

use self::identity::Expected;
use self::node::{Field, Node};
use crate::client::{ChainError, Contracts};

/// How long one node's answer may take if there are others to ask.
const FAILOVER_TIMEOUT: Duration = Duration::from_secs(5);
/// The same if there is no other.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The nodes of one chain.
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<Arc<Node>>,
    /// How many nodes must have a block before it is final.
    agreement: usize,
    expected: Mutex<Expected>,
    /// The node that was asked last.
    current: AtomicUsize,
    /// The height that answers should know.
    wanted: AtomicU64,
}

impl Nodes {
    /// The nodes at these URLs, best first if nothing else decides. Connects to none of them yet.
    ///
    /// # Errors
    /// `Rejected` if there are no URLs, one is no URL, or `agreement` is not between 1 and their number.
    pub fn new(urls: &[String], agreement: usize, contracts: &Contracts) -> Result<Arc<Self>, ChainError> {
        if !(1..=urls.len()).contains(&agreement) {
            let detail = format!("{agreement} of {} nodes cannot agree", urls.len());
            return Err(ChainError::Rejected(detail));
        }
        let timeout = if urls.len() > 1 { FAILOVER_TIMEOUT } else { REQUEST_TIMEOUT };
        let nodes: Result<Vec<Arc<Node>>, ChainError> =
            urls.iter().map(|url| Ok(Arc::new(Node::new(Endpoint::new(url, timeout)?, contracts)))).collect();
        Ok(Arc::new(Self {
            nodes: nodes?,
            agreement,
            expected: Mutex::default(),
            current: AtomicUsize::new(0),
            wanted: AtomicU64::new(0),
        }))
    }

    /// A provider over all of them, without fillers.
    pub fn provider(self: &Arc<Self>) -> DynProvider {
        let client = RpcClient::new(route::Route(Arc::clone(self)), false);
        ProviderBuilder::default().connect_client(client).erased()
    }

    /// The chain, once it is known.
    pub fn identity(&self) -> Option<ChainIdentity> {
        self.expected.lock().identity
    }

    /// Only nodes of this chain are used from now on.
    pub fn expect(&self, identity: ChainIdentity) {
        let mut expected = self.expected.lock();
        if expected.identity != Some(identity) {
            expected.identity = Some(identity);
            self.nodes.iter().for_each(|node| node.distrust());
        }
    }

    /// Only nodes that have this block, or none of its height yet, are used from their next check on.
    pub fn expect_settled(&self, settled: Option<(u64, B256)>) {
        let mut expected = self.expected.lock();
        expected.settled = settled;
        // What was agreed on is settled, or was taken back by the operator.
        if expected.agreed.is_some_and(|(agreed, _)| settled.is_none_or(|(number, _)| number >= agreed)) {
            expected.agreed = None;
        }
    }

    /// Answers should know the block of this height: a node that does not have it is asked only if no other can be.
    pub fn want_height(&self, height: u64) {
        self.wanted.store(height, Ordering::Relaxed);
    }

    /// What is known of each node.
    pub fn report(&self) -> Vec<NodeReport> {
        self.nodes.iter().map(|node| node.report()).collect()
    }

    /// Whether at least one node can be asked.
    pub fn is_available(&self) -> bool {
        self.nodes.iter().any(|node| node.is_usable() && node.is_open())
    }

    /// Checks every node that has no pause.
    pub async fn check_all(&self) {
        let expected = *self.expected.lock();
        join_all(self.nodes.iter().filter(|node| !node.is_paused()).map(|node| node.check(&expected))).await;
        if self.learn() {
            let expected = *self.expected.lock();
            let open = self.nodes.iter().filter(|node| node.is_open());
            join_all(open.map(|node| node.check(&expected))).await;
        }
        // What most nodes had was not final: if none has it any more, it must not shut out all of them.
        let nobody = expected.agreed.is_some() && !self.nodes.iter().any(|node| node.is_usable());
        if nobody {
            self.expected.lock().agreed = None;
        }
    }

    /// Takes what enough nodes say of their chain for the truth, as far as nothing else is known.
    fn learn(&self) -> bool {
        let mut expected = self.expected.lock();
        if expected.identity.is_some_and(|known| known.genesis_hash.is_some()) {
            return false;
        }
        let open = || self.nodes.iter().filter(|node| node.is_open()).filter_map(|node| node.claim());
        let is_new = |claim: &ChainIdentity| match expected.identity {
            Some(known) => known.chain_id == claim.chain_id && claim.genesis_hash.is_some(),
            None => true,
        };
        let agreed = |claim: &ChainIdentity| open().filter(|other| other == claim).count() >= self.agreement;
        let Some(identity) = open().find(|claim| is_new(claim) && agreed(claim)) else { return false };
        expected.identity = Some(identity);
        true
    }

    /// Confirms, by asking, that the node in use still answers for the expected chain.
    ///
    /// # Errors
    /// `Unreachable` if no node can be asked, `Inconsistent` if the node in use is not of the expected chain.
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

    /// The best node that was not tried yet and may be used; it is checked first if it has to be.
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

    /// The nodes that may be asked, the best first.
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
