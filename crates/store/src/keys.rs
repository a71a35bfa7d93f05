//! API keys and their spending.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use alloy_primitives::Address;
use domain::ids::{KeyId, UserId};
use domain::key::{ChosenCaps, IpAllowlist, KeyKind, KeyLimits, LimitOverrides, Scopes, Tier};
use domain::{Timestamp, Usdc, limits};

use crate::bind::add_usdc;
use crate::engine::RowsRead;
use crate::record::{Record, record};
use crate::{Row, StoreError, Tx, params};

/// The maximum number of active API keys per user.
pub const MAX_ACTIVE: i64 = 5;

record! {
    /// An API key.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Key {
        pub id: KeyId,
        pub user_id: UserId,
        pub kind: KeyKind,
        /// The last four characters. `None` for old keys and for the web key.
        pub hint: Option<String>,
        /// The label chosen at creation.
        pub name: String,
        pub tier: Tier,
        pub scopes: Scopes,
        /// The index of the account's on-chain policy that the key spends from.
        pub key_index: u32,
        /// The networks from which the key may be used.
        pub ip_allowlist: IpAllowlist,
        /// The receiver of the key's events.
        pub webhook_url: Option<String>,
        pub overrides: LimitOverrides = ..,
        /// The lower caps that the user has chosen.
        pub chosen: ChosenCaps = ..,
        /// The time at which it expires.
        pub expires_at: Option<Timestamp> = "expires_at_ms",
        pub revoked_at: Option<Timestamp> = "revoked_at_ms",
        pub created_at: Timestamp = "created_at_ms",
        /// The time since which its trading is paused.
        pub paused_at: Option<Timestamp> = "paused_at_ms",
        /// The API version for requests that do not name one. `None` means the current version.
        pub api_version: Option<String>,
        /// The key is an agent's: it never confirms a trade, and only the account's owner confirms
        /// the large trades that it creates.
        pub is_agent: bool,
    }
}

record!(impl LimitOverrides {
    requests_per_minute: Option<u32>,
    daily: Option<Usdc> = "daily_limit_usdc_atomic",
    per_trade: Option<Usdc> = "per_trade_limit_usdc_atomic",
    high_value: Option<Usdc> = "high_value_usdc_atomic",
});

record!(impl ChosenCaps {
    daily: Option<Usdc> = "chosen_daily_usdc_atomic",
    per_trade: Option<Usdc> = "chosen_per_trade_usdc_atomic",
});

impl Key {
    /// The effective limits: those of the tier with this key's overrides, or the user's choice if
    /// that is lower.
    pub fn limits(&self) -> KeyLimits {
        self.chosen.lower(self.tier.limits(&self.overrides))
    }

    /// Returns the reason why the key cannot trade at `now`, if any.
    pub fn trading_stop(&self, now: Timestamp) -> Option<TradingStop> {
        TradingStop::of(self.revoked_at, self.expires_at, self.paused_at, now)
    }
}

/// The reason why a key cannot trade: no trade is created, confirmed or signed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TradingStop {
    Revoked,
    /// It has expired.
    Expired,
    /// The user has paused its trading.
    Paused,
}

/// The times that decide whether a key can trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StopTimes {
    revoked_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    paused_at: Option<Timestamp>,
}

impl StopTimes {
    /// The select list.
    pub(crate) const SELECTED: &'static str = "revoked_at_ms, expires_at_ms, paused_at_ms";

    pub(crate) fn of(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            revoked_at: row.get("revoked_at_ms")?,
            expires_at: row.get("expires_at_ms")?,
            paused_at: row.get("paused_at_ms")?,
        })
    }

    pub(crate) fn stop_at(&self, now: Timestamp) -> Option<TradingStop> {
        TradingStop::of(self.revoked_at, self.expires_at, self.paused_at, now)
    }
}

impl TradingStop {
    fn of(
        revoked_at: Option<Timestamp>,
        expires_at: Option<Timestamp>,
        paused_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Self> {
        // The most permanent reason is reported first.
        if revoked_at.is_some() {
            Some(Self::Revoked)
        } else if expires_at.is_some_and(|expires_at| expires_at <= now) {
            Some(Self::Expired)
        } else {
            paused_at.map(|_| Self::Paused)
        }
    }
}

/// Inserts a key and its spending row. `digest` is in hex, and `webhook_secret_sealed` is already
/// encrypted.
pub async fn insert(
    tx: &mut Tx,
    key: &Key,
    digest: &str,
    webhook_secret_sealed: &str,
) -> Result<(), StoreError> {
    const KEY: &str =
        "INSERT INTO keys (id, user_id, name, tier, scopes, digest, key_index, ip_allowlist, webhook_url,
        webhook_secret_sealed, requests_per_minute, daily_limit_usdc_atomic, per_trade_limit_usdc_atomic,
        high_value_usdc_atomic, expires_at_ms, created_at_ms, api_version, kind, hint, is_agent)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)";
    const SPEND: &str =
        "INSERT INTO key_spend (key_id, spent_usdc_atomic, since_ms, next_nonce) VALUES ($1, 0, $2, 1)";
    tx.exec(
        KEY,
        &params![
            key.id,
            key.user_id,
            &key.name,
            key.tier.as_str(),
            key.scopes.to_string(),
            digest,
            key.key_index,
            key.ip_allowlist.to_string(),
            key.webhook_url.as_deref(),
            webhook_secret_sealed,
            key.overrides.requests_per_minute,
            key.overrides.daily,
            key.overrides.per_trade,
            key.overrides.high_value,
            key.expires_at,
            key.created_at,
            key.api_version.as_deref(),
            key.kind.as_str(),
            key.hint.as_deref(),
            key.is_agent
        ],
    )
    .await?;
    tx.exec(SPEND, &params![key.id, limits::window_start(key.created_at)]).await.map(drop)
}

/// Returns the API key with this digest (hex), even if it is revoked or expired. Never returns a
/// web key, which authenticates no request.
pub async fn find_by_digest(tx: &mut Tx, digest: &str) -> Result<Option<Key>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", Key::COLUMNS, " FROM keys WHERE digest = $1 AND kind = 'api'");
    tx.find(SQL, &params![digest], Key::from_row).await
}

pub async fn find(tx: &mut Tx, id: KeyId) -> Result<Option<Key>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Key::COLUMNS, " FROM keys WHERE id = $1");
    tx.find(SQL, &params![id], Key::from_row).await
}

/// Returns the user's web key, even if it is revoked.
pub async fn find_web(tx: &mut Tx, user_id: UserId) -> Result<Option<Key>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", Key::COLUMNS, " FROM keys WHERE user_id = $1 AND kind = 'web'");
    tx.find(SQL, &params![user_id], Key::from_row).await
}

/// Sets the caps that the user has chosen for a key. Returns false if the user has no such key.
pub async fn set_chosen_caps(
    tx: &mut Tx,
    user_id: UserId,
    id: KeyId,
    chosen: &ChosenCaps,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE keys SET chosen_daily_usdc_atomic = $1, chosen_per_trade_usdc_atomic = $2
        WHERE id = $3 AND user_id = $4";
    Ok(tx.exec(SQL, &params![chosen.daily, chosen.per_trade, id, user_id]).await? == 1)
}

/// Lists the digests (hex) and allowlists of the keys that have an allowlist and are not revoked.
pub async fn list_allowlists(tx: &mut Tx) -> Result<Vec<(String, IpAllowlist)>, StoreError> {
    const SQL: &str =
        "SELECT digest, ip_allowlist FROM keys WHERE ip_allowlist <> '' AND revoked_at_ms IS NULL";
    tx.list(SQL, &[], |row| Ok((row.get("digest")?, row.get("ip_allowlist")?))).await
}

/// Lists the keys of a user, oldest first, including revoked ones, at most 1,000. Keys that work are
/// always among them: they are few.
pub async fn list(tx: &mut Tx, user_id: UserId) -> Result<Vec<Key>, StoreError> {
    // The keys that end last come before those that have expired.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Key::COLUMNS,
        " FROM keys WHERE user_id = $1 ORDER BY CASE WHEN revoked_at_ms IS NULL THEN 0 ELSE 1 END,
        COALESCE(expires_at_ms, 9223372036854775807) DESC, key_index LIMIT 1000"
    );
    let mut keys = tx.list(SQL, &params![user_id], Key::from_row).await?;
    keys.sort_by_key(|key| key.key_index);
    Ok(keys)
}

/// Returns the number of a user's API keys that are active at `now`, and the next free key index.
pub async fn count_active(tx: &mut Tx, user_id: UserId, now: Timestamp) -> Result<(i64, u32), StoreError> {
    const SQL: &str =
        "SELECT COUNT(CASE WHEN kind = 'api' AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > $1)
        THEN 1 END) AS active, COALESCE(MAX(key_index) + 1, 0) AS next_index FROM keys WHERE user_id = $2";
    // The next index counts all keys: the index of a revoked key is never reused.
    let counted =
        tx.find(SQL, &params![now, user_id], |row| Ok((row.get("active")?, row.get("next_index")?))).await?;
    Ok(counted.unwrap_or((0, 0)))
}

/// Revokes a key. Returns false if it was already revoked.
pub async fn mark_revoked(tx: &mut Tx, id: KeyId, now: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE keys SET revoked_at_ms = $1 WHERE id = $2 AND revoked_at_ms IS NULL";
    Ok(tx.exec(SQL, &params![now, id]).await? == 1)
}

/// Marks a key as an agent's. Returns false if it was already marked.
pub async fn mark_agent(tx: &mut Tx, id: KeyId) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE keys SET is_agent = 1 WHERE id = $1 AND is_agent = 0";
    Ok(tx.exec(SQL, &params![id]).await? == 1)
}

/// Sets the receiver of a key's events. Returns false if the key does not exist.
pub async fn set_webhook_url(tx: &mut Tx, id: KeyId, url: Option<&str>) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE keys SET webhook_url = $1 WHERE id = $2";
    Ok(tx.exec(SQL, &params![url, id]).await? == 1)
}

/// Sets the addresses that may use a key, and its end. Returns false if the key does not exist.
pub async fn set_access(
    tx: &mut Tx,
    id: KeyId,
    ip_allowlist: &IpAllowlist,
    expires_at: Option<Timestamp>,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE keys SET ip_allowlist = $1, expires_at_ms = $2 WHERE id = $3";
    Ok(tx.exec(SQL, &params![ip_allowlist.to_string(), expires_at, id]).await? == 1)
}

/// Pauses a key's trading. Returns the time since which it is paused, which a second call does not
/// change.
pub async fn mark_paused(tx: &mut Tx, id: KeyId, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str =
        "UPDATE keys SET paused_at_ms = COALESCE(paused_at_ms, $1) WHERE id = $2 RETURNING paused_at_ms";
    tx.find(SQL, &params![now, id], |row| row.only()).await
}

/// Resumes a key's trading. Returns false if it was not paused.
pub async fn mark_resumed(tx: &mut Tx, id: KeyId) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE keys SET paused_at_ms = NULL WHERE id = $1 AND paused_at_ms IS NOT NULL";
    Ok(tx.exec(SQL, &params![id]).await? == 1)
}

/// Returns the reason why a key cannot trade at `now`, if any.
pub async fn find_trading_stop(
    tx: &mut Tx,
    id: KeyId,
    now: Timestamp,
) -> Result<Option<TradingStop>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", StopTimes::SELECTED, " FROM keys WHERE id = $1");
    let stop = tx.find(SQL, &params![id], |row| Ok(StopTimes::of(row)?.stop_at(now))).await?;
    Ok(stop.flatten())
}

/// Lists the keys that cannot trade at `now` although they have validating trades in a lane.
pub async fn list_stopped_validating(
    tx: &mut Tx,
    lane: u16,
    now: Timestamp,
) -> Result<Vec<KeyId>, StoreError> {
    // For a join, PostgreSQL would read all keys of the service.
    const SQL: &str = "SELECT DISTINCT key_id FROM trades
        WHERE lane = $1 AND status = 'validating' AND ended_at_ms IS NULL AND (SELECT 1 FROM keys WHERE keys.id = trades.key_id
        AND (paused_at_ms IS NOT NULL OR revoked_at_ms IS NOT NULL OR expires_at_ms <= $2)) = 1";
    tx.list(SQL, &params![lane, now], |row| row.only()).await
}

/// Returns those of these keys that are revoked, or expired at `now`.
pub async fn list_ended_of(tx: &mut Tx, ids: &[KeyId], now: Timestamp) -> Result<Vec<KeyId>, StoreError> {
    const SQL: &str = "SELECT k.id FROM ROWS($1 TEXT, $2 BIGINT) AS x(id, at_ms) CROSS JOIN keys k
        WHERE k.id = x.id AND (k.revoked_at_ms IS NOT NULL OR k.expires_at_ms <= x.at_ms)";
    let rows = ids.iter().map(|id| params![*id, now].to_vec()).collect();
    tx.list_rows(SQL, rows, |row| row.get("id")).await
}

/// A revoked or expired key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedKey {
    pub id: KeyId,
    pub user_id: UserId,
}

/// Lists the keys that were revoked or that expired between `since` and `now`, at most `limit` of
/// each kind.
pub async fn list_ended(
    tx: &mut Tx,
    since: Timestamp,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<EndedKey>, StoreError> {
    const REVOKED: &str =
        "SELECT id, user_id FROM keys WHERE revoked_at_ms > $1 ORDER BY revoked_at_ms DESC LIMIT $2";
    // A revoked key is listed above, even if it has also expired.
    const EXPIRED: &str = "SELECT id, user_id FROM keys WHERE expires_at_ms > $1 AND expires_at_ms <= $2
        AND revoked_at_ms IS NULL ORDER BY expires_at_ms DESC LIMIT $3";
    let ended = |row: &Row<'_>| Ok(EndedKey { id: row.get("id")?, user_id: row.get("user_id")? });
    let mut keys = tx.list(REVOKED, &params![since, limit], ended).await?;
    keys.extend(tx.list(EXPIRED, &params![since, now, limit], ended).await?);
    Ok(keys)
}

/// Returns the key's spending in the 24 hours that end at `now`. The row stays locked until the
/// transaction ends.
///
/// The sum is stored with the start of its window. Moving the window reads only the trades between
/// the old and the new start. The window can also move back, when a clock is corrected or when an
/// earlier request gets the lock later. Trades that had left the sum are then added again.
pub async fn lock_spent(tx: &mut Tx, key_id: KeyId, now: Timestamp) -> Result<Usdc, StoreError> {
    const LOCK: &str =
        "UPDATE key_spend SET since_ms = since_ms WHERE key_id = $1 RETURNING spent_usdc_atomic, since_ms";
    // Reservations are read and not the original amounts, because an ended trade reserves only what
    // it spent.
    const BETWEEN: &str =
        "SELECT CAST(COALESCE(SUM(reserved_usdc_atomic), 0) AS BIGINT) AS spent_usdc_atomic FROM trades
        WHERE key_id = $1 AND created_at_ms > $2 AND created_at_ms <= $3 AND reserved_usdc_atomic > 0";
    const MOVE: &str = "UPDATE key_spend SET spent_usdc_atomic = $1, since_ms = $2 WHERE key_id = $3";
    let start = limits::window_start(now);
    let (spent, since): (Usdc, Timestamp) = tx
        .find(LOCK, &params![key_id], |row| Ok((row.get("spent_usdc_atomic")?, row.get("since_ms")?)))
        .await?
        .ok_or_else(|| StoreError::missing("key_spend"))?;
    if start == since {
        return Ok(spent);
    }
    let between = params![key_id, since.min(start), since.max(start)];
    let between = tx.find(BETWEEN, &between, |row| row.only()).await?.unwrap_or_default();
    let spent = if start > since {
        spent.saturating_sub(between)
    } else {
        spent.checked_add(between).ok_or_else(|| StoreError::driver("a key's spend is out of range"))?
    };
    tx.exec(MOVE, &params![spent, start, key_id]).await?;
    Ok(spent)
}

/// Adds a buy to the key's spending.
pub async fn add_spent(tx: &mut Tx, key_id: KeyId, amount: Usdc) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE key_spend SET spent_usdc_atomic = spent_usdc_atomic + $1 WHERE key_id = $2";
    tx.exec(SQL, &params![amount, key_id]).await.map(drop)
}

/// Subtracts amounts of buys that were created at these times, except those that have left the
/// window. The row of each key is locked in any case, so that the window does not move across a
/// trade whose reservation is being changed.
pub(crate) async fn give_back_spent(
    tx: &mut Tx,
    amounts: &[(KeyId, Usdc, Timestamp)],
) -> Result<(), StoreError> {
    const LOCK: &str = "SELECT s.key_id, s.since_ms FROM ROWS($1 TEXT) AS x(key_id) CROSS JOIN key_spend s
        WHERE s.key_id = x.key_id ORDER BY s.key_id FOR UPDATE OF s";
    const SQL: &str = "UPDATE key_spend SET spent_usdc_atomic = key_spend.spent_usdc_atomic - x.amount
        FROM ROWS($1 TEXT, $2 BIGINT) AS x(key_id, amount) WHERE key_spend.key_id = x.key_id";
    let mut of_keys: BTreeMap<KeyId, Vec<(Usdc, Timestamp)>> = BTreeMap::new();
    for (key_id, amount, created_at) in amounts {
        of_keys.entry(*key_id).or_default().push((*amount, *created_at));
    }
    if of_keys.is_empty() {
        return Ok(());
    }
    let keys = of_keys.keys().map(|key_id| params![*key_id].to_vec()).collect();
    let locked: Vec<(KeyId, Timestamp)> =
        tx.list_rows(LOCK, keys, |row| Ok((row.get("key_id")?, row.get("since_ms")?))).await?;
    let mut rows = Vec::with_capacity(locked.len());
    for (key_id, since) in locked {
        let amounts = of_keys.get(&key_id).into_iter().flatten();
        let mut inside = amounts.filter(|(_, created_at)| *created_at > since);
        let sum = inside.try_fold(Usdc::ZERO, |sum, (amount, _)| add_usdc(sum, *amount))?;
        rows.push(params![key_id, sum].to_vec());
    }
    tx.queue_rows(SQL, rows).await
}

/// The result of taking a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nonce {
    /// The key's nonce for the next trade.
    Taken(u32),
    /// The key cannot trade.
    Stopped,
    /// The chain has already seen this or a higher nonce: the database lacks trades that were
    /// signed.
    UsedOnChain,
}

/// Takes the next nonce of the delegation of each of these keys, in order. A key may occur several
/// times. Its nonce must be above the given one, the highest that the chain has seen from the key.
///
/// The keys stay locked until the transaction ends. Nothing is therefore signed after a revocation
/// is stored, even if the caller read the key earlier.
pub async fn take_nonces(
    tx: &mut Tx,
    wanted: &[(KeyId, u32)],
    now: Timestamp,
) -> Result<Vec<Nonce>, StoreError> {
    const STOPS: &str = const_format::concatcp!(
        "SELECT k.id, ",
        StopTimes::SELECTED,
        " FROM ROWS($1 TEXT) AS x(id) CROSS JOIN keys k WHERE k.id = x.id ORDER BY k.id FOR SHARE OF k"
    );
    const NEXT: &str = "SELECT s.key_id, s.next_nonce FROM ROWS($1 TEXT) AS x(key_id) CROSS JOIN key_spend s
        WHERE s.key_id = x.key_id ORDER BY s.key_id FOR UPDATE OF s";
    const SQL: &str = "UPDATE key_spend SET next_nonce = x.new_nonce
        FROM ROWS($1 TEXT, $2 BIGINT) AS x(key_id, new_nonce) WHERE key_spend.key_id = x.key_id";
    let keys: BTreeSet<KeyId> = wanted.iter().map(|(key_id, _)| *key_id).collect();
    let rows: Vec<_> = keys.iter().map(|key_id| params![*key_id].to_vec()).collect();
    let mut stops: HashMap<KeyId, Option<TradingStop>> = HashMap::new();
    let mut next: BTreeMap<KeyId, u32> = BTreeMap::new();
    let stopped = RowsRead::new(STOPS, rows.clone(), |row| {
        stops.insert(row.get("id")?, StopTimes::of(row)?.stop_at(now));
        Ok(())
    });
    let free = RowsRead::new(NEXT, rows, |row| {
        next.insert(row.get("key_id")?, row.get("next_nonce")?);
        Ok(())
    });
    tx.read_rows(vec![stopped, free]).await?;
    let before = next.clone();
    let mut taken = Vec::with_capacity(wanted.len());
    for (key_id, highest_used) in wanted {
        let nonce = next.get_mut(key_id).ok_or_else(|| StoreError::missing("key_spend"))?;
        taken.push(if stops.get(key_id).copied().flatten().is_some() {
            Nonce::Stopped
        } else if *nonce <= *highest_used {
            Nonce::UsedOnChain
        } else {
            *nonce += 1;
            Nonce::Taken(*nonce - 1)
        });
    }
    let grown = next.iter().filter(|(key_id, nonce)| before.get(key_id) != Some(nonce));
    tx.queue_rows(SQL, grown.map(|(key_id, nonce)| params![*key_id, *nonce].to_vec()).collect()).await?;
    Ok(taken)
}

record! {
    /// A key that may sign trades, and the account that it spends from.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SigningKey {
        pub id: KeyId = "keys.id",
        /// The account's address.
        pub account: Address = "address",
        /// The index of the key's policy in the account.
        pub key_index: u32,
        /// The nonce of the key's next trade.
        pub next_nonce: u32,
    }
}

/// Lists the keys that are not revoked and whose user has an account, sorted by id, starting after
/// `after`.
pub async fn list_signing(
    tx: &mut Tx,
    after: Option<KeyId>,
    limit: u32,
) -> Result<Vec<SigningKey>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        SigningKey::COLUMNS,
        " FROM keys JOIN accounts ON accounts.user_id = keys.user_id JOIN key_spend ON key_id = keys.id
        WHERE keys.id > $1 AND revoked_at_ms IS NULL ORDER BY keys.id LIMIT $2"
    );
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![after, limit], SigningKey::from_row).await
}

/// Raises a key's next nonce to `next`. Returns false if it was not lower.
pub async fn raise_nonce(tx: &mut Tx, id: KeyId, next: u32) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE key_spend SET next_nonce = $1 WHERE key_id = $2 AND next_nonce < $1";
    Ok(tx.exec(SQL, &params![next, id]).await? == 1)
}

/// Returns the user's key with this index.
pub async fn find_by_index(
    tx: &mut Tx,
    user_id: UserId,
    key_index: u32,
) -> Result<Option<KeyId>, StoreError> {
    const SQL: &str = "SELECT id FROM keys WHERE user_id = $1 AND key_index = $2";
    tx.find(SQL, &params![user_id, key_index], |row| row.only()).await
}

/// Returns the key's spending in the 24 hours that end at `now`, for display. Corrects the stored
/// sum by the trades between the start of its window and the start of this one. Locks nothing.
pub async fn find_spent(tx: &mut Tx, key_id: KeyId, now: Timestamp) -> Result<Usdc, StoreError> {
    const SQL: &str = "SELECT CAST(s.spent_usdc_atomic
        - COALESCE((SELECT SUM(t.reserved_usdc_atomic) FROM trades t WHERE t.key_id = s.key_id
            AND t.created_at_ms > s.since_ms AND t.created_at_ms <= $1 AND t.reserved_usdc_atomic > 0), 0)
        + COALESCE((SELECT SUM(t.reserved_usdc_atomic) FROM trades t WHERE t.key_id = s.key_id
            AND t.created_at_ms > $1 AND t.created_at_ms <= s.since_ms AND t.reserved_usdc_atomic > 0), 0)
        AS BIGINT) AS spent_usdc_atomic FROM key_spend s WHERE s.key_id = $2";
    let spent = tx.find(SQL, &params![limits::window_start(now), key_id], |row| row.only()).await?;
    Ok(spent.unwrap_or_default())
}
