//! Putting the contracts there, and finding out that they are not.

use chain::{Chain, ChainError, Contracts, deploy};

use crate::world::{CHAIN_ID, Node, World, key, settings};

on_both_nodes!(
    deployment_that_broke_off_goes_on_where_it_stopped,
    contracts_that_do_not_fit_together_are_found_out,
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
