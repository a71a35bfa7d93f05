//! Encrypted secrets when the key is rotated while the service runs.

use std::sync::Arc;

use app::Ctx;
use app::encryption::{SealingKey, SealingKeys};
use app::keys::{IssueKey, IssuedKey, issue};
use app::webhooks::rewrap::{AT_ONCE, Rewrapped, read, rewrap, write};
use app::webhooks::secret::{seal, unseal};
use domain::ids::KeyId;
use domain::key::Tier;
use domain::webhook::{WebhookSecret, previous_expires_at};
use store::Store;
use store::sealed::{Column, Sealed, list_not_under, replace};
use testkit::{TestApp, key_of};

/// The key that a test service encrypts with.
fn old_key() -> SealingKey {
    SealingKey { id: "test".to_owned(), key: [7; 32].into() }
}

fn new_key() -> SealingKey {
    SealingKey { id: "new".to_owned(), key: [8; 32].into() }
}

/// Returns the same service with these keys.
fn with_keys(ctx: &Ctx, keys: impl Into<SealingKeys>) -> Ctx {
    let mut ctx = ctx.clone();
    let mut config = ctx.config.as_ref().clone();
    config.sealing_keys = keys.into();
    ctx.config = Arc::new(config);
    ctx
}

/// Returns the service that encrypts with the new key and still decrypts with the old one.
fn with_both(ctx: &Ctx) -> Ctx {
    with_keys(ctx, SealingKeys::new(new_key(), vec![old_key()]))
}

/// Issues this many keys, sorted by id.
async fn issued(app: &TestApp, count: usize) -> Vec<IssuedKey> {
    let mut keys = Vec::new();
    for user in 0..count.div_ceil(5) {
        let user = app.user(&format!("user {user}")).await;
        for _ in 0..(count - keys.len()).min(5) {
            keys.push(issue(&app.ctx, IssueKey { ..key_of(&user, Tier::Mm) }).await.unwrap());
        }
    }
    keys.sort_by_key(|key| key.key.id);
    keys
}

/// Returns every key's secret as stored.
async fn stored(ctx: &Ctx) -> Vec<Sealed> {
    let listed = ctx
        .store
        .read((), |tx, ()| Box::pin(list_not_under(tx, Column::WebhookSecret, "no key's name", None, 1_000)))
        .await;
    listed.unwrap()
}

/// Returns the decrypted secrets.
async fn opened(ctx: &Ctx) -> Vec<String> {
    let open = |sealed: &Sealed| unseal(ctx, sealed.key_id, &sealed.text).unwrap().expose().to_owned();
    stored(ctx).await.iter().map(open).collect()
}

/// Rotates a key's secret. The previous one remains valid for a week.
async fn rotate(ctx: &Ctx, key_id: KeyId, secret: &WebhookSecret) {
    let (sealed, now) = (seal(ctx, key_id, secret).unwrap(), ctx.now());
    let rotated = ctx
        .store
        .write((key_id, sealed), move |tx, (key_id, sealed)| {
            Box::pin(store::webhooks::rotate(tx, *key_id, sealed, now, previous_expires_at(now)))
        })
        .await;
    rotated.unwrap();
}

/// Returns the decrypted secret that a key had before its rotation.
async fn previous(ctx: &Ctx, key_id: KeyId) -> Option<String> {
    let found =
        ctx.store.write(key_id, |tx, key_id| Box::pin(store::webhooks::find_secrets(tx, *key_id))).await;
    let (text, _) = found.unwrap().unwrap().previous?;
    unseal(ctx, key_id, &text).ok().map(|secret| secret.expose().to_owned())
}

async fn put(ctx: &Ctx, before: Sealed, text: String) -> bool {
    let put = ctx
        .store
        .write((before, text), |tx, (before, text)| {
            Box::pin(replace(tx, Column::WebhookSecret, before, text))
        })
        .await;
    put.unwrap()
}

fn complete(rewrapped: u64) -> Rewrapped {
    Rewrapped { rewrapped, unreadable: Vec::new(), complete: true }
}

store::on_each_engine! {
    async fn every_secret_then_decrypts_only_under_the_new_key(store: Store) {
        let app = TestApp::with().on(store).start().await;
        // More than one batch.
        let keys = issued(&app, AT_ONCE as usize + 3).await;
        let (both, new) = (with_both(&app.ctx), with_keys(&app.ctx, new_key()));
        assert_eq!(rewrap(&both).await.unwrap(), complete(keys.len() as u64));
        let secrets: Vec<_> = keys.iter().map(|key| key.webhook_secret.expose().to_owned()).collect();
        assert_eq!(opened(&new).await, secrets);
        // Nothing is left to do, and nothing is repeated.
        let before = stored(&both).await;
        assert_eq!(rewrap(&both).await.unwrap(), complete(0));
        assert_eq!(stored(&both).await, before);
    }

    async fn a_concurrent_rotation_takes_precedence(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let keys = issued(&app, 3).await;
        let both = with_both(&app.ctx);
        let batch = read(&both, Column::WebhookSecret, None).await.unwrap();
        let rotated = WebhookSecret::from_bytes([5; 32]);
        rotate(&both, keys[1].key.id, &rotated).await;
        assert_eq!(write(&both, batch).await.unwrap(), 2);
        assert_eq!(opened(&both).await, [
            keys[0].webhook_secret.expose(),
            rotated.expose(),
            keys[2].webhook_secret.expose(),
        ]);
        // The rotation moved the old text before it could be replaced. The next pass finds it in
        // its new column.
        let new = with_keys(&app.ctx, new_key());
        assert_eq!(previous(&new, keys[1].key.id).await, None);
        assert_eq!(rewrap(&both).await.unwrap(), complete(1));
        assert_eq!(previous(&new, keys[1].key.id).await.as_deref(), Some(keys[1].webhook_secret.expose()));
        assert_eq!(rewrap(&both).await.unwrap(), complete(0));
    }

    async fn secrets_encrypted_under_the_old_key_meanwhile_are_included(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let keys = issued(&app, 2).await;
        let both = with_both(&app.ctx);
        assert_eq!(rewrap(&both).await.unwrap(), complete(2));
        let rotated = WebhookSecret::from_bytes([5; 32]);
        // A service that was not restarted yet.
        let before = stored(&both).await.remove(0);
        let sealed = seal(&app.ctx, keys[0].key.id, &rotated).unwrap();
        assert!(put(&both, before, sealed).await);
        assert_eq!(rewrap(&both).await.unwrap(), complete(1));
        assert_eq!(opened(&with_keys(&app.ctx, new_key())).await[0], rotated.expose());
    }

    async fn undecryptable_secrets_are_left_unchanged_and_reported(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let keys = issued(&app, 3).await;
        // Encrypted for another row, so it cannot be decrypted.
        let [first, second, _] = <[Sealed; 3]>::try_from(stored(&app.ctx).await).unwrap();
        assert!(put(&app.ctx, second, first.text.clone()).await);
        let both = with_both(&app.ctx);
        let unreadable = vec![keys[1].key.id];
        assert_eq!(
            rewrap(&both).await.unwrap(),
            Rewrapped { rewrapped: 2, unreadable: unreadable.clone(), complete: true }
        );
        assert_eq!(stored(&both).await[1].text, first.text);
        assert_eq!(rewrap(&both).await.unwrap(), Rewrapped { unreadable, ..complete(0) });
    }
}
