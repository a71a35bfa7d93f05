use std::sync::Arc;

use alloy::eips::BlockNumberOrTag;
use alloy::providers::{DynProvider, Provider as _};
use chain::http_provider;
use domain::time::ManualClock;
use embedded_chain::{EmbeddedNode, Genesis};

use super::{RpcFault, RpcProxy};
use crate::{CHAIN_ID, START};

/// Starts a chain of ten blocks behind a proxy.
async fn proxied() -> (RpcProxy, DynProvider) {
    let genesis = Genesis {
        chain_id: CHAIN_ID,
        balances: Vec::new(),
        timestamp: START,
        gas_limit: 60_000_000,
        base_fee: 1_000_000_000,
    };
    let node = EmbeddedNode::in_memory(genesis, Arc::new(ManualClock::new(START))).unwrap();
    let proxy = RpcProxy::embedded(&node).await;
    let provider = http_provider(proxy.url()).unwrap();
    mine(&provider, 10).await;
    (proxy, provider)
}

async fn mine(provider: &DynProvider, blocks: u64) {
    for _ in 0..blocks {
        let _: serde_json::Value = provider.raw_request("evm_mine".into(), ()).await.unwrap();
    }
}

#[tokio::test]
async fn a_broken_answer_is_an_error_and_a_healed_proxy_answers() {
    let (proxy, provider) = proxied().await;
    for fault in RpcFault::BROKEN {
        // This response is well-formed: only a client that compares ids can detect it.
        if *fault == RpcFault::OtherId {
            continue;
        }
        proxy.set(*fault).await;
        assert!(provider.get_block_number().await.is_err(), "{fault:?}");
        proxy.heal();
        assert_eq!(provider.get_block_number().await.unwrap(), 10);
    }
}

#[tokio::test]
async fn a_stale_node_has_no_newer_block() {
    let (proxy, provider) = proxied().await;
    proxy.set(RpcFault::Stale(3)).await;
    assert_eq!(provider.get_block_number().await.unwrap(), 7);
    let newest = provider.get_block_by_number(BlockNumberOrTag::Latest).await.unwrap().unwrap();
    assert_eq!(newest.header.number, 7);
    assert!(provider.get_block_by_number(8.into()).await.unwrap().is_none());
    assert!(provider.get_block_by_number(7.into()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_stalled_node_keeps_its_newest_block() {
    let (proxy, provider) = proxied().await;
    proxy.set_for("eth_blockNumber", RpcFault::Stalled).await;
    mine(&provider, 2).await;
    assert_eq!(provider.get_block_number().await.unwrap(), 10);
    proxy.heal();
    assert_eq!(provider.get_block_number().await.unwrap(), 12);
}

#[tokio::test]
async fn a_contradictory_node_alternates_between_two_heights() {
    let (proxy, provider) = proxied().await;
    proxy.set(RpcFault::Contradictory(4)).await;
    let (one, other) =
        (provider.get_block_number().await.unwrap(), provider.get_block_number().await.unwrap());
    assert_eq!((one.min(other), one.max(other)), (6, 10));
}

#[tokio::test]
async fn a_forked_node_has_other_hashes_from_its_fork_on() {
    let (proxy, provider) = proxied().await;
    let hash =
        async |number: u64| provider.get_block_by_number(number.into()).await.unwrap().unwrap().header.hash;
    let before = (hash(4).await, hash(5).await);
    proxy.set(RpcFault::Forked(5)).await;
    let after = (hash(4).await, hash(5).await);
    assert_eq!(after.0, before.0);
    assert_ne!(after.1, before.1);
    let by_fake_hash = provider.get_block_by_hash(after.1).await.unwrap().unwrap();
    assert_eq!(by_fake_hash.header.number, 5);
}

#[tokio::test]
async fn another_chain_returns_another_id() {
    let (proxy, provider) = proxied().await;
    proxy.set(RpcFault::OtherChain).await;
    assert_ne!(provider.get_chain_id().await.unwrap(), CHAIN_ID);
    assert_eq!(proxy.count("eth_chainId"), 1);
}

#[tokio::test]
async fn a_storm_heals_when_it_ends() {
    let (proxy, provider) = proxied().await;
    let storm = proxy.storm_of(1, &[RpcFault::Refused]);
    while provider.get_block_number().await.is_ok() {}
    drop(storm);
    assert_eq!(provider.get_block_number().await.unwrap(), 10);
}
