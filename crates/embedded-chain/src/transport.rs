//! An alloy transport for the embedded chain. Polling the future does the work. Only a send waits,
//! for its block's commit.

use std::sync::Arc;
use std::task::{Context, Poll};

use alloy::rpc::json_rpc::{RequestPacket, Response, ResponsePacket, ResponsePayload, SerializedRequest};
use alloy::transports::{TransportError, TransportFut};
use tower::Service;

use crate::EmbeddedNode;

/// A transport to an [`EmbeddedNode`] in this process.
#[derive(Debug, Clone)]
pub struct InProcess(Arc<EmbeddedNode>);

impl InProcess {
    /// Creates a transport to `node`, which stays open as long as the transport exists.
    pub fn new(node: Arc<EmbeddedNode>) -> Self {
        Self(node)
    }

    async fn answer(&self, request: &SerializedRequest) -> Response {
        let answer = self.0.call(request.method(), request.params()).await;
        let payload = match answer {
            Ok(result) => ResponsePayload::Success(result),
            Err(error) => ResponsePayload::Failure(error.into()),
        };
        Response { id: request.id().clone(), payload }
    }
}

impl Service<RequestPacket> for InProcess {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> TransportFut<'static> {
        let this = self.clone();
        Box::pin(async move {
            match packet {
                RequestPacket::Single(request) => Ok(ResponsePacket::Single(this.answer(&request).await)),
                RequestPacket::Batch(requests) => {
                    let mut responses = Vec::with_capacity(requests.len());
                    for request in &requests {
                        responses.push(this.answer(request).await);
                    }
                    Ok(ResponsePacket::Batch(responses))
                }
            }
        })
    }
}
