//! The names that users show on the leaderboard.

use alloy_primitives::Address;
use domain::ids::UserId;
use domain::public_name::PublicName;

use crate::{StoreError, Tx, params};

/// Returns the public name of a user, if the user chose one.
pub async fn find(tx: &mut Tx, id: UserId) -> Result<Option<String>, StoreError> {
    const SQL: &str = "SELECT public_name FROM users WHERE id = $1 AND public_name IS NOT NULL";
    tx.find(SQL, &params![id], |row| row.only()).await
}

/// Stores the public name of a user; `None` removes it.
///
/// # Errors
/// A conflict on `users_public_name` if a similar name is taken.
pub async fn set(tx: &mut Tx, id: UserId, name: Option<&PublicName>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE users SET public_name = $1, public_name_key = $2 WHERE id = $3";
    tx.exec(SQL, &params![name.map(PublicName::as_str), name.map(PublicName::key), id]).await.map(drop)
}

/// Returns the public name of an account's user, if the user chose one.
pub async fn find_of_account(tx: &mut Tx, account: Address) -> Result<Option<String>, StoreError> {
    const SQL: &str = "SELECT public_name FROM accounts JOIN users ON users.id = user_id
        WHERE address = $1 AND public_name IS NOT NULL";
    tx.find(SQL, &params![account], |row| row.only()).await
}
