//! Revoking a key. What was not signed before is never signed after it, in any process: the statements that create, confirm
//! and sign ask for the key. Its delegation on chain is revoked too, by the executor of the account's lane.

use domain::ErrorCode;
use domain::delegation::Change;
use domain::ids::KeyId;
use serde_json::json;
use store::audit_log::note;
use store::delegations::DelegationChange;
use store::keys::Key;

use crate::{AppError, Ctx, delegations};

/// A key that was revoked.
#[derive(Debug, Clone)]
pub struct Revoked {
    /// The key.
    pub key: Key,
    /// The revocation of its delegation on chain, as it is now.
    pub on_chain: DelegationChange,
}

/// Revokes a key and queues the revocation of its delegation on chain, whether a node answers or not. The revocation is
/// effective in this process at once and in all others within a second; on chain it follows. Revoking again does no harm.
pub async fn revoke(ctx: &Ctx, id: KeyId) -> Result<Revoked, AppError> {
    let (now, change_id, lanes) = (ctx.now(), delegations::new_id(ctx), ctx.config.lanes);
    let revoked = ctx
        .store
        .write((id, now, change_id, lanes), |tx, (id, now, change_id, lanes)| {
            Box::pin(async move {
                let newly = store::keys::mark_revoked(tx, *id, *now).await?;
                let key = store::keys::find(tx, *id).await?.ok_or_else(|| {
                    AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.")
                })?;
                let act = super::act::on_key("key.revoke", *id).before(json!({ "revoked": !newly }));
                note(tx, act.after(json!({ "revokedAt": key.revoked_at })));
                let on_chain =
                    delegations::insert(tx, *change_id, &key, Change::Revoke, *lanes, *now).await?;
                Ok(Revoked { key, on_chain })
            })
        })
        .await;
    ctx.key_cache.forget(id);
    // What waits to be signed is rejected at once.
    ctx.wake.executor.notify_waiters();
    revoked
}
