//! Faults on the way to the chain, at a chosen request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use alloy::rpc::json_rpc::{ErrorPayload, Id, RequestPacket, Response, ResponsePacket, ResponsePayload};
use alloy::transports::{TransportError, TransportErrorKind, TransportFut};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tower::Service;

use crate::lagging;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It never reaches the node, and the caller hears nothing.
    LostRequest,
    /// The node does what it was asked, and the caller hears nothing.
    LostAnswer,
    /// A send that the node's pool takes and no block ever holds.
    NeverMined,
    /// The node answers this JSON instead of what it should.
    Answer(&'static str),
    /// The node does not have the method.
    UnknownMethod,
}

/// The faults that are still to come, by method. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    planned: Arc<Mutex<Planned>>,
    /// The height of a node that lags: it has no block above.
    height: Arc<Mutex<Option<u64>>>,
}

/// A request that waits on its way to the node.
#[derive(Debug, Clone, Default)]
pub struct Held(Arc<Turnstile>);

#[derive(Debug, Default)]
struct Turnstile {
    reached: Notify,
    released: Notify,
}

impl Held {
    /// Says that the request has come, and waits until it is released.
    pub(crate) async fn pass(&self) {
        self.0.reached.notify_one();
        self.0.released.notified().await;
    }

    /// Waits until the request has come.
    pub async fn reached(&self) {
        self.0.reached.notified().await;
    }

    /// Lets it go on.
    pub fn release(&self) {
        self.0.released.notify_one();
    }
}

#[derive(Debug, Default)]
struct Planned {
    held: Vec<(usize, &'static str, Held)>,
    next: VecDeque<(&'static str, Fault)>,
    always: Vec<(&'static str, Fault)>,
    later: Vec<(usize, &'static str, Fault)>,
    sent: Vec<String>,
}

const SEND: &str = "eth_sendRawTransaction";

impl Faults {
    /// The next request of `method` meets `fault`.
    pub fn next(&self, method: &'static str, fault: Fault) {
        self.planned.lock().next.push_back((method, fault));
    }

    /// A request of `method` meets `fault` once `skipped` others of it have gone through.
    pub fn after(&self, skipped: usize, method: &'static str, fault: Fault) {
        self.planned.lock().later.push((skipped, method, fault));
    }

    /// The next transaction that is sent meets `fault`.
    pub fn next_send(&self, fault: Fault) {
        self.next(SEND, fault);
    }

    /// Every transaction that is sent meets `fault`, until [`Self::heal`].
    pub fn every_send(&self, fault: Fault) {
        self.always(SEND, fault);
    }

    /// Every request of `method` meets `fault`, until [`Self::heal`].
    pub fn always(&self, method: &'static str, fault: Fault) {
        self.planned.lock().always.push((method, fault));
    }

    /// The next request of `method` waits until it is released.
    pub fn hold(&self, method: &'static str) -> Held {
        self.hold_after(0, method)
    }

    /// A request of `method` waits until it is released, once `skipped` others of it have gone through.
    pub fn hold_after(&self, skipped: usize, method: &'static str) -> Held {
        let held = Held::default();
        self.planned.lock().held.push((skipped, method, held.clone()));
        held
    }

    /// No more faults.
    pub fn heal(&self) {
        let mut planned = self.planned.lock();
        planned.next.clear();
        planned.always.clear();
        planned.later.clear();
        *self.height.lock() = None;
    }

    /// From here on the node that answers has no block above `height`.
    pub fn lag_at(&self, height: u64) {
        *self.height.lock() = Some(height);
    }

    /// The raw transactions that were sent so far, in hex, whatever became of them.
    pub fn sent(&self) -> Vec<String> {
        self.planned.lock().sent.clone()
    }

    fn held(&self, method: &str) -> Option<Held> {
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

/// A transport with faults in front of another.
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

/// The node's answer to a request.
pub(crate) fn answer(id: Id, json: &str) -> TransportFut<'static> {
    let payload =
        serde_json::value::RawValue::from_string(json.to_owned()).expect("a planned answer is JSON");
    Box::pin(async move {
        Ok(ResponsePacket::Single(Response { id, payload: ResponsePayload::Success(payload) }))
    })
}
