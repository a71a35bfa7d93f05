//! Tests of the reason reported for each revert of the contracts.

use alloy::sol_types::SolCall;
use alloy_primitives::{B256, U256};
use chain::{Call, Intent, IntentSide, MarketTerms, Revert, calls, provision};

use crate::world::{KEY, Node, START_S, TOKEN, USDC, World, failure, intent, key, policy, terms};

on_both_nodes!(
    each_failure_of_an_intent_has_its_name,
    intents_stop_at_the_hourly_volume,
    lost_delegation_differs_from_a_missing_allowance,
    states_of_the_token_have_their_names,
    paused_gate_rejects_every_batch,
    batch_of_more_than_100_is_rejected,
    each_rejection_of_the_hub_has_its_name,
    quotes_fail_like_the_trade,
);

alloy::sol! {
    function blacklist(address account) external;
    function unBlacklist(address account) external;
    function pause() external;
}

async fn each_failure_of_an_intent_has_its_name(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 8_000 * USDC).await, world.market(2).await);
    let base = intent(account, market, 0);
    let cases = [
        (Intent { market_id: 99, ..base.clone() }, Revert::MarketUnknown),
        (Intent { outcome: 2, ..base.clone() }, Revert::OutcomeInvalid),
        (Intent { key_index: KEY + 1, ..base.clone() }, Revert::PolicyMissing),
        (Intent { deadline_s: START_S as u32 - 1, ..base.clone() }, Revert::DeadlinePassed),
        (Intent { usdc_atomic: 1_001 * USDC, ..base.clone() }, Revert::PerTradeCapExceeded),
        (Intent { usdc_atomic: 0, ..base.clone() }, Revert::AmountZero),
        (Intent { tokens_wad: 100 * TOKEN, ..base.clone() }, Revert::SlippageExceeded),
        (
            Intent { side: IntentSide::BuyTokens, tokens_wad: 100 * TOKEN, ..base.clone() },
            Revert::SlippageExceeded,
        ),
        (
            Intent { side: IntentSide::BuyTokens, tokens_wad: u128::MAX, ..base.clone() },
            Revert::AmountTooLarge,
        ),
        (
            Intent { side: IntentSide::SellTokens, tokens_wad: TOKEN, ..base.clone() },
            Revert::InsufficientPosition,
        ),
        (
            Intent { side: IntentSide::SellAll, tokens_wad: TOKEN, ..base.clone() },
            Revert::InsufficientPosition,
        ),
        (
            Intent {
                side: IntentSide::SellForUsdc,
                usdc_atomic: 900 * USDC,
                tokens_wad: 1_000 * TOKEN,
                ..base.clone()
            },
            Revert::LiquidityInsufficient,
        ),
    ];
    for (nonce, (case, reason)) in (1..).zip(cases) {
        assert_eq!(failure(&world.execute(&[Intent { nonce, ..case }]).await), reason);
    }
    let refused = world.execute(&[Intent { nonce: 1 << 28, ..base.clone() }]).await;
    assert_eq!(failure(&refused), Revert::NonceTooLarge);

    let thousand = |nonce| Intent { usdc_atomic: 1_000 * USDC, nonce, ..base.clone() };
    world.execute(&(101..=105).map(thousand).collect::<Vec<_>>()).await;
    assert_eq!(
        failure(&world.execute(&[Intent { nonce: 106, ..base.clone() }]).await),
        Revert::DailyCapExceeded
    );
    world.advance(31 * 86_400 + 60).await;
    let late = Intent { nonce: 107, deadline_s: u32::MAX, ..base };
    assert_eq!(failure(&world.execute(&[late]).await), Revert::PolicyExpired);
}

async fn intents_stop_at_the_hourly_volume(node: Node) {
    let world = World::with(node, |settings| settings.hourly_volume_cap_usdc_atomic = 40 * USDC).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    world.execute(&[intent(account, market, 1)]).await;
    assert_eq!(failure(&world.execute(&[intent(account, market, 2)]).await), Revert::HourlyVolumeExceeded);
    world.advance(3_601).await;
    assert_eq!(world.execute(&[intent(account, market, 3)]).await.len(), 1);
    world.gate(&world.guardian, calls::lower_executor(world.executor.address(), 1)).await.unwrap();
    assert_eq!(failure(&world.execute(&[intent(account, market, 4)]).await), Revert::HourlyVolumeExceeded);
}

async fn lost_delegation_differs_from_a_missing_allowance(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    let contracts = world.chain.contracts();
    let withdrawn = vec![Call::new(contracts.usdc, calls::approve(contracts.gate, U256::ZERO))];
    let batch = world.prepare(key(9).owner(), withdrawn).await;
    let signature = key(9).sign_digest(batch.digest).unwrap();
    provision::relay(&world.chain, &world.relayer, &batch, signature).await.unwrap();
    assert_eq!(failure(&world.execute(&[intent(account, market, 1)]).await), Revert::AllowanceMissing);
    world.gate(&world.executor, calls::revoke_policy(account, KEY)).await.unwrap();
    assert_eq!(failure(&world.execute(&[intent(account, market, 2)]).await), Revert::PolicyMissing);
}

async fn states_of_the_token_have_their_names(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    let usdc = world.chain.contracts().usdc;
    world.send(&world.deployer, usdc, blacklistCall { account }.abi_encode().into()).await.unwrap();
    assert_eq!(failure(&world.execute(&[intent(account, market, 1)]).await), Revert::Blacklisted);
    world.send(&world.deployer, usdc, unBlacklistCall { account }.abi_encode().into()).await.unwrap();
    world.send(&world.deployer, usdc, pauseCall {}.abi_encode().into()).await.unwrap();
    assert_eq!(failure(&world.execute(&[intent(account, market, 2)]).await), Revert::TokenPaused);
}

async fn paused_gate_rejects_every_batch(node: Node) {
    let world = World::new(node).await;
    let (account, market) = (world.account(9, 100 * USDC).await, world.market(2).await);
    world.gate(&world.guardian, calls::set_paused(true)).await.unwrap();
    let batch = chain::execute_calldata(&[intent(account, market, 1)]);
    assert_eq!(world.gate(&world.executor, batch.clone()).await, Err(Revert::Paused));
    let simulated = world.chain.simulate(world.executor.address(), world.chain.contracts().gate, batch).await;
    assert_eq!(simulated, Err(chain::ChainError::Reverted(Revert::Paused)));
    world.gate(&world.guardian, calls::set_paused(false)).await.unwrap();
    assert_eq!(world.execute(&[intent(account, market, 1)]).await.len(), 1);
}

async fn batch_of_more_than_100_is_rejected(node: Node) {
    let world = World::new(node).await;
    let intents: Vec<_> = (1..=101).map(|nonce| intent(key(9).address(), 1, nonce)).collect();
    let refused = world.gate(&world.executor, chain::execute_calldata(&intents)).await;
    assert_eq!(refused, Err(Revert::BatchTooLarge));
    let refused = world.gate(&world.relayer, chain::execute_calldata(&intents[..1])).await;
    assert_eq!(refused, Err(Revert::NotAuthorized));
    let policy = policy(KEY, u64::MAX, 1);
    let set = calls::set_policy(policy.key_index, policy.limits);
    assert_eq!(world.gate(&world.relayer, set).await, Err(Revert::PolicyInvalid));
}

async fn each_rejection_of_the_hub_has_its_name(node: Node) {
    let world = World::new(node).await;
    let market = world.market(2).await;
    let new = B256::repeat_byte(1);
    let cases = [
        (calls::create_market(&terms(B256::with_last_byte(2), 2)), Revert::MarketExists),
        (calls::create_market(&terms(new, 1)), Revert::TermsInvalid),
        (
            calls::create_market(&MarketTerms { close_time_s: START_S as u32 - 1, ..terms(new, 2) }),
            Revert::TermsInvalid,
        ),
        (calls::freeze(99), Revert::MarketUnknown),
        (calls::unfreeze(market), Revert::TransitionInvalid),
        (calls::veto(market), Revert::NotAuthorized),
        (calls::propose(market, vec![U256::from(TOKEN); 2]), Revert::PayoutsInvalid),
        (calls::propose(market, vec![U256::from(TOKEN)]), Revert::PayoutsInvalid),
        (calls::finalize(market), Revert::TransitionInvalid),
        (calls::redeem(key(9).address(), market, 0), Revert::NothingToRedeem),
        (calls::redeem(key(9).address(), market, 9), Revert::OutcomeInvalid),
        (calls::propose_cancel(market), Revert::TransitionInvalid),
        (calls::merge(market, USDC), Revert::InsufficientPosition),
        (calls::split(market, 0), Revert::AmountZero),
    ];
    for (data, reason) in cases {
        assert_eq!(world.hub(&world.resolver, data).await, Err(reason));
    }
    let stranger = world.hub(&world.relayer, calls::create_market(&terms(new, 2))).await;
    assert_eq!(stranger, Err(Revert::NotAuthorized));
    let reading = world.chain.market(99).await;
    assert_eq!(reading, Err(chain::ChainError::Reverted(Revert::MarketUnknown)));
}

async fn quotes_fail_like_the_trade(node: Node) {
    let world = World::new(node).await;
    let market = world.market(2).await;
    let cases = [
        (99, 0, IntentSide::BuyForUsdc, U256::from(USDC), Revert::MarketUnknown),
        (market, 2, IntentSide::BuyForUsdc, U256::from(USDC), Revert::OutcomeInvalid),
        (market, 0, IntentSide::BuyForUsdc, U256::ZERO, Revert::AmountZero),
        (market, 0, IntentSide::BuyForUsdc, U256::from(10_200 * USDC), Revert::AmountTooLarge),
        (market, 0, IntentSide::SellAll, U256::from(TOKEN), Revert::InsufficientPosition),
        (market, 0, IntentSide::SellForUsdc, U256::from(900 * USDC), Revert::LiquidityInsufficient),
    ];
    for (market, outcome, side, amount, reason) in cases {
        let quote = world.chain.quote(market, outcome, side, amount).await;
        assert_eq!(quote, Err(chain::ChainError::Reverted(reason)));
    }
}
