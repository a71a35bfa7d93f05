//! The cache of sessions.

use std::sync::Arc;

use domain::Timestamp;
use domain::ids::{KeyId, UserId};
use store::keys::Key;
use store::sessions::Session;
use store::users::User;
use store::{Store, StoreError};

use super::row_cache::RowCache;

/// A session, its user, and the user's web key.
#[derive(Debug)]
pub struct SessionRow {
    pub session: Session,
    pub user: User,
    /// The operator may have revoked it.
    pub web_key: Arc<Key>,
}

/// Sessions by the digest of their token.
#[derive(Debug, Default)]
pub struct SessionCache(RowCache<SessionRow>);

impl SessionCache {
    /// Removes the sessions of a user that this process has changed.
    pub(crate) fn forget(&self, user_id: UserId) {
        self.0.forget(|row| row.user.id == user_id);
    }

    /// Removes the sessions whose web key this process has changed.
    pub(crate) fn forget_key(&self, id: KeyId) {
        self.0.forget(|row| row.web_key.id == id);
    }

    /// Returns the session with this token, as it was at most half a second before `asked_at`.
    pub(crate) async fn find(
        &self,
        store: &Store,
        digest: String,
        asked_at: Timestamp,
    ) -> Result<Option<Arc<SessionRow>>, StoreError> {
        let read = store.read(digest.clone(), |tx, digest| {
            Box::pin(async move {
                let Some((session, user)) = store::sessions::find_by_token(tx, digest).await? else {
                    return Ok(None);
                };
                // Signing in inserts a missing one.
                let Some(web_key) = store::keys::find_web(tx, user.id).await? else { return Ok(None) };
                Ok(Some(SessionRow { session, user, web_key: Arc::new(web_key) }))
            })
        });
        self.0.find(digest, asked_at, read).await
    }
}
