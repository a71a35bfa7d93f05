//! Checks whether a response has the form that its request requires, and whether asking another
//! node could help.

use alloy::rpc::json_rpc::{ErrorPayload, RequestPacket, ResponsePacket, ResponsePayload, SerializedRequest};
use serde::Deserialize;

pub const SEND: &str = "eth_sendRawTransaction";

/// Returns true if the response matches the request's id and has the JSON type of the method's
/// result.
pub fn is_answer(request: &RequestPacket, answer: &ResponsePacket) -> bool {
    match (request, answer) {
        (RequestPacket::Single(request), ResponsePacket::Single(answer)) => {
            let has_form = match &answer.payload {
                ResponsePayload::Success(result) => has_form(request.method(), result.get()),
                ResponsePayload::Failure(_) => true,
            };
            *request.id() == answer.id && has_form
        }
        // alloy matches the responses of a batch by their ids.
        (RequestPacket::Batch(requests), ResponsePacket::Batch(answers)) => requests.len() == answers.len(),
        _ => false,
    }
}

fn has_form(method: &str, result: &str) -> bool {
    let is_object = result.starts_with('{') && result.contains(':');
    let is_null = result == "null";
    match method {
        "eth_chainId"
        | "eth_blockNumber"
        | "eth_call"
        | "eth_estimateGas"
        | "eth_gasPrice"
        | "eth_getBalance"
        | "eth_getCode"
        | "eth_getTransactionCount"
        | SEND => result.starts_with("\"0x"),
        "eth_getLogs" => result.starts_with('['),
        // A node answers `null` if it does not have the object.
        "eth_getBlockReceipts" => is_null || result.starts_with('['),
        "eth_getBlockByNumber"
        | "eth_getBlockByHash"
        | "eth_getTransactionReceipt"
        | "eth_getTransactionByHash" => is_null || is_object,
        "eth_feeHistory" => is_object,
        _ => true,
    }
}

/// Returns true if no other node can be expected to know more: for a result other than `null`, or a
/// revert.
pub fn is_conclusive(answer: &ResponsePacket) -> bool {
    let ResponsePacket::Single(answer) = answer else { return true };
    match &answer.payload {
        ResponsePayload::Success(result) => result.get() != "null",
        ResponsePayload::Failure(error) => is_revert(error),
    }
}

fn is_revert(error: &ErrorPayload) -> bool {
    error.as_revert_data().is_some() || error.message.contains("revert")
}

/// Returns true if the node already had the sent transaction.
pub fn is_known(answer: &ResponsePacket) -> bool {
    answer.as_error().is_some_and(|error| {
        let message = error.message.to_lowercase();
        message.contains("already known") || message.contains("already imported")
    })
}

/// Returns the newest block's height, if the response contains it.
pub fn head_in(request: &SerializedRequest, answer: &ResponsePacket) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        number: String,
    }
    let ResponsePacket::Single(answer) = answer else { return None };
    let ResponsePayload::Success(result) = &answer.payload else { return None };
    let text = match request.method() {
        "eth_blockNumber" => serde_json::from_str(result.get()).ok()?,
        "eth_getBlockByNumber" if request.params()?.get().contains("\"latest\"") => {
            serde_json::from_str::<Numbered>(result.get()).ok()?.number
        }
        _ => return None,
    };
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_another_type_is_invalid() {
        for method in
            ["eth_chainId", "eth_getLogs", "eth_getBlockByNumber", "eth_getBlockReceipts", "eth_feeHistory"]
        {
            assert!(!has_form(method, "{}"), "{method}");
            assert!(!has_form(method, "7"), "{method}");
        }
        assert!(has_form("eth_chainId", "\"0x1\""));
        assert!(has_form("eth_getLogs", "[]"));
        assert!(has_form("eth_getTransactionReceipt", "null"));
        assert!(has_form("eth_getBlockByNumber", "{\"number\":\"0x1\"}"));
        assert!(has_form("anvil_mine", "{}"));
    }
}
