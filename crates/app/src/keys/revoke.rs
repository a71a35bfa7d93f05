//! Revokes keys. Nothing new is signed after a revocation, in any process, because the transactions
//! that create, confirm and sign check the key. The executor of the account's lane also revokes the
//! delegation on chain.

use domain::ErrorCode;
use domain::delegation::DelegationEdit;
use domain::ids::KeyId;
use serde_json::json;
use store::audit_log::note;
use store::delegations::DelegationChange;
use store::keys::Key;

use crate::{AppError, Ctx, delegations};

#[derive(Debug, Clone)]
pub struct Revoked {
    pub key: Key,
    /// The revocation of the delegation on chain, in its current state.
    pub on_chain: DelegationChange,
}

/// Revokes a key and queues the revocation of its delegation on chain. No node is needed.
///
/// The revocation takes effect in this process at once and in others within a second; on chain it
/// follows later. Idempotent.
pub async fn revoke(ctx: &Ctx, id: KeyId) -> Result<Revoked, AppError> {
    let (now, change_id) = (ctx.now(), delegations::new_id(ctx));
    let revoked = ctx
        .store
        .try_write((id, now, change_id), |tx, (id, now, change_id)| {
            Box::pin(async move {
                let newly = store::keys::mark_revoked(tx, *id, *now).await?;
                let key = store::keys::find(tx, *id).await?.ok_or_else(|| {
                    AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.")
                })?;
                let act = super::act::on_key("key.revoke", *id).before(json!({ "revoked": !newly }));
                note(tx, act.after(json!({ "revokedAt": key.revoked_at })));
                let on_chain =
                    delegations::insert(tx, *change_id, &key, DelegationEdit::Revoke, *now).await?;
                Ok(Revoked { key, on_chain })
            })
        })
        .await;
    super::pause::forget(ctx, id);
    // Wake the executors: they reject the trades that wait to be signed.
    ctx.wake.executor.notify_waiters();
    revoked
}
