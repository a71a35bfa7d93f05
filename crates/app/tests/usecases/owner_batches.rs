//! Batches that an account's owners sign.

use alloy_primitives::Bytes;
use app::AppError;
use app::accounts::{self, OwnerChange};
use chain::{Receipt, Signer, UnsignedBatch};
use domain::ErrorCode;
use domain::ids::UserId;
use domain::key::Tier;
use domain::time::DAY_MS;
use futures::future::join_all;
use store::Store;
use testkit::{TestApp, key_of};

store::on_each_engine! {
    async fn concurrent_owner_batches_all_take_effect(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let mut issued = Vec::new();
        for name in ["ada", "bob", "cleo"] {
            let user = app.user(name).await;
            for _ in 0..3 {
                let key = app::keys::issue(&app.ctx, key_of(&user, Tier::Mm)).await.unwrap().key;
                issued.push((user.clone(), key));
            }
        }
        let sent = issued.iter().map(|(user, key)| {
            accounts::enable_keys(&app.ctx, &app.roles.relayer, &user.owner, user.id, std::slice::from_ref(key))
        });
        for enabled in join_all(sent).await {
            enabled.unwrap();
        }
        for (user, key) in &issued {
            let policy = app.ctx.chain.policy(user.account, key.key_index).await.unwrap();
            assert!(policy.is_live(app.ctx.now().s()), "{key:?}");
        }
    }
}

#[tokio::test]
async fn an_owners_signature_is_valid_for_an_hour_on_a_quiet_chain() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    app.clock.advance(DAY_MS);
    let batch = accounts::batch_to_enable(&app.ctx, ada.id, &[], None).await.unwrap();
    assert_eq!(batch.deadline_s, app.ctx.now().s() + 3_600);
    accounts::enable_keys(&app.ctx, &app.roles.relayer, &ada.owner, ada.id, &[]).await.unwrap();
}

store::on_each_engine! {
    async fn replacing_an_owner_updates_the_stored_owners(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let (first, second) = (ada.owner.clone(), Signer::random([7; 32]).unwrap());
        let stored = || async { accounts::stored_owners(&app.ctx, ada.id).await.unwrap() };
        assert_eq!(stored().await, [first.owner().to_string()], "known before the account exists");

        let relayer = &app.roles.relayer;
        let add = OwnerChange::Add(second.owner());
        accounts::change_owners(&app.ctx, relayer, &first, ada.id, add).await.unwrap();
        assert_eq!(stored().await, [first.owner().to_string(), second.owner().to_string()]);

        // Signed elsewhere, by the other owner.
        let remove = OwnerChange::Remove(first.owner());
        let batch = accounts::batch_to_change_owners(&app.ctx, ada.id, remove, None).await.unwrap();
        assert_eq!(batch.owners, [first.owner(), second.owner()]);
        let again =
            accounts::batch_to_change_owners(&app.ctx, ada.id, remove, Some(batch.deadline_s)).await.unwrap();
        assert_eq!(again, batch, "a batch can be made again from its deadline");
        let stranger = Signer::random([8; 32]).unwrap().sign_digest(batch.digest).unwrap();
        let refused = relay(&app, ada.id, remove, &batch, stranger).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ValidationFailed);
        let signature = second.sign_digest(batch.digest).unwrap();
        relay(&app, ada.id, remove, &batch, signature).await.unwrap();
        assert_eq!(stored().await, [second.owner().to_string()]);

        // The account's address stays the same, and the remaining owner enables its keys.
        let key = app::keys::issue(&app.ctx, key_of(&ada, Tier::Mm)).await.unwrap().key;
        accounts::enable_keys(&app.ctx, relayer, &second, ada.id, std::slice::from_ref(&key)).await.unwrap();
        assert!(app.ctx.chain.policy(ada.account, key.key_index).await.unwrap().is_live(app.ctx.now().s()));
        let refused = accounts::enable_keys(&app.ctx, relayer, &first, ada.id, &[key]).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InternalError, "the contract rejects it: {refused}");
    }

    async fn owners_changed_without_the_service_are_read_from_the_chain(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let other = Signer::random([7; 32]).unwrap().owner();
        accounts::enable_keys(&app.ctx, &app.roles.relayer, &ada.owner, ada.id, &[]).await.unwrap();
        app.as_owner(&ada, ada.account, chain::calls::add_owner(&other)).await;
        assert_eq!(accounts::stored_owners(&app.ctx, ada.id).await.unwrap().len(), 1);
        let read = accounts::owners(&app.ctx, ada.id).await.unwrap();
        assert_eq!((read.provisioned, read.owners), (true, vec![ada.owner.owner(), other]));
        assert_eq!(accounts::stored_owners(&app.ctx, ada.id).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn an_invalid_change_of_owners_is_a_field_error() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let (first, other) = (ada.owner.owner(), Signer::random([7; 32]).unwrap().owner());
    for (change, detail) in [
        (OwnerChange::Add(first), "must not be an owner already"),
        (OwnerChange::Remove(other), "must be an owner"),
        (OwnerChange::Remove(first), "must not be the only owner"),
    ] {
        let refused = accounts::batch_to_change_owners(&app.ctx, ada.id, change, None).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ValidationFailed);
        assert!(format!("{refused:?}").contains(detail), "{refused:?}");
    }
    for n in 10..25 {
        let add = OwnerChange::Add(Signer::random([n; 32]).unwrap().owner());
        accounts::change_owners(&app.ctx, &app.roles.relayer, &ada.owner, ada.id, add).await.unwrap();
    }
    let refused = accounts::batch_to_change_owners(&app.ctx, ada.id, OwnerChange::Add(other), None).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::ValidationFailed);
}

async fn relay(
    app: &TestApp,
    user_id: UserId,
    change: OwnerChange,
    batch: &UnsignedBatch,
    signature: Bytes,
) -> Result<Receipt, AppError> {
    accounts::relay(&app.ctx, &app.roles.relayer, user_id, change.into(), batch, signature).await
}
