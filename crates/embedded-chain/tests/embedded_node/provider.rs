//! Tests of the embedded chain through an alloy provider.

use alloy::network::TransactionBuilder as _;
use alloy::providers::Provider as _;
use alloy::rpc::types::{Filter, TransactionRequest};
use alloy_primitives::{Bytes, TxKind, U256};

use crate::support::{CHAIN_ID, CONTRACT, COUNTED, Folder, World, deployment};

#[tokio::test]
async fn a_provider_sends_waits_and_reads() {
    let folder = Folder::new();
    let world = World::open(&folder.chain());
    let provider = world.node.provider();
    assert_eq!(provider.get_chain_id().await.unwrap(), CHAIN_ID);

    let raw = world.sign(0, TxKind::Create, deployment(&CONTRACT));
    let receipt = provider.send_raw_transaction(&raw).await.unwrap().get_receipt().await.unwrap();
    let contract = receipt.contract_address.unwrap();
    let raw = world.sign(1, contract.into(), Bytes::new());
    let receipt = provider.send_raw_transaction(&raw).await.unwrap().get_receipt().await.unwrap();
    assert!(receipt.status());
    assert_eq!(receipt.block_number, Some(2));

    let view = TransactionRequest::default().with_to(contract).with_input(vec![0; 1]);
    assert_eq!(U256::from_be_slice(&provider.call(view.clone()).await.unwrap()), U256::from(1));
    assert_eq!(U256::from_be_slice(&provider.call(view).number(1).await.unwrap()), U256::ZERO);
    let logs = provider
        .get_logs(&Filter::new().from_block(0).address(contract).event_signature(COUNTED))
        .await
        .unwrap();
    assert_eq!(logs, receipt.logs());
    assert_eq!(provider.get_transaction_count(world.key.address()).await.unwrap(), 2);
    let block = provider.get_block_by_number(2.into()).full().await.unwrap().unwrap();
    assert_eq!(block.transactions.as_transactions().unwrap()[0].inner.tx_hash(), &receipt.transaction_hash);
    assert_eq!(
        provider.get_transaction_by_hash(receipt.transaction_hash).await.unwrap().unwrap().inner.signer(),
        world.key.address()
    );
}

#[tokio::test]
async fn a_provider_passes_on_the_revert_data() {
    let world = World::in_memory();
    let contract = world.deploy();
    let request = TransactionRequest::default().with_to(contract).with_input(vec![0; 2]);
    let error = world.node.provider().call(request).await.unwrap_err();
    let payload = error.as_error_resp().unwrap();
    assert_eq!(payload.code, 3);
    assert!(payload.as_revert_data().unwrap().starts_with(&[0x08, 0xc3, 0x79, 0xa0]));
}

#[tokio::test]
async fn a_batch_passes_the_transport_as_one_request() {
    let world = World::in_memory();
    let provider = world.node.provider();
    let mut batch = alloy::rpc::client::BatchRequest::new(provider.client());
    let id = batch.add_call::<_, String>("eth_chainId", &()).unwrap();
    let number = batch.add_call::<_, String>("eth_blockNumber", &()).unwrap();
    batch.send().await.unwrap();
    assert_eq!((id.await.unwrap(), number.await.unwrap()), ("0x7a69".to_owned(), "0x0".to_owned()));
}

#[tokio::test]
async fn concurrent_sends_are_mined_in_order() {
    let folder = Folder::new();
    let world = World::open(&folder.chain());
    let contract = world.deploy();
    let provider = world.node.provider();
    let raws: Vec<Bytes> = (1..33).map(|nonce| world.sign(nonce, contract.into(), Bytes::new())).collect();
    let sends = raws.iter().map(|raw| provider.send_raw_transaction(raw));
    let sent = futures::future::join_all(sends).await;
    assert!(sent.iter().all(Result::is_ok));
    assert_eq!(world.head(), 33);
}
