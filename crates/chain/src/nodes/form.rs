//! Whether an answer can be one to its request, and whether another node could know more.

use alloy::rpc::json_rpc::{ErrorPayload, RequestPacket, ResponsePacket, ResponsePayload, SerializedRequest};
use serde::Deserialize;

/// The method that sends a signed transaction.
pub const SEND: &str = "eth_sendRawTransaction";

/// Whether the answer is to this request, and has the JSON type that the method's results have.
pub fn is_answer(request: &RequestPacket, answer: &ResponsePacket) -> bool {
    match (request, answer) {
        (RequestPacket::Single(request), ResponsePacket::Single(answer)) => {
            let has_form = match &answer.payload {
                ResponsePayload::Success(result) => has_form(request.method(), result.get()),
                ResponsePayload::Failure(_) => true,
            };
            *request.id() == answer.id && has_form
        }
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
        "eth_getBlockReceipts" => is_null || result.starts_with('['),
        "eth_getBlockByNumber"
        | "eth_getBlockByHash"
        | "eth_getTransactionReceipt"
        | "eth_getTransactionByHash" => is_null || is_object,
        "eth_feeHistory" => is_object,
        _ => true,
    }
}

/// Whether no other node can be expected to know more: a result that is not `null`, or a revert.
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

/// Whether the node had the sent transaction already.
pub fn is_known(answer: &ResponsePacket) -> bool {
    answer.as_error().is_some_and(|error| {
        let message = error.message.to_lowercase();
        message.contains("already known") || message.contains("already imported")
    })
}

/// The newest block's height, if the answer says it.
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
    fn a_result_of_another_type_is_no_answer() {
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
