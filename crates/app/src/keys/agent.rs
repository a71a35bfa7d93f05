//! Keys of agents. An agent's key confirms no trade, and only the account's owner confirms the large
//! trades that it creates.

use domain::ErrorCode;
use domain::ids::KeyId;
use serde_json::json;
use store::audit_log::note;
use store::keys::Key;

use crate::{AppError, Ctx};

/// Marks a key as an agent's. Idempotent. The mark stays: whoever could remove it could confirm the
/// trades that the agent has created.
pub async fn mark_agent(ctx: &Ctx, id: KeyId) -> Result<Key, AppError> {
    let marked = ctx
        .store
        .try_write(id, |tx, id| {
            Box::pin(async move {
                let newly = store::keys::mark_agent(tx, *id).await?;
                let key = store::keys::find(tx, *id).await?.ok_or_else(|| {
                    AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.")
                })?;
                if newly {
                    let act = super::act::on_key("key.agent", *id).before(json!({ "isAgent": false }));
                    note(tx, act.after(json!({ "isAgent": true })));
                }
                Ok::<_, AppError>(key)
            })
        })
        .await;
    super::pause::forget(ctx, id);
    marked
}
