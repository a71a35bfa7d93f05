//! The web key: the key that a user's trades in the web application are made with.

use app::keys::{choose_caps, pause, resume, revoke};
use app::people;
use domain::ErrorCode;
use domain::Usdc;
use domain::key::{ChosenCaps, KeyKind, Scope, Tier};
use store::Store;
use testkit::{TestApp, TestUser, key_of};

fn caps(daily: u32, per_trade: u32) -> ChosenCaps {
    ChosenCaps { daily: Some(Usdc::from_whole(daily)), per_trade: Some(Usdc::from_whole(per_trade)) }
}

store::on_each_engine! {
    async fn the_web_key_has_its_own_index_and_does_not_count_towards_the_five_keys(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, person) = app.sign_up().await;
        let key = person.web_key().unwrap();
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
        let id = person.web_key().unwrap().id;
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
        let (user_id, id) = (person.user_id(), person.web_key().unwrap().id);
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
        let (user_id, id) = (person.user_id(), person.web_key().unwrap().id);
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
        assert!(app.person(&signed_in).await.web_key().unwrap().paused_at.is_some());
        resume(&app.ctx, caller.key.id).await.unwrap();
        assert!(app.person(&signed_in).await.web_key().unwrap().paused_at.is_none());
        revoke(&app.ctx, caller.key.id).await.unwrap();
        let signed_in = app.try_sign_in(&mut key).await.unwrap();
        let refused = app.person(&signed_in).await.caller().unwrap_err();
        assert_eq!(refused.code, ErrorCode::ApiKeyRevoked);
    }
}

#[tokio::test]
async fn a_passkey_enables_the_web_key_on_chain() {
    let app = TestApp::new().await;
    let (mut passkey, person) = app.sign_up().await;
    let key = person.web_key().unwrap().as_ref().clone();
    app.enable_by_passkey(&person, &mut passkey, vec![key.id]).await;
    let account = app::accounts::account_of(&app.ctx, person.user_id()).await.unwrap().address;
    let policy = app.ctx.chain.policy(account, key.key_index).await.unwrap();
    assert!(policy.is_live(app.ctx.now().s()));
}
