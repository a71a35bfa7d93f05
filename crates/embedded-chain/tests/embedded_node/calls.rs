//! Tests of `eth_call` and `eth_estimateGas`.

use alloy::sol_types::{Revert, SolError as _};
use alloy_primitives::{Address, B256, Bytes, U64, U256, bytes, hex};
use domain::Clock as _;
use serde_json::json;

use crate::support::{CONTRACT, GWEI, START_S, World};

#[test]
fn a_call_reads_and_changes_nothing() {
    let world = World::in_memory();
    let contract = world.deploy();
    let _: Bytes = world.ask("eth_call", json!([{ "to": contract }, "latest"])).unwrap();
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::ZERO);
    assert_eq!(world.head(), 1);
}

#[test]
fn a_revert_returns_its_data_and_reason() {
    let world = World::in_memory();
    let contract = world.deploy();
    let error = world.call(contract, 2, json!("latest")).unwrap_err();
    assert_eq!((error.code, error.message.as_ref()), (3, "execution reverted: no"));
    let data: Bytes = serde_json::from_str(error.data.unwrap().get()).unwrap();
    assert_eq!(Revert::abi_decode(&data).unwrap().reason, "no");
}

#[test]
fn a_custom_error_returns_its_bytes() {
    let world = World::in_memory();
    let contract = world.deploy();
    let input = B256::repeat_byte(0xAB);
    let error = world.ask::<Bytes>("eth_call", json!([{ "to": contract, "input": input }])).unwrap_err();
    assert_eq!((error.code, error.message.as_ref()), (3, "execution reverted"));
    assert_eq!(error.data.unwrap().get(), format!("\"{input}\""));
}

#[test]
fn an_invalid_instruction_is_not_a_revert() {
    let world = World::in_memory();
    let contract = world.deploy();
    let error = world.call(contract, 4, json!("latest")).unwrap_err();
    assert_eq!((error.code, error.message.as_ref()), (-32000, "invalid opcode: INVALID"));
}

#[test]
fn a_call_at_the_newest_block_uses_the_clocks_time() {
    let world = World::in_memory();
    let contract = world.deploy();
    world.clock.advance(90_000);
    assert_eq!(world.call(contract, 3, json!("latest")).unwrap(), U256::from(START_S + 90));
    assert_eq!(world.call(contract, 3, json!("0x1")).unwrap(), U256::from(START_S));
    assert_eq!(world.clock.now().s(), START_S + 90);
}

#[test]
fn a_gas_estimate_is_sufficient_and_tight() {
    let world = World::in_memory();
    let contract = world.deploy();
    let from = world.key.address();
    let gas: U64 = world.ask("eth_estimateGas", json!([{ "from": from, "to": contract }])).unwrap();
    let enough = json!([{ "from": from, "to": contract, "gas": gas }, "latest"]);
    world.ask::<Bytes>("eth_call", enough).unwrap();
    let hash = world.count(1, contract);
    let receipt: alloy::rpc::types::TransactionReceipt =
        world.ask("eth_getTransactionReceipt", json!([hash])).unwrap();
    assert!(
        gas.to::<u64>() >= receipt.gas_used && gas.to::<u64>() < receipt.gas_used * 11 / 10,
        "{gas} {}",
        receipt.gas_used
    );
}

#[test]
fn a_transfer_estimate_is_exact_and_a_revert_estimate_fails() {
    let world = World::in_memory();
    let contract = world.deploy();
    let from = world.key.address();
    let transfer = json!([{ "from": from, "to": Address::repeat_byte(0xEE), "value": "0x1" }]);
    assert_eq!(world.ask::<U64>("eth_estimateGas", transfer).unwrap(), U64::from(21_000));
    let reverts = json!([{ "from": from, "to": contract, "input": "0x0000" }, "pending"]);
    let error = world.ask::<U64>("eth_estimateGas", reverts).unwrap_err();
    assert_eq!((error.code, error.message.as_ref()), (3, "execution reverted: no"));
}

#[test]
fn a_call_with_a_price_or_a_value_needs_the_funds() {
    let world = World::in_memory();
    let poor = Address::repeat_byte(0x99);
    for request in [
        json!({ "from": poor, "to": poor, "value": "0x1" }),
        json!({ "from": poor, "to": poor, "gasPrice": U256::from(GWEI) }),
    ] {
        let error = world.ask::<Bytes>("eth_call", json!([request, "latest"])).unwrap_err();
        assert!(error.message.starts_with("insufficient funds"), "{error}");
    }
}

#[test]
fn a_contract_may_be_the_sender_of_a_call() {
    let world = World::in_memory();
    let contract = world.deploy();
    let count: U256 =
        world.ask("eth_call", json!([{ "from": contract, "to": contract, "input": "0x00" }])).unwrap();
    assert_eq!(count, U256::ZERO);
}

#[test]
fn overrides_apply_to_one_call() {
    let world = World::in_memory();
    let contract = world.deploy();
    let (elsewhere, slot) = (Address::repeat_byte(0x55), B256::ZERO);
    let call = json!({ "to": elsewhere, "input": "0x00" });
    let code = Bytes::from(CONTRACT);
    let whole = json!([call, "latest", { elsewhere.to_string(): { "code": code, "state": { slot.to_string(): B256::with_last_byte(5) } } }]);
    assert_eq!(world.ask::<U256>("eth_call", whole).unwrap(), U256::from(5));
    let call = json!({ "to": contract, "input": "0x00" });
    let part = json!([call, "latest", { contract.to_string(): { "stateDiff": { slot.to_string(): B256::with_last_byte(6) } } }]);
    assert_eq!(world.ask::<U256>("eth_call", part).unwrap(), U256::from(6));
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::ZERO);
    let time = json!([{ "to": contract, "input": "0x000000" }, "latest", {}, { "time": "0x10" }]);
    assert_eq!(world.ask::<U256>("eth_call", time).unwrap(), U256::from(16));
}

#[test]
fn the_p256_precompile_is_available() {
    let world = World::in_memory();
    // The first valid vector of the precompile's specification (EIP-7951).
    let input = hex!(
        "4cee90eb86eaa050036147a12d49004b6b9c72bd725d39d4785011fe190f0b4d"
        "a73bd4903f0ce3b639bbbf6e8e80d16931ff4bcf5993d58468e8fb19086e8cac"
        "36dbcd03009df8c59286b162af3bd7fcc0450c9aa81be5d10d312af6c66b1d60"
        "4aebd3099c618202fcfe16ae7770b0c49ab5eadf74b754204a3bb6060e44eff3"
        "7618b065f9832de4ca6ca971a7a1adc826d0f7c00181a5fb2ddf79ae00b4e10e"
    );
    let call = json!([{ "to": Address::with_last_byte(0).create(0), "input": "0x" }]);
    let _: Bytes = world.ask("eth_call", call).unwrap();
    let verifier = "0x0000000000000000000000000000000000000100";
    let answer: Bytes =
        world.ask("eth_call", json!([{ "to": verifier, "input": Bytes::from(input) }])).unwrap();
    assert_eq!(answer, Bytes::from(B256::with_last_byte(1).0));
    let answer: Bytes = world.ask("eth_call", json!([{ "to": verifier, "input": bytes!("00") }])).unwrap();
    assert!(answer.is_empty());
}
