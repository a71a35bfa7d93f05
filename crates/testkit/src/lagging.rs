//! A lagging node: it answers as if its chain ended at a lower block.

use alloy::rpc::json_rpc::{Id, RequestPacket, Response, ResponsePacket, ResponsePayload, SerializedRequest};
use alloy::transports::{TransportError, TransportFut};
use serde_json::Value;
use tower::Service;

/// Answers a request like a node whose newest block is `height`.
pub(crate) fn call<T>(mut node: T, packet: RequestPacket, height: u64) -> TransportFut<'static>
where
    T: Service<
            RequestPacket,
            Response = ResponsePacket,
            Error = TransportError,
            Future = TransportFut<'static>,
        > + Send
        + 'static,
{
    let RequestPacket::Single(request) = &packet else { return node.call(packet) };
    let id = request.id().clone();
    match request.method() {
        "eth_blockNumber" => answer(id, &format!("\"{height:#x}\"")),
        "eth_getBlockByNumber" => match number_of(request) {
            Some(number) if number <= height => node.call(packet),
            Some(_) => answer(id, "null"),
            None => node.call(of_newest(request, height)),
        },
        // A node returns null for anything in a block that it does not have.
        "eth_getTransactionReceipt" | "eth_getBlockByHash" | "eth_getBlockReceipts" => Box::pin(async move {
            let answered = node.call(packet).await?;
            match block_of(&answered).is_some_and(|number| number > height) {
                true => answer(id, "null").await,
                false => Ok(answered),
            }
        }),
        _ => node.call(packet),
    }
}

/// The number in the first parameter. `None` for a tag.
fn number_of(request: &SerializedRequest) -> Option<u64> {
    let params: Vec<Value> = serde_json::from_str(request.params()?.get()).ok()?;
    let text = params.first()?.as_str()?;
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn of_newest(request: &SerializedRequest, height: u64) -> RequestPacket {
    let meta = request.meta().clone();
    let params = (format!("{height:#x}"), false);
    let newest = alloy::rpc::json_rpc::Request { meta, params };
    RequestPacket::Single(newest.try_into().expect("a request is JSON"))
}

/// The height of the block that a response refers to.
fn block_of(packet: &ResponsePacket) -> Option<u64> {
    let ResponsePacket::Single(response) = packet else { return None };
    let ResponsePayload::Success(payload) = &response.payload else { return None };
    let value: Value = serde_json::from_str(payload.get()).ok()?;
    let of = |value: &Value| {
        let number = value.get("blockNumber").or_else(|| value.get("number"))?.as_str()?;
        u64::from_str_radix(number.strip_prefix("0x")?, 16).ok()
    };
    of(&value).or_else(|| value.as_array()?.first().and_then(of))
}

/// A successful response of the node.
pub(crate) fn answer(id: Id, json: &str) -> TransportFut<'static> {
    let payload =
        serde_json::value::RawValue::from_string(json.to_owned()).expect("a planned answer is JSON");
    Box::pin(async move {
        Ok(ResponsePacket::Single(Response { id, payload: ResponsePayload::Success(payload) }))
    })
}
