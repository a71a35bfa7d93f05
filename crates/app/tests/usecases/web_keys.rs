//! The web key: the key that a user's trades in the web application are made with.

use alloy_primitives::{Address, U256};
use app::keys::{choose_caps, find_own, pause, resume, revoke};
use app::owner_acts::{OwnerActRequest, OwnerOrder, WithdrawalAmount};
use app::people::{self, Country};
use app::portfolio::{self, Timeframe};
use app::trades::NewTrade;
use app::{AppError, PersonError, redemptions};
use domain::key::{ChosenCaps, KeyKind, Scope, Tier};
use domain::owner_act::OwnerActStatus;
use domain::trade::Draft;
use domain::{ErrorCode, Usdc, Wad};
use store::Store;
use testkit::{TestApp, TestUser, key_of};

use crate::scene::Scene;

fn caps(daily: u32, per_trade: u32) -> ChosenCaps {
    ChosenCaps { daily: Some(Usdc::from_whole(daily)), per_trade: Some(Usdc::from_whole(per_trade)) }
}

store::on_each_engine! {
    async fn the_web_key_has_its_own_index_and_does_not_count_towards_the_five_keys(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, person) = app.sign_up().await;
        let key = person.web_key();
        assert_eq!((key.kind, key.key_index, key.tier, key.hint.as_deref()), (KeyKind::Web, 0, Tier::Free, None));
        person.caller().unwrap().require(Scope::TradesWrite).unwrap();
        let account = app::accounts::account_of(&app.ctx, person.user_id()).await.unwrap();
        let owner = chain::Signer::random(app.ctx.random()).unwrap();
        let user = TestUser { id: person.user_id(), account: account.address, owner, salt: account.salt };
        for key_index in 1..=5 {
            let key = app.disabled_key(&user, Tier::Mm).await;
            assert_eq!((key.caller.key.kind, key.caller.key.key_index), (KeyKind::Api, key_index));
            assert_eq!(key.caller.key.hint.as_deref(), key.plaintext.get(key.plaintext.len() - 4..));
        }
        let refused = app.issue(key_of(&user, Tier::Mm)).await.err().unwrap();
        assert_eq!(refused.code, ErrorCode::ActiveKeyLimitReached);
    }

    async fn no_digest_finds_a_web_key(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, person) = app.sign_up().await;
        let id = person.web_key().id;
        let found = app.ctx.store.read(id, |tx, id| {
            Box::pin(async move {
                const SQL: &str = "SELECT digest FROM keys WHERE id = $1";
                let digest: Option<String> = tx.find(SQL, &store::params![*id], |row| row.only()).await?;
                let by_digest = store::keys::find_by_digest(tx, digest.as_deref().unwrap_or_default()).await?;
                Ok((digest.is_some(), by_digest))
            })
        });
        assert_eq!(found.await, Ok((true, None)));
    }

    async fn chosen_caps_take_effect_at_once_and_never_exceed_the_tiers(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let mut key = app.soft_key();
        let signed_in = app.try_sign_up(&mut key).await.unwrap();
        let person = app.person(&signed_in).await;
        let (user_id, id) = (person.user_id(), person.web_key().id);
        choose_caps(&app.ctx, user_id, id, caps(100, 50)).await.unwrap();
        let limits = app.person(&signed_in).await.caller().unwrap().limits();
        assert_eq!((limits.daily, limits.per_trade), (Usdc::from_whole(100), Usdc::from_whole(50)));
        for wrong in [caps(1_001, 50), caps(100, 501), caps(0, 50)] {
            let refused = choose_caps(&app.ctx, user_id, id, wrong).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::ValidationFailed);
        }
        let (_, other) = app.sign_up().await;
        let refused = choose_caps(&app.ctx, other.user_id(), id, caps(1, 1)).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ResourceNotFound);
    }

    async fn a_raised_tier_raises_the_web_key_but_not_the_chosen_caps(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let mut key = app.soft_key();
        let signed_in = app.try_sign_up(&mut key).await.unwrap();
        let person = app.person(&signed_in).await;
        let (user_id, id) = (person.user_id(), person.web_key().id);
        let chosen = ChosenCaps { daily: None, per_trade: Some(Usdc::from_whole(50)) };
        choose_caps(&app.ctx, user_id, id, chosen).await.unwrap();
        people::set_tier(&app.ctx, user_id, Tier::Developer).await.unwrap();
        let limits = app.person(&signed_in).await.caller().unwrap().limits();
        assert_eq!((limits.daily, limits.per_trade), (Usdc::from_whole(10_000), Usdc::from_whole(50)));
    }

    async fn a_revoked_web_key_is_not_replaced_at_sign_in(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (mut key, person) = app.sign_up().await;
        let caller = person.caller().unwrap();
        pause(&app.ctx, &caller).await.unwrap();
        let signed_in = app.try_sign_in(&mut key).await.unwrap();
        assert!(app.person(&signed_in).await.web_key().paused_at.is_some());
        resume(&app.ctx, caller.key.id).await.unwrap();
        assert!(app.person(&signed_in).await.web_key().paused_at.is_none());
        revoke(&app.ctx, caller.key.id).await.unwrap();
        let signed_in = app.try_sign_in(&mut key).await.unwrap();
        let refused = app.person(&signed_in).await.caller().unwrap_err();
        assert_eq!(refused.code, ErrorCode::ApiKeyRevoked);
    }

    async fn without_the_web_key_a_person_reads_sells_claims_withdraws_and_pauses(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        key.buy(&market, 0, "100").await;
        app.run_workers().await;
        revoke(&app.ctx, app.person_of(&ada).await.web_key().id).await.unwrap();
        let person = app.person_of(&ada).await;
        let draft = Draft { market_id: Some(market.id.to_string()), ..Draft::default() };
        let new = NewTrade { draft, idempotency_key: None, dry_run: true, correlation_id: None };
        let country = Country::default();
        let refused = people::create_trade(&app.ctx, &person, country, new).await.map(drop).unwrap_err();
        assert!(is_revoked(&refused), "{refused:?}");

        let tokens = Wad(app.tokens(&ada, market, 0).await.0 / U256::from(2));
        let order = OwnerOrder::Sell { tokens, min_usdc: Usdc::from_whole(1) };
        let sell = OwnerActRequest::Trade { market_id: market.id, outcome_index: 0, order };
        people::prepare_act(&app.ctx, &person, country, &sell).await.unwrap();
        assert_eq!(app.act(&ada, &sell).await.status, OwnerActStatus::Done);
        let (to, amount) = (Address::repeat_byte(7), WithdrawalAmount::All);
        let withdraw = OwnerActRequest::Withdraw { to, amount };
        people::prepare_act(&app.ctx, &person, country, &withdraw).await.unwrap();

        app.run_workers().await;
        app.resolve(market, 0).await;
        app.run_workers().await;
        let owned = portfolio::of_person(&app.ctx, &person).await.unwrap();
        assert!(owned.positions.iter().any(|position| position.is_claimable), "{owned:?}");
        assert!(!person.lets_site_trade(&owned.state, app.ctx.now()));
        portfolio::read_over_time(&app.ctx, &person, Timeframe::OneDay).await.unwrap();
        redemptions::claim_own(&app.ctx, &person, None).await.unwrap();
        assert_eq!(redemptions::list_claiming(&app.ctx, &person).await.unwrap().len(), 1);
        app.run_workers().await;
        assert_eq!(app.tokens(&ada, market, 0).await, Wad::ZERO);

        let person = app.person_of(&ada).await;
        people::pause_trading(&app.ctx, &person).await.unwrap();
        let api_key = find_own(&app.ctx, ada.id, key.caller.key.id).await.unwrap();
        assert!(api_key.paused_at.is_some());
        let refused = people::resume_trading(&app.ctx, &person).await.unwrap_err();
        assert!(is_revoked(&refused), "{refused:?}");
        people::revoke_api_key(&app.ctx, &person, api_key.id).await.unwrap();
    }
}

fn is_revoked(refused: &PersonError) -> bool {
    matches!(refused, PersonError::App(AppError { code: ErrorCode::ApiKeyRevoked, .. }))
}

#[tokio::test]
async fn a_passkey_enables_the_web_key_on_chain() {
    let app = TestApp::new().await;
    let (mut passkey, person) = app.sign_up().await;
    let key = person.web_key().as_ref().clone();
    app.enable_by_passkey(&person, &mut passkey, vec![key.id]).await;
    let account = app::accounts::account_of(&app.ctx, person.user_id()).await.unwrap().address;
    let policy = app.ctx.chain.policy(account, key.key_index).await.unwrap();
    assert!(policy.is_live(app.ctx.now().s()));
}
