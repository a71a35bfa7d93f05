//! Tests of delegated trades: a quote equals its execution, and each intent is settled once.

use alloy_primitives::U256;
use chain::{ChainError, EventKind, Intent, IntentSide, QuoteRequest, Revert};
use uuid::Uuid;

use crate::world::{KEY, Node, TOKEN, USDC, World, failure, hub_buy, intent};

on_both_nodes!(
    quote_equals_the_trade_for_every_side,
    each_of_many_quotes_has_its_own_result,
    failing_intent_does_not_stop_its_batch,
    intent_sent_twice_executes_once,
    nonces_may_come_out_of_order_within_the_window,
    failed_intent_restores_its_spend,
    trade_outside_the_gate_has_no_id,
);

async fn quote_equals_the_trade_for_every_side(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 5_000 * USDC).await, world.market(3).await);
    let sides = [
        (IntentSide::BuyForUsdc, 123_456_789, 0),
        (IntentSide::BuyTokens, 900 * USDC, 77 * TOKEN + 13),
        (IntentSide::SellTokens, 0, 31 * TOKEN + 1),
        (IntentSide::SellForUsdc, 9_876_543, 100 * TOKEN),
        (IntentSide::SellAll, 0, 1_000 * TOKEN),
    ];
    for (nonce, (side, usdc_atomic, tokens_wad)) in (1..).zip(sides) {
        let held = world.tokens_of(account, market, 1).await;
        let amount = match side {
            IntentSide::BuyForUsdc | IntentSide::SellForUsdc => U256::from(usdc_atomic),
            IntentSide::BuyTokens | IntentSide::SellTokens => U256::from(tokens_wad),
            IntentSide::SellAll => U256::from(held),
        };
        let quote = world.chain.quote(market, 1, side, amount).await.unwrap();
        let had = world.usdc_of(account).await;

        let trade = Intent { outcome: 1, side, usdc_atomic, tokens_wad, ..intent(account, market, nonce) };
        let expected = EventKind::Trade {
            trade_id: Some(trade.trade_id),
            account,
            market_id: market,
            outcome: 1,
            side,
            usdc_atomic: quote.usdc_atomic,
            tokens_wad: quote.tokens_wad.to(),
            fee_atomic: quote.fee_atomic,
            cost_wad: quote.cost_after_wad,
            quantity_wad: quote.quantity_after_wad,
        };
        assert_eq!(world.execute(&[trade]).await, [expected], "{side}");

        let (has, holds) = (world.usdc_of(account).await, world.tokens_of(account, market, 1).await);
        let tokens: u128 = quote.tokens_wad.to();
        let moved = if side.is_buy() { (had - has, holds - held) } else { (has - had, held - holds) };
        assert_eq!(moved, (quote.usdc_atomic, tokens), "{side}");
        let state = world.chain.market(market).await.unwrap();
        assert_eq!(state.cost_wad, quote.cost_after_wad);
        assert_eq!(state.outcomes[1].quantity_wad, quote.quantity_after_wad);
    }
    assert_eq!(world.tokens_of(account, market, 1).await, 0);
}

async fn each_of_many_quotes_has_its_own_result(node: Node) {
    let world = World::new(node).await;
    let market = world.market(3).await;
    let order = |market_id, outcome, side, amount: u64| {
        let amount = U256::from(amount);
        QuoteRequest { market_id, outcome, side, amount }
    };
    // More than one call has room for. The last two revert, for different reasons.
    let good = (1..=60).map(|n| order(market, (n % 3) as u8, IntentSide::BuyForUsdc, n * USDC));
    let bad = [order(77, 0, IntentSide::BuyForUsdc, USDC), order(market, 9, IntentSide::BuyForUsdc, USDC)];
    let orders: Vec<QuoteRequest> = good.chain(bad).collect();

    let quotes = world.chain.quotes(orders.iter().chain(&orders).copied()).await;

    assert_eq!(quotes.len(), orders.len());
    for order in &orders {
        let QuoteRequest { market_id, outcome, side, amount } = *order;
        assert_eq!(quotes[order], world.chain.quote(market_id, outcome, side, amount).await, "{order:?}");
    }
    let [unknown_market, unknown_outcome] = bad.map(|order| quotes[&order].clone());
    assert_eq!(unknown_market, Err(ChainError::Reverted(Revert::MarketUnknown)));
    assert!(matches!(unknown_outcome, Err(ChainError::Reverted(_))), "{unknown_outcome:?}");
    assert_eq!(quotes.values().filter(|quote| quote.is_err()).count(), 2);
}

async fn failing_intent_does_not_stop_its_batch(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 500 * USDC).await, world.market(2).await);
    let poor = world.account(8, 0).await;
    let events = world
        .execute(&[intent(account, market, 1), intent(poor, market, 1), intent(account, market, 2)])
        .await;
    let settled: Vec<_> = events
        .iter()
        .map(|event| match event {
            EventKind::Trade { account, trade_id, .. } => (*account, trade_id.unwrap(), None),
            EventKind::IntentFailed { account, trade_id, reason, .. } => {
                (*account, *trade_id, Some(reason.clone()))
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        (account, Uuid::from_u128(1), None),
        (poor, Uuid::from_u128(1), Some(Revert::InsufficientBalance)),
        (account, Uuid::from_u128(2), None),
    ];
    assert_eq!(settled, expected);
    assert!(world.chain.is_nonce_used(poor, KEY, 1).await.unwrap());
}

async fn intent_sent_twice_executes_once(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 500 * USDC).await, world.market(2).await);
    let from_block = world.chain.head().await.unwrap().number;
    let trade = intent(account, market, 1);
    assert_eq!(world.chain.settle_event(trade.trade_id, account, from_block).await.unwrap(), None);
    assert!(!world.chain.is_nonce_used(account, KEY, 1).await.unwrap());

    let first = world.execute(std::slice::from_ref(&trade)).await;
    let again = world.execute(std::slice::from_ref(&trade)).await;
    let duplicate =
        EventKind::IntentDuplicate { trade_id: trade.trade_id, account, key_index: KEY, nonce: 1 };
    assert_eq!(again, [duplicate]);
    assert_eq!(world.usdc_of(account).await, 475 * USDC);
    assert!(world.chain.is_nonce_used(account, KEY, 1).await.unwrap());

    let settled = world.chain.settle_event(trade.trade_id, account, from_block).await.unwrap().unwrap();
    assert_eq!(settled.kind, first[0]);
    let head = world.chain.head().await.unwrap().number;
    let all = world.chain.events(from_block + 1, head).await.unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all[0], settled);
    assert!(all[0].block_number < all[1].block_number);
}

async fn nonces_may_come_out_of_order_within_the_window(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 500 * USDC).await, world.market(2).await);
    for nonce in [40, 8, 39] {
        assert!(matches!(
            world.execute(&[intent(account, market, nonce)]).await[..],
            [EventKind::Trade { .. }]
        ));
    }
    for used in [0, 7, 8, 39, 40] {
        assert!(world.chain.is_nonce_used(account, KEY, used).await.unwrap(), "{used}");
    }
    for free in [9, 38, 41] {
        assert!(!world.chain.is_nonce_used(account, KEY, free).await.unwrap(), "{free}");
    }
    let policy = world.chain.policy(account, KEY).await.unwrap();
    assert_eq!((policy.nonce_top, policy.nonce_bitmap), (40, 1 << 31 | 1));
}

async fn failed_intent_restores_its_spend(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 500 * USDC).await, world.market(2).await);
    let greedy = Intent { tokens_wad: 1_000 * TOKEN, ..intent(account, market, 1) };
    assert_eq!(failure(&world.execute(&[greedy]).await), Revert::SlippageExceeded);
    assert_eq!(world.chain.policy(account, KEY).await.unwrap().spent_usdc_atomic, 0);
    world.execute(&[intent(account, market, 2)]).await;
    assert_eq!(world.chain.policy(account, KEY).await.unwrap().spent_usdc_atomic, 25 * USDC);
}

async fn trade_outside_the_gate_has_no_id(node: Node) {
    let world = World::new(node).await;
    let market = world.market(2).await;
    let events = world.hub(&world.resolver, hub_buy(market, 0, USDC)).await.unwrap();
    assert!(matches!(events[..], [EventKind::Trade { trade_id: None, .. }]), "{events:?}");
}
