//! API keys and what they have spent.

use domain::ids::{KeyId, UserId};
use domain::key::{IpAllowlist, KeyLimits, LimitOverrides, Scopes, Tier};
use domain::{Timestamp, Usdc, limits};

use crate::{Row, StoreError, Tx, params};

/// The most active keys of one user.
pub const MAX_ACTIVE: i64 = 5;

/// An API key's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key's id.
    pub id: KeyId,
    /// Whose it is.
    pub user_id: UserId,
    /// The label chosen at issue.
    pub name: String,
    /// What it was issued as.
    pub tier: Tier,
    /// What it may do.
    pub scopes: Scopes,
    /// Which policy of the account it spends on chain.
    pub key_index: u32,
    /// Where it may be used from.
    pub ip_allowlist: IpAllowlist,
    /// Where its events go.
    pub webhook_url: Option<String>,
    /// Limits set on this key.
    pub overrides: LimitOverrides,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was issued.
    pub created_at: Timestamp,
    /// Since when its trading is paused.
    pub paused_at: Option<Timestamp>,
    /// The version of the API that it speaks where a request names none; the current one where absent.
    pub api_version: Option<String>,
}

impl Key {
    /// The limits that apply to this key.
    pub fn limits(&self) -> KeyLimits {
        self.tier.limits(&self.overrides)
    }

    /// Why the key makes no trade at `now`, if it makes none.
    pub fn trading_stop(&self, now: Timestamp) -> Option<TradingStop> {
        TradingStop::of(self.revoked_at, self.expires_at, self.paused_at, now)
    }
}

/// Why a key makes no trade: none is created, confirmed or signed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TradingStop {
    /// It was revoked.
    Revoked,
    /// It is past its end.
    Expired,
    /// Its holder has paused its trading.
    Paused,
}

impl TradingStop {
    fn of(
        revoked_at: Option<Timestamp>,
        expires_at: Option<Timestamp>,
        paused_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Self> {
        if revoked_at.is_some() {
            Some(Self::Revoked)
        } else if expires_at.is_some_and(|expires_at| expires_at <= now) {
            Some(Self::Expired)
        } else {
            paused_at.map(|_| Self::Paused)
        }
    }
}

const COLUMNS: &str = "id, user_id, name, tier, scopes, key_index, ip_allowlist, webhook_url, requests_per_minute,
    daily_limit_usdc_atomic, per_trade_limit_usdc_atomic, high_value_usdc_atomic, expires_at_ms, revoked_at_ms,
    created_at_ms, paused_at_ms, api_version";

fn from_row(row: &Row<'_>) -> Result<Key, StoreError> {
    Ok(Key {
        id: row.parse(0)?,
        user_id: row.parse(1)?,
        name: row.text(2)?,
        tier: row.parse(3)?,
        scopes: row.parse(4)?,
        key_index: row.number(5)?,
        ip_allowlist: IpAllowlist::from_stored(&row.text(6)?)
            .map_err(|_| row.corrupt(6, "a list of networks"))?,
        webhook_url: row.opt_text(7)?,
        overrides: LimitOverrides {
            requests_per_minute: row.opt_number(8)?,
            daily: row.opt_usdc(9)?,
            per_trade: row.opt_usdc(10)?,
            high_value: row.opt_usdc(11)?,
        },
        expires_at: row.opt_timestamp(12)?,
        revoked_at: row.opt_timestamp(13)?,
        created_at: row.timestamp(14)?,
        paused_at: row.opt_timestamp(15)?,
        api_version: row.opt_text(16)?,
    })
}

/// Adds a key and its spend row. `digest` is hex; `webhook_secret_sealed` is already encrypted.
pub async fn insert(
    tx: &mut Tx,
    key: &Key,
    digest: &str,
    webhook_secret_sealed: &str,
) -> Result<(), StoreError> {
    const KEY: &str =
        "INSERT INTO keys (id, user_id, name, tier, scopes, digest, key_index, ip_allowlist, webhook_url,
        webhook_secret_sealed, requests_per_minute, daily_limit_usdc_atomic, per_trade_limit_usdc_atomic,
        high_value_usdc_atomic, expires_at_ms, created_at_ms, api_version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
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
            key.api_version.as_deref()
        ],
    )
    .await?;
    tx.exec(SPEND, &params![key.id, limits::window_start(key.created_at)]).await.map(drop)
}

/// The key with this digest (hex), whatever its state.
pub async fn find_by_digest(tx: &mut Tx, digest: &str) -> Result<Option<Key>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM keys WHERE digest = $1");
    tx.find(SQL, &params![digest], from_row).await
}

/// The key with this id.
pub async fn find(tx: &mut Tx, id: KeyId) -> Result<Option<Key>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM keys WHERE id = $1");
    tx.find(SQL, &params![id], from_row).await
}

/// The digests (hex) and allowlists of the keys that have one and are not revoked.
pub async fn list_allowlists(tx: &mut Tx) -> Result<Vec<(String, IpAllowlist)>, StoreError> {
    const SQL: &str =
        "SELECT digest, ip_allowlist FROM keys WHERE ip_allowlist <> '' AND revoked_at_ms IS NULL";
    tx.list(SQL, &params![], |row| {
        let list = IpAllowlist::from_stored(&row.text(1)?);
        Ok((row.text(0)?, list.map_err(|_| row.corrupt(1, "a list of networks"))?))
    })
    .await
}

/// All keys of a user, oldest first, revoked ones too.
pub async fn list(tx: &mut Tx, user_id: UserId) -> Result<Vec<Key>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM keys WHERE user_id = $1 ORDER BY key_index LIMIT 1000"
    );
    tx.list(SQL, &params![user_id], from_row).await
}

/// How many of a user's keys are active at `now`, and the next free key index.
pub async fn count_active(tx: &mut Tx, user_id: UserId, now: Timestamp) -> Result<(i64, u32), StoreError> {
    const SQL: &str =
        "SELECT COUNT(CASE WHEN revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > $1)
        THEN 1 END), COALESCE(MAX(key_index) + 1, 0) FROM keys WHERE user_id = $2";
    let counted = tx.find(SQL, &params![now, user_id], |row| Ok((row.int(0)?, row.number(1)?))).await?;
    Ok(counted.unwrap_or((0, 0)))
}

/// Revokes a key; whether it was active.
pub async fn mark_revoked(tx: &mut Tx, id: KeyId, now: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE keys SET revoked_at_ms = $1 WHERE id = $2 AND revoked_at_ms IS NULL";
    Ok(tx.exec(SQL, &params![now, id]).await? == 1)
}

/// Sets where a key's events go; whether there is such a key.
pub async fn set_webhook_url(tx: &mut Tx, id: KeyId, url: Option<&str>) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE keys SET webhook_url = $1 WHERE id = $2";
    Ok(tx.exec(SQL, &params![url, id]).await? == 1)
}

/// Pauses a key's trading and gives since when it is paused, which pausing it again does not change.
pub async fn mark_paused(tx: &mut Tx, id: KeyId, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str =
        "UPDATE keys SET paused_at_ms = COALESCE(paused_at_ms, $1) WHERE id = $2 RETURNING paused_at_ms";
    tx.find(SQL, &params![now, id], |row| row.timestamp(0)).await
}

/// Lets a paused key trade again; whether it was paused.
pub async fn mark_resumed(tx: &mut Tx, id: KeyId) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE keys SET paused_at_ms = NULL WHERE id = $1 AND paused_at_ms IS NOT NULL";
    Ok(tx.exec(SQL, &params![id]).await? == 1)
}

/// Why a key makes no trade at `now`, if it makes none.
pub async fn find_trading_stop(
    tx: &mut Tx,
    id: KeyId,
    now: Timestamp,
) -> Result<Option<TradingStop>, StoreError> {
    const SQL: &str = "SELECT revoked_at_ms, expires_at_ms, paused_at_ms FROM keys WHERE id = $1";
    let stop = tx
        .find(SQL, &params![id], |row| {
            Ok(TradingStop::of(row.opt_timestamp(0)?, row.opt_timestamp(1)?, row.opt_timestamp(2)?, now))
        })
        .await?;
    Ok(stop.flatten())
}

/// The keys that make no trade at `now` and have trades of a lane between claiming and signing.
pub async fn list_stopped_validating(
    tx: &mut Tx,
    lane: u16,
    now: Timestamp,
) -> Result<Vec<KeyId>, StoreError> {
    const SQL: &str = "SELECT DISTINCT keys.id FROM trades JOIN keys ON keys.id = trades.key_id
        WHERE trades.lane = $1 AND trades.status = 'validating' AND trades.ended_at_ms IS NULL
        AND (keys.paused_at_ms IS NOT NULL OR keys.revoked_at_ms IS NOT NULL OR keys.expires_at_ms <= $2)";
    tx.list(SQL, &params![lane, now], |row| row.parse(0)).await
}

/// A key that was revoked or has expired, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedKey {
    /// The key.
    pub id: KeyId,
    /// Its user.
    pub user_id: UserId,
}

/// The keys that were revoked or expired between `since` and `now`, at most `limit` of either.
pub async fn list_ended(
    tx: &mut Tx,
    since: Timestamp,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<EndedKey>, StoreError> {
    const REVOKED: &str =
        "SELECT id, user_id FROM keys WHERE revoked_at_ms > $1 ORDER BY revoked_at_ms DESC LIMIT $2";
    const EXPIRED: &str = "SELECT id, user_id FROM keys WHERE expires_at_ms > $1 AND expires_at_ms <= $2
        AND revoked_at_ms IS NULL ORDER BY expires_at_ms DESC LIMIT $3";
    let ended = |row: &Row<'_>| Ok(EndedKey { id: row.parse(0)?, user_id: row.parse(1)? });
    let mut keys = tx.list(REVOKED, &params![since, limit], ended).await?;
    keys.extend(tx.list(EXPIRED, &params![since, now, limit], ended).await?);
    Ok(keys)
}

/// Returns what the key has spent in the 24 hours that end at `now`. The row stays locked until the transaction ends.
///
/// The sum is stored with the start of its window, and moving the window reads only the trades between the old and the
/// new start. The window also moves back: when a clock that was ahead is corrected, or when a request that began earlier
/// gets its turn later, the trades that had left the sum are in it again.
pub async fn lock_spent(tx: &mut Tx, key_id: KeyId, now: Timestamp) -> Result<Usdc, StoreError> {
    const LOCK: &str =
        "UPDATE key_spend SET since_ms = since_ms WHERE key_id = $1 RETURNING spent_usdc_atomic, since_ms";
    const BETWEEN: &str = "SELECT CAST(COALESCE(SUM(reserved_usdc_atomic), 0) AS BIGINT) FROM trades
        WHERE key_id = $1 AND created_at_ms > $2 AND created_at_ms <= $3 AND reserved_usdc_atomic > 0";
    const MOVE: &str = "UPDATE key_spend SET spent_usdc_atomic = $1, since_ms = $2 WHERE key_id = $3";
    let start = limits::window_start(now);
    let (spent, since): (Usdc, Timestamp) = tx
        .find(LOCK, &params![key_id], |row| Ok((row.usdc(0)?, row.timestamp(1)?)))
        .await?
        .ok_or_else(|| StoreError::missing("key_spend"))?;
    if start == since {
        return Ok(spent);
    }
    let between = params![key_id, since.min(start), since.max(start)];
    let between = tx.find(BETWEEN, &between, |row| row.usdc(0)).await?.unwrap_or_default();
    let spent = if start > since {
        spent.saturating_sub(between)
    } else {
        spent.checked_add(between).ok_or_else(|| StoreError::driver("a key's spend is out of range"))?
    };
    tx.exec(MOVE, &params![spent, start, key_id]).await?;
    Ok(spent)
}

/// Adds a buy to what the key has spent.
pub async fn add_spent(tx: &mut Tx, key_id: KeyId, amount: Usdc) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE key_spend SET spent_usdc_atomic = spent_usdc_atomic + $1 WHERE key_id = $2";
    tx.exec(SQL, &params![amount, key_id]).await.map(drop)
}

/// Subtracts `amount` again for a buy made at `created_at`, unless it has left the window already. The row is locked in
/// either case, so that the window does not move over a trade whose reservation is just being changed.
pub async fn give_back_spent(
    tx: &mut Tx,
    key_id: KeyId,
    amount: Usdc,
    created_at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE key_spend SET spent_usdc_atomic = spent_usdc_atomic
        - CASE WHEN since_ms < $1 THEN $2 ELSE 0 END WHERE key_id = $3";
    tx.exec(SQL, &params![created_at, amount, key_id]).await.map(drop)
}

/// What asking for a nonce gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nonce {
    /// The key's next nonce.
    Taken(u32),
    /// The key makes no trade.
    Stopped,
    /// The chain has seen the key's next nonce, or a higher one: this database lacks trades that were signed.
    UsedOnChain,
}

/// Takes the next nonce of the key's delegation, which must be above `highest_used`, the highest nonce that the chain has
/// seen from the key. That the key makes trades at `now` is part of the statement, so that nothing is signed once a
/// revocation is stored, whatever was read before.
pub async fn take_nonce(
    tx: &mut Tx,
    key_id: KeyId,
    highest_used: u32,
    now: Timestamp,
) -> Result<Nonce, StoreError> {
    const SQL: &str = "UPDATE key_spend SET next_nonce = next_nonce + 1
        WHERE next_nonce > $1 AND key_id = $2 AND NOT EXISTS (SELECT 1 FROM keys WHERE id = $2
        AND (paused_at_ms IS NOT NULL OR revoked_at_ms IS NOT NULL OR expires_at_ms <= $3)) RETURNING next_nonce";
    let next: Option<u32> = tx.find(SQL, &params![highest_used, key_id, now], |row| row.number(0)).await?;
    if let Some(next) = next {
        return Ok(Nonce::Taken(next - 1));
    }
    let stop = find_trading_stop(tx, key_id, now).await?;
    Ok(if stop.is_some() { Nonce::Stopped } else { Nonce::UsedOnChain })
}

/// A key that may sign trades, and the account whose policy it spends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// The key.
    pub id: KeyId,
    /// The account's address, lower-case hex.
    pub account: String,
    /// Which of the account's policies is the key's.
    pub key_index: u32,
    /// The nonce that the key's next trade gets.
    pub next_nonce: u32,
}

/// The keys that are not revoked and whose user has an account, after `after` in the order of their ids.
pub async fn list_signing(
    tx: &mut Tx,
    after: Option<KeyId>,
    limit: u32,
) -> Result<Vec<SigningKey>, StoreError> {
    const SQL: &str = "SELECT keys.id, address, key_index, next_nonce FROM keys
        JOIN accounts ON accounts.user_id = keys.user_id JOIN key_spend ON key_id = keys.id
        WHERE keys.id > $1 AND revoked_at_ms IS NULL ORDER BY keys.id LIMIT $2";
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![after, limit], |row| {
        Ok(SigningKey {
            id: row.parse(0)?,
            account: row.text(1)?,
            key_index: row.number(2)?,
            next_nonce: row.number(3)?,
        })
    })
    .await
}

/// Makes a key's next nonce at least `next`; whether it was less.
pub async fn raise_nonce(tx: &mut Tx, id: KeyId, next: u32) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE key_spend SET next_nonce = $1 WHERE key_id = $2 AND next_nonce < $1";
    Ok(tx.exec(SQL, &params![next, id]).await? == 1)
}

/// The user's key with this index.
pub async fn find_by_index(
    tx: &mut Tx,
    user_id: UserId,
    key_index: u32,
) -> Result<Option<KeyId>, StoreError> {
    const SQL: &str = "SELECT id FROM keys WHERE user_id = $1 AND key_index = $2";
    tx.find(SQL, &params![user_id, key_index], |row| row.parse(0)).await
}

/// Returns what a key has spent in the 24 hours that end at `now`, for display: the stored sum, corrected by the trades
/// between the start of its window and the start of this one. Locks nothing.
pub async fn find_spent(tx: &mut Tx, key_id: KeyId, now: Timestamp) -> Result<Usdc, StoreError> {
    const SQL: &str = "SELECT CAST(s.spent_usdc_atomic
        - COALESCE((SELECT SUM(t.reserved_usdc_atomic) FROM trades t WHERE t.key_id = s.key_id
            AND t.created_at_ms > s.since_ms AND t.created_at_ms <= $1 AND t.reserved_usdc_atomic > 0), 0)
        + COALESCE((SELECT SUM(t.reserved_usdc_atomic) FROM trades t WHERE t.key_id = s.key_id
            AND t.created_at_ms > $1 AND t.created_at_ms <= s.since_ms AND t.reserved_usdc_atomic > 0), 0)
        AS BIGINT) FROM key_spend s WHERE s.key_id = $2";
    let spent = tx.find(SQL, &params![limits::window_start(now), key_id], |row| row.usdc(0)).await?;
    Ok(spent.unwrap_or_default())
}
