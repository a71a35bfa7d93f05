//! Tests that an owner can leave without the service: user operations of both kinds of owners,
//! executed by the compiled EntryPoint v0.9 on anvil.
//!
//! The EntryPoint comes from the contracts' development dependencies. It is licensed under the GPL,
//! so it is neither among the artifacts nor on the embedded chain.

use std::path::PathBuf;

use alloy::providers::Provider;
use alloy::rpc::types::TransactionRequest;
use alloy::sol_types::{SolCall, SolError};
use alloy_primitives::{Address, B256, Bytes, U256, address};
use chain::{AccountOwner, Call, ChainError, Revert, calls};
use p256::ecdsa::SigningKey;

use crate::passkey::{assert_challenge, owner as passkey_owner};
use crate::world::{Node, TOKEN, USDC, World, key};

const ENTRY_POINT: Address = address!("433709009B8330FDa32311DF1C2AFA402eD8D009");

mod sol {
    alloy::sol! {
        #[derive(Debug)]
        struct PackedUserOperation {
            address sender;
            uint256 nonce;
            bytes initCode;
            bytes callData;
            bytes32 accountGasLimits;
            uint256 preVerificationGas;
            bytes32 gasFees;
            bytes paymasterAndData;
            bytes signature;
        }
        struct Call {
            address target;
            uint256 value;
            bytes data;
        }
        function handleOps(PackedUserOperation[] ops, address payable beneficiary) external;
        function getUserOpHash(PackedUserOperation op) external view returns (bytes32);
        function getNonce(address sender, uint192 key) external view returns (uint256);
        function createAccount(bytes owner, bytes32 salt) external returns (address);
        function execute(Call[] calls) external;
        function addOwner(bytes owner) external;
        error FailedOp(uint256 opIndex, string reason);
    }
}

/// Starts a chain with the contracts and the EntryPoint at its canonical address.
async fn world() -> Option<World> {
    let world = World::new(Node::anvil().await?).await;
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../contracts/node_modules/@account-abstraction/contracts/artifacts/EntryPoint.json");
    let artifact = std::fs::read(&path).expect("run `npm ci` in contracts/");
    let artifact: serde_json::Value = serde_json::from_slice(&artifact).unwrap();
    let creation: Bytes = artifact["bytecode"].as_str().unwrap().parse().unwrap();
    // Runs the constructor at the final address, because it creates a contract that stores this
    // address.
    let provider = &world.node.provider;
    let set_code = async |code: Bytes| {
        let _: Option<bool> =
            provider.raw_request("anvil_setCode".into(), (ENTRY_POINT, code)).await.unwrap();
    };
    set_code(creation).await;
    let call = TransactionRequest::default().from(world.relayer.address()).to(ENTRY_POINT);
    let deployed = provider.call(call).await.unwrap();
    world.send(&world.relayer, ENTRY_POINT, Bytes::new()).await.unwrap();
    set_code(deployed).await;
    Some(world)
}

/// Packs two 128-bit numbers into one word.
fn packed(high: u128, low: u128) -> B256 {
    B256::from(U256::from(high) << 128 | U256::from(low))
}

async fn view<C: SolCall>(world: &World, call: C) -> C::Return {
    let request = TransactionRequest::default().to(ENTRY_POINT).input(Bytes::from(call.abi_encode()).into());
    C::abi_decode_returns(&world.node.provider.call(request).await.unwrap()).unwrap()
}

fn execute(calls: Vec<Call>) -> Bytes {
    let calls = calls.into_iter().map(|Call { target, value, data }| sol::Call { target, value, data });
    sol::executeCall { calls: calls.collect() }.abi_encode().into()
}

/// Builds an unsigned operation and its hash.
async fn operation(
    world: &World,
    sender: Address,
    init_code: Bytes,
    call_data: Bytes,
) -> (sol::PackedUserOperation, B256) {
    let nonce = view(world, sol::getNonceCall { sender, key: Default::default() }).await;
    let operation = sol::PackedUserOperation {
        sender,
        nonce,
        initCode: init_code,
        callData: call_data,
        accountGasLimits: packed(1_000_000, 500_000),
        preVerificationGas: U256::from(100_000),
        gasFees: packed(1_000_000_000, 3_000_000_000),
        paymasterAndData: Bytes::new(),
        signature: Bytes::new(),
    };
    let hash = view(world, sol::getUserOpHashCall { op: operation.clone() }).await;
    (operation, hash)
}

/// Sends the operation from an unrelated bundler.
async fn handle(world: &World, operation: sol::PackedUserOperation) -> Result<(), Revert> {
    let bundler = key(7);
    let handle = sol::handleOpsCall { ops: vec![operation], beneficiary: bundler.address() };
    match world.send(&bundler, ENTRY_POINT, handle.abi_encode().into()).await {
        Ok(_) => Ok(()),
        Err(ChainError::Reverted(revert)) => Err(revert),
        Err(other) => panic!("{other}"),
    }
}

fn signature_error() -> Revert {
    let reason = "AA24 signature error".to_owned();
    Revert::Other(format!("0x{}", hex::encode(sol::FailedOp { opIndex: U256::ZERO, reason }.abi_encode())))
}

/// Funds an account that does not exist yet, with USDC and with native currency for its operations.
async fn funded(world: &World, owner: &AccountOwner) -> (Address, Bytes) {
    let account = world.chain.account_address(owner, B256::ZERO).await.unwrap();
    world.mint(account, 100 * USDC).await;
    let balance = (account, U256::from(10 * TOKEN));
    let _: Option<bool> = world.node.provider.raw_request("anvil_setBalance".into(), balance).await.unwrap();
    let create = sol::createAccountCall { owner: owner.to_bytes(), salt: B256::ZERO };
    let init_code = [world.chain.contracts().account_factory.as_slice(), &create.abi_encode()].concat();
    (account, init_code.into())
}

fn payment(world: &World, to: Address) -> Bytes {
    execute(vec![Call::new(world.chain.contracts().usdc, calls::transfer(to, U256::from(40 * USDC)))])
}

#[tokio::test]
async fn an_eoa_owner_creates_an_account_and_withdraws_alone() {
    let Some(world) = world().await else { return };
    let owner = key(9);
    let (account, init_code) = funded(&world, &owner.owner()).await;
    let to = Address::repeat_byte(0xab);
    let (mut unsigned, hash) = operation(&world, account, init_code, payment(&world, to)).await;
    unsigned.signature = key(8).sign_digest(hash).unwrap();
    assert_eq!(handle(&world, unsigned.clone()).await, Err(signature_error()));
    unsigned.signature = owner.sign_digest(hash).unwrap();
    handle(&world, unsigned.clone()).await.unwrap();
    assert_eq!(world.usdc_of(to).await, 40 * USDC);
    assert!(handle(&world, unsigned).await.is_err(), "an operation is executed once");
    assert_eq!(world.chain.account_owners(account).await.unwrap(), Some(vec![owner.owner()]));
}

#[tokio::test]
async fn a_passkey_owner_creates_an_account_and_withdraws_alone() {
    let Some(world) = world().await else { return };
    let passkey = SigningKey::from_slice(&[42; 32]).unwrap();
    let owner = passkey_owner(&passkey);
    let (account, init_code) = funded(&world, &owner).await;
    let to = Address::repeat_byte(0xab);
    let (mut unsigned, hash) = operation(&world, account, init_code, payment(&world, to)).await;
    unsigned.signature = assert_challenge(&passkey, B256::ZERO, false).to_signature(&owner).unwrap();
    assert_eq!(handle(&world, unsigned.clone()).await, Err(signature_error()));
    unsigned.signature = assert_challenge(&passkey, hash, true).to_signature(&owner).unwrap();
    handle(&world, unsigned).await.unwrap();
    assert_eq!(world.usdc_of(to).await, 40 * USDC);
}

#[tokio::test]
async fn owners_are_replaced_without_the_service() {
    let Some(world) = world().await else { return };
    let (first, passkey) = (key(9), SigningKey::from_slice(&[42; 32]).unwrap());
    let second = passkey_owner(&passkey);
    let (account, init_code) = funded(&world, &first.owner()).await;
    // The first owner adds a passkey with a call that the EntryPoint makes itself.
    let add = sol::addOwnerCall { owner: second.to_bytes() }.abi_encode();
    let (mut adding, hash) = operation(&world, account, init_code, add.into()).await;
    adding.signature = first.sign_digest(hash).unwrap();
    handle(&world, adding).await.unwrap();

    // The passkey removes the first owner in a batch of the account.
    let remove = execute(vec![Call::new(account, calls::remove_owner(&first.owner()))]);
    let (mut removing, hash) = operation(&world, account, Bytes::new(), remove).await;
    let by_first = first.sign_digest(hash).unwrap();
    removing.signature = assert_challenge(&passkey, hash, false).to_signature(&second).unwrap();
    handle(&world, removing).await.unwrap();
    assert_eq!(world.chain.account_owners(account).await.unwrap(), Some(vec![second]));

    // Neither old nor new signatures of the removed owner are valid.
    let to = Address::repeat_byte(0xab);
    let (mut paying, hash) = operation(&world, account, Bytes::new(), payment(&world, to)).await;
    for signature in [first.sign_digest(hash).unwrap(), by_first] {
        paying.signature = signature;
        assert_eq!(handle(&world, paying.clone()).await, Err(signature_error()));
    }
    paying.signature = assert_challenge(&passkey, hash, false).to_signature(&second).unwrap();
    handle(&world, paying).await.unwrap();
    assert_eq!(world.usdc_of(to).await, 40 * USDC);
    // Removing the last owner fails and changes nothing, although the operation pays its gas.
    let last = execute(vec![Call::new(account, calls::remove_owner(&second))]);
    let (mut removing, hash) = operation(&world, account, Bytes::new(), last).await;
    removing.signature = assert_challenge(&passkey, hash, false).to_signature(&second).unwrap();
    handle(&world, removing).await.unwrap();
    assert_eq!(world.chain.account_owners(account).await.unwrap(), Some(vec![second]));
}
