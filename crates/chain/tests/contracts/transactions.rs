//! Tests of signing, sending and receipts, step by step.

use alloy::providers::Provider as _;
use alloy_primitives::{Bytes, U256};
use chain::{Chain, ChainError, Fees, SendOutcome, Transaction, calls, http_provider};

use crate::world::{Node, USDC, World, key};

on_both_nodes!(
    same_bytes_may_be_sent_any_number_of_times,
    used_nonce_is_reported,
    concurrent_transactions_of_one_key_are_all_mined,
    receipt_of_a_reverted_transaction_reports_the_revert,
    blocks_point_to_their_parents,
);

async fn mint_at(world: &World, nonce: u64, fees: Fees) -> Transaction {
    let data = calls::mint(world.treasury, U256::from(USDC));
    let to = Some(world.chain.contracts().usdc);
    Transaction { to, data, value: U256::ZERO, nonce, gas_limit: 200_000, fees }
}

async fn same_bytes_may_be_sent_any_number_of_times(node: Node) {
    let world = World::new(node).await;
    let nonce = world.chain.transaction_count(world.deployer.address()).await.unwrap();
    let tx = mint_at(&world, nonce, world.chain.fees().await.unwrap()).await;
    let signed = world.chain.sign(&world.deployer, &tx).unwrap();
    assert_eq!(world.chain.sign(&world.deployer, &tx).unwrap(), signed);
    assert_eq!(world.chain.receipt(signed.hash).await.unwrap(), None);

    assert_eq!(world.chain.send_raw(&signed.raw).await.unwrap(), SendOutcome::Accepted);
    let receipt = world.receipt(signed.hash).await;
    assert!(receipt.success);
    assert_eq!(receipt.tx_hash, signed.hash);
    let again = world.chain.send_raw(&signed.raw).await.unwrap();
    assert!(matches!(again, SendOutcome::AlreadyKnown | SendOutcome::NonceTooLow), "{again:?}");
    assert_eq!(world.chain.transaction_count(world.deployer.address()).await.unwrap(), nonce + 1);
    assert_eq!(world.usdc_of(world.treasury).await, USDC);
}

async fn used_nonce_is_reported(node: Node) {
    let world = World::new(node).await;
    let tx = mint_at(&world, 0, world.chain.fees().await.unwrap().bumped()).await;
    let signed = world.chain.sign(&world.deployer, &tx).unwrap();
    assert_eq!(world.chain.send_raw(&signed.raw).await.unwrap(), SendOutcome::NonceTooLow);
    let refused = world.chain.send_raw(&[1, 2, 3]).await.unwrap();
    assert!(matches!(refused, SendOutcome::Rejected(_)), "{refused:?}");
}

async fn concurrent_transactions_of_one_key_are_all_mined(node: Node) {
    let world = World::new(node).await;
    let usdc = world.chain.contracts().usdc;
    let mints =
        (1..=8).map(|n| world.send(&world.deployer, usdc, calls::mint(world.treasury, U256::from(n * USDC))));
    for receipt in futures::future::join_all(mints).await {
        assert!(receipt.unwrap().success);
    }
    assert_eq!(world.usdc_of(world.treasury).await, 36 * USDC);
}

async fn receipt_of_a_reverted_transaction_reports_the_revert(node: Node) {
    let world = World::new(node).await;
    let stranger = key(9);
    let tx = mint_at(&world, 0, world.chain.fees().await.unwrap()).await;
    let signed = world.chain.sign(&stranger, &tx).unwrap();
    assert_eq!(world.chain.send_raw(&signed.raw).await.unwrap(), SendOutcome::Accepted);
    let receipt = world.receipt(signed.hash).await;
    assert!(!receipt.success && receipt.gas_used > 21_000);
    let refused = world.send(&stranger, world.chain.contracts().usdc, tx.data).await;
    assert!(matches!(refused, Err(ChainError::Reverted(chain::Revert::Other(_)))), "{refused:?}");
}

async fn blocks_point_to_their_parents(node: Node) {
    let world = World::new(node).await;
    let head = world.chain.head().await.unwrap();
    let parent = world.chain.block(head.number - 1).await.unwrap().unwrap();
    assert_eq!(head.parent_hash, parent.hash);
    assert_eq!(world.chain.block(head.number).await.unwrap(), Some(head));
    assert_eq!(world.chain.block(head.number + 1).await.unwrap(), None);
    assert!(world.chain.finalized().await.unwrap().unwrap().number <= head.number);
    assert!(world.chain.native_balance(world.deployer.address()).await.unwrap() > U256::ZERO);
}

/// Only anvil has a pool of pending transactions.
#[tokio::test]
async fn waiting_transaction_is_replaced_only_for_higher_fees() {
    let Some(node) = Node::anvil().await else { return };
    let world = World::new(node).await;
    let provider = &world.node.provider;
    let _: Option<bool> = provider.raw_request("evm_setAutomine".into(), (false,)).await.unwrap();
    let nonce = world.chain.transaction_count(world.deployer.address()).await.unwrap();
    let first = mint_at(&world, nonce, world.chain.fees().await.unwrap()).await;
    let sign = |tx: &Transaction| world.chain.sign(&world.deployer, tx).unwrap();
    let send = async |tx: &Transaction| world.chain.send_raw(&sign(tx).raw).await.unwrap();

    assert_eq!(send(&first).await, SendOutcome::Accepted);
    assert_eq!(send(&first).await, SendOutcome::AlreadyKnown);
    let same_fees = Transaction { gas_limit: first.gas_limit + 1, ..first.clone() };
    assert_eq!(send(&same_fees).await, SendOutcome::Underpriced);
    let bumped = Transaction { fees: first.fees.bumped(), ..first.clone() };
    assert_eq!(send(&bumped).await, SendOutcome::Accepted);
    assert_eq!(world.chain.receipt(sign(&bumped).hash).await.unwrap(), None);

    world.advance(1).await;
    assert!(world.receipt(sign(&bumped).hash).await.success);
    assert_eq!(world.chain.receipt(sign(&first).hash).await.unwrap(), None);
    assert_eq!(send(&first).await, SendOutcome::NonceTooLow);
}

#[tokio::test]
async fn silent_node_makes_reads_unreachable_and_sends_ambiguous() {
    let world = World::new(Node::embedded()).await;
    // No process listens on this port: the listener is closed before the first request.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let provider = http_provider(&format!("http://127.0.0.1:{port}/secret")).unwrap();
    let error = Chain::connect(provider.clone(), world.chain.contracts().clone()).await.unwrap_err();
    assert!(matches!(error, ChainError::Unreachable(_)), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn send_without_an_answer_is_ambiguous() {
    use tokio::io::AsyncReadExt as _;
    // Answers the chain id, and then drops the connection after each request.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret", listener.local_addr().unwrap());
    let contracts = World::new(Node::embedded()).await.chain.contracts().clone();
    let serving = tokio::spawn(async move {
        for answered in [true, false] {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let _ = socket.read(&mut request).await.unwrap();
            if answered {
                answer_chain_id(&mut socket).await;
            }
        }
    });
    let chain = Chain::connect(http_provider(&url).unwrap(), contracts).await.unwrap();
    let error = chain.send_raw(&Bytes::from_static(&[2])).await.unwrap_err();
    assert!(matches!(error, ChainError::Ambiguous(_)), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    serving.await.unwrap();
}

async fn answer_chain_id(socket: &mut tokio::net::TcpStream) {
    use tokio::io::AsyncWriteExt as _;
    let body = r#"{"jsonrpc":"2.0","id":0,"result":"0x1"}"#;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
}
