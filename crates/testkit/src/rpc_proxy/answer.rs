//! Responses as bytes, intact or broken.

use std::time::Duration;

use futures::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::{Response, StatusCode, header};
use serde_json::{Value, json};

use super::view::View;
use super::{RpcFault, Shared, never, pause};

/// The body of a response.
pub type ProxyBody = UnsyncBoxBody<Bytes, CutConnection>;

/// The error that closes the connection.
#[derive(Debug, Clone, Copy)]
pub struct CutConnection;

impl std::fmt::Display for CutConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a fault has cut the connection")
    }
}

impl std::error::Error for CutConnection {}

const HTML: &str = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body></body></html>";
/// The pause between two bytes of a slow response.
const DRIP: Duration = Duration::from_millis(100);
const ENDLESS_CHUNK: &[u8] = &[b' '; 64 << 10];

/// A complete response.
pub fn whole(body: Bytes) -> Response<ProxyBody> {
    of(StatusCode::OK, "application/json", body)
}

fn of(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<ProxyBody> {
    let mut response = Response::new(Full::new(body).map_err(never).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

fn streamed(
    chunks: impl futures::Stream<Item = Result<Bytes, CutConnection>> + Send + 'static,
) -> Response<ProxyBody> {
    Response::new(StreamBody::new(chunks.map(|chunk| chunk.map(Frame::data))).boxed_unsync())
}

fn json_answer(request: &Value, member: &str, value: Value) -> Bytes {
    Bytes::from(json!({ "jsonrpc": "2.0", "id": request["id"], member: value }).to_string())
}

impl Shared {
    /// Answers a request that is subject to `fault`.
    pub async fn answer_with(
        &self,
        fault: RpcFault,
        request: Value,
        body: Bytes,
    ) -> Result<Response<ProxyBody>, CutConnection> {
        match fault {
            RpcFault::Stale(_) | RpcFault::Stalled | RpcFault::Forked(_) | RpcFault::OtherChain => {
                self.view_answer(fault, &request).await
            }
            RpcFault::Contradictory(_) => self.pass(body).await,
            RpcFault::Empty => {
                let empty = match request["method"].as_str().unwrap_or_default() {
                    "eth_getLogs" => json!([]),
                    "eth_getBlockByNumber"
                    | "eth_getBlockByHash"
                    | "eth_getBlockReceipts"
                    | "eth_getTransactionReceipt"
                    | "eth_getTransactionByHash" => Value::Null,
                    // Only these methods have a valid empty result.
                    _ => return self.pass(body).await,
                };
                Ok(whole(json_answer(&request, "result", empty)))
            }
            RpcFault::WrongType => Ok(whole(json_answer(&request, "result", json!({})))),
            RpcFault::InternalError => {
                let error = json!({ "code": -32603, "message": "internal error" });
                Ok(whole(json_answer(&request, "error", error)))
            }
            RpcFault::EmptyObject => Ok(whole(Bytes::from_static(b"{}"))),
            RpcFault::NoBody => Ok(whole(Bytes::new())),
            RpcFault::Html => Ok(of(StatusCode::OK, "text/html", Bytes::from_static(HTML.as_bytes()))),
            RpcFault::Busy => {
                let text = Bytes::from_static(b"too many requests");
                Ok(of(StatusCode::TOO_MANY_REQUESTS, "text/plain", text))
            }
            RpcFault::Endless => {
                let chunk = Ok(Bytes::from_static(ENDLESS_CHUNK));
                Ok(streamed(stream::repeat(chunk)))
            }
            // The connection stays open, unlike with `Refused`.
            RpcFault::Frozen => std::future::pending().await,
            RpcFault::Refused => Err(CutConnection),
            RpcFault::OtherId
            | RpcFault::Truncated
            | RpcFault::Late(_)
            | RpcFault::Slow
            | RpcFault::LostAnswer
            | RpcFault::Cut => {
                // The node executes the request before its response is damaged.
                let answer = self.forward(body).await.ok_or(CutConnection)?;
                broken(fault, answer).await
            }
        }
    }

    async fn view_answer(
        &self,
        fault: RpcFault,
        request: &Value,
    ) -> Result<Response<ProxyBody>, CutConnection> {
        let view = match fault {
            RpcFault::Forked(from) => View::Forked { from },
            RpcFault::OtherChain => View::OtherChain,
            RpcFault::Stale(behind) => {
                let head = self.head().await.ok_or(CutConnection)?;
                View::UpTo(head.saturating_sub(behind))
            }
            _ => {
                let height = self.plan.lock().height;
                View::UpTo(height.ok_or(CutConnection)?)
            }
        };
        let answer = self.seen_as(view, request).await.ok_or(CutConnection)?;
        Ok(whole(Bytes::from(answer.to_string())))
    }
}

/// Damages the node's response.
async fn broken(fault: RpcFault, answer: Bytes) -> Result<Response<ProxyBody>, CutConnection> {
    let half = answer.len() / 2;
    match fault {
        RpcFault::LostAnswer => Err(CutConnection),
        RpcFault::Truncated => Ok(whole(answer.slice(..half))),
        // An error after some bytes closes the connection in the middle of the body.
        RpcFault::Cut => Ok(streamed(stream::iter([Ok(answer.slice(..half)), Err(CutConnection)]))),
        RpcFault::OtherId => {
            let mut value: Value = serde_json::from_slice(&answer).map_err(|_| CutConnection)?;
            value["id"] = json!(u64::from(u32::MAX));
            Ok(whole(Bytes::from(value.to_string())))
        }
        RpcFault::Slow => Ok(streamed(stream::unfold((answer, 0), |(answer, at)| async move {
            let byte = (at < answer.len()).then(|| answer.slice(at..=at))?;
            pause(DRIP).await;
            Some((Ok(byte), (answer, at + 1)))
        }))),
        RpcFault::Late(ms) => {
            pause(Duration::from_millis(ms)).await;
            Ok(whole(answer))
        }
        _ => Ok(whole(answer)),
    }
}
