//! Faults between the service and the chain, at chosen requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use alloy::rpc::json_rpc::{ErrorPayload, RequestPacket, Response, ResponsePacket, ResponsePayload};
use alloy::transports::{TransportError, TransportErrorKind, TransportFut};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tower::Service;

use crate::lagging::{self, answer};

/// A fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request never reaches the node, and the caller gets an error.
    LostRequest,
    /// The node executes the request, and the caller gets an error.
    LostAnswer,
    /// A transaction that the node accepts and never mines.
    NeverMined,
    /// The node returns this JSON instead of the result.
    Answer(&'static str),
    /// The node does not support the method.
    UnknownMethod,
}

/// The planned faults. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    planned: Arc<Mutex<Planned>>,
    /// The newest block of a lagging node.
    height: Arc<Mutex<Option<u64>>>,
}

/// A request that is held back on its way to the node.
#[derive(Debug, Clone, Default)]
pub struct HeldRequest(Arc<Turnstile>);

#[derive(Debug, Default)]
struct Turnstile {
    reached: Notify,
    released: Notify,
}

impl HeldRequest {
    /// Signals that the request has arrived, and waits until it is released.
    pub(crate) async fn pass(&self) {
        self.0.reached.notify_one();
        self.0.released.notified().await;
    }

    /// Waits until the request has arrived.
    pub async fn reached(&self) {
        self.0.reached.notified().await;
    }

    /// Lets the request continue.
    pub fn release(&self) {
        self.0.released.notify_one();
    }
}

#[derive(Debug, Default)]
struct Planned {
    held: Vec<(usize, &'static str, HeldRequest)>,
    next: VecDeque<(&'static str, Fault)>,
    always: Vec<(&'static str, Fault)>,
    later: Vec<(usize, &'static str, Fault)>,
    sent: Vec<String>,
}

const SEND: &str = "eth_sendRawTransaction";

impl Faults {
    /// Applies `fault` to the next request of `method`.
    pub fn next(&self, method: &'static str, fault: Fault) {
        self.planned.lock().next.push_back((method, fault));
    }

    /// Applies `fault` to a request of `method` after `skipped` other requests of it.
    pub fn after(&self, skipped: usize, method: &'static str, fault: Fault) {
        self.planned.lock().later.push((skipped, method, fault));
    }

    /// Applies `fault` to the next transaction.
    pub fn next_send(&self, fault: Fault) {
        self.next(SEND, fault);
    }

    /// Applies `fault` to every transaction, until [`Self::heal`].
    pub fn every_send(&self, fault: Fault) {
        self.always(SEND, fault);
    }

    /// Applies `fault` to every request of `method`, until [`Self::heal`].
    pub fn always(&self, method: &'static str, fault: Fault) {
        self.planned.lock().always.push((method, fault));
    }

    /// Holds back the next request of `method`.
    pub fn hold(&self, method: &'static str) -> HeldRequest {
        self.hold_after(0, method)
    }

    /// Holds back a request of `method` after `skipped` other requests of it.
    pub fn hold_after(&self, skipped: usize, method: &'static str) -> HeldRequest {
        let held = HeldRequest::default();
        self.planned.lock().held.push((skipped, method, held.clone()));
        held
    }

    /// Removes all faults.
    pub fn heal(&self) {
        let mut planned = self.planned.lock();
        planned.next.clear();
        planned.always.clear();
        planned.later.clear();
        *self.height.lock() = None;
    }

    /// Makes the node lag: it has no block above `height`.
    pub fn lag_at(&self, height: u64) {
        *self.height.lock() = Some(height);
    }

    /// The raw transactions that were sent so far, in hex, including lost ones.
    pub fn sent(&self) -> Vec<String> {
        self.planned.lock().sent.clone()
    }

    fn held(&self, method: &str) -> Option<HeldRequest> {
        let mut planned = self.planned.lock();
        let at = planned.held.iter().position(|(_, of, _)| *of == method)?;
        match &mut planned.held[at].0 {
            0 => Some(planned.held.swap_remove(at).2),
            left => {
                *left -= 1;
                None
            }
        }
    }

    fn of(&self, method: &str, params: Option<&str>) -> Option<Fault> {
        let mut planned = self.planned.lock();
        if method == SEND {
            let raw = params.and_then(|params| serde_json::from_str::<Vec<String>>(params).ok());
            // Recorded before the fault is chosen, so that lost transactions are included.
            planned.sent.extend(raw.into_iter().flatten());
        }
        if let Some(at) = planned.next.iter().position(|(of, _)| *of == method) {
            return planned.next.remove(at).map(|(_, fault)| fault);
        }
        if let Some(at) = planned.later.iter().position(|(_, of, _)| *of == method) {
            match &mut planned.later[at].0 {
                0 => return Some(planned.later.swap_remove(at).2),
                left => *left -= 1,
            }
        }
        planned.always.iter().find(|(of, _)| *of == method).map(|(_, fault)| *fault)
    }
}

/// A transport that applies faults before another transport.
#[derive(Debug, Clone)]
pub(crate) struct Faulty<T> {
    pub inner: T,
    pub faults: Faults,
}

impl<T> Service<RequestPacket> for Faulty<T>
where
    T: Service<
            RequestPacket,
            Response = ResponsePacket,
            Error = TransportError,
            Future = TransportFut<'static>,
        >,
    T: Clone + Send + 'static,
{
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, packet: RequestPacket) -> TransportFut<'static> {
        // Only single requests carry faults: batches pass through.
        let RequestPacket::Single(request) = &packet else { return self.inner.call(packet) };
        if let Some(held) = self.faults.held(request.method()) {
            let mut inner = self.inner.clone();
            return Box::pin(async move {
                held.pass().await;
                inner.call(packet).await
            });
        }
        let params = request.params().map(|params| params.get());
        let lost = || TransportErrorKind::custom_str("the connection broke");
        match self.faults.of(request.method(), params) {
            None => match *self.faults.height.lock() {
                Some(height) => lagging::call(self.inner.clone(), packet, height),
                None => self.inner.call(packet),
            },
            Some(Fault::LostRequest) => Box::pin(async move { Err(lost()) }),
            Some(Fault::LostAnswer) => {
                let answered = self.inner.call(packet);
                Box::pin(async move {
                    // The node must have executed the request before the caller gets the error.
                    drop(answered.await);
                    Err(lost())
                })
            }
            Some(Fault::NeverMined) => {
                const HASH: &str = "\"0x0000000000000000000000000000000000000000000000000000000000000000\"";
                answer(request.id().clone(), HASH)
            }
            Some(Fault::Answer(json)) => answer(request.id().clone(), json),
            Some(Fault::UnknownMethod) => {
                let payload = ResponsePayload::Failure(ErrorPayload {
                    code: -32601,
                    message: "the method does not exist".into(),
                    data: None,
                });
                let response = Response { id: request.id().clone(), payload };
                Box::pin(async move { Ok(ResponsePacket::Single(response)) })
            }
        }
    }
}
