//! Runs the same history on both nodes and compares their events and final states.

use alloy_primitives::{Address, B256, Bytes, U256};
use chain::{Chain, ChainError, ChainEvent, EventKind, Intent, IntentSide, MarketOnChain, Policy, calls};

use crate::world::{KEY, Node, TOKEN, USDC, World, intent};

#[derive(Debug, PartialEq)]
struct Ending {
    /// The block, log index and content of each event.
    events: Vec<(u64, u64, EventKind)>,
    markets: Vec<MarketOnChain>,
    balances: Vec<u64>,
    positions: Vec<u128>,
    policies: Vec<Policy>,
    nonces: Vec<u64>,
    gas_used: Vec<u64>,
}

#[tokio::test]
async fn same_history_gives_the_same_state_on_both_nodes() {
    let Some(anvil) = Node::anvil().await else { return };
    let (embedded, anvil) = (history(Node::embedded()).await, history(anvil).await);
    assert!(embedded.events.len() > 25, "{}", embedded.events.len());
    assert_eq!(embedded.events, anvil.events);
    assert_eq!(embedded, anvil);
}

async fn history(node: Node) -> Ending {
    // No volume cap: the gas of volume counting depends on the time between blocks.
    let world = World::with(node, |settings| settings.hourly_volume_cap_usdc_atomic = u64::MAX).await;
    let (one, two) = (world.account(9, 3_000 * USDC).await, world.account(8, 500 * USDC).await);
    let (first, second) = (world.market(2).await, world.market(5).await);
    let sell = |account, market, nonce, tokens_wad| Intent {
        side: IntentSide::SellTokens,
        usdc_atomic: 0,
        tokens_wad,
        ..intent(account, market, nonce)
    };
    let mut gas_used = Vec::new();
    let batches = [
        vec![intent(one, first, 1), intent(two, first, 1)],
        vec![Intent {
            outcome: 1,
            side: IntentSide::BuyTokens,
            tokens_wad: 5 * TOKEN,
            ..intent(one, first, 2)
        }],
        vec![intent(one, first, 2), sell(two, first, 2, 3 * TOKEN), intent(two, 77, 3)],
        (3..20).map(|nonce| Intent { outcome: (nonce % 5) as u8, ..intent(one, second, nonce) }).collect(),
        vec![Intent {
            side: IntentSide::SellAll,
            usdc_atomic: 0,
            tokens_wad: 1_000 * TOKEN,
            ..intent(two, first, 4)
        }],
        vec![Intent { usdc_atomic: 2_000 * USDC, ..intent(one, first, 20) }],
    ];
    for batch in batches {
        let data = chain::execute_calldata(&batch);
        let receipt = world.send(&world.executor, world.chain.contracts().gate, data).await.unwrap();
        gas_used.push(receipt.gas_used);
    }
    let payouts = vec![U256::from(TOKEN), U256::ZERO];
    world.hub(&world.guardian, calls::freeze(first)).await.unwrap();
    world.hub(&world.resolver, calls::propose(first, payouts)).await.unwrap();
    world.hub(&world.relayer, calls::redeem(one, first, 0)).await.unwrap();
    world.hub(&world.resolver, calls::split(second, 7 * USDC)).await.unwrap();
    world.hub(&world.resolver, calls::merge(second, 3 * USDC)).await.unwrap();
    world.hub(&world.resolver, calls::freeze(second)).await.unwrap();
    world.hub(&world.resolver, calls::propose_cancel(second)).await.unwrap();
    let positions: Vec<_> = (0..5).map(|outcome| (one, second, outcome)).collect();
    world.hub(&world.relayer, calls::redeem_batch(&positions)).await.unwrap();
    world.hub(&world.relayer, calls::sweep_fees(first)).await.unwrap();
    ending(&world, [one, two], [first, second], gas_used).await
}

async fn ending(world: &World, accounts: [Address; 2], markets: [u64; 2], gas_used: Vec<u64>) -> Ending {
    let chain = &world.chain;
    let head = chain.head().await.unwrap().number;
    let events = chain.events(0, head).await.unwrap();
    let mut ending = Ending {
        events: events.into_iter().map(told).collect(),
        markets: Vec::new(),
        balances: Vec::new(),
        positions: Vec::new(),
        policies: Vec::new(),
        nonces: Vec::new(),
        gas_used,
    };
    for market in markets {
        ending.markets.push(chain.market(market).await.unwrap());
    }
    let contracts = chain.contracts();
    for holder in [contracts.hub, contracts.gate, world.treasury, accounts[0], accounts[1]] {
        ending.balances.push(world.usdc_of(holder).await);
    }
    for account in accounts {
        let policy = chain.policy(account, KEY).await.unwrap();
        // Each node starts the windows at its own time of the first buy and sale.
        ending.policies.push(Policy { window_start_s: 0, sale_window_start_s: 0, ..policy });
        ending.nonces.push(chain.account_nonce(account).await.unwrap());
        for (market, outcome) in
            markets.iter().flat_map(|market| (0..2).map(move |outcome| (*market, outcome)))
        {
            let position = chain.position(account, market, outcome).await.unwrap();
            ending.positions.push(position.to());
        }
    }
    assert_eq!(world.chain.market_of(B256::with_last_byte(5)).await.unwrap(), Some(markets[1]));
    ending
}

/// Removes the node's own time from an event, because anvil's clock runs by itself.
fn told(event: ChainEvent) -> (u64, u64, EventKind) {
    let mut kind = event.kind;
    if let EventKind::ResolutionProposed { finalizable_at_s, .. }
    | EventKind::CancelProposed { finalizable_at_s, .. } = &mut kind
    {
        *finalizable_at_s -= event.timestamp_s.unwrap();
    }
    (event.block_number, event.log_index, kind)
}

#[tokio::test]
async fn direct_calls_equal_calls_through_the_provider() {
    let world = World::new(Node::embedded()).await;
    let account = world.account(9, 3_000 * USDC).await;
    let market = world.market(2).await;
    let direct = &world.chain;
    let contracts = direct.contracts().clone();
    let through = Chain::connect(world.node.provider.clone(), contracts.clone()).await.unwrap();
    world.node.advance(5).await;
    assert_eq!(direct.chain_id(), through.chain_id());
    assert_eq!(direct.head().await, through.head().await);
    assert!(direct.head().await.unwrap().number > 0);
    let amount = U256::from(25 * USDC);
    let quote = direct.quote(market, 1, IntentSide::BuyForUsdc, amount).await;
    assert!(quote.is_ok());
    assert_eq!(quote, through.quote(market, 1, IntentSide::BuyForUsdc, amount).await);
    assert_eq!(
        direct.account_state(account, KEY).await.unwrap(),
        through.account_state(account, KEY).await.unwrap()
    );
    // A revert, a call to an address without code, and a redemption that pays nothing to the
    // caller.
    let unknown = direct.quote(77, 0, IntentSide::BuyForUsdc, amount).await;
    assert!(matches!(unknown, Err(ChainError::Reverted(_))));
    assert_eq!(unknown, through.quote(77, 0, IntentSide::BuyForUsdc, amount).await);
    let (nobody, usdc) = (Address::repeat_byte(0xee), contracts.usdc);
    for (to, data) in [(nobody, Bytes::new()), (usdc, calls::mint(nobody, amount)), (usdc, Bytes::new())] {
        assert_eq!(
            direct.simulate(nobody, to, data.clone()).await,
            through.simulate(nobody, to, data).await,
            "{to}"
        );
    }
}
