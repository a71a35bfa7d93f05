//! Batches that an account's owner signs.

use app::accounts;
use domain::key::Tier;
use domain::time::DAY_MS;
use futures::future::join_all;
use store::Store;
use testkit::{TestApp, key_of};

store::on_each_engine! {
    async fn batches_that_owners_send_at_the_same_time_all_take_effect(store: Store) {
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
async fn an_owners_signature_is_good_for_an_hour_also_on_a_chain_that_has_been_quiet_for_a_day() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    app.clock.advance(DAY_MS);
    let batch = accounts::batch_to_enable(&app.ctx, ada.id, &[], None).await.unwrap();
    assert_eq!(batch.deadline_s, app.ctx.now().s() + 3_600);
    accounts::enable_keys(&app.ctx, &app.roles.relayer, &ada.owner, ada.id, &[]).await.unwrap();
}
