//! Responses of a node with a different view of the chain: up to some height, on another fork, or
//! with another chain id.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Shared;

/// Fake hashes and the real hashes that they replace.
pub type Fakes = HashMap<String, String>;

/// A node's view of the chain.
#[derive(Debug, Clone, Copy)]
pub enum View {
    /// There is no block above this height.
    UpTo(u64),
    /// Blocks from this height on have different hashes.
    Forked { from: u64 },
    /// The chain has a different id.
    OtherChain,
}

const TAGS: [&str; 4] = ["latest", "pending", "safe", "finalized"];

impl Shared {
    /// Answers a request like a node with this view. `None` if the node itself does not answer.
    pub async fn seen_as(&self, view: View, request: &Value) -> Option<Value> {
        let method = request["method"].as_str()?;
        let params = request.get("params").cloned().unwrap_or_else(|| json!([]));
        let mut answer = match view {
            View::OtherChain if method == "eth_chainId" => json!({ "result": "0xdead" }),
            View::OtherChain => self.ask(method, params).await?,
            View::UpTo(height) => self.up_to(height, method, params).await?,
            View::Forked { from } => {
                let mut params = params;
                let mut fakes = self.fakes.lock().clone();
                replace(&mut params, &fakes);
                let mut answer = self.ask(method, params).await?;
                fake(&mut answer["result"], from, &mut fakes);
                self.fakes.lock().extend(fakes);
                answer
            }
        };
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        Some(answer)
    }

    async fn up_to(&self, height: u64, method: &str, mut params: Value) -> Option<Value> {
        if method == "eth_blockNumber" {
            return Some(json!({ "result": hex(height) }));
        }
        let asked = highest(&params);
        if asked.is_some_and(|number| number > height) && method == "eth_getBlockByNumber" {
            return Some(json!({ "result": null }));
        }
        if method != "eth_sendRawTransaction" {
            lower(&mut params, height);
        }
        let mut answer = self.ask(method, params).await?;
        if mentioned(&answer["result"]).is_some_and(|number| number > height) {
            // A node has no data about a block that it does not have.
            answer = match method {
                "eth_getLogs" => json!({ "error": { "code": -32000, "message": "unknown block" } }),
                _ => json!({ "result": null }),
            };
        }
        Some(answer)
    }
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

fn number(value: &Value) -> Option<u64> {
    // Longer strings are hashes, addresses or amounts.
    let digits = value.as_str()?.strip_prefix("0x").filter(|digits| digits.len() <= 12)?;
    u64::from_str_radix(digits, 16).ok()
}

/// The highest block number among the parameters.
fn highest(params: &Value) -> Option<u64> {
    params.as_array()?.iter().filter_map(number).max()
}

/// Replaces tags, and ends of ranges above `height`, by `height`.
fn lower(params: &mut Value, height: u64) {
    for param in params.as_array_mut().into_iter().flatten() {
        if param.as_str().is_some_and(|text| TAGS.contains(&text)) {
            *param = json!(hex(height));
        }
        for end in ["fromBlock", "toBlock"] {
            let Some(value) = param.get_mut(end) else { continue };
            let is_above = number(value).is_some_and(|number| number > height);
            if is_above || value.as_str().is_some_and(|text| TAGS.contains(&text)) {
                *value = json!(hex(height));
            }
        }
    }
}

/// The block that a result refers to.
fn mentioned(result: &Value) -> Option<u64> {
    let of = |value: &Value| number(value.get("blockNumber").or_else(|| value.get("number"))?);
    of(result).or_else(|| result.as_array()?.iter().filter_map(of).max())
}

/// Derives a fake hash from a real one.
fn faked(real: &str, fakes: &mut Fakes) -> String {
    let flip = |digit: char| char::from_digit(15 - digit.to_digit(16).unwrap_or_default(), 16).unwrap_or('0');
    let fake: String = real.chars().skip(2).map(flip).collect();
    let fake = format!("0x{fake}");
    fakes.insert(fake.clone(), real.to_owned());
    fake
}

/// Replaces hashes of blocks from `from` on by fake hashes.
fn fake(value: &mut Value, from: u64, fakes: &mut Fakes) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| fake(item, from, fakes)),
        Value::Object(members) => {
            let of_block =
                members.get("number").and_then(number).filter(|_| members.contains_key("parentHash"));
            let of_item = members.get("blockNumber").and_then(number);
            let mut replace = |name: &str, height: Option<u64>| {
                if height.is_some_and(|height| height >= from)
                    && let Some(Value::String(hash)) = members.get_mut(name)
                {
                    *hash = faked(hash, fakes);
                }
            };
            replace("hash", of_block);
            replace("parentHash", of_block.and_then(|height| height.checked_sub(1)));
            replace("blockHash", of_item);
            if let Some(logs) = members.get_mut("logs") {
                fake(logs, from, fakes);
            }
        }
        _ => {}
    }
}

/// Replaces fake hashes by the real ones.
fn replace(value: &mut Value, fakes: &Fakes) {
    match value {
        Value::String(text) => {
            if let Some(real) = fakes.get(text) {
                real.clone_into(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, fakes)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, fakes)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_block_has_a_fake_hash_that_maps_to_the_real_one() {
        let mut fakes = Fakes::new();
        let mut block = json!({ "number": "0x5", "hash": "0xab", "parentHash": "0xcd" });
        fake(&mut block, 5, &mut fakes);
        assert_eq!(block, json!({ "number": "0x5", "hash": "0x54", "parentHash": "0xcd" }));
        let mut asked = json!([{ "blockHash": "0x54" }]);
        replace(&mut asked, &fakes);
        assert_eq!(asked, json!([{ "blockHash": "0xab" }]));
    }

    #[test]
    fn tags_and_higher_ends_are_lowered_to_the_height() {
        let mut params = json!([{ "fromBlock": "0x1", "toBlock": "0x9" }, "latest", "0x2"]);
        lower(&mut params, 4);
        assert_eq!(params, json!([{ "fromBlock": "0x1", "toBlock": "0x4" }, "0x4", "0x2"]));
    }
}
