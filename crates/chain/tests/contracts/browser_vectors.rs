//! Holds the browser's Keccak, ABI decoder and EIP-712 digests to the client's encoders: both sides
//! test against one committed file.
//!
//! `FORETELL_WRITE_VECTORS=1` writes the file.

use alloy::sol;
use alloy::sol_types::SolCall as _;
use alloy_primitives::{Address, Bytes, U256, keccak256};
use chain::{AccountOwner, Call, SpendingLimits, batch_digest, calls};
use serde_json::{Value, json};

use crate::world::{CHAIN_ID, START_S, USDC};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/assets/js/tests/vectors.json");

sol! {
    // ERC-6909's transfer of a position.
    function transfer(address receiver, uint256 id, uint256 amount) external returns (bool);
}

const USDC_TOKEN: Address = Address::repeat_byte(0xaa);
const GATE: Address = Address::repeat_byte(0xbb);
const HUB: Address = Address::repeat_byte(0xcc);
const ACCOUNT: Address = Address::repeat_byte(0xdd);
const RECIPIENT: Address = Address::repeat_byte(0xe7);

fn limits(sale_usdc: u64) -> SpendingLimits {
    SpendingLimits {
        per_trade_usdc_atomic: 500 * USDC,
        daily_usdc_atomic: 1_000 * USDC + 500_000,
        sale_per_trade_usdc_atomic: sale_usdc * USDC,
        sale_daily_usdc_atomic: 2 * sale_usdc * USDC,
        expiry_s: START_S as u32,
    }
}

/// The calls of each kind of act, and some that the browser must reject.
fn batches() -> Vec<(&'static str, Vec<Call>)> {
    let passkey = AccountOwner::from_bytes(&(0..64).collect::<Vec<u8>>()).unwrap();
    let wallet = AccountOwner::Eoa(RECIPIENT);
    let position = U256::from((7_u64 << 8) | 1);
    let tokens = U256::from(12_500_000_000_000_000_000_u128);
    let send = transferCall { receiver: RECIPIENT, id: position, amount: tokens }.abi_encode();
    let value =
        Call { value: U256::from(1), ..Call::new(USDC_TOKEN, calls::transfer(RECIPIENT, U256::from(1))) };
    let one = |target, data: Bytes| vec![Call::new(target, data)];
    vec![
        ("empty", vec![]),
        (
            "enable",
            vec![
                Call::new(USDC_TOKEN, calls::approve(GATE, U256::MAX)),
                Call::new(GATE, calls::set_policy(3, limits(250))),
            ],
        ),
        ("enable without sales", one(GATE, calls::set_policy(4, limits(0)))),
        ("revoke", one(GATE, calls::revoke_policy(ACCOUNT, 3))),
        ("approve an amount", one(USDC_TOKEN, calls::approve(GATE, U256::from(5 * USDC)))),
        ("end approval", one(USDC_TOKEN, calls::approve(GATE, U256::ZERO))),
        ("withdraw", one(USDC_TOKEN, calls::transfer(RECIPIENT, U256::from(1_234_567_890_u64)))),
        ("send a position", one(HUB, send.into())),
        (
            "buy",
            vec![
                Call::new(USDC_TOKEN, calls::approve(HUB, U256::from(5_000 * USDC))),
                Call::new(HUB, calls::buy(7, 1, 5_000 * USDC, tokens)),
            ],
        ),
        ("sell", one(HUB, calls::sell(7, 1, tokens, 6 * USDC))),
        ("add a passkey", one(ACCOUNT, calls::add_owner(&passkey))),
        ("add a wallet", one(ACCOUNT, calls::add_owner(&wallet))),
        ("remove a passkey", one(ACCOUNT, calls::remove_owner(&passkey))),
        ("reject: another spender", one(USDC_TOKEN, calls::approve(RECIPIENT, U256::from(1)))),
        ("reject: an unlimited allowance of the hub", one(USDC_TOKEN, calls::approve(HUB, U256::MAX))),
        ("reject: another account", one(GATE, calls::revoke_policy(RECIPIENT, 3))),
        ("reject: an unknown function", one(USDC_TOKEN, calls::mint(ACCOUNT, U256::from(1)))),
        ("reject: an unknown contract", one(RECIPIENT, calls::transfer(RECIPIENT, U256::from(1)))),
        ("reject: native currency", vec![value]),
        ("reject: no data", one(USDC_TOKEN, Bytes::new())),
    ]
}

fn batch_vector(nonce: u64, name: &str, calls: &[Call]) -> Value {
    let deadline = START_S + nonce;
    let call =
        |call: &Call| json!({"target": call.target, "value": call.value.to_string(), "data": call.data});
    json!({
        "name": name, "chainId": CHAIN_ID, "account": ACCOUNT, "nonce": nonce, "deadline": deadline,
        "calls": calls.iter().map(call).collect::<Vec<_>>(),
        "digest": batch_digest(CHAIN_ID, ACCOUNT, calls, nonce, deadline),
    })
}

fn vectors() -> Value {
    // Around the lengths at which another block begins.
    let texts = [0, 1, 31, 32, 135, 136, 137, 271, 272, 1_000].map(|length: usize| {
        let data: Bytes = (0..length).map(|byte| (byte % 251) as u8).collect();
        json!({"data": data, "hash": keccak256(&data)})
    });
    let batches: Vec<_> =
        (0..).zip(batches()).map(|(nonce, (name, calls))| batch_vector(nonce, name, &calls)).collect();
    let known = json!({"usdc": USDC_TOKEN, "gate": GATE, "hub": HUB, "account": ACCOUNT});
    json!({"keccak": texts, "known": known, "batches": batches})
}

#[test]
fn the_browsers_vectors_equal_the_clients_encoders() {
    let text = format!("{:#}\n", vectors());
    if std::env::var_os("FORETELL_WRITE_VECTORS").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    assert!(std::fs::read_to_string(FILE).unwrap() == text, "set FORETELL_WRITE_VECTORS=1 to write {FILE}");
}
