//! Users and their smart accounts.

use domain::ids::UserId;
use domain::{Timestamp, Usdc};

use crate::{StoreError, Tx, params};

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user's id.
    pub id: UserId,
    /// A name for the operator.
    pub name: String,
    /// When the user was made.
    pub created_at: Timestamp,
}

/// A user's smart account, on chain or still to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Whose it is.
    pub user_id: UserId,
    /// Its address, lower-case hex; known before it exists.
    pub address: String,
    /// Its owner, hex: 20 bytes for an EOA, 64 for a passkey.
    pub owner: String,
    /// The salt of its address, hex.
    pub salt: String,
    /// USDC that open buys have set aside.
    pub reserved: Usdc,
}

/// Adds a user.
pub async fn insert(tx: &mut Tx, user: &User) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO users (id, name, created_at_ms) VALUES ($1, $2, $3)";
    tx.exec(SQL, &params![user.id, &user.name, user.created_at]).await.map(drop)
}

/// The user with this id.
pub async fn find(tx: &mut Tx, id: UserId) -> Result<Option<User>, StoreError> {
    const SQL: &str = "SELECT id, name, created_at_ms FROM users WHERE id = $1";
    tx.find(SQL, &params![id], |row| {
        Ok(User { id: row.parse(0)?, name: row.text(1)?, created_at: row.timestamp(2)? })
    })
    .await
}

/// Users and their accounts, the newest first, behind the one with id `after`.
pub async fn list(
    tx: &mut Tx,
    after: Option<UserId>,
    limit: u32,
) -> Result<Vec<(User, Option<Account>)>, StoreError> {
    // Ids grow with time, so their order is the order of making.
    const SQL: &str = "SELECT id, name, users.created_at_ms, address, owner, salt, reserved_usdc_atomic
        FROM users LEFT JOIN accounts ON user_id = id WHERE ($1 = '' OR id < $1) ORDER BY id DESC LIMIT $2";
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![after, limit], |row| {
        let user = User { id: row.parse(0)?, name: row.text(1)?, created_at: row.timestamp(2)? };
        let Some(address) = row.opt_text(3)? else { return Ok((user, None)) };
        let account = Account {
            user_id: user.id,
            address,
            owner: row.text(4)?,
            salt: row.text(5)?,
            reserved: row.usdc(6)?,
        };
        Ok((user, Some(account)))
    })
    .await
}

/// Locks a user's row until the transaction ends; false where there is no such user.
pub async fn lock(tx: &mut Tx, id: UserId) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE users SET name = name WHERE id = $1";
    Ok(tx.exec(SQL, &params![id]).await? == 1)
}

/// Adds a user's account. A second one for the same user is a conflict.
pub async fn insert_account(tx: &mut Tx, account: &Account, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO accounts (user_id, address, owner, salt, created_at_ms) VALUES ($1, $2, $3, $4, $5)";
    tx.exec(SQL, &params![account.user_id, &account.address, &account.owner, &account.salt, now])
        .await
        .map(drop)
}

/// The account of this user.
pub async fn find_account(tx: &mut Tx, user_id: UserId) -> Result<Option<Account>, StoreError> {
    const SQL: &str =
        "SELECT user_id, address, owner, salt, reserved_usdc_atomic FROM accounts WHERE user_id = $1";
    tx.find(SQL, &params![user_id], |row| {
        Ok(Account {
            user_id: row.parse(0)?,
            address: row.text(1)?,
            owner: row.text(2)?,
            salt: row.text(3)?,
            reserved: row.usdc(4)?,
        })
    })
    .await
}

/// The user whose account has this address, lower-case hex.
pub async fn find_by_address(tx: &mut Tx, address: &str) -> Result<Option<UserId>, StoreError> {
    const SQL: &str = "SELECT user_id FROM accounts WHERE address = $1";
    tx.find(SQL, &params![address], |row| row.parse(0)).await
}

/// Sets `amount` aside and gives the new total. The row stays locked until the transaction ends, so that two trades of
/// one account are judged one after the other.
pub async fn reserve(tx: &mut Tx, user_id: UserId, amount: Usdc) -> Result<Usdc, StoreError> {
    const SQL: &str =
        "UPDATE accounts SET reserved_usdc_atomic = reserved_usdc_atomic + $1 WHERE user_id = $2
        RETURNING reserved_usdc_atomic";
    tx.find(SQL, &params![amount, user_id], |row| row.usdc(0))
        .await?
        .ok_or_else(|| StoreError::missing("accounts"))
}

/// Gives back what was set aside.
pub async fn release(tx: &mut Tx, user_id: UserId, amount: Usdc) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE accounts SET reserved_usdc_atomic = reserved_usdc_atomic - $1 WHERE user_id = $2";
    tx.exec(SQL, &params![amount, user_id]).await.map(drop)
}
