//! A chain that can be reorganized: two embedded chains that receive the same transactions until
//! they are separated.

use std::sync::Arc;
use std::task::{Context, Poll};

use alloy::rpc::json_rpc::{RequestPacket, ResponsePacket};
use alloy::transports::{TransportError, TransportFut};
use embedded_chain::{EmbeddedNode, InProcess};
use parking_lot::Mutex;
use tower::Service;

/// The visible chain, and whether the hidden one still receives the same transactions.
#[derive(Debug, Clone)]
pub struct Branches {
    nodes: [Arc<EmbeddedNode>; 2],
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    shown: usize,
    parted: bool,
}

impl Branches {
    pub(crate) fn new(nodes: [Arc<EmbeddedNode>; 2]) -> Self {
        Self { nodes, state: Arc::new(Mutex::new(State { shown: 0, parted: false })) }
    }

    /// Separates the branches: from now on only the visible one receives transactions.
    pub fn part(&self) {
        self.state.lock().parted = true;
        let [one, other] = &self.nodes;
        assert_eq!(one.head(), other.head(), "the branches are the same until they part");
    }

    /// Makes the other branch visible, so that everything since the separation is reorganized away.
    pub fn switch(&self) {
        let mut state = self.state.lock();
        assert!(state.parted, "branches that have not parted are the same");
        state.shown = 1 - state.shown;
    }

    pub fn shown(&self) -> &Arc<EmbeddedNode> {
        &self.nodes[self.state.lock().shown]
    }

    pub fn hidden(&self) -> &Arc<EmbeddedNode> {
        &self.nodes[1 - self.state.lock().shown]
    }

    /// A transport to the branch that is visible at the time of each request.
    pub(crate) fn transport(&self) -> Forked {
        Forked { nodes: self.nodes.clone().map(InProcess::new), state: Arc::clone(&self.state) }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Forked {
    nodes: [InProcess; 2],
    state: Arc<Mutex<State>>,
}

impl Service<RequestPacket> for Forked {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> TransportFut<'static> {
        let State { shown, parted } = *self.state.lock();
        let mines = matches!(&packet, RequestPacket::Single(request)
            if matches!(request.method(), "eth_sendRawTransaction" | "evm_mine"));
        let hidden = (mines && !parted).then(|| self.nodes[1 - shown].call(packet.clone()));
        let answer = self.nodes[shown].call(packet);
        Box::pin(async move {
            if let Some(hidden) = hidden {
                drop(hidden.await);
            }
            answer.await
        })
    }
}
