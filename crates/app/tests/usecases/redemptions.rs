//! Claims of settled positions: the claimant, the amount, and that there is only one per position.

use alloy_primitives::U256;
use app::AppError;
use app::markets::{Cancelling, Move};
use app::portfolio::positions;
use app::redemptions::ClaimResult;
use domain::key::Tier;
use domain::market::MarketStatus;
use domain::redemption::RedemptionStatus;
use domain::{ErrorCode, Usdc, UsdcDelta, Wad};
use store::Store;
use testkit::{TestApp, TestKey, TestMarket};

use crate::scene::Scene;

/// Ada holds both outcomes.
async fn both_sides(scene: &Scene) {
    scene.key.buy(&scene.market, 0, "100").await;
    scene.key.buy(&scene.market, 1, "40").await;
    scene.app.run_workers().await;
}

async fn refused(key: &TestKey, market: &TestMarket, outcome: u8) -> AppError {
    let refusal = key.redeem(market, outcome).await.unwrap_err();
    assert_eq!(refusal.extensions["submission"], "not_submitted");
    refusal
}

async fn assert_not_claimable(scene: &Scene, outcome: u8, reason: &str) {
    let before = scene.app.rows().await;
    let refusal = refused(&scene.key, &scene.market, outcome).await;
    assert_eq!(refusal.code, ErrorCode::PositionNotClaimable, "{refusal} {:?}", refusal.source);
    assert_eq!(refusal.extensions["reason"], reason);
    assert_eq!(scene.app.rows().await, before);
}

async fn claimable(scene: &Scene, outcome: usize) -> Usdc {
    let held = positions(&scene.app.ctx, &scene.key.caller, Some(scene.market.id)).await.unwrap();
    held[outcome].claimable
}

store::on_each_engine! {
    async fn twenty_equal_claims_over_two_processes_are_one(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &scene;
        both_sides(&scene).await;
        app.resolve(*market, 0).await;
        app.run_workers().await;
        let before = app.balance(ada).await;
        let elsewhere = key.in_process(app.ctx_of_another_process());
        let claims = (0..20).map(|n| {
            let (key, market) = (if n % 2 == 0 { key.clone() } else { elsewhere.clone() }, *market);
            tokio::spawn(async move { key.redeem(&market, 0).await })
        });
        let claims: Vec<_> = claims.collect();
        // The position is paid while later ones are checked.
        let mut claimed = Vec::new();
        for claim in claims {
            app.workers.execute(&app.ctx).await;
            claimed.push(claim.await.unwrap().unwrap());
        }
        let created = claimed.iter().filter(|claimed| matches!(claimed, ClaimResult::Created(_))).count();
        let ids: std::collections::BTreeSet<_> = claimed.iter().map(|(ClaimResult::Created(claim) | ClaimResult::Existing(claim))| claim.id).collect();
        assert_eq!((created, ids.len()), (1, 1));
        app.run_workers().await;
        let [claim] = app.claims(ada).await.try_into().unwrap();
        assert_eq!(app.balance(ada).await.saturating_sub(before), claim.paid);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_claim_finds_an_equal_one_that_was_just_paid(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, key, market, .. } = &scene;
        both_sides(&scene).await;
        app.resolve(*market, 0).await;
        app.run_workers().await;
        let held = app.faults.hold("eth_call");
        let late = (key.clone(), *market);
        let late = tokio::spawn(async move { late.0.redeem(&late.1, 0).await });
        held.reached().await;
        let claim = key.redeemed(market, 0).await;
        app.run_workers().await;
        held.release();
        match late.await.unwrap().unwrap() {
            ClaimResult::Existing(found) => assert_eq!((found.id, found.status), (claim.id, RedemptionStatus::Completed)),
            other => panic!("{other:?}"),
        }
        assert_not_claimable(&scene, 1, "losing_outcome").await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_winner_is_paid_once_and_the_profit_is_realized(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &scene;
        both_sides(&scene).await;
        app.resolve(*market, 0).await;
        app.run_workers().await;
        let (worth, before, tokens) =
            (claimable(&scene, 0).await, app.balance(ada).await, app.tokens(ada, *market, 0).await);
        let claim = key.redeemed(market, 0).await;
        assert_eq!((claim.status, claim.expected, claim.tokens), (RedemptionStatus::Pending, worth, tokens));

        app.run_workers().await;
        let paid = app.claim(ada, claim.id).await;
        assert_eq!((paid.status, paid.paid), (RedemptionStatus::Completed, worth));
        assert!(paid.tx_hash.is_some() && paid.ended_at.is_some() && paid.failure.is_none());
        assert_eq!(app.balance(ada).await.saturating_sub(before), worth);
        assert_eq!(claimable(&scene, 0).await, Usdc::ZERO);
        let held = positions(&app.ctx, &key.caller, Some(market.id)).await.unwrap();
        assert_eq!(held[0].position().realized_pnl, UsdcDelta::between(worth, Usdc::from_whole(100)));
        assert_eq!(held[0].position().cost_basis, Usdc::ZERO);

        let again = key.redeemed_before(market, 0).await;
        assert_eq!(again, paid);
        app.run_workers().await;
        assert_eq!(app.balance(ada).await.saturating_sub(before), worth);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_rejected_claim_reports_the_reason(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, key, market, .. } = &scene;
        key.buy(market, 1, "40").await;
        app.run_workers().await;
        assert_not_claimable(&scene, 1, "market_open").await;
        app.freeze(*market).await;
        app.run_workers().await;
        assert_not_claimable(&scene, 1, "market_open").await;
        app.resolve(*market, 0).await;
        app.run_workers().await;
        assert_not_claimable(&scene, 1, "losing_outcome").await;
        assert_not_claimable(&scene, 0, "no_tokens").await;
        app.assert_ledger_equals_chain().await;
    }

    async fn tokens_that_pay_less_than_a_millionth_are_too_few_and_no_open_position(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &scene;
        key.buy(market, 0, "1").await;
        app.run_workers().await;
        // Sells all but five millionths of a token, which then pay 10 percent of a USDC each.
        let left = app.tokens(ada, *market, 0).await.0 / Wad::MIN_AMOUNT.0 - U256::from(5);
        key.sell(market, 0, &Usdc::from_atomic(left.to()).to_decimal()).in_tokens().await;
        app.run_workers().await;
        app.resolve_in_parts(*market, &[10, 90]).await;
        app.run_workers().await;
        assert_not_claimable(&scene, 0, "too_few_tokens").await;
        let held = positions(&app.ctx, &key.caller, Some(market.id)).await.unwrap();
        assert!(held[0].position().tokens > Wad::ZERO && !held[0].is_open() && !held[0].is_claimable);
        app.assert_ledger_equals_chain().await;
    }

    async fn each_paying_outcome_is_claimed_separately(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &scene;
        both_sides(&scene).await;
        app.resolve_in_parts(*market, &[70, 30]).await;
        app.run_workers().await;
        let before = app.balance(ada).await;
        let worths = [claimable(&scene, 0).await, claimable(&scene, 1).await];
        let claims = [key.redeemed(market, 0).await, key.redeemed(market, 1).await];
        app.run_workers().await;
        for (claim, worth) in claims.iter().zip(worths) {
            let claim = app.claim(ada, claim.id).await;
            assert_eq!((claim.status, claim.paid), (RedemptionStatus::Completed, worth));
        }
        let paid = worths[0].checked_add(worths[1]).unwrap();
        assert_eq!(app.balance(ada).await.saturating_sub(before), paid);
        let [one, other] = app.claims(ada).await.try_into().unwrap();
        assert_eq!(one.tx_hash, other.tx_hash, "they travel together");
        app.assert_ledger_equals_chain().await;
    }

    async fn a_cancel_pays_the_rest_of_a_partly_sold_position(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &scene;
        both_sides(&scene).await;
        key.sell(market, 0, "30").await;
        app.run_workers().await;
        app.cancel(*market).await;
        app.run_workers().await;
        let held = positions(&app.ctx, &key.caller, Some(market.id)).await.unwrap();
        let (cost, gain) = (held[0].position().cost_basis, held[0].position().realized_pnl);
        let yes = app.refund(*market, 0, held[0].position().tokens).await;
        let no = app.refund(*market, 1, held[1].position().tokens).await;
        for outcome in [0, 1] {
            key.redeemed(market, outcome).await;
        }
        app.run_workers().await;
        let [second, first] = app.claims(ada).await.try_into().unwrap();
        assert_eq!((first.paid, second.paid), (yes, no));
        let held = positions(&app.ctx, &key.caller, Some(market.id)).await.unwrap();
        let realized = UsdcDelta(gain.0 + UsdcDelta::between(yes, cost).0);
        assert_eq!(held[0].position().realized_pnl, realized);
        app.assert_ledger_equals_chain().await;
    }

    async fn twenty_equal_claims_at_once_are_one(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &scene;
        both_sides(&scene).await;
        app.resolve(*market, 0).await;
        app.run_workers().await;
        let claims = (0..20).map(|_| {
            let (key, market) = (key.clone(), *market);
            tokio::spawn(async move { key.redeem(&market, 0).await })
        });
        let mut ids = Vec::new();
        for claim in claims.collect::<Vec<_>>() {
            let (ClaimResult::Created(claim) | ClaimResult::Existing(claim)) = claim.await.unwrap().unwrap();
            ids.push(claim.id);
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
        assert_eq!(app.claims(ada).await.len(), 1);
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_payment_called_by_a_stranger_completes_the_claim(store: Store) {
        let scene = Scene::on(store).await;
        let Scene { app, ada, key, market } = &scene;
        both_sides(&scene).await;
        app.resolve(*market, 0).await;
        app.run_workers().await;
        let (worth, claim) = (claimable(&scene, 0).await, key.redeemed(market, 0).await);
        let receipt = app.stranger_redeems(ada, *market, 0).await;
        let batches = app.rows().await.batches;
        app.run_workers().await;
        let paid = app.claim(ada, claim.id).await;
        assert_eq!((paid.status, paid.paid), (RedemptionStatus::Completed, worth));
        assert_eq!(paid.tx_hash, Some(receipt.tx_hash));
        assert_eq!(app.rows().await.batches, batches, "nothing is sent that would pay nothing");
        app.assert_ledger_equals_chain().await;
    }

    async fn automatic_payouts_pay_every_winning_position_once(store: Store) {
        let app = TestApp::with().on(store).automatic_redemptions().start().await;
        let labels = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];
        let market = app.market(&labels).await;
        let mut users = Vec::new();
        for n in 0..15 {
            let user = app.user(&format!("user {n}")).funded("1000").await;
            let key = app.key(&user, Tier::Mm).await;
            for outcome in 0..10 {
                key.buy(&market, outcome, "5").await;
            }
            users.push((user, key));
        }
        app.run_workers().await;
        let mut before = Vec::new();
        for (user, _) in &users {
            before.push(app.balance(user).await);
        }
        app.resolve_in_parts(market, &[10; 10]).await;
        let batches = app.rows().await.batches;
        app.run_workers().await;
        app.run_workers().await;
        app.run_workers().await;

        assert_eq!(app.rows().await.redemptions, 150);
        assert_eq!(app.rows().await.batches, batches + 2);
        for ((user, _), before) in users.iter().zip(before) {
            let claims = app.claims(user).await;
            assert!(claims.iter().all(|claim| claim.status == RedemptionStatus::Completed && claim.key_id.is_none()));
            let paid = claims.iter().fold(Usdc::ZERO, |sum, claim| sum.checked_add(claim.paid).unwrap());
            assert_eq!(app.balance(user).await.saturating_sub(before), paid);
        }
        app.assert_ledger_equals_chain().await;
    }
}

#[tokio::test]
async fn a_result_cannot_be_claimed_during_the_veto_window() {
    let scene = Scene::of(TestApp::with().veto_window_s(600).start().await).await;
    let Scene { app, key, market, .. } = &scene;
    both_sides(&scene).await;
    app.resolve(*market, 0).await;
    app.run_workers().await;
    assert_not_claimable(&scene, 0, "market_open").await;
    app.advance_ms(601_000).await;
    app::markets::make_move(&app.ctx, &app.roles.relayer, market.id, Move::Finalize).await.unwrap();
    app.run_workers().await;
    key.redeemed(market, 0).await;
    app.run_workers().await;
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_result_can_be_claimed_once_its_block_is_final() {
    let scene = Scene::of(TestApp::with().confirmations(3).start().await).await;
    let Scene { app, ada, key, market } = &scene;
    both_sides(&scene).await;
    app.mine(2).await;
    app.run_workers().await;
    app.resolve(*market, 0).await;
    app.run_workers().await;
    assert_not_claimable(&scene, 0, "market_open").await;
    app.mine(2).await;
    app.run_workers().await;
    let claim = key.redeemed(market, 0).await;
    app.run_workers().await;
    assert_eq!(app.claim_status(ada, claim.id).await, RedemptionStatus::Executing);
    app.mine(1).await;
    app.run_workers().await;
    assert_eq!(app.claim_status(ada, claim.id).await, RedemptionStatus::Executing);
    app.mine(1).await;
    app.run_workers().await;
    assert_eq!(app.claim_status(ada, claim.id).await, RedemptionStatus::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn market_outcome_and_account_are_checked_in_order() {
    let scene = Scene::new().await;
    let Scene { app, key, market, .. } = &scene;
    let poor = app.disabled_key(&app.user("poor").await, Tier::Mm).await;
    let unknown = TestMarket { id: domain::ids::MarketId(app.ctx.uuid()), ..*market };
    assert_eq!(refused(&poor, &unknown, 9).await.code, ErrorCode::MarketNotFound);
    assert_eq!(refused(&poor, market, 2).await.code, ErrorCode::OutcomeIndexInvalid);
    assert_eq!(refused(&poor, market, 0).await.code, ErrorCode::SmartAccountNotProvisioned);
    assert_eq!(refused(key, market, 0).await.code, ErrorCode::PositionNotClaimable);
}

#[tokio::test]
async fn a_blocked_payment_does_not_delay_others_and_is_made_later() {
    let scene = Scene::new().await;
    let Scene { app, ada, key, market } = &scene;
    let bob = app.user("bob").funded("1000").await;
    let bobs = app.key(&bob, Tier::Mm).await;
    key.buy(market, 0, "100").await;
    bobs.buy(market, 0, "100").await;
    app.run_workers().await;
    app.resolve(*market, 0).await;
    app.run_workers().await;
    let (hers, his) = (key.redeemed(market, 0).await, bobs.redeemed(market, 0).await);
    app.block(ada, true).await;
    app.run_workers().await;
    assert_eq!(app.claim_status(ada, hers.id).await, RedemptionStatus::Pending);
    assert_eq!(app.claim_status(&bob, his.id).await, RedemptionStatus::Completed);
    app.block(ada, false).await;
    app.advance_ms(5 * 60_000).await;
    app.run_workers().await;
    assert_eq!(app.claim_status(ada, hers.id).await, RedemptionStatus::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn one_lane_sends_trades_and_redemptions_in_parallel() {
    let scene = Scene::new().await;
    let Scene { app, ada, key, market } = &scene;
    both_sides(&scene).await;
    let other = app.market(&["Yes", "No"]).await;
    app.resolve(*market, 0).await;
    app.run_workers().await;
    let (trade, claim) = (key.buy(&other, 0, "10").await, key.redeemed(market, 0).await);
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, domain::trade::Status::Completed);
    assert_eq!(app.claim_status(ada, claim.id).await, RedemptionStatus::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_cancel_pays_after_its_veto_window() {
    let scene = Scene::of(TestApp::with().veto_window_s(600).start().await).await;
    let Scene { app, key, market, .. } = &scene;
    both_sides(&scene).await;
    let cancel = async || app::markets::cancel(&app.ctx, &app.roles.resolver, market.id, None).await;
    let first = cancel().await.unwrap();
    assert!(matches!(first, Cancelling::Proposed { receipt: Some(_), .. }), "{first:?}");
    app.run_workers().await;
    assert_eq!(app.market_row(*market).await.0.status, MarketStatus::Frozen);
    assert_not_claimable(&scene, 0, "market_open").await;
    let waiting = cancel().await.unwrap();
    assert!(matches!(waiting, Cancelling::Proposed { receipt: None, .. }), "{waiting:?}");
    app.advance_ms(601_000).await;
    let last = cancel().await.unwrap();
    assert!(matches!(last, Cancelling::Cancelled(_)), "{last:?}");
    app.run_workers().await;
    key.redeemed(market, 0).await;
    app.run_workers().await;
    app.assert_ledger_equals_chain().await;
}
