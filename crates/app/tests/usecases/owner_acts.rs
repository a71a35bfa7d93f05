//! Acts of account owners: what each kind does on chain, who may prepare it, and how it ends.

use alloy_primitives::{Address, U256};
use app::config::OwnerActLimits;
use app::kill_switches::{self, Setting};
use app::owner_acts::{self, ActOrigin, Caps, OwnerActRequest, OwnerOrder, PreparedAct, WithdrawalAmount};
use app::{AppError, PersonError};
use chain::{Signer, calls};
use domain::ids::OwnerActId;
use domain::key::Tier;
use domain::owner_act::{OwnerActFailure, OwnerActStatus};
use domain::time::{DAY_MS, MINUTE_MS};
use domain::{ErrorCode, Usdc, Wad};
use store::Store;
use store::owner_acts::OwnerAct;
use testkit::{CLIENT_IP, TestApp, TestUser, wallet_signature};
use uuid::Uuid;

use crate::scene::Scene;

const TO: Address = Address::repeat_byte(0xaa);

fn withdrawal(usdc: u32) -> OwnerActRequest {
    OwnerActRequest::Withdraw { to: TO, amount: WithdrawalAmount::Exact(Usdc::from_whole(usdc)) }
}

fn deploys() -> OwnerActRequest {
    OwnerActRequest::Enable { keys: Vec::new() }
}

async fn refusal(app: &TestApp, user: &TestUser, request: &OwnerActRequest) -> AppError {
    let refused = owner_acts::prepare(&app.ctx, user.id, request, ActOrigin::User(CLIENT_IP), None).await;
    refused.expect_err("the request is rejected")
}

async fn nonce(app: &TestApp, user: &TestUser) -> u64 {
    app.ctx.chain.account_nonce(user.account).await.unwrap()
}

fn assert_done(act: &OwnerAct) {
    assert_eq!(act.status, OwnerActStatus::Done, "{act:?}");
    assert!(act.tx_hash.is_some() && act.ended_at.is_some() && act.failure.is_none(), "{act:?}");
}

store::on_each_engine! {
    async fn the_first_act_deploys_the_account_and_enables_its_keys(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").funded("100").await;
        let key = app.disabled_key(&ada, Tier::Mm).await;
        let id = key.caller.key.id;
        let signed = app.signed_act(&ada, &OwnerActRequest::Enable { keys: vec![id] }).await;
        assert_eq!((signed.status, signed.nonce), (OwnerActStatus::Signed, 0));
        assert_eq!(signed.signer, Some(ada.owner.owner().to_string()));
        app.workers.execute(&app.ctx).await;
        assert_done(&app.stored_act(signed.id).await);
        let state = app.ctx.chain.account_state(ada.account, key.caller.key.key_index).await.unwrap();
        assert!(state.provisioned && state.lets_spend(app.ctx.now().s()), "{state:?}");

        // The approval exists, so the next key needs only its policy.
        let second = app.disabled_key(&ada, Tier::Mm).await;
        let request = OwnerActRequest::EnableKey { key: second.caller.key.id };
        assert_eq!(app.prepare_act(&ada, &request).await.batch.calls.len(), 1);
        assert_done(&app.act(&ada, &request).await);
        assert_eq!(nonce(&app, &ada).await, 2);
    }

    async fn an_owner_withdraws_what_open_trades_have_not_reserved(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        key.buy(&market, 0, "100").await;
        let refused = refusal(&app, &ada, &withdrawal(9_901)).await;
        assert_eq!(refused.code, ErrorCode::InsufficientBalance);
        assert_eq!(refused.extensions["availableUsdc"], Usdc::from_whole(9_900).to_string());
        let all = OwnerActRequest::Withdraw { to: TO, amount: WithdrawalAmount::All };
        app.signed_act(&ada, &all).await;
        app.run_workers().await;
        let sent = app.ctx.chain.usdc_balance(TO).await.unwrap();
        assert_eq!(sent, U256::from(Usdc::from_whole(9_900).atomic()));
        app.assert_ledger_equals_chain().await;
    }

    async fn an_owner_sends_a_position(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        key.buy(&market, 1, "100").await;
        app.run_workers().await;
        let held = app.tokens(&ada, market, 1).await;
        let send = |tokens| OwnerActRequest::SendPosition { to: TO, market_id: market.id, outcome_index: 1, tokens };
        let refused = refusal(&app, &ada, &send(Wad(held.0 + U256::from(1)))).await;
        assert_eq!(refused.code, ErrorCode::InsufficientBalance);
        assert_eq!(refusal(&app, &ada, &send(Wad::ZERO)).await.code, ErrorCode::ValidationFailed);
        assert_done(&app.act(&ada, &send(held)).await);
        app.run_workers().await;
        assert_eq!(app.tokens(&ada, market, 1).await, Wad::ZERO);
        assert_eq!(app.ctx.chain.position(TO, market.number, 1).await.unwrap(), held.0);
        app.assert_ledger_equals_chain().await;
    }

    async fn an_owner_trades_beyond_the_caps_of_every_key(store: Store) {
        let Scene { app, ada, market, .. } = Scene::on(store).await;
        let order = |order| OwnerActRequest::Trade { market_id: market.id, outcome_index: 0, order };
        let buy = |usdc, min_tokens| order(OwnerOrder::Buy { usdc: Usdc::from_whole(usdc), min_tokens });
        let sell = |tokens, min_usdc| order(OwnerOrder::Sell { tokens, min_usdc });
        let too_much = refusal(&app, &ada, &buy(10_001, Wad::ONE)).await;
        assert_eq!(too_much.code, ErrorCode::InsufficientBalance);
        let wrong_price = refusal(&app, &ada, &buy(900, Wad(Wad::ONE.0 * U256::from(10_000)))).await;
        assert_eq!(wrong_price.code, ErrorCode::SlippageExceeded);
        assert_eq!(refusal(&app, &ada, &sell(Wad::ONE, Usdc::ZERO)).await.code, ErrorCode::InsufficientBalance);

        assert_done(&app.act(&ada, &buy(900, Wad::ONE)).await);
        app.run_workers().await;
        let held = app.tokens(&ada, market, 0).await;
        assert!(held > Wad::ONE, "{held:?}");
        // The hub took exactly the price.
        let left = app.ctx.chain.usdc_balance(ada.account).await.unwrap();
        assert_eq!(left, U256::from(Usdc::from_whole(9_100).atomic()));
        assert_done(&app.act(&ada, &sell(held, Usdc::from_whole(1))).await);
        app.run_workers().await;
        assert_eq!(app.tokens(&ada, market, 0).await, Wad::ZERO);
        app.assert_ledger_equals_chain().await;
    }

    async fn an_owners_trade_is_neither_prepared_nor_sent_while_trading_is_halted(store: Store) {
        let Scene { app, ada, market, .. } = Scene::on(store).await;
        let order = OwnerOrder::Buy { usdc: Usdc::from_whole(5), min_tokens: Wad::ONE };
        let buy = OwnerActRequest::Trade { market_id: market.id, outcome_index: 0, order };
        let halt = |setting| kill_switches::set(&app.ctx, kill_switches::TRADING, setting, "Olga", None);
        let act = app.signed_act(&ada, &buy).await;
        halt(Setting::Off).await.unwrap();
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.stored_act(act.id).await.status, OwnerActStatus::Signed);
        assert_eq!(refusal(&app, &ada, &buy).await.code, ErrorCode::ApiTradeProcessingHalted);
        halt(Setting::On).await.unwrap();
        // An act that waits is checked again after a pause.
        app.clock.advance(MINUTE_MS);
        app.run_workers().await;
        assert_done(&app.stored_act(act.id).await);
    }

    async fn an_owners_trade_is_not_prepared_while_the_route_of_trades_is_disabled(store: Store) {
        let Scene { app, ada, market, .. } = Scene::on(store).await;
        let order = OwnerOrder::Buy { usdc: Usdc::from_whole(5), min_tokens: Wad::ONE };
        let buy = OwnerActRequest::Trade { market_id: market.id, outcome_index: 0, order };
        let switch = |setting| kill_switches::set(&app.ctx, "POST /v1/trades", setting, "Olga", None);
        switch(Setting::Off).await.unwrap();
        assert_eq!(refusal(&app, &ada, &buy).await.code, ErrorCode::RouteDisabled);
        switch(Setting::On).await.unwrap();
        assert_done(&app.act(&ada, &buy).await);
    }

    async fn an_owner_sets_caps_within_the_keys_limits(store: Store) {
        let Scene { app, ada, key, .. } = Scene::on(store).await;
        let id = key.caller.key.id;
        let limits = key.caller.key.limits();
        let raise = |per_trade, daily| OwnerActRequest::RaiseCaps { key: id, caps: Caps { per_trade, daily } };
        let one_more = |usdc: Usdc| Usdc::from_atomic(usdc.atomic() + 1);
        for request in [
            raise(one_more(limits.per_trade), limits.daily),
            raise(limits.per_trade, one_more(limits.daily)),
            raise(Usdc::ZERO, limits.daily),
            raise(Usdc::from_whole(2), Usdc::from_whole(1)),
        ] {
            assert_eq!(refusal(&app, &ada, &request).await.code, ErrorCode::ValidationFailed, "{request:?}");
        }
        assert_done(&app.act(&ada, &raise(Usdc::from_whole(7), Usdc::from_whole(9))).await);
        let policy = app.ctx.chain.policy(ada.account, key.caller.key.key_index).await.unwrap();
        assert_eq!((policy.per_trade_usdc_atomic, policy.daily_usdc_atomic), (7_000_000, 9_000_000));
        let of_key = || async { app::keys::find_own(&app.ctx, ada.id, id).await.unwrap().limits() };
        assert_eq!((of_key().await.per_trade, of_key().await.daily), (Usdc::from_whole(7), Usdc::from_whole(9)));
        assert_done(&app.act(&ada, &raise(limits.per_trade, limits.daily)).await);
        assert_eq!(of_key().await, limits);
    }

    async fn replacing_an_owner_updates_the_stored_owners(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let second = Signer::random([7; 32]).unwrap();
        let stored = || async { app::accounts::stored_owners(&app.ctx, ada.id).await.unwrap() };
        assert_done(&app.act(&ada, &OwnerActRequest::AddOwner(second.owner())).await);
        assert_eq!(stored().await, [ada.owner.owner().to_string(), second.owner().to_string()]);
        let removal = OwnerActRequest::RemoveOwner(ada.owner.owner());
        let PreparedAct { act, .. } = app.prepare_act(&ada, &removal).await;
        owner_acts::sign(&app.ctx, ada.id, act.id, &wallet_signature(&second, &act), ActOrigin::User(CLIENT_IP)).await.unwrap();
        app.workers.execute(&app.ctx).await;
        assert_done(&app.stored_act(act.id).await);
        assert_eq!(stored().await, [second.owner().to_string()]);
    }

    async fn a_second_owner_chosen_before_the_deposit_is_added_by_the_first_act(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let second = Signer::random([7; 32]).unwrap().owner();
        let person = app.person_of(&ada).await;
        let choose = |owner| owner_acts::choose_second_owner(&app.ctx, &person, owner);
        let refused = async |owner| match choose(owner).await {
            Err(PersonError::App(error)) => error.code,
            chosen => panic!("{chosen:?}"),
        };
        assert_eq!(refused(Some(ada.owner.owner())).await, ErrorCode::ValidationFailed);
        choose(Some(Signer::random([8; 32]).unwrap().owner())).await.unwrap();
        choose(Some(second)).await.unwrap();
        assert_done(&app.act(&ada, &deploys()).await);
        let owners = app::accounts::owners(&app.ctx, ada.id).await.unwrap().owners;
        assert_eq!(owners, [ada.owner.owner(), second]);
        assert_eq!(refused(None).await, ErrorCode::ValidationFailed, "it is on chain");
        let PreparedAct { batch, .. } = app.prepare_act(&ada, &OwnerActRequest::EndApproval).await;
        assert_eq!(batch.calls.len(), 1, "only the first act adds it");
    }

    async fn another_users_act_gets_the_same_error_as_a_missing_one(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (ada, bob) = (app.user("ada").await, app.user("bob").await);
        let PreparedAct { act, .. } = app.prepare_act(&ada, &deploys()).await;
        let signature = wallet_signature(&bob.owner, &act);
        let missing = OwnerActId(Uuid::from_u128(1));
        for id in [act.id, missing] {
            let found = owner_acts::find(&app.ctx, bob.id, id).await.unwrap_err();
            assert_eq!(found.code, ErrorCode::ResourceNotFound);
            let signed = owner_acts::sign(&app.ctx, bob.id, id, &signature, ActOrigin::User(CLIENT_IP)).await.unwrap_err();
            assert_eq!((signed.code, signed.detail), (found.code, found.detail));
        }
        assert_eq!(owner_acts::find(&app.ctx, ada.id, act.id).await.unwrap(), act);
    }

    async fn acts_are_listed_newest_first(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (ada, bob) = (app.user("ada").await, app.user("bob").await);
        let mut ids = Vec::new();
        for _ in 0..3 {
            app.clock.advance(1_000);
            ids.insert(0, app.prepare_act(&ada, &deploys()).await.act.id);
        }
        app.prepare_act(&bob, &deploys()).await;
        let page = |before, limit| {
            let list = owner_acts::list(&app.ctx, ada.id, before, limit);
            async { list.await.unwrap().into_iter().map(|act| act.id).collect::<Vec<_>>() }
        };
        assert_eq!(page(None, 10).await, ids);
        assert_eq!(page(Some(ids[0]), 1).await, ids[1..2]);
        assert_eq!(page(Some(ids[2]), 10).await, []);
    }

    async fn preparing_the_same_batch_again_returns_the_same_act(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let first = app.prepare_act(&ada, &deploys()).await;
        assert_eq!(first.act.deadline_s, app.ctx.now().s() + 600, "ten minutes");
        let again = Some(first.act.deadline_s);
        let again = owner_acts::prepare(&app.ctx, ada.id, &deploys(), ActOrigin::User(CLIENT_IP), again).await.unwrap();
        assert_eq!(again, first);
    }

    async fn acts_are_limited_per_user_and_day(store: Store) {
        let limits = OwnerActLimits { per_day: 2, min_balance: Usdc::ZERO };
        let app = TestApp::with().on(store).owner_acts(limits).start().await;
        let (ada, bob) = (app.user("ada").await, app.user("bob").await);
        let prepared = app.prepare_act(&ada, &OwnerActRequest::EndApproval).await;
        for _ in 0..2 {
            assert_done(&app.act(&ada, &deploys()).await);
            app.advance_ms(MINUTE_MS).await;
        }
        let refused = refusal(&app, &ada, &deploys()).await;
        assert_eq!((refused.code, refused.retry_after_s), (ErrorCode::RateLimitExceeded, Some(86_281)));
        let signature = wallet_signature(&ada.owner, &prepared.act);
        let late = owner_acts::sign(&app.ctx, ada.id, prepared.act.id, &signature, ActOrigin::User(CLIENT_IP)).await;
        late.unwrap_err();
        assert_done(&app.act(&bob, &deploys()).await);
        let operator = owner_acts::prepare(&app.ctx, ada.id, &deploys(), ActOrigin::Operator, None).await;
        operator.unwrap();
        app.advance_ms(DAY_MS - MINUTE_MS).await;
        assert_done(&app.act(&ada, &deploys()).await);
    }
}

#[tokio::test]
async fn the_service_pays_only_for_accounts_that_hold_the_minimum() {
    let limits = OwnerActLimits::of(domain::key::Environment::Live);
    assert_eq!((limits.per_day, limits.min_balance), (20, Usdc::from_whole(1)));
    let app = TestApp::with().owner_acts(limits).start().await;
    let ada = app.user("ada").funded("0.999999").await;
    assert_eq!(refusal(&app, &ada, &deploys()).await.code, ErrorCode::InsufficientBalance);
    owner_acts::prepare(&app.ctx, ada.id, &deploys(), ActOrigin::Operator, None).await.unwrap();
    app.mint(ada.account, Usdc::from_atomic(1)).await;
    assert_done(&app.act(&ada, &deploys()).await);
}

#[tokio::test]
async fn an_act_that_cannot_be_meant_is_a_field_error() {
    let Scene { app, ada, key, .. } = Scene::new().await;
    let (first, other) = (ada.owner.owner(), Signer::random([7; 32]).unwrap().owner());
    let contracts = app.ctx.chain.contracts();
    let send_to = |to| OwnerActRequest::Withdraw { to, amount: WithdrawalAmount::All };
    for (request, detail) in [
        (OwnerActRequest::AddOwner(first), "must not be an owner already"),
        (OwnerActRequest::RemoveOwner(other), "must be an owner"),
        (OwnerActRequest::RemoveOwner(first), "must not be the only owner"),
        (send_to(Address::ZERO), "must not be the zero address"),
        (send_to(ada.account), "must not be the account itself"),
        (send_to(contracts.usdc), "must not be a contract"),
        (send_to(contracts.hub), "must not be a contract"),
        (withdrawal(0), "must be above 0"),
    ] {
        let refused = refusal(&app, &ada, &request).await;
        assert_eq!(refused.code, ErrorCode::ValidationFailed, "{request:?}");
        assert!(format!("{refused:?}").contains(detail), "{request:?}: {refused:?}");
    }
    let bob = app.user("bob").await;
    app::keys::revoke(&app.ctx, key.caller.key.id).await.unwrap();
    for user in [&ada, &bob] {
        let request = OwnerActRequest::EnableKey { key: key.caller.key.id };
        assert_eq!(refusal(&app, user, &request).await.code, ErrorCode::ResourceNotFound);
    }
}

#[tokio::test]
async fn an_account_has_at_most_sixteen_owners() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    for n in 10..25 {
        let owner = Signer::random([n; 32]).unwrap().owner();
        app.as_owner(&ada, ada.account, calls::add_owner(&owner)).await;
    }
    let add = OwnerActRequest::AddOwner(Signer::random([7; 32]).unwrap().owner());
    assert_eq!(refusal(&app, &ada, &add).await.code, ErrorCode::ValidationFailed);
}

#[tokio::test]
async fn owners_changed_without_the_service_are_read_from_the_chain() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let other = Signer::random([7; 32]).unwrap().owner();
    assert_done(&app.act(&ada, &deploys()).await);
    app.as_owner(&ada, ada.account, calls::add_owner(&other)).await;
    assert_eq!(app::accounts::stored_owners(&app.ctx, ada.id).await.unwrap().len(), 1);
    let read = app::accounts::owners(&app.ctx, ada.id).await.unwrap();
    assert_eq!((read.provisioned, read.owners), (true, vec![ada.owner.owner(), other]));
    assert_eq!(app::accounts::stored_owners(&app.ctx, ada.id).await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_deadline_of_an_act_counts_from_the_clock_on_a_quiet_chain() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    assert_done(&app.act(&ada, &deploys()).await);
    // The newest block is a day old from here on.
    app.clock.advance(DAY_MS);
    let PreparedAct { act, .. } = app.prepare_act(&ada, &OwnerActRequest::EndApproval).await;
    assert_eq!(act.deadline_s, app.ctx.now().s() + 600);
    assert_done(&app.act(&ada, &OwnerActRequest::EndApproval).await);
}

#[tokio::test]
async fn an_expired_act_cannot_be_signed_and_says_so() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let PreparedAct { act, .. } = app.prepare_act(&ada, &deploys()).await;
    app.clock.advance(10 * MINUTE_MS + 1_000);
    let sign = || async {
        let signature = wallet_signature(&ada.owner, &act);
        owner_acts::sign(&app.ctx, ada.id, act.id, &signature, ActOrigin::User(CLIENT_IP)).await.unwrap_err()
    };
    let refused = sign().await;
    assert!(refused.detail.contains("expired at 2027-01-15T08:10:00"), "{refused}");
    let past = Some(app.ctx.now().s() - 1);
    let past = owner_acts::prepare(&app.ctx, ada.id, &deploys(), ActOrigin::Operator, past).await;
    assert!(past.unwrap_err().detail.contains("expired at"));

    app::worker::Worker::tick(&app::cleanup::Cleaner, &app.ctx).await.unwrap();
    assert_eq!(app.stored_act(act.id).await.status, OwnerActStatus::Expired);
    assert_eq!(sign().await.detail, refused.detail);
    app.clock.advance(7 * DAY_MS + 1);
    app::worker::Worker::tick(&app::cleanup::Cleaner, &app.ctx).await.unwrap();
    assert_eq!(owner_acts::list(&app.ctx, ada.id, None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn an_act_whose_call_reverts_fails_with_the_reason() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "100").await;
    app.run_workers().await;
    let tokens = app.tokens(&ada, market, 0).await;
    let send = OwnerActRequest::SendPosition { to: TO, market_id: market.id, outcome_index: 0, tokens };
    let act = app.signed_act(&ada, &send).await;
    app.resolve(market, 0).await;
    app.workers.execute(&app.ctx).await;
    let failed = app.stored_act(act.id).await;
    assert_eq!(failed.failure, Some(OwnerActFailure::CallReverted), "{failed:?}");
    assert_eq!((failed.batch_id, nonce(&app, &ada).await), (None, 1), "nothing was sent");
    assert_eq!(owner_acts::error_of(&failed).unwrap().code, ErrorCode::MarketNotTradeable);
    // The account is free for the next act.
    assert_done(&app.act(&ada, &OwnerActRequest::EndApproval).await);
}
