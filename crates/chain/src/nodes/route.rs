//! Routes requests: reads go to the best node and then to the next ones, signed transactions go to
//! all nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use alloy::rpc::json_rpc::{RequestPacket, ResponsePacket};
use alloy::transports::{TransportError, TransportFut, TransportResult};
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tower::Service;

use super::Nodes;
use super::endpoint::AskedBy;
use super::form::{SEND, is_conclusive, is_known};

type Answered = TransportResult<ResponsePacket>;

/// A transport over all nodes.
#[derive(Debug, Clone)]
pub struct Route {
    pub nodes: Arc<Nodes>,
    pub by: AskedBy,
}

impl Service<RequestPacket> for Route {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> TransportFut<'static> {
        let Self { nodes, by } = self.clone();
        let sends = matches!(&packet, RequestPacket::Single(request) if request.method() == SEND);
        Box::pin(async move {
            if sends { nodes.send_to_all(packet, by).await } else { nodes.read(packet, by).await }
        })
    }
}

impl Nodes {
    async fn read(&self, packet: RequestPacket, by: AskedBy) -> Answered {
        let mut found: Option<Answered> = None;
        let mut tried = Vec::new();
        while let Some((index, node)) = self.next(&tried).await {
            tried.push(index);
            let answer = node.ask(packet.clone(), by).await;
            if answer.as_ref().is_ok_and(is_conclusive) {
                // Stay with this node: answers of the same node are consistent with each other.
                self.current.store(index, Ordering::Relaxed);
                return answer;
            }
            // Not conclusive: ask the next node, and keep the better of the two answers.
            found = Some(match found {
                Some(before) if worth_of_read(&before) >= worth_of_read(&answer) => before,
                _ => answer,
            });
        }
        found.unwrap_or_else(|| Err(self.unavailable()))
    }

    /// Sends to every usable node. Returns as soon as one accepts the transaction; the others still
    /// receive it.
    async fn send_to_all(&self, packet: RequestPacket, by: AskedBy) -> Answered {
        let expected = *self.expected.lock();
        if expected.identity.is_none() {
            self.check_all().await;
        }
        let expected = *self.expected.lock();
        let open: Vec<_> = self.nodes.iter().filter(|node| node.is_open()).collect();
        let admitted = join_all(open.iter().map(|node| node.admit(&expected))).await;
        let usable = open.into_iter().zip(admitted).filter(|(_, admitted)| *admitted);
        let mut sent: FuturesUnordered<_> = usable
            .map(|(node, _)| {
                let (node, packet) = (Arc::clone(node), packet.clone());
                // Spawned, so that the other sends finish even after this function has returned.
                tokio::spawn(async move { node.ask(packet, by).await })
            })
            .collect();
        let mut found: Option<Answered> = None;
        while let Some(answer) = sent.next().await {
            let Ok(answer) = answer else { continue };
            if answer.as_ref().is_ok_and(ResponsePacket::is_success) {
                return answer;
            }
            found = Some(match found {
                Some(before) if worth_of_send(&before) >= worth_of_send(&answer) => before,
                _ => answer,
            });
        }
        found.unwrap_or_else(|| Err(self.unavailable()))
    }
}

/// Ranks answers that are not conclusive: an empty result, an error response, a transport error.
fn worth_of_read(answer: &Answered) -> u8 {
    match answer {
        Ok(answer) if answer.is_success() => 2,
        Ok(_) => 1,
        Err(_) => 0,
    }
}

/// Ranks answers without a success. A transport error ranks above a rejection: the transaction may
/// have arrived there, so it must not be reported as rejected.
fn worth_of_send(answer: &Answered) -> u8 {
    match answer {
        Ok(answer) if is_known(answer) => 2,
        Err(_) => 1,
        Ok(_) => 0,
    }
}
