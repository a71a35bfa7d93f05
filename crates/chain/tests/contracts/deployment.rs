//! Tests of deploying the contracts, and of detecting missing or wrong ones.

use chain::{Chain, ChainError, Contracts, DeploySettings, calls, deploy};

use crate::world::{CHAIN_ID, Node, World, key, settings};

on_both_nodes!(
    interrupted_deployment_resumes_at_its_last_step,
    each_key_and_salt_has_its_own_addresses,
    mismatched_contracts_are_detected,
    other_code_roles_and_settings_are_reported,
    each_executor_has_its_own_expected_cap,
);

async fn interrupted_deployment_resumes_at_its_last_step(node: Node) {
    let deployer = key(1);
    let first = deploy::deploy(node.provider.clone(), CHAIN_ID, &deployer, settings()).await.unwrap();
    assert_eq!(first, deploy::addresses(deployer.address(), &settings()));
    let chain = Chain::connect(node.provider.clone(), first.clone()).await.unwrap();
    assert_eq!(chain.transaction_count(deployer.address()).await.unwrap(), 6);
    let again = deploy::deploy(node.provider.clone(), CHAIN_ID, &deployer, settings()).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(chain.transaction_count(deployer.address()).await.unwrap(), 6);
    deploy::verify(&chain).await.unwrap();
}

/// The addresses depend only on the key and the salt, not on the settings or the chain. Only the
/// account factory is shared.
async fn each_key_and_salt_has_its_own_addresses(node: Node) {
    let world = World::new(node).await;
    let provider = || world.node.provider.clone();
    let salted =
        DeploySettings { salt: alloy_primitives::B256::repeat_byte(1), veto_window_s: 9, ..settings() };
    let second = deploy::deploy(provider(), CHAIN_ID, &world.deployer, salted.clone()).await.unwrap();
    let of_another_key = deploy::addresses(key(9).address(), &settings());
    let first = world.chain.contracts();
    for other in [&second, &of_another_key] {
        assert_eq!(other.account_factory, first.account_factory);
        for (one, two) in [
            (other.usdc, first.usdc),
            (other.authority, first.authority),
            (other.hub, first.hub),
            (other.gate, first.gate),
        ] {
            assert_ne!(one, two);
        }
    }
    let chain = Chain::connect(provider(), second).await.unwrap();
    let none: [&str; 0] = [];
    assert_eq!(chain.deployment_differences(&salted).await.unwrap(), none);
}

async fn mismatched_contracts_are_detected(node: Node) {
    let world = World::new(node).await;
    let right = world.chain.contracts().clone();
    let other_usdc = Contracts { usdc: right.gate, ..right.clone() };
    let nothing_there = Contracts { hub: key(9).address(), ..right };
    for (contracts, found) in [(other_usdc, "do not refer to each other"), (nothing_there, "nothing answers")]
    {
        let chain = Chain::connect(world.node.provider.clone(), contracts).await.unwrap();
        let error = deploy::verify(&chain).await.unwrap_err();
        assert!(matches!(error, ChainError::Rejected(_) | ChainError::Decode(_)));
        assert!(error.to_string().contains(found), "{error}");
    }
}

async fn each_executor_has_its_own_expected_cap(node: Node) {
    let world = World::new(node).await;
    let executor = world.executor.address();
    world.gate(&world.guardian, calls::lower_executor(executor, 5)).await.unwrap();
    let authority = world.chain.contracts().authority;
    world.send(&world.guardian, authority, calls::suspend_resolver()).await.unwrap();
    let found = world.chain.deployment_differences(&settings()).await.unwrap();
    assert!(found.len() == 1 && found[0].contains("millionths of a USDC is 5, not"), "{found:?}");
    let recorded = world.chain.deployed_settings(&settings()).await.unwrap();
    assert_eq!(recorded.hourly_cap_of(executor), 5);
    let none: [&str; 0] = [];
    assert_eq!(world.chain.deployment_differences(&recorded).await.unwrap(), none);
}

async fn other_code_roles_and_settings_are_reported(node: Node) {
    let world = World::new(node).await;
    let none: [&str; 0] = [];
    assert_eq!(world.chain.deployment_differences(&settings()).await.unwrap(), none);
    let executors = vec![key(4).address(), key(9).address()];
    let other = DeploySettings { guardian: key(9).address(), veto_window_s: 5, executors, ..settings() };
    let found = world.chain.deployment_differences(&other).await.unwrap();
    for what in ["the guardian is", "veto window in seconds is 0, not 5", "is not an executor"] {
        assert!(found.iter().any(|difference| difference.contains(what)), "{what}: {found:?}");
    }
    assert_eq!(found.len(), 3);
    let right = world.chain.contracts().clone();
    let swapped = Contracts { hub: right.gate, gate: key(9).address(), ..right };
    let chain = Chain::connect(world.node.provider.clone(), swapped).await.unwrap();
    let found = chain.deployment_differences(&settings()).await.unwrap();
    assert!(
        found[0].contains("the code of MarketHub") && found[1].contains("there is no contract"),
        "{found:?}"
    );
}
