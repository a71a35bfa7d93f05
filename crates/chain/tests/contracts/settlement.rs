//! Tests of a market's lifecycle from listing to the last payment.

use alloy::sol_types::SolCall;
use alloy_primitives::{B256, U256};
use chain::{ChainMarketStatus, EventKind, MarketTerms, Revert, calls};

use crate::world::{CLOSE_S, Node, TOKEN, USDC, World, failure, hub_buy, intent, terms};

on_both_nodes!(
    market_is_created_with_its_terms,
    market_opens_after_its_listing_delay,
    unfrozen_market_trades_again,
    market_freezes_automatically_at_its_close_time,
    winners_are_paid_one_usdc_per_token,
    redemption_batch_skips_positions_that_pay_nothing,
    cancelled_market_pays_the_reference_prices,
    cancel_waits_for_the_minimum_freeze_and_the_veto_window,
    market_resolved_in_parts_pays_each_part,
    complete_sets_are_split_and_merged,
    resolution_can_be_vetoed_within_its_window,
    position_moves_between_holders,
);

alloy::sol! { function transfer(address receiver, uint256 id, uint256 amount) external returns (bool); }

fn winner(outcomes: usize, index: usize) -> Vec<U256> {
    (0..outcomes).map(|outcome| U256::from(if outcome == index { TOKEN } else { 0 })).collect()
}

async fn status(world: &World, market: u64) -> ChainMarketStatus {
    world.chain.market(market).await.unwrap().status
}

async fn market_is_created_with_its_terms(node: Node) {
    let world = World::new(node).await;
    let odds = [50, 30, 20].map(|percent: u128| U256::from(percent * TOKEN / 100)).to_vec();
    let reference = B256::repeat_byte(0xab);
    let terms = MarketTerms { opening_odds_wad: odds.clone(), ..terms(reference, 3) };
    let events = world.hub(&world.resolver, calls::create_market(&terms)).await.unwrap();
    let market = world.chain.market_of(reference).await.unwrap().unwrap();
    assert_eq!(market, world.chain.market_count().await.unwrap());
    assert_eq!(world.chain.market_of(B256::ZERO).await.unwrap(), None);

    let state = world.chain.market(market).await.unwrap();
    let quantities: Vec<U256> = state.outcomes.iter().map(|outcome| outcome.quantity_wad).collect();
    let created = EventKind::MarketCreated {
        market_id: market,
        reference,
        outcomes: 3,
        fee_bps: 100,
        close_time_s: CLOSE_S.into(),
        liquidity_usdc_atomic: 1_000 * USDC,
        cost_wad: state.cost_wad,
        quantities_wad: quantities.clone(),
    };
    let opened = EventKind::MarketStatusChanged { market_id: market, status: ChainMarketStatus::Open };
    assert_eq!(events, [created, opened]);
    let prices = world.chain.prices(market).await.unwrap();
    for ((price, odds), quantity) in prices.iter().zip(odds).zip(quantities) {
        assert!(price.abs_diff(odds) < U256::from(1_000), "{price} {odds}");
        let shown = chain::lmsr::probability(state.cost_wad, quantity, state.liquidity_usdc_atomic);
        let price_text = format!("0.{:018}", price);
        assert_eq!(format!("{shown:.12}"), format!("{:.12}", price_text.parse::<f64>().unwrap()));
    }
}

async fn market_opens_after_its_listing_delay(node: Node) {
    let world = World::with(node, |settings| settings.listing_delay_s = 600).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    assert_eq!(status(&world, market).await, ChainMarketStatus::Listed);
    assert_eq!(failure(&world.execute(&[intent(account, market, 1)]).await), Revert::MarketNotTradeable);
    assert_eq!(world.hub(&world.relayer, calls::open(market)).await, Err(Revert::TransitionInvalid));
    world.advance(601).await;
    world.hub(&world.relayer, calls::open(market)).await.unwrap();
    assert!(matches!(world.execute(&[intent(account, market, 2)]).await[..], [EventKind::Trade { .. }]));
}

async fn unfrozen_market_trades_again(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    let events = world.hub(&world.guardian, calls::freeze(market)).await.unwrap();
    assert_eq!(
        events,
        [EventKind::MarketStatusChanged { market_id: market, status: ChainMarketStatus::Frozen }]
    );
    assert_eq!(failure(&world.execute(&[intent(account, market, 1)]).await), Revert::MarketNotTradeable);
    world.hub(&world.guardian, calls::unfreeze(market)).await.unwrap();
    assert!(matches!(world.execute(&[intent(account, market, 2)]).await[..], [EventKind::Trade { .. }]));
}

async fn market_freezes_automatically_at_its_close_time(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    world.advance(30 * 86_400).await;
    assert_eq!(status(&world, market).await, ChainMarketStatus::Frozen);
    assert_eq!(failure(&world.execute(&[intent(account, market, 1)]).await), Revert::MarketNotTradeable);
}

async fn winners_are_paid_one_usdc_per_token(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    let lost = chain::Intent { outcome: 1, ..intent(account, market, 2) };
    world.execute(&[intent(account, market, 1), lost]).await;
    let held = world.tokens_of(account, market, 0).await;
    assert_eq!(world.chain.redeemable(account, market, 0).await.unwrap(), 0);

    let events = world.hub(&world.resolver, calls::propose(market, winner(2, 0))).await.unwrap();
    let resolved = EventKind::MarketResolved { market_id: market, payouts_wad: winner(2, 0) };
    assert!(events.contains(&resolved), "{events:?}");
    assert_eq!(status(&world, market).await, ChainMarketStatus::Resolved);
    assert_eq!(world.chain.resolution(market).await.unwrap(), winner(2, 0));

    let paid = (held / 1_000_000_000_000) as u64;
    assert_eq!(world.chain.redeemable(account, market, 0).await.unwrap(), paid);
    let had = world.usdc_of(account).await;
    let redeemed =
        EventKind::Redeemed { account, market_id: market, outcome: 0, tokens_wad: held, usdc_atomic: paid };
    assert_eq!(world.hub(&world.relayer, calls::redeem(account, market, 0)).await, Ok(vec![redeemed]));
    assert_eq!(world.usdc_of(account).await, had + paid);
    for outcome in [0, 1] {
        let again = world.hub(&world.relayer, calls::redeem(account, market, outcome)).await;
        assert_eq!(again, Err(Revert::NothingToRedeem));
    }
}

async fn redemption_batch_skips_positions_that_pay_nothing(node: Node) {
    let world = World::new(node).await;
    let (one, two) = (world.account(9, 100 * USDC).await, world.account(8, 100 * USDC).await);
    let market = world.market(2).await;
    world.execute(&[intent(one, market, 1), intent(two, market, 1)]).await;
    world.hub(&world.resolver, calls::propose(market, winner(2, 0))).await.unwrap();
    let positions = [(one, market, 0), (one, market, 1), (one, market, 0), (two, market, 0)];
    let worths = [
        world.chain.redeemable(one, market, 0).await.unwrap(),
        world.chain.redeemable(two, market, 0).await.unwrap(),
    ];
    let simulated = world.chain.simulate_redemptions(&positions).await.unwrap();
    assert_eq!(simulated, [worths[0], 0, 0, worths[1]]);
    let head = world.chain.head().await.unwrap().number;
    let resolution = world.chain.resolution_at(market, head).await.unwrap();
    assert_eq!(resolution, Some(winner(2, 0)));
    assert_eq!(world.chain.resolution_at(market, head - 1).await, Ok(None));
    assert_eq!(world.chain.resolution_at(market + 1, head).await, Ok(None));
    assert_eq!(world.chain.redeemable_at(one, market, 0, head - 1).await, Ok(0));
    assert_eq!(world.chain.redeemable_at(one, market, 0, head).await, Ok(worths[0]));
    let events = world.hub(&world.relayer, calls::redeem_batch(&positions)).await.unwrap();
    let paid: Vec<_> = events
        .iter()
        .map(|event| match event {
            EventKind::Redeemed { account, outcome: 0, .. } => *account,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(paid, [one, two]);
}

async fn cancelled_market_pays_the_reference_prices(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    world.execute(&[intent(account, market, 1)]).await;
    let held = world.tokens_of(account, market, 0).await;
    // A trade in the reference period in which trading ends does not count.
    let halves = vec![U256::from(TOKEN / 2); 2];
    assert_eq!(world.chain.reference_prices(market).await.unwrap(), halves);
    let early = world.hub(&world.resolver, calls::propose_cancel(market)).await;
    assert_eq!(early, Err(Revert::TransitionInvalid), "it is open");

    world.hub(&world.resolver, calls::freeze(market)).await.unwrap();
    let events = world.hub(&world.resolver, calls::propose_cancel(market)).await.unwrap();
    let cancelled = EventKind::MarketCancelled { market_id: market, payouts_wad: halves.clone() };
    assert!(events.contains(&cancelled), "{events:?}");
    assert_eq!(world.chain.resolution(market).await.unwrap(), halves);
    let had = world.usdc_of(account).await;
    world.hub(&world.relayer, calls::redeem(account, market, 0)).await.unwrap();
    assert_eq!(world.usdc_of(account).await, had + (held / 2 / 1_000_000_000_000) as u64);
    let again = world.hub(&world.resolver, calls::propose_cancel(market)).await;
    assert_eq!(again, Err(Revert::TransitionInvalid));
}

async fn cancel_waits_for_the_minimum_freeze_and_the_veto_window(node: Node) {
    let world = World::with(node, |settings| {
        (settings.min_freeze_s, settings.veto_window_s) = (600, 300);
    })
    .await;
    let market = world.market(2).await;
    assert_eq!(world.chain.schedule(market).await.unwrap().frozen_at_s, None);
    world.hub(&world.guardian, calls::freeze(market)).await.unwrap();
    let schedule = world.chain.schedule(market).await.unwrap();
    assert!(schedule.is_held);
    assert_eq!(schedule.cancellable_at_s, schedule.frozen_at_s.map(|at_s| at_s + 600));
    assert_eq!(schedule.proposal, None);
    assert_eq!(world.hub(&world.resolver, calls::unfreeze(market)).await, Err(Revert::NotAuthorized));
    let early = world.hub(&world.resolver, calls::propose_cancel(market)).await;
    assert_eq!(early, Err(Revert::FrozenTooBriefly));
    world.advance(601).await;
    let events = world.hub(&world.resolver, calls::propose_cancel(market)).await.unwrap();
    assert!(matches!(events[..], [EventKind::CancelProposed { .. }]), "{events:?}");
    let proposal = world.chain.schedule(market).await.unwrap().proposal.unwrap();
    assert!(proposal.is_cancel);
    assert_eq!(proposal.payouts_wad, vec![U256::from(TOKEN / 2); 2]);
    assert_eq!(world.hub(&world.relayer, calls::finalize(market)).await, Err(Revert::VetoWindowOpen));
    world.hub(&world.guardian, calls::veto(market)).await.unwrap();
    world.hub(&world.resolver, calls::propose_cancel(market)).await.unwrap();
    world.advance(301).await;
    world.hub(&world.relayer, calls::finalize(market)).await.unwrap();
    assert_eq!(status(&world, market).await, ChainMarketStatus::Cancelled);
}

async fn market_resolved_in_parts_pays_each_part(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    world.execute(&[intent(account, market, 1)]).await;
    let halves = vec![U256::from(TOKEN / 2); 2];
    world.hub(&world.resolver, calls::propose(market, halves)).await.unwrap();
    let held = world.tokens_of(account, market, 0).await;
    let worth = world.chain.redeemable(account, market, 0).await.unwrap();
    assert_eq!(worth, (held / 2 / 1_000_000_000_000) as u64);
    let positions = [(account, market, 0), (account, market, 1)];
    assert_eq!(world.chain.redeemable_of(&positions).await.unwrap(), [worth, 0]);
}

async fn complete_sets_are_split_and_merged(node: Node) {
    let world = World::new(node).await;
    let market = world.market(3).await;
    let account = world.resolver.address();
    let prices = world.chain.prices(market).await.unwrap();
    let cost = world.chain.market(market).await.unwrap().cost_wad;
    let moved = |is_split: bool, usdc: u64, cost_wad: U256| EventKind::SetsMoved {
        account,
        market_id: market,
        is_split,
        usdc_atomic: usdc * USDC,
        cost_wad,
    };
    let after = cost + U256::from(20 * TOKEN);
    let events = world.hub(&world.resolver, calls::split(market, 20 * USDC)).await;
    assert_eq!(events, Ok(vec![moved(true, 20, after)]));
    let after = cost + U256::from(5 * TOKEN);
    let events = world.hub(&world.resolver, calls::merge(market, 15 * USDC)).await;
    assert_eq!(events, Ok(vec![moved(false, 15, after)]));
    for outcome in 0..3 {
        assert_eq!(world.tokens_of(account, market, outcome).await, 5 * TOKEN);
    }
    assert_eq!(world.chain.prices(market).await.unwrap(), prices);
    assert_eq!(world.chain.prices_of(&[market, market]).await.unwrap(), [prices.clone(), prices]);
}

async fn resolution_can_be_vetoed_within_its_window(node: Node) {
    let world = World::with(node, |settings| settings.veto_window_s = 600).await;
    let market = world.market(2).await;
    let events = world.hub(&world.resolver, calls::propose(market, winner(2, 1))).await.unwrap();
    let head = world.chain.head().await.unwrap();
    let proposed = EventKind::ResolutionProposed {
        market_id: market,
        payouts_wad: winner(2, 1),
        finalizable_at_s: head.timestamp_s + 600,
    };
    assert!(events.contains(&proposed), "{events:?}");
    assert_eq!(world.hub(&world.relayer, calls::finalize(market)).await, Err(Revert::VetoWindowOpen));
    let events = world.hub(&world.guardian, calls::veto(market)).await.unwrap();
    assert_eq!(events, [EventKind::ResolutionVetoed { market_id: market }]);

    world.hub(&world.resolver, calls::propose(market, winner(2, 0))).await.unwrap();
    world.advance(601).await;
    let events = world.hub(&world.relayer, calls::finalize(market)).await.unwrap();
    assert!(events.contains(&EventKind::MarketResolved { market_id: market, payouts_wad: winner(2, 0) }));
}

async fn position_moves_between_holders(node: Node) {
    let world = World::new(node).await;
    let market = world.market(2).await;
    world.hub(&world.resolver, hub_buy(market, 1, USDC)).await.unwrap();
    let (receiver, amount) = (world.treasury, U256::from(12_345));
    let transfer = transferCall { receiver, id: chain::token_id(market, 1), amount };
    let moved = EventKind::Transfer {
        sender: world.resolver.address(),
        receiver,
        market_id: market,
        outcome: 1,
        tokens_wad: 12_345,
    };
    assert_eq!(world.hub(&world.resolver, transfer.abi_encode().into()).await, Ok(vec![moved]));
    assert_eq!(world.tokens_of(receiver, market, 1).await, 12_345);
}
