//! A cache of all IP allowlists, so that a request from a locked-out address is rejected without a
//! lookup of its key.

use std::collections::HashMap;
use std::net::IpAddr;

use domain::Timestamp;
use domain::key::IpAllowlist;
use store::{Store, StoreError};
use tokio::sync::Mutex;

use crate::limits::KeyMark;

/// The maximum age of the cache. It is only refreshed while locked-out addresses send requests, at
/// most once per this time.
const MAX_AGE_MS: i64 = 10_000;

#[derive(Debug, Default)]
pub struct Allowlists(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    read_at: Option<Timestamp>,
    by_key: HashMap<KeyMark, IpAllowlist>,
}

impl Allowlists {
    /// Returns whether the key has an allowlist that includes the address.
    pub(crate) async fn name(&self, store: &Store, key: KeyMark, ip: IpAddr, now: Timestamp) -> bool {
        // Locked during the read, so that concurrent requests wait for the same result instead of
        // querying too.
        let mut lists = self.0.lock().await;
        let age_ms = lists.read_at.map(|read_at| now.since_ms(read_at));
        if !age_ms.is_some_and(|age_ms| (0..MAX_AGE_MS).contains(&age_ms)) {
            // Set before the read: a failed read is not repeated for every request either.
            lists.read_at = Some(now);
            match read(store).await {
                Ok(by_key) => lists.by_key = by_key,
                Err(error) => tracing::warn!(%error, "could not read the keys' allowlists"),
            }
        }
        lists.by_key.get(&key).is_some_and(|list| list.allows(ip))
    }
}

async fn read(store: &Store) -> Result<HashMap<KeyMark, IpAllowlist>, StoreError> {
    let rows = store.read((), |tx, ()| Box::pin(store::keys::list_allowlists(tx))).await;
    let mark = |digest: &str| {
        let mut bytes = [0; 32];
        alloy_primitives::hex::decode_to_slice(digest, &mut bytes).ok()?;
        Some(KeyMark::of(&bytes))
    };
    Ok(rows?.into_iter().filter_map(|(digest, list)| Some((mark(&digest)?, list))).collect())
}
