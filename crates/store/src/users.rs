//! Users and their smart accounts.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256};
use domain::credential::Role;
use domain::ids::UserId;
use domain::key::Tier;
use domain::{Timestamp, Usdc};

use crate::bind::add_usdc;
use crate::engine::dialect::locks_rows;
use crate::record::{Record, record};
use crate::{StoreError, Tx, params};

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct User {
        pub id: UserId = "users.id",
        /// The name that the operator or the user chose. It is not public.
        pub name: String = "users.name",
        pub role: Role,
        /// The tier of the user's web key.
        pub tier: Tier = "users.tier",
        pub created_at: Timestamp = "users.created_at_ms",
    }
}

record! {
    /// A user's smart account, which may not be deployed yet.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Account {
        pub user_id: UserId,
        /// The address. It is known before the account is deployed.
        pub address: Address,
        /// The first owner, in hex: 20 bytes for an EOA, 64 for a passkey. It determines the address
        /// and may have been removed since.
        pub first_owner: String = "owner",
        /// The salt of the address.
        pub salt: B256,
        /// USDC reserved by open buys.
        pub reserved: Usdc = "reserved_usdc_atomic",
    }
}

pub async fn insert(tx: &mut Tx, user: &User) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO users (id, name, role, tier, created_at_ms) VALUES ($1, $2, $3, $4, $5)";
    let User { id, name, role, tier, created_at } = user;
    tx.exec(SQL, &params![*id, name, role.as_str(), tier.as_str(), *created_at]).await.map(drop)
}

pub async fn find(tx: &mut Tx, id: UserId) -> Result<Option<User>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", User::COLUMNS, " FROM users WHERE id = $1");
    tx.find(SQL, &params![id], User::from_row).await
}

/// Renames a user. Returns false if the user does not exist.
pub async fn rename(tx: &mut Tx, id: UserId, name: &str) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE users SET name = $1 WHERE id = $2";
    Ok(tx.exec(SQL, &params![name, id]).await? == 1)
}

/// Changes a user's role. Returns false if the user does not exist.
pub async fn set_role(tx: &mut Tx, id: UserId, role: Role) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE users SET role = $1 WHERE id = $2";
    Ok(tx.exec(SQL, &params![role.as_str(), id]).await? == 1)
}

/// Changes the tier of a user and of the user's web key. Returns false if the user does not exist.
pub async fn set_tier(tx: &mut Tx, id: UserId, tier: Tier) -> Result<bool, StoreError> {
    const USER: &str = "UPDATE users SET tier = $1 WHERE id = $2";
    const WEB_KEY: &str = "UPDATE keys SET tier = $1 WHERE user_id = $2 AND kind = 'web'";
    let exists = tx.exec(USER, &params![tier.as_str(), id]).await? == 1;
    tx.exec(WEB_KEY, &params![tier.as_str(), id]).await?;
    Ok(exists)
}

/// Lists users and their accounts, newest first, starting after the id `after`.
pub async fn list(
    tx: &mut Tx,
    after: Option<UserId>,
    limit: u32,
) -> Result<Vec<(User, Option<Account>)>, StoreError> {
    // Ids grow with time, so they sort by creation.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        User::COLUMNS,
        ", ",
        Account::COLUMNS,
        " FROM users LEFT JOIN accounts ON user_id = users.id
        WHERE ($1 = '' OR users.id < $1) ORDER BY users.id DESC LIMIT $2"
    );
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![after, limit], |row| {
        let mut columns = row.columns();
        let user = User::read(&mut columns)?;
        let has_account = row.get::<Option<UserId>>("user_id")?.is_some();
        let account = if has_account { Some(Account::read(&mut columns)?) } else { None };
        Ok((user, account))
    })
    .await
}

/// Locks a user's row until the transaction ends. Returns false if the user does not exist.
pub async fn lock(tx: &mut Tx, id: UserId) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE users SET name = name WHERE id = $1";
    Ok(tx.exec(SQL, &params![id]).await? == 1)
}

/// Inserts a user's account with its first owner as the only owner. Returns `Conflict` if the user
/// already has an account.
pub async fn insert_account(tx: &mut Tx, account: &Account, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO accounts (user_id, address, owner, salt, created_at_ms) VALUES ($1, $2, $3, $4, $5)";
    let Account { user_id, address, first_owner, salt, .. } = account;
    tx.exec(SQL, &params![*user_id, *address, first_owner, *salt, now]).await?;
    insert_owner(tx, *user_id, 0, first_owner).await
}

/// Returns the owners of a user's account as last read from the chain, in the chain's order.
pub async fn list_owners(tx: &mut Tx, user_id: UserId) -> Result<Vec<String>, StoreError> {
    // The contract allows at most 16 owners.
    const SQL: &str = "SELECT owner FROM account_owners WHERE user_id = $1 ORDER BY position LIMIT 16";
    tx.list(SQL, &params![user_id], |row| row.only()).await
}

/// Replaces the stored owners of a user's account by those read from the chain.
pub async fn replace_owners(tx: &mut Tx, user_id: UserId, owners: &[String]) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM account_owners WHERE user_id = $1";
    // Serializes concurrent replacements, which would otherwise conflict on the positions.
    lock(tx, user_id).await?;
    tx.exec(SQL, &params![user_id]).await?;
    for (position, owner) in (0u32..).zip(owners) {
        insert_owner(tx, user_id, position, owner).await?;
    }
    crate::credentials::mark_owners(tx, user_id).await
}

async fn insert_owner(tx: &mut Tx, user_id: UserId, position: u32, owner: &str) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO account_owners (user_id, position, owner) VALUES ($1, $2, $3)";
    tx.exec(SQL, &params![user_id, position, owner]).await.map(drop)
}

/// Stores the owner to add with the act that deploys the user's account. `None` removes the choice.
pub async fn put_second_owner(tx: &mut Tx, user_id: UserId, owner: Option<&str>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE accounts SET second_owner = $1 WHERE user_id = $2";
    tx.exec(SQL, &params![owner, user_id]).await.map(drop)
}

/// Returns the owner to add with the act that deploys the user's account, if one was chosen.
pub async fn find_second_owner(tx: &mut Tx, user_id: UserId) -> Result<Option<String>, StoreError> {
    const SQL: &str = "SELECT second_owner FROM accounts WHERE user_id = $1 AND second_owner IS NOT NULL";
    tx.find(SQL, &params![user_id], |row| row.only()).await
}

pub async fn find_account(tx: &mut Tx, user_id: UserId) -> Result<Option<Account>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", Account::COLUMNS, " FROM accounts WHERE user_id = $1");
    tx.find(SQL, &params![user_id], Account::from_row).await
}

/// Returns the user whose account has this address.
pub async fn find_by_address(tx: &mut Tx, address: Address) -> Result<Option<UserId>, StoreError> {
    const SQL: &str = "SELECT user_id FROM accounts WHERE address = $1";
    tx.find(SQL, &params![address], |row| row.only()).await
}

/// Reserves `amount` and returns the new total. The row stays locked until the transaction ends, so
/// that two trades of one account are checked one after the other.
pub async fn reserve(tx: &mut Tx, user_id: UserId, amount: Usdc) -> Result<Usdc, StoreError> {
    const SQL: &str =
        "UPDATE accounts SET reserved_usdc_atomic = reserved_usdc_atomic + $1 WHERE user_id = $2
        RETURNING reserved_usdc_atomic";
    tx.find(SQL, &params![amount, user_id], |row| row.only())
        .await?
        .ok_or_else(|| StoreError::missing("accounts"))
}

/// Releases reservations. The rows are locked in the order of user ids.
pub(crate) async fn release_reservations(tx: &mut Tx, amounts: &[(UserId, Usdc)]) -> Result<(), StoreError> {
    const LOCK: &str = "SELECT a.user_id FROM ROWS($1 TEXT) AS x(user_id) CROSS JOIN accounts a
        WHERE a.user_id = x.user_id ORDER BY a.user_id FOR UPDATE OF a";
    const SQL: &str = "UPDATE accounts SET reserved_usdc_atomic = accounts.reserved_usdc_atomic - x.amount
        FROM ROWS($1 TEXT, $2 BIGINT) AS x(user_id, amount) WHERE accounts.user_id = x.user_id";
    let mut sums: BTreeMap<UserId, Usdc> = BTreeMap::new();
    for (user_id, amount) in amounts {
        let sum = sums.entry(*user_id).or_default();
        *sum = add_usdc(*sum, *amount)?;
    }
    if sums.len() > 1 && locks_rows(tx.engine()) {
        tx.queue_rows(LOCK, sums.keys().map(|user_id| params![*user_id].to_vec()).collect()).await?;
    }
    tx.queue_rows(SQL, sums.iter().map(|(user_id, sum)| params![*user_id, *sum].to_vec()).collect()).await
}
