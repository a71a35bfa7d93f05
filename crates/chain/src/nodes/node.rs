//! One node: its endpoint, how well it answers, and whether it answers for the right chain.

use std::time::Duration;

use alloy::providers::{Provider as _, ProviderBuilder};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::{RequestPacket, ResponsePacket};
use alloy::transports::{TransportErrorKind, TransportResult};
use alloy_primitives::B256;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::form::{head_in, is_conclusive};
use super::health::Health;
use super::identity::{ChainIdentity, Claim, Expected};
use crate::client::{Chain, ChainError, Contracts, deploy};

/// The longest that finding out about a node may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(8);

/// Whether a node may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It must be checked first: it is new, or it has failed since.
    Unchecked,
    /// It answers for the right chain.
    Usable,
    /// It answers for another chain, or without the contracts. The reason names no URL.
    Refused(String),
}

/// A node as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// Its host and port.
    pub host: String,
    /// Whether it is used, and why not.
    pub standing: Standing,
    /// Whether it has failed several times in a row and is left alone for a moment.
    pub is_paused: bool,
    /// Its newest block, as far as known.
    pub head: u64,
    /// Its smoothed latency.
    pub latency_ms: u64,
}

#[derive(Debug)]
struct State {
    standing: Standing,
    health: Health,
    head: u64,
    claim: Option<ChainIdentity>,
    /// The contracts have been found there since the start.
    has_contracts: bool,
}

/// Why a node could not be checked, or did not pass.
enum Problem {
    /// It did not answer as a node does.
    Failed,
    /// The contracts are not there.
    Wrong(String),
}

/// A node's worth for the next request: the smallest first.
pub type Rank = (u8, u64);

/// What a rank follows from besides the node itself.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The highest newest block of all nodes.
    pub head: u64,
    /// The height that an answer must know.
    pub wanted: u64,
}

/// Blocks that a node may lag behind the best one without being passed over.
const TOLERATED_LAG: u64 = 3;
/// What a block of lag counts, in milliseconds of latency.
const LAG_COST: u64 = 300;

/// A node.
#[derive(Debug)]
pub struct Node {
    endpoint: Endpoint,
    /// Straight to this node, for what is asked of it by name.
    pub chain: Chain,
    state: Mutex<State>,
    checking: tokio::sync::Mutex<()>,
}

impl Node {
    /// The node at `endpoint`, of which nothing is known yet.
    pub fn new(endpoint: Endpoint, contracts: &Contracts) -> Self {
        let client = RpcClient::new(endpoint.clone(), false);
        let provider = ProviderBuilder::default().connect_client(client).erased();
        let state = State {
            standing: Standing::Unchecked,
            health: Health::default(),
            head: 0,
            claim: None,
            has_contracts: false,
        };
        Self {
            endpoint,
            chain: Chain::of(provider, contracts.clone(), 0),
            state: Mutex::new(state),
            checking: tokio::sync::Mutex::new(()),
        }
    }

    /// What operators are shown.
    pub fn report(&self) -> NodeReport {
        let state = self.state.lock();
        NodeReport {
            host: self.endpoint.host(),
            standing: state.standing.clone(),
            is_paused: state.health.is_paused(Instant::now()),
            head: state.head,
            latency_ms: state.health.latency_ms(),
        }
    }

    /// The chain that it last said it is of.
    pub fn claim(&self) -> Option<ChainIdentity> {
        self.state.lock().claim
    }

    /// Its newest block, as far as known.
    pub fn head(&self) -> u64 {
        self.state.lock().head
    }

    /// Whether it may be asked now, checked or not.
    pub fn is_open(&self) -> bool {
        let state = self.state.lock();
        !matches!(state.standing, Standing::Refused(_)) && !state.health.is_paused(Instant::now())
    }

    /// Whether it has a pause.
    pub fn is_paused(&self) -> bool {
        self.state.lock().health.is_paused(Instant::now())
    }

    /// Whether it was found to be of the right chain, and has not failed since.
    pub fn is_usable(&self) -> bool {
        self.state.lock().standing == Standing::Usable
    }

    /// It must be checked before it is used again.
    pub fn distrust(&self) {
        let mut state = self.state.lock();
        if state.standing == Standing::Usable {
            state.standing = Standing::Unchecked;
        }
    }

    /// Its rank among the nodes that may be asked.
    pub fn rank(&self, Field { head, wanted }: Field, is_current: bool) -> Rank {
        let state = self.state.lock();
        let lag = head.saturating_sub(state.head);
        let class = match state.standing {
            Standing::Usable if lag <= TOLERATED_LAG && state.head >= wanted => 0,
            Standing::Usable => 1,
            _ => 2,
        };
        let score = state.health.score() + lag.min(1_000) * LAG_COST;
        // The one in use stays unless another is clearly better: its answers fit each other.
        (class, if is_current { score / 2 } else { score + 20 })
    }

    /// Asks it, and notes how that went.
    ///
    /// # Errors
    /// Those of the endpoint.
    pub async fn ask(&self, packet: RequestPacket) -> TransportResult<ResponsePacket> {
        let began = Instant::now();
        let answer = self.endpoint.clone().post(packet.clone()).await;
        let mut state = self.state.lock();
        match &answer {
            Ok(found) => {
                state.health.record_answer(began.elapsed());
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

    /// A node that has failed may come back as another one.
    fn fail(state: &mut State) {
        state.health.record_failure(Instant::now());
        if state.standing == Standing::Usable {
            state.standing = Standing::Unchecked;
        }
    }

    /// Checks it unless it is usable. Returns whether it is then.
    pub async fn admit(&self, expected: &Expected) -> bool {
        if self.is_usable() {
            return true;
        }
        let _only_one = self.checking.lock().await;
        // Another request may have checked it meanwhile, or may have found that it does not answer.
        match self.is_usable() {
            true => true,
            false => self.is_open() && self.check(expected).await,
        }
    }

    /// Finds out whether it answers for the expected chain. Returns whether it does.
    pub async fn check(&self, expected: &Expected) -> bool {
        let began = Instant::now();
        let claimed = tokio::time::timeout(CHECK_TIMEOUT, self.ask_claim(expected)).await;
        let mut state = self.state.lock();
        let refusal = match claimed {
            Ok(Ok(claim)) => {
                state.health.record_answer(began.elapsed() / 2);
                state.head = claim.head;
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
            Some(reason) => Standing::Refused(reason),
            None => {
                state.has_contracts = true;
                // Which chain is meant may not be known yet.
                if expected.identity.is_some() { Standing::Usable } else { Standing::Unchecked }
            }
        };
        self.note(&mut state, standing);
        state.standing == Standing::Usable
    }

    fn note(&self, state: &mut State, standing: Standing) {
        if state.standing != standing {
            let host = self.endpoint.host();
            match &standing {
                Standing::Refused(reason) => tracing::error!(node = host, reason, "a node is not used"),
                Standing::Usable => tracing::info!(node = host, head = state.head, "a node is used"),
                Standing::Unchecked => {}
            }
        }
        state.standing = standing;
    }

    async fn ask_claim(&self, expected: &Expected) -> Result<Claim, Problem> {
        let chain_id = async { self.chain.provider().get_chain_id().await.map_err(ChainError::of_read) };
        let asked = tokio::try_join!(
            chain_id,
            self.chain.block(0),
            self.hash_at(expected.settled),
            self.hash_at(expected.agreed),
            self.chain.head(),
        );
        let (chain_id, genesis, settled, agreed, head) = asked.map_err(|_| Problem::Failed)?;
        let identity = ChainIdentity { chain_id, genesis_hash: genesis.map(|block| block.hash) };
        let claim = Claim { identity, settled, agreed, head: head.number };
        let has_contracts = self.state.lock().has_contracts;
        if !has_contracts && expected.contradiction(&claim).is_none() {
            deploy::verify(&self.chain).await.map_err(|error| match error {
                ChainError::Decode(_) | ChainError::Rejected(_) | ChainError::Reverted(_) => {
                    Problem::Wrong(error.to_string())
                }
                _ => Problem::Failed,
            })?;
        }
        Ok(claim)
    }

    async fn hash_at(&self, block: Option<(u64, B256)>) -> Result<Option<B256>, ChainError> {
        let Some((number, _)) = block else { return Ok(None) };
        Ok(self.chain.block(number).await?.map(|block| block.hash))
    }

    /// Asks for one block of the expected chain: quicker than a check, for the moment before something is signed.
    ///
    /// # Errors
    /// `Unreachable` if it does not answer, `Inconsistent` if it does not have the block or has another one.
    pub async fn confirm(&self, expected: &Expected) -> Result<(), ChainError> {
        let genesis = expected.identity.and_then(|identity| identity.genesis_hash).map(|hash| (0, hash));
        let Some((number, hash)) = expected.settled.or(genesis) else { return Ok(()) };
        match self.chain.block(number).await {
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

    /// Why it cannot be asked now, for the log.
    pub fn complaint(&self) -> String {
        let NodeReport { host, standing, is_paused, .. } = self.report();
        match standing {
            Standing::Refused(reason) => format!("{host}: {reason}"),
            _ if is_paused => format!("{host} does not answer"),
            _ => format!("{host} is not usable"),
        }
    }
}

/// The error of a request that no node can be asked.
pub fn unavailable<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> alloy::transports::TransportError {
    let complaints: Vec<String> = nodes.into_iter().map(Node::complaint).collect();
    TransportErrorKind::custom_str(&format!("no node is available ({})", complaints.join("; ")))
}
