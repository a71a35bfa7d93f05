//! Tests of sending transactions, and of the errors for invalid ones.

use alloy::consensus::{
    SignableTransaction as _, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxEnvelope, TxLegacy,
};
use alloy::eips::eip2718::Encodable2718 as _;
use alloy::eips::eip7702::Authorization;
use alloy::rpc::types::TransactionReceipt;
use alloy::signers::SignerSync as _;
use alloy::signers::local::PrivateKeySigner;
use alloy_primitives::{Address, B256, Bytes, TxKind, U64, U256, address, bytes};
use serde_json::json;

use crate::support::{CHAIN_ID, Folder, GWEI, World, sign, transaction};

fn refusal(world: &World, transaction: TxEip1559) -> (i64, String) {
    let error = world.send(&sign(&world.key, transaction)).unwrap_err();
    assert_eq!(world.head(), 0, "a refused transaction makes no block");
    (error.code, error.message.into_owned())
}

#[test]
fn each_accepted_transaction_gets_its_own_block() {
    let world = World::in_memory();
    let contract = world.deploy();
    world.count(1, contract);
    world.count(2, contract);
    assert_eq!(world.head(), 3);
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::from(2));
}

#[test]
fn every_supported_kind_of_transaction_is_mined() {
    let world = World::in_memory();
    let to = TxKind::Call(Address::repeat_byte(0xEE));
    let (gas_limit, gas_price, value) = (21_000, GWEI, U256::from(5));
    let legacy = TxLegacy {
        chain_id: Some(CHAIN_ID),
        nonce: 0,
        gas_limit,
        gas_price,
        to,
        value,
        ..TxLegacy::default()
    };
    let before_eip_155 = TxLegacy { chain_id: None, nonce: 1, ..legacy.clone() };
    let listed =
        TxEip2930 { chain_id: CHAIN_ID, nonce: 2, gas_limit, gas_price, to, value, ..TxEip2930::default() };
    for unsigned in [legacy, before_eip_155] {
        let signature = world.key.sign_hash_sync(&unsigned.signature_hash()).unwrap();
        world.send(&TxEnvelope::from(unsigned.into_signed(signature)).encoded_2718().into()).unwrap();
    }
    let signature = world.key.sign_hash_sync(&listed.signature_hash()).unwrap();
    world.send(&TxEnvelope::from(listed.into_signed(signature)).encoded_2718().into()).unwrap();
    world.send(&sign(&world.key, TxEip1559 { value, ..transaction(3) })).unwrap();
    let balance: U256 = world.ask("eth_getBalance", json!([Address::repeat_byte(0xEE)])).unwrap();
    assert_eq!(balance, U256::from(20));
}

#[test]
fn an_account_may_delegate_to_code_and_still_does_after_a_restart() {
    let folder = Folder::new();
    let world = World::open(&folder.chain());
    let (contract, account) = (world.deploy(), world.key.address());
    // The sender's nonce is incremented before its authorization is checked.
    let authorization = Authorization { chain_id: U256::from(CHAIN_ID), address: contract, nonce: 2 };
    let signature = world.key.sign_hash_sync(&authorization.signature_hash()).unwrap();
    let delegating = TxEip7702 {
        chain_id: CHAIN_ID,
        nonce: 1,
        gas_limit: 200_000,
        max_fee_per_gas: GWEI,
        to: account,
        authorization_list: vec![authorization.into_signed(signature)],
        ..TxEip7702::default()
    };
    let signature = world.key.sign_hash_sync(&delegating.signature_hash()).unwrap();
    world.send(&TxEnvelope::from(delegating.into_signed(signature)).encoded_2718().into()).unwrap();
    assert_eq!(world.call(account, 1, json!("latest")).unwrap(), U256::from(1));
    drop(world);
    let world = World::open(&folder.chain());
    world.count(3, account);
    assert_eq!(world.call(account, 1, json!("latest")).unwrap(), U256::from(2));
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::ZERO);
}

#[test]
fn blobs_are_not_supported() {
    let world = World::in_memory();
    let to = Address::repeat_byte(0xEE);
    let blobs =
        TxEip4844 { chain_id: CHAIN_ID, to, blob_versioned_hashes: vec![B256::ZERO], ..TxEip4844::default() };
    let signature = world.key.sign_hash_sync(&blobs.signature_hash()).unwrap();
    let error =
        world.send(&TxEnvelope::from(blobs.into_signed(signature)).encoded_2718().into()).unwrap_err();
    assert_eq!(error.message, "transaction type not supported");
}

#[test]
fn a_nonce_below_the_accounts_is_too_low() {
    let world = World::in_memory();
    world.deploy();
    let error = world.send(&world.sign(0, TxKind::Create, bytes!("00"))).unwrap_err();
    assert_eq!((error.code, error.message.as_ref()), (-32000, "nonce too low: next nonce 1, tx nonce 0"));
}

#[test]
fn a_nonce_above_the_next_is_rejected() {
    let (code, message) = refusal(&World::in_memory(), transaction(7));
    assert_eq!(code, -32000);
    assert!(message.starts_with("nonce too high"), "{message}");
}

#[test]
fn repeated_bytes_are_already_known() {
    let world = World::in_memory();
    let raw = world.sign(0, TxKind::Create, bytes!("00"));
    world.send(&raw).unwrap();
    let error = world.send(&raw).unwrap_err();
    assert_eq!((error.code, error.message.as_ref()), (-32000, "already known"));
    assert_eq!(world.head(), 1);
}

#[test]
fn a_sender_without_funds_is_rejected() {
    let world = World::in_memory();
    let poor = PrivateKeySigner::from_bytes(&B256::repeat_byte(8)).unwrap();
    let error = world.send(&sign(&poor, transaction(0))).unwrap_err();
    assert!(error.message.starts_with("insufficient funds for gas * price + value"), "{error}");
}

#[test]
fn gas_must_be_between_the_intrinsic_cost_and_the_cap() {
    let (_, message) = refusal(&World::in_memory(), TxEip1559 { gas_limit: 20_999, ..transaction(0) });
    assert_eq!(message, "intrinsic gas too low: gas 20999, minimum needed 21000");
    let (_, message) = refusal(&World::in_memory(), TxEip1559 { gas_limit: (1 << 24) + 1, ..transaction(0) });
    assert_eq!(message, "transaction gas limit too high (cap: 16777216, tx: 16777217)");
}

#[test]
fn a_fee_below_the_base_fee_is_rejected() {
    let (_, message) =
        refusal(&World::in_memory(), TxEip1559 { max_fee_per_gas: GWEI - 1, ..transaction(0) });
    assert!(message.starts_with("max fee per gas less than block base fee"), "{message}");
}

#[test]
fn a_transaction_of_another_chain_is_rejected() {
    let (_, message) = refusal(&World::in_memory(), TxEip1559 { chain_id: 1, ..transaction(0) });
    assert_eq!(message, "invalid chain id for signer: have 1 want 31337");
}

#[test]
fn bytes_that_are_not_a_transaction_are_rejected() {
    let world = World::in_memory();
    assert_eq!(world.send(&bytes!("c0ffee")).unwrap_err().code, -32000);
    assert_eq!(world.send(&Bytes::new()).unwrap_err().code, -32000);
    let mut trailing = world.sign(0, TxKind::Create, bytes!("00")).to_vec();
    trailing.push(0);
    assert_eq!(world.send(&trailing.into()).unwrap_err().code, -32000);
}

#[test]
fn the_sender_pays_the_base_fee_and_the_beneficiary_gets_the_tip() {
    let world = World::in_memory();
    let sender = world.key.address();
    let before: U256 = world.ask("eth_getBalance", json!([sender])).unwrap();
    let to = TxKind::Call(Address::repeat_byte(0xEE));
    let priced = TxEip1559 { to, max_priority_fee_per_gas: GWEI / 2, value: U256::from(9), ..transaction(0) };
    let hash = world.send(&sign(&world.key, priced)).unwrap();
    let receipt: TransactionReceipt = world.ask("eth_getTransactionReceipt", json!([hash])).unwrap();
    assert_eq!(receipt.effective_gas_price, GWEI + GWEI / 2);
    let after: U256 = world.ask("eth_getBalance", json!([sender])).unwrap();
    assert_eq!(before - after, U256::from(21_000 * (GWEI + GWEI / 2) + 9));
    let block: alloy::rpc::types::Block =
        world.ask("eth_getBlockByNumber", json!(["latest", false])).unwrap();
    let tip: U256 = world.ask("eth_getBalance", json!([block.header.beneficiary])).unwrap();
    assert_eq!(tip, U256::from(21_000 * GWEI / 2));
}

#[test]
fn a_reverted_transaction_only_pays_its_gas() {
    let world = World::in_memory();
    let contract = world.deploy();
    let hash = world.send(&world.sign(1, TxKind::Call(contract), vec![0; 2])).unwrap();
    let receipt: TransactionReceipt = world.ask("eth_getTransactionReceipt", json!([hash])).unwrap();
    assert!(!receipt.status());
    assert!(receipt.gas_used > 21_000);
    assert!(receipt.logs().is_empty());
    let nonce: U64 = world.ask("eth_getTransactionCount", json!([world.key.address(), "latest"])).unwrap();
    assert_eq!(nonce, U64::from(2));
}

#[test]
fn a_synchronous_send_returns_the_receipt() {
    let world = World::in_memory();
    let raw = world.sign(0, TxKind::Create, crate::support::deployment(&crate::support::CONTRACT));
    let receipt: TransactionReceipt = world.ask("eth_sendRawTransactionSync", json!([raw])).unwrap();
    assert_eq!(receipt.contract_address, Some(world.key.address().create(0)));
    assert_eq!(receipt.block_number, Some(1));
}

#[test]
fn the_common_deployer_gives_the_addresses_of_real_networks() {
    let world = World::in_memory();
    let init = crate::support::deployment(&crate::support::CONTRACT);
    let deployer = address!("0x4e59b44847b379578588920cA78FbF26c0B4956C");
    let salt = B256::repeat_byte(3);
    world.send(&world.sign(0, TxKind::Call(deployer), [salt.as_slice(), &init].concat())).unwrap();
    let code: Bytes = world.ask("eth_getCode", json!([deployer.create2_from_code(salt, &init)])).unwrap();
    assert_eq!(code.as_ref(), crate::support::CONTRACT);
}

#[test]
fn concurrent_sends_are_all_mined_during_calls() {
    let folder = Folder::new();
    let world = World::open(&folder.chain());
    let contract = world.deploy();
    let keys: Vec<PrivateKeySigner> =
        (20..28).map(|byte| PrivateKeySigner::from_bytes(&B256::repeat_byte(byte)).unwrap()).collect();
    for (nonce, key) in keys.iter().enumerate() {
        let gift = TxEip1559 {
            to: TxKind::Call(key.address()),
            value: U256::from(100_000_000 * GWEI / 10),
            ..transaction(nonce as u64 + 1)
        };
        world.send(&sign(&world.key, gift)).unwrap();
    }
    std::thread::scope(|scope| {
        let senders: Vec<_> = keys
            .iter()
            .map(|key| {
                let world = &world;
                scope.spawn(move || {
                    for nonce in 0..20 {
                        let count = TxEip1559 { to: TxKind::Call(contract), ..transaction(nonce) };
                        world.send(&sign(key, count)).unwrap();
                    }
                })
            })
            .collect();
        let mut last = U256::ZERO;
        while senders.iter().any(|sender| !sender.is_finished()) {
            let count = world.call(contract, 1, json!("latest")).unwrap();
            assert!(count >= last, "a later call never sees less");
            last = count;
        }
    });
    assert_eq!(world.call(contract, 1, json!("latest")).unwrap(), U256::from(160));
    assert_eq!(world.head(), 1 + 8 + 160);
}
