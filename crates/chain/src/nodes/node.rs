//! One node: its endpoint, its health, and whether it serves the expected chain.

use std::sync::Arc;
use std::time::Duration;

use alloy::eips::BlockNumberOrTag;
use alloy::providers::{DynProvider, Provider as _, ProviderBuilder};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::{RequestPacket, ResponsePacket};
use alloy::transports::{TransportErrorKind, TransportResult};
use alloy_primitives::B256;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::DeploymentVerifier;
use super::endpoint::{AskedBy, NodeEndpoint};
use super::form::{head_in, is_conclusive};
use super::health::Health;
use super::identity::{ChainIdentity, Claim, Expected};
use super::observer::Observer;
use crate::block::{self, Block};
use crate::error::ChainError;

/// The timeout of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(8);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeStatus {
    /// The node must be checked first: it is new or has failed.
    Unchecked,
    /// The node serves the expected chain.
    Usable,
    /// The node serves another chain, or one without the contracts. The reason contains no URL.
    Refused(String),
}

/// The status of a node for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// Its host and port, without the rest of the URL.
    pub host: String,
    /// Includes the reason if the node is refused.
    pub standing: NodeStatus,
    /// True if the node failed several times in a row and is not used for a moment.
    pub is_paused: bool,
    /// Its newest known block.
    pub head: u64,
    /// The time at which the newest block of its last check was made. `None` before its first check.
    pub head_at_s: Option<u64>,
    /// Smoothed.
    pub latency_ms: u64,
}

impl NodeReport {
    /// Returns true if requests go to this node, unless another one is better.
    pub fn is_up(&self) -> bool {
        self.standing == NodeStatus::Usable && !self.is_paused
    }
}

#[derive(Debug)]
struct State {
    standing: NodeStatus,
    health: Health,
    head: u64,
    head_at_s: Option<u64>,
    claim: Option<ChainIdentity>,
    /// True if a check since the start has found the contracts. They cannot disappear, so they are
    /// checked only once.
    has_contracts: bool,
}

/// The reason why a check did not succeed.
enum Problem {
    /// The node gave no usable answer.
    Failed,
    /// The contracts are missing or do not match.
    Wrong(String),
}

/// A class and a score. Nodes with lower ranks are used first.
pub type Rank = (u8, u64);

/// The inputs of a rank that are the same for all nodes.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The highest known block of all nodes.
    pub head: u64,
    /// The height that an answer should include.
    pub wanted: u64,
}

/// The number of blocks that a node may lag behind the best one without losing its class.
const TOLERATED_LAG: u64 = 3;
/// The penalty for each block of lag, in milliseconds of latency.
const LAG_COST: u64 = 300;

#[derive(Debug)]
pub struct Node {
    endpoint: NodeEndpoint,
    /// A provider of only this node, for requests that must not go to another one.
    provider: DynProvider,
    contracts: Arc<dyn DeploymentVerifier>,
    observer: Observer,
    state: Mutex<State>,
    // Held during a check, so that concurrent requests share one check.
    checking: tokio::sync::Mutex<()>,
}

impl Node {
    /// Creates a node that has not been checked.
    pub fn new(endpoint: NodeEndpoint, contracts: Arc<dyn DeploymentVerifier>, observer: Observer) -> Self {
        let client = RpcClient::new(endpoint.clone(), false);
        let provider = ProviderBuilder::default().connect_client(client).erased();
        let state = State {
            standing: NodeStatus::Unchecked,
            health: Health::default(),
            head: 0,
            head_at_s: None,
            claim: None,
            has_contracts: false,
        };
        Self {
            endpoint,
            provider,
            contracts,
            observer,
            state: Mutex::new(state),
            checking: tokio::sync::Mutex::new(()),
        }
    }

    pub fn report(&self) -> NodeReport {
        let state = self.state.lock();
        NodeReport {
            host: self.endpoint.host(),
            standing: state.standing.clone(),
            is_paused: state.health.is_paused(Instant::now()),
            head: state.head,
            head_at_s: state.head_at_s,
            latency_ms: state.health.latency_ms(),
        }
    }

    /// Returns the identity of the chain that the node claimed last.
    pub fn claim(&self) -> Option<ChainIdentity> {
        self.state.lock().claim
    }

    /// Returns its newest known block.
    pub fn head(&self) -> u64 {
        self.state.lock().head
    }

    /// Returns true if the node may be asked now: it is neither refused nor paused. It may still
    /// need a check.
    pub fn is_open(&self) -> bool {
        let state = self.state.lock();
        !matches!(state.standing, NodeStatus::Refused(_)) && !state.health.is_paused(Instant::now())
    }

    pub fn is_paused(&self) -> bool {
        self.state.lock().health.is_paused(Instant::now())
    }

    /// Returns true if the last check succeeded and the node has not failed since.
    pub fn is_usable(&self) -> bool {
        self.state.lock().standing == NodeStatus::Usable
    }

    /// Requires a check before the next use.
    pub fn distrust(&self) {
        let mut state = self.state.lock();
        if state.standing == NodeStatus::Usable {
            state.standing = NodeStatus::Unchecked;
        }
    }

    /// Returns the rank of this node among those that may be asked.
    pub fn rank(&self, Field { head, wanted }: Field, is_current: bool) -> Rank {
        let state = self.state.lock();
        let lag = head.saturating_sub(state.head);
        let class = match state.standing {
            NodeStatus::Usable if lag <= TOLERATED_LAG && state.head >= wanted => 0,
            NodeStatus::Usable => 1,
            _ => 2,
        };
        let score = state.health.score() + lag.min(1_000) * LAG_COST;
        // Prefer the current node unless another one is clearly better: answers of the same node
        // are consistent with each other.
        (class, if is_current { score / 2 } else { score + 20 })
    }

    /// Sends a request and records the result.
    ///
    /// # Errors
    ///
    /// As for [`NodeEndpoint::post`].
    pub async fn ask(&self, packet: RequestPacket, by: AskedBy) -> TransportResult<ResponsePacket> {
        let began = Instant::now();
        let answer = self.endpoint.clone().post(packet.clone(), by).await;
        let is_usable = answer.as_ref().is_ok_and(|found| !found.is_error() || is_conclusive(found));
        self.observer.answered(&packet, began.elapsed(), is_usable);
        let mut state = self.state.lock();
        match &answer {
            Ok(found) => {
                state.health.record_answer(began.elapsed());
                // A revert is an error response, but not an error of the node.
                if found.is_error() && !is_conclusive(found) {
                    state.health.record_error();
                }
                if let RequestPacket::Single(request) = &packet
                    && let Some(head) = head_in(request, found)
                {
                    state.head = head;
                }
            }
            Err(_) => Self::fail(&mut state),
        }
        answer
    }

    /// Records a failure. Requires a new check, because the URL may lead to another node
    /// afterwards.
    fn fail(state: &mut State) {
        state.health.record_failure(Instant::now());
        if state.standing == NodeStatus::Usable {
            state.standing = NodeStatus::Unchecked;
        }
    }

    /// Checks the node unless it is usable. Returns true if it is usable afterwards.
    pub async fn admit(&self, expected: &Expected) -> bool {
        if self.is_usable() {
            return true;
        }
        let _only_one = self.checking.lock().await;
        // Another request may have checked the node or found it unreachable in the meantime.
        match self.is_usable() {
            true => true,
            false => self.is_open() && self.check(expected).await,
        }
    }

    /// Checks whether the node serves the expected chain. Returns true if it does.
    pub async fn check(&self, expected: &Expected) -> bool {
        let began = Instant::now();
        let claimed = tokio::time::timeout(CHECK_TIMEOUT, self.ask_claim(expected)).await;
        let mut state = self.state.lock();
        let refusal = match claimed {
            Ok(Ok(claim)) => {
                state.health.record_answer(began.elapsed() / 2);
                state.head = claim.head;
                state.head_at_s = Some(claim.head_at_s);
                state.claim = Some(claim.identity);
                expected.contradiction(&claim)
            }
            Ok(Err(Problem::Wrong(reason))) => Some(reason),
            Ok(Err(Problem::Failed)) | Err(_) => {
                Self::fail(&mut state);
                return false;
            }
        };
        let standing = match refusal {
            Some(reason) => NodeStatus::Refused(reason),
            None => {
                state.has_contracts = true;
                // The identity may not be known yet. There is then nothing to compare: the node
                // stays unchecked.
                if expected.identity.is_some() { NodeStatus::Usable } else { NodeStatus::Unchecked }
            }
        };
        self.note(&mut state, standing);
        state.standing == NodeStatus::Usable
    }

    fn note(&self, state: &mut State, standing: NodeStatus) {
        if state.standing != standing {
            let host = self.endpoint.host();
            match &standing {
                NodeStatus::Refused(reason) => tracing::error!(node = host, reason, "a node is not used"),
                NodeStatus::Usable => tracing::info!(node = host, head = state.head, "a node is used"),
                NodeStatus::Unchecked => {}
            }
        }
        state.standing = standing;
    }

    /// Reads the node's claim and, once per process, verifies its contracts.
    async fn ask_claim(&self, expected: &Expected) -> Result<Claim, Problem> {
        let chain_id = async { self.provider.get_chain_id().await.map_err(ChainError::of_read) };
        let asked = tokio::try_join!(
            chain_id,
            self.block(0),
            self.hash_at(expected.settled),
            self.hash_at(expected.agreed),
            block::head(&self.provider),
        );
        let (chain_id, genesis, settled, agreed, head) = asked.map_err(|_| Problem::Failed)?;
        let identity = ChainIdentity { chain_id, genesis_hash: genesis.map(|block| block.hash) };
        let claim = Claim { identity, settled, agreed, head: head.number, head_at_s: head.timestamp_s };
        let has_contracts = self.state.lock().has_contracts;
        // A node of another chain lacks the contracts anyway: report the chain as the reason.
        if !has_contracts && expected.contradiction(&claim).is_none() {
            self.contracts.verify(self.provider.clone()).await.map_err(|error| match error {
                ChainError::Decode(_) | ChainError::Rejected(_) | ChainError::Reverted(_) => {
                    Problem::Wrong(error.to_string())
                }
                _ => Problem::Failed,
            })?;
        }
        Ok(claim)
    }

    /// Returns this node's block of that height.
    pub async fn block(&self, number: u64) -> Result<Option<Block>, ChainError> {
        block::find(&self.provider, BlockNumberOrTag::Number(number)).await
    }

    /// Returns the newest block that this node reports as final.
    pub async fn finalized(&self) -> Result<Option<Block>, ChainError> {
        block::find(&self.provider, BlockNumberOrTag::Finalized).await
    }

    async fn hash_at(&self, block: Option<(u64, B256)>) -> Result<Option<B256>, ChainError> {
        let Some((number, _)) = block else { return Ok(None) };
        Ok(self.block(number).await?.map(|block| block.hash))
    }

    /// Requests one block of the expected chain. Faster than a full check, and used before
    /// something is signed.
    ///
    /// # Errors
    ///
    /// `Unreachable` if the node does not answer. `Inconsistent` if it lacks the block or has
    /// another one.
    pub async fn confirm(&self, expected: &Expected) -> Result<(), ChainError> {
        let genesis = expected.identity.and_then(|identity| identity.genesis_hash).map(|hash| (0, hash));
        let Some((number, hash)) = expected.settled.or(genesis) else { return Ok(()) };
        match self.block(number).await {
            Ok(Some(block)) if block.hash == hash => Ok(()),
            Ok(Some(_)) => {
                self.distrust();
                Err(ChainError::Inconsistent(format!("block {number} of the node is another chain's")))
            }
            Ok(None) => Err(ChainError::Inconsistent(format!("the node does not have block {number}"))),
            Err(error) => {
                Self::fail(&mut self.state.lock());
                Err(error)
            }
        }
    }

    /// Describes why the node cannot be used now, for the log.
    pub fn complaint(&self) -> String {
        let NodeReport { host, standing, is_paused, .. } = self.report();
        match standing {
            NodeStatus::Refused(reason) => format!("{host}: {reason}"),
            _ if is_paused => format!("{host} does not answer"),
            _ => format!("{host} is not usable"),
        }
    }
}

/// Returns the error of a request for which no node is available.
pub fn unavailable<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> alloy::transports::TransportError {
    let complaints: Vec<String> = nodes.into_iter().map(Node::complaint).collect();
    TransportErrorKind::custom_str(&format!("no node is available ({})", complaints.join("; ")))
}
