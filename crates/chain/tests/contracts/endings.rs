//! A market's life from listing to the last payment.

use alloy::sol_types::SolCall;
use alloy_primitives::{B256, U256};
use chain::{EventKind, MarketStatus, MarketTerms, Revert, Side, calls};

use crate::world::{CLOSE_S, Node, TOKEN, USDC, World, failure, hub_buy, hub_sell, intent, key, terms};

on_both_nodes!(
    market_is_created_as_its_terms_say,
    market_opens_once_its_listing_delay_is_over,
    frozen_market_trades_again_once_unfrozen,
    market_freezes_by_itself_at_its_close_time,
    winners_are_paid_one_usdc_a_token,
    batch_of_redemptions_passes_over_what_pays_nothing,
    cancelled_market_refunds_the_cost_basis,
    refund_that_falls_short_is_raised_by_a_top_up,
    market_cancelled_with_payouts_pays_by_them,
    resolution_can_be_vetoed_within_its_window,
    position_moves_between_holders,
);

alloy::sol! { function transfer(address receiver, uint256 id, uint256 amount) external returns (bool); }

fn winner(outcomes: usize, index: usize) -> Vec<U256> {
    (0..outcomes).map(|outcome| U256::from(if outcome == index { TOKEN } else { 0 })).collect()
}

async fn status(world: &World, market: u64) -> MarketStatus {
    world.chain.market(market).await.unwrap().status
}

async fn market_is_created_as_its_terms_say(node: Node) {
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
    let opened = EventKind::MarketStatusChanged { market_id: market, status: MarketStatus::Open };
    assert_eq!(events, [created, opened]);
    let prices = world.chain.prices(market).await.unwrap();
    for ((price, odds), quantity) in prices.iter().zip(odds).zip(quantities) {
        assert!(price.abs_diff(odds) < U256::from(1_000), "{price} {odds}");
        let shown = chain::lmsr::probability(state.cost_wad, quantity, state.liquidity_usdc_atomic);
        let price_text = format!("0.{:018}", price);
        assert_eq!(format!("{shown:.12}"), format!("{:.12}", price_text.parse::<f64>().unwrap()));
    }
}

async fn market_opens_once_its_listing_delay_is_over(node: Node) {
    let world = World::with(node, |settings| settings.listing_delay_s = 600).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    assert_eq!(status(&world, market).await, MarketStatus::Listed);
    assert_eq!(failure(&world.execute(&[intent(account, market, 1)]).await), Revert::MarketNotTradeable);
    assert_eq!(world.hub(&world.relayer, calls::open(market)).await, Err(Revert::TransitionInvalid));
    world.advance(601).await;
    world.hub(&world.relayer, calls::open(market)).await.unwrap();
    assert!(matches!(world.execute(&[intent(account, market, 2)]).await[..], [EventKind::Trade { .. }]));
}

async fn frozen_market_trades_again_once_unfrozen(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    let events = world.hub(&world.guardian, calls::freeze(market)).await.unwrap();
    assert_eq!(events, [EventKind::MarketStatusChanged { market_id: market, status: MarketStatus::Frozen }]);
    assert_eq!(failure(&world.execute(&[intent(account, market, 1)]).await), Revert::MarketNotTradeable);
    world.hub(&world.guardian, calls::unfreeze(market)).await.unwrap();
    assert!(matches!(world.execute(&[intent(account, market, 2)]).await[..], [EventKind::Trade { .. }]));
}

async fn market_freezes_by_itself_at_its_close_time(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    world.advance(30 * 86_400).await;
    assert_eq!(status(&world, market).await, MarketStatus::Frozen);
    assert_eq!(failure(&world.execute(&[intent(account, market, 1)]).await), Revert::MarketNotTradeable);
}

async fn winners_are_paid_one_usdc_a_token(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    let lost = chain::Intent { outcome: 1, ..intent(account, market, 2) };
    world.execute(&[intent(account, market, 1), lost]).await;
    let held = world.tokens_of(account, market, 0).await;
    assert_eq!(world.chain.redeemable(account, market, 0).await.unwrap(), 0);

    let events = world.hub(&world.resolver, calls::propose(market, winner(2, 0))).await.unwrap();
    let resolved = EventKind::MarketResolved { market_id: market, payouts_wad: winner(2, 0) };
    assert!(events.contains(&resolved), "{events:?}");
    assert_eq!(status(&world, market).await, MarketStatus::Resolved);
    assert_eq!(world.chain.resolution(market).await.unwrap().payouts_wad, winner(2, 0));

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

async fn batch_of_redemptions_passes_over_what_pays_nothing(node: Node) {
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
    assert_eq!(resolution.map(|ended| ended.payouts_wad), Some(winner(2, 0)));
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

async fn cancelled_market_refunds_the_cost_basis(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    let part = chain::Intent {
        side: Side::SellTokens,
        usdc_atomic: 0,
        tokens_wad: 10 * TOKEN,
        ..intent(account, market, 2)
    };
    world.execute(&[intent(account, market, 1), part]).await;
    let basis = world.chain.position(account, market, 0).await.unwrap().basis_usdc_atomic;
    assert!(basis > 0 && basis < 25 * USDC);

    let events = world.hub(&world.resolver, calls::cancel(market)).await.unwrap();
    let cancelled =
        EventKind::MarketCancelled { market_id: market, payouts_wad: vec![], scale_wad: U256::from(TOKEN) };
    assert!(events.contains(&cancelled), "{events:?}");
    assert_eq!(world.chain.resolution(market).await.unwrap().scale_wad, U256::from(TOKEN));
    let had = world.usdc_of(account).await;
    world.hub(&world.relayer, calls::redeem(account, market, 0)).await.unwrap();
    assert_eq!(world.usdc_of(account).await, had + basis);
    assert_eq!(world.hub(&world.resolver, calls::cancel(market)).await, Err(Revert::TransitionInvalid));
}

/// One trader washes both sides: sells each at its height to somebody whose cost basis then is more than the
/// pool.
async fn refund_that_falls_short_is_raised_by_a_top_up(node: Node) {
    let world = World::new(node).await;
    let market = world.market(2).await;
    let (usdc, hub) = (world.chain.contracts().usdc, world.chain.contracts().hub);
    let holders = [key(9), key(8)];
    for holder in &holders {
        world.mint(holder.address(), 3_000 * USDC).await;
        world.send(holder, usdc, calls::approve(hub, U256::MAX)).await.unwrap();
    }
    for (outcome, holder) in (0..).zip(&holders) {
        world.hub(&world.resolver, hub_buy(market, outcome, 2_900 * USDC)).await.unwrap();
        world.hub(holder, hub_buy(market, outcome, 3_000 * USDC)).await.unwrap();
        let tokens = world.tokens_of(world.resolver.address(), market, outcome).await;
        world.hub(&world.resolver, hub_sell(market, outcome, tokens)).await.unwrap();
    }
    world.hub(&world.resolver, calls::cancel(market)).await.unwrap();
    let scale = world.chain.resolution(market).await.unwrap().scale_wad;
    assert!(scale < U256::from(TOKEN), "{scale}");

    let early = holders[0].address();
    world.hub(&world.relayer, calls::redeem(early, market, 0)).await.unwrap();
    let refunded = (U256::from(3_000 * USDC) * scale / U256::from(TOKEN)).to::<u64>();
    assert_eq!(world.usdc_of(early).await, refunded);

    let events = world.hub(&world.resolver, calls::top_up(market, 10_000 * USDC)).await.unwrap();
    let [EventKind::MarketToppedUp { market_id, usdc_atomic, scale_wad }] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((market_id, scale_wad), (market, U256::from(TOKEN)));
    assert!(usdc_atomic > 0 && usdc_atomic < 10_000 * USDC, "no more than is missing: {usdc_atomic}");
    for (outcome, holder) in (0..).zip(&holders) {
        world.hub(&world.relayer, calls::redeem(holder.address(), market, outcome)).await.unwrap();
        assert_eq!(world.usdc_of(holder.address()).await, 3_000 * USDC);
    }
}

async fn market_cancelled_with_payouts_pays_by_them(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    world.execute(&[intent(account, market, 1)]).await;
    let halves = vec![U256::from(TOKEN / 2); 2];
    let events =
        world.hub(&world.resolver, calls::cancel_with_payouts(market, halves.clone())).await.unwrap();
    let cancelled =
        EventKind::MarketCancelled { market_id: market, payouts_wad: halves, scale_wad: U256::ZERO };
    assert!(events.contains(&cancelled), "{events:?}");
    let held = world.tokens_of(account, market, 0).await;
    let worth = world.chain.redeemable(account, market, 0).await.unwrap();
    assert_eq!(worth, (held / 2 / 1_000_000_000_000) as u64);
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
