//! The cache of key rows.

use std::sync::Arc;

use domain::Timestamp;
use domain::ids::KeyId;
use store::keys::Key;
use store::{Store, StoreError};

use super::row_cache::RowCache;

/// Key rows by the digest of their key.
#[derive(Debug, Default)]
pub struct KeyCache(RowCache<Key>);

impl KeyCache {
    /// Returns the number of database reads.
    pub fn look_ups(&self) -> u64 {
        self.0.look_ups()
    }

    /// Removes a key that this process has changed.
    pub(crate) fn forget(&self, id: KeyId) {
        self.0.forget(|key| key.id == id);
    }

    /// Returns the key with this digest, as it was at most half a second before `asked_at`.
    pub(crate) async fn find(
        &self,
        store: &Store,
        digest: String,
        asked_at: Timestamp,
    ) -> Result<Option<Arc<Key>>, StoreError> {
        let read = store.read(digest.clone(), |tx, digest| Box::pin(store::keys::find_by_digest(tx, digest)));
        self.0.find(digest, asked_at, read).await
    }
}
