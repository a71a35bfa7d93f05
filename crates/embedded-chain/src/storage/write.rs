//! Writes blocks to the database.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::U256;
use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior, params};

use super::LAYOUT;
use crate::account::{AccountChange, AccountView};
use crate::error::EmbeddedError;
use crate::state::StagedBlock;

/// The only connection that writes.
#[derive(Debug)]
pub(crate) struct StorageWriter {
    connection: Arc<Mutex<Connection>>,
}

impl StorageWriter {
    pub(super) fn new(connection: Arc<Mutex<Connection>>) -> Self {
        Self { connection }
    }

    /// Returns a handle that can only prove that the database accepts writes.
    pub fn probe(&self) -> WriteProbe {
        WriteProbe { connection: Arc::clone(&self.connection) }
    }

    /// Commits all of the blocks or none.
    pub fn commit(&self, blocks: &[StagedBlock]) -> Result<(), EmbeddedError> {
        let mut connection = self.connection.lock();
        // Immediate takes the write lock now, so that a second process waits here and not halfway.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self::blocks(&transaction, blocks)?;
        transaction.commit()?;
        Ok(())
    }
}

/// Proves that the database accepts writes, between two commits of the miner.
#[derive(Debug)]
pub(crate) struct WriteProbe {
    connection: Arc<Mutex<Connection>>,
}

impl WriteProbe {
    /// Commits a change that changes nothing. Its commit needs the disk like any other: SQLite writes no
    /// page for a row that stays equal, but it writes the first page whenever the version is set.
    pub fn write(&self) -> Result<(), EmbeddedError> {
        let mut connection = self.connection.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("UPDATE chain SET chain_id = chain_id", [])?;
        transaction.pragma_update(None, "user_version", LAYOUT)?;
        transaction.commit()?;
        Ok(())
    }
}

/// Inserts blocks and never replaces one. If a second process writes to the same file, its insert
/// fails on the block number instead of forking the chain.
pub(super) fn blocks(connection: &Connection, blocks: &[StagedBlock]) -> Result<(), EmbeddedError> {
    let mut insert_block = connection.prepare_cached(
        "INSERT INTO blocks (number, hash, header, sender, transaction_, receipt) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let mut insert_transaction =
        connection.prepare_cached("INSERT INTO transactions (hash, block) VALUES (?1, ?2)")?;
    let mut insert_code =
        connection.prepare_cached("INSERT OR IGNORE INTO codes (hash, code) VALUES (?1, ?2)")?;
    let mut insert_account = connection.prepare_cached(
        "INSERT INTO account_history (account, block, nonce, balance, code_hash) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut insert_slot = connection
        .prepare_cached("INSERT INTO slot_history (account, slot, block, value) VALUES (?1, ?2, ?3, ?4)")?;
    // Several blocks of a group often change the same accounts and slots: write only their last
    // values to the current state.
    let mut accounts: BTreeMap<i64, &AccountChange> = BTreeMap::new();
    let mut slots: BTreeMap<(i64, U256), U256> = BTreeMap::new();

    for StagedBlock { block, changes } in blocks {
        let number = block.header.number;
        let header = block.encoded_header();
        match &block.mined {
            Some(mined) => {
                insert_block.execute(params![
                    number,
                    block.hash.as_slice(),
                    header,
                    mined.transaction.sender.as_slice(),
                    mined.encoded_transaction(),
                    mined.encoded_receipt()
                ])?;
                insert_transaction.execute(params![mined.hash().as_slice(), number])?;
            }
            None => {
                let none: Option<&[u8]> = None;
                insert_block.execute(params![number, block.hash.as_slice(), header, none, none, none])?;
            }
        }
        for change in changes {
            let AccountView { nonce, balance, code_hash, code } = &change.after;
            if change.new_code {
                insert_code.execute(params![code_hash.as_slice(), code.original_byte_slice()])?;
            }
            if change.info_changed {
                let balance = balance.to_be_bytes_trimmed_vec();
                insert_account.execute(params![
                    change.id,
                    number,
                    *nonce as i64,
                    balance,
                    code_hash.as_slice()
                ])?;
                accounts.insert(change.id, change);
            }
            for (slot, value) in &change.slots {
                let (key, bytes) = (slot.to_be_bytes_trimmed_vec(), value.to_be_bytes_trimmed_vec());
                insert_slot.execute(params![change.id, key, number, bytes])?;
                slots.insert((change.id, *slot), *value);
            }
        }
    }
    present(connection, accounts, slots)
}

fn present(
    connection: &Connection,
    accounts: BTreeMap<i64, &AccountChange>,
    slots: BTreeMap<(i64, U256), U256>,
) -> Result<(), EmbeddedError> {
    let mut put_account = connection.prepare_cached(
        "INSERT INTO accounts (id, address, nonce, balance, code_hash) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (id) DO UPDATE SET nonce = ?3, balance = ?4, code_hash = ?5",
    )?;
    for (id, change) in accounts {
        let AccountView { nonce, balance, code_hash, .. } = &change.after;
        let balance = balance.to_be_bytes_trimmed_vec();
        put_account.execute(params![
            id,
            change.address.as_slice(),
            *nonce as i64,
            balance,
            code_hash.as_slice()
        ])?;
    }
    let mut put_slot = connection.prepare_cached(
        "INSERT INTO slots (account, slot, value) VALUES (?1, ?2, ?3)
         ON CONFLICT (account, slot) DO UPDATE SET value = ?3",
    )?;
    let mut drop_slot = connection.prepare_cached("DELETE FROM slots WHERE account = ?1 AND slot = ?2")?;
    for ((id, slot), value) in slots {
        let slot = slot.to_be_bytes_trimmed_vec();
        // A missing row reads as zero, so zeroes need no row.
        match value.is_zero() {
            true => drop_slot.execute(params![id, slot])?,
            false => put_slot.execute(params![id, slot, value.to_be_bytes_trimmed_vec()])?,
        };
    }
    Ok(())
}
