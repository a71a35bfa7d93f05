//! The allowlists of all keys that have one, so that a request from a locked-out address is judged without a look-up of its key.

use std::collections::HashMap;
use std::net::IpAddr;

use domain::Timestamp;
use domain::key::IpAllowlist;
use store::StoreError;
use tokio::sync::Mutex;

use crate::Ctx;
use crate::limits::KeyMark;

/// How old the lists may be. They are read only while locked-out addresses send requests, however many they send.
const MAX_AGE_MS: i64 = 10_000;

/// The lists by key.
#[derive(Debug, Default)]
pub struct Allowlists(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    read_at: Option<Timestamp>,
    by_key: HashMap<KeyMark, IpAllowlist>,
}

/// Whether the key has an allowlist that names the address.
pub(super) async fn name(ctx: &Ctx, key: KeyMark, ip: IpAddr, now: Timestamp) -> bool {
    // Held while the lists are read: others wait for the same answer instead of asking too.
    let mut lists = ctx.allowlists.0.lock().await;
    let age_ms = lists.read_at.map(|read_at| now.since_ms(read_at));
    if !age_ms.is_some_and(|age_ms| (0..MAX_AGE_MS).contains(&age_ms)) {
        lists.read_at = Some(now);
        match read(ctx).await {
            Ok(by_key) => lists.by_key = by_key,
            Err(error) => tracing::warn!(%error, "the keys' allowlists could not be read"),
        }
    }
    lists.by_key.get(&key).is_some_and(|list| list.allows(ip))
}

async fn read(ctx: &Ctx) -> Result<HashMap<KeyMark, IpAllowlist>, StoreError> {
    let rows: Result<Vec<_>, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::keys::list_allowlists(tx))).await;
    let mark = |digest: &str| {
        let mut bytes = [0; 32];
        alloy_primitives::hex::decode_to_slice(digest, &mut bytes).ok()?;
        Some(KeyMark::of(&bytes))
    };
    Ok(rows?.into_iter().filter_map(|(digest, list)| Some((mark(&digest)?, list))).collect())
}
