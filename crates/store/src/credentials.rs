//! Passkeys and wallets that sign in.

use alloy_primitives::Address;
use domain::Timestamp;
use domain::credential::{CredentialKey, CredentialKind};
use domain::ids::{CredentialId, UserId};
use domain::passkey::{BackupState, PasskeyUse};

use crate::record::{Insert, Record, record};
use crate::{StoreError, Tx, params};

/// The maximum number of credentials that a user may add.
pub const MAX_PER_USER: i64 = 20;
/// The maximum number of credentials in a list: owners that confirm an account come on top, and
/// the contract allows 16.
const MAX_LISTED: i64 = MAX_PER_USER + 16;
/// The maximum number of accounts to choose from when a wallet signs in. It can name any other one
/// in the text that it signs.
const MAX_CHOICES: u32 = 50;

/// The condition of a credential that may sign in: it is no owner, or the account still has it.
const IS_USABLE: &str = "(kind = 'sign_in' OR EXISTS (SELECT 1 FROM account_owners o
    WHERE o.user_id = credentials.user_id AND o.owner = credentials.public_key))";

record! {
    /// A passkey or a wallet, and an account that it has confirmed. A wallet has one for each account.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Credential: Insert {
        pub id: CredentialId,
        pub user_id: UserId,
        pub kind: CredentialKind,
        /// The name that the user gave it.
        pub name: String,
        /// The account is the one that it signed up for.
        pub signed_up: bool,
        pub key: CredentialKey = "public_key",
        /// The id that the authenticator gave a passkey. `None` for a wallet.
        pub passkey_id: Option<Vec<u8>>,
        /// The user handle that the passkey returns. `None` for a wallet.
        pub user_handle: Option<Vec<u8>>,
        /// The signature counter of the last use.
        pub counter: u32,
        /// The copies of a passkey. `None` for a wallet.
        pub backup: Option<BackupState>,
        /// The ways in which a browser reaches the passkey.
        pub transports: Vec<String>,
        pub created_at: Timestamp = "created_at_ms",
        pub last_used_at: Option<Timestamp> = "last_used_at_ms",
    }
}

/// Inserts a credential. Returns `Conflict` if the passkey already signs in, if the wallet already
/// signs in to this account, or if it has signed up for another one.
pub async fn insert(tx: &mut Tx, credential: &Credential) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO credentials (",
        Credential::COLUMNS,
        ") VALUES (",
        Credential::PLACEHOLDERS,
        ")"
    );
    tx.exec(SQL, &credential.values()?).await.map(drop)
}

/// Returns the credential of the passkey with this id.
pub async fn find_passkey(tx: &mut Tx, passkey_id: &[u8]) -> Result<Option<Credential>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", Credential::COLUMNS, " FROM credentials WHERE passkey_id = $1");
    tx.find(SQL, &params![passkey_id], Credential::from_row).await
}

/// Returns the credential with which this wallet signs in to a user's account.
pub async fn find_wallet(
    tx: &mut Tx,
    address: Address,
    user_id: UserId,
) -> Result<Option<Credential>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Credential::COLUMNS,
        " FROM credentials WHERE public_key = $1 AND passkey_id IS NULL AND user_id = $2"
    );
    tx.find(SQL, &params![address, user_id], Credential::from_row).await
}

/// Lists the credentials with which this wallet may sign in now, oldest first.
pub async fn list_wallet(tx: &mut Tx, address: Address) -> Result<Vec<Credential>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Credential::COLUMNS,
        " FROM credentials WHERE public_key = $1 AND passkey_id IS NULL AND ",
        IS_USABLE,
        " ORDER BY created_at_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![address, MAX_CHOICES], Credential::from_row).await
}

/// Lists the users whose account was created for this wallet and still has it as an owner, but to
/// which it has never signed in.
pub async fn list_unused_first_accounts(tx: &mut Tx, address: Address) -> Result<Vec<UserId>, StoreError> {
    const SQL: &str = "SELECT a.user_id FROM accounts a
        JOIN account_owners o ON o.user_id = a.user_id AND o.owner = a.owner
        WHERE a.owner = $1 AND NOT EXISTS (SELECT 1 FROM credentials c
            WHERE c.public_key = $1 AND c.passkey_id IS NULL AND c.user_id = a.user_id)
        ORDER BY a.user_id LIMIT $2";
    tx.list(SQL, &params![address, MAX_CHOICES], |row| row.only()).await
}

/// Lets a wallet sign up again if the account that it signed up for no longer has it as an owner.
pub async fn forget_lost_sign_up(tx: &mut Tx, address: Address) -> Result<(), StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE credentials SET signed_up = 0
        WHERE public_key = $1 AND passkey_id IS NULL AND signed_up = 1 AND NOT ",
        IS_USABLE
    );
    tx.exec(SQL, &params![address]).await.map(drop)
}

/// Lists a user's credentials, oldest first.
pub async fn list(tx: &mut Tx, user_id: UserId) -> Result<Vec<Credential>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Credential::COLUMNS,
        " FROM credentials WHERE user_id = $1 ORDER BY created_at_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![user_id, MAX_LISTED], Credential::from_row).await
}

/// Returns whether a user has a passkey that may sign in.
pub async fn has_usable_passkey(tx: &mut Tx, user_id: UserId) -> Result<bool, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT id FROM credentials WHERE user_id = $1 AND passkey_id IS NOT NULL AND ",
        IS_USABLE,
        " LIMIT 1"
    );
    let found: Option<CredentialId> = tx.find(SQL, &params![user_id], |row| row.only()).await?;
    Ok(found.is_some())
}

/// Locks a credential that may sign in until the transaction ends. Returns false if it was removed,
/// or if it is an owner that the account no longer has.
pub async fn lock_usable(tx: &mut Tx, id: CredentialId) -> Result<bool, StoreError> {
    const SQL: &str =
        const_format::concatcp!("UPDATE credentials SET name = name WHERE id = $1 AND ", IS_USABLE);
    Ok(tx.exec(SQL, &params![id]).await? == 1)
}

/// Records a use of a passkey, with its new counter. Returns false if another use of the passkey
/// has meanwhile brought the counter to the same or a higher value, or if it was removed.
pub async fn mark_passkey_used(
    tx: &mut Tx,
    id: CredentialId,
    used: &PasskeyUse,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE credentials SET counter = $1, backup = $2, last_used_at_ms = $3
        WHERE id = $4 AND (counter < $1 OR (counter = 0 AND $1 = 0))";
    Ok(tx.exec(SQL, &params![used.counter, used.backup.as_str(), now, id]).await? == 1)
}

/// Records a use of a wallet.
pub async fn mark_wallet_used(tx: &mut Tx, id: CredentialId, now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE credentials SET last_used_at_ms = $1 WHERE id = $2";
    tx.exec(SQL, &params![now, id]).await.map(drop)
}

/// Renames a user's credential. Returns false if the user has no such credential.
pub async fn rename(tx: &mut Tx, user_id: UserId, id: CredentialId, name: &str) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE credentials SET name = $1 WHERE id = $2 AND user_id = $3";
    Ok(tx.exec(SQL, &params![name, id, user_id]).await? == 1)
}

/// Removes a user's credential. Returns false if the user has no such credential.
pub async fn delete(tx: &mut Tx, user_id: UserId, id: CredentialId) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM credentials WHERE id = $1 AND user_id = $2";
    Ok(tx.exec(SQL, &params![id, user_id]).await? == 1)
}

/// Marks the credentials of a user that are owners of the account. From then on they sign in only
/// as long as they are.
pub async fn mark_owners(tx: &mut Tx, user_id: UserId) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE credentials SET kind = 'owner' WHERE user_id = $1 AND public_key IN
        (SELECT owner FROM account_owners WHERE user_id = $1)";
    tx.exec(SQL, &params![user_id]).await.map(drop)
}
