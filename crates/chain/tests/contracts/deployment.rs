//! Putting the contracts there, and finding out that they are not.

use chain::{Chain, ChainError, Contracts, DeploySettings, deploy};

use crate::world::{CHAIN_ID, Node, World, key, settings};

on_both_nodes!(
    deployment_that_broke_off_goes_on_where_it_stopped,
    contracts_that_do_not_fit_together_are_found_out,
    other_code_roles_and_settings_are_reported,
);

async fn deployment_that_broke_off_goes_on_where_it_stopped(node: Node) {
    let deployer = key(1);
    let first = deploy::deploy(node.provider.clone(), CHAIN_ID, &deployer, settings()).await.unwrap();
    let again = deploy::deploy_from(node.provider.clone(), CHAIN_ID, &deployer, settings(), 0).await.unwrap();
    assert_eq!(first, again);
    let chain = Chain::connect(node.provider.clone(), first).await.unwrap();
    assert_eq!(chain.transaction_count(deployer.address()).await.unwrap(), 4);
    deploy::verify(&chain).await.unwrap();
}

async fn contracts_that_do_not_fit_together_are_found_out(node: Node) {
    let world = World::new(node).await;
    let right = world.chain.contracts().clone();
    let other_usdc = Contracts { usdc: right.gate, ..right.clone() };
    let nothing_there = Contracts { hub: key(9).address(), ..right };
    for (contracts, found) in [(other_usdc, "do not name"), (nothing_there, "nothing answers")] {
        let chain = Chain::connect(world.node.provider.clone(), contracts).await.unwrap();
        let error = deploy::verify(&chain).await.unwrap_err();
        assert!(matches!(error, ChainError::Rejected(_) | ChainError::Decode(_)));
        assert!(error.to_string().contains(found), "{error}");
    }
}

async fn other_code_roles_and_settings_are_reported(node: Node) {
    let world = World::new(node).await;
    let none: [&str; 0] = [];
    assert_eq!(world.chain.deployment_differences(&settings()).await.unwrap(), none);
    let executors = vec![key(4).address(), key(9).address()];
    let other = DeploySettings { guardian: key(9).address(), veto_window_s: 5, executors, ..settings() };
    let found = world.chain.deployment_differences(&other).await.unwrap();
    for what in
        ["hub's guardian", "veto window in seconds is 0, not 5", "Gate's guardian", "is not an executor"]
    {
        assert!(found.iter().any(|difference| difference.contains(what)), "{what}: {found:?}");
    }
    assert_eq!(found.len(), 4);
    let right = world.chain.contracts().clone();
    let swapped = Contracts { hub: right.gate, gate: key(9).address(), ..right };
    let chain = Chain::connect(world.node.provider.clone(), swapped).await.unwrap();
    let found = chain.deployment_differences(&settings()).await.unwrap();
    assert!(
        found[0].contains("the code of MarketHub") && found[1].contains("there is no contract"),
        "{found:?}"
    );
}
