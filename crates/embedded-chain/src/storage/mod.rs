//! Stores the chain in SQLite: one file, write-ahead log, `synchronous=FULL`.
//!
//! Only the miner writes, through [`StorageWriter::commit`], with one transaction per group of
//! blocks. Startup reads the current state, and [`Archive`] reads old blocks and old values. After a
//! crash the file contains complete blocks only, because all rows of a block are in one transaction. It
//! may contain a block whose sender never got a reply.
//!
//! Besides the current state (`accounts`, `slots`), each value is stored under the block that wrote
//! it (`*_history`), so that a call at an old block needs only a few index look-ups. Logs have no
//! rows of their own. Instead, the header's bloom filter decides whether to decode a block: this
//! makes writing trades cheap and costs a few microseconds per block when searching old logs.

mod archive;
mod copy;
mod load;
mod write;

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{B256, KECCAK256_EMPTY, U256};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::account::{AccountView, Bytecode};
use super::block::StoredBlock;
use super::error::EmbeddedError;
use super::genesis::Genesis;
use super::state::{ChainState, StagedBlock};

pub use copy::{ChainFile, block_hash, check_pages, copy_file, read_file};

pub(super) use archive::{Archive, past_account, past_hash, past_slot, scan};
pub(super) use write::{StorageWriter, WriteProbe};

/// The layout of the tables. Increment it when the tables change: a file of another layout is
/// rejected.
const LAYOUT: i64 = 1;

/// Integers are numbers, hashes and addresses are blobs, 256-bit numbers are blobs without leading
/// zeroes.
const TABLES: &str = "
    CREATE TABLE chain (chain_id INTEGER NOT NULL);
    CREATE TABLE accounts (
        id INTEGER PRIMARY KEY, address BLOB NOT NULL, nonce INTEGER NOT NULL, balance BLOB NOT NULL,
        code_hash BLOB NOT NULL);
    CREATE TABLE codes (hash BLOB PRIMARY KEY, code BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE slots (
        account INTEGER NOT NULL, slot BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (account, slot)) WITHOUT ROWID;
    CREATE TABLE account_history (
        account INTEGER NOT NULL, block INTEGER NOT NULL, nonce INTEGER NOT NULL, balance BLOB NOT NULL,
        code_hash BLOB NOT NULL, PRIMARY KEY (account, block)) WITHOUT ROWID;
    CREATE TABLE slot_history (
        account INTEGER NOT NULL, slot BLOB NOT NULL, block INTEGER NOT NULL, value BLOB NOT NULL,
        PRIMARY KEY (account, slot, block)) WITHOUT ROWID;
    CREATE TABLE blocks (
        number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, header BLOB NOT NULL, sender BLOB,
        transaction_ BLOB, receipt BLOB);
    CREATE TABLE transactions (hash BLOB PRIMARY KEY, block INTEGER NOT NULL) WITHOUT ROWID;
";

/// The number of prepared statements cached by each connection.
const STATEMENTS: usize = 32;
#[derive(Debug, Clone, Copy)]
pub(super) enum StorageLocation<'a> {
    File(&'a Path),
    Memory,
}

/// Opens the database, writes the genesis block if it is empty, and loads the current state.
pub(super) fn open(
    place: StorageLocation<'_>,
    genesis: &Genesis,
) -> Result<(StorageWriter, Archive, ChainState), EmbeddedError> {
    let mut connection = match place {
        StorageLocation::File(path) => Connection::open(path)?,
        StorageLocation::Memory => Connection::open_in_memory()?,
    };
    configure(&connection)?;
    let layout: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match layout {
        // A new SQLite file has `user_version` 0.
        0 => {
            reject_foreign(&connection)?;
            create(&mut connection, genesis)?;
        }
        LAYOUT => {}
        found => return Err(EmbeddedError::Layout { found, expected: LAYOUT }),
    }
    let stored: u64 = connection.query_row("SELECT chain_id FROM chain", [], |row| row.get(0))?;
    if stored != genesis.chain_id {
        return Err(EmbeddedError::ChainId { stored, asked: genesis.chain_id });
    }
    let chain = load::chain(&connection)?;
    let connection = Arc::new(Mutex::new(connection));
    let archive = match place {
        StorageLocation::File(path) => Archive::File { path: path.to_owned(), idle: Mutex::default() },
        StorageLocation::Memory => Archive::Memory(Arc::clone(&connection)),
    };
    Ok((StorageWriter::new(connection), archive, chain))
}

/// Copies the database into memory, and loads the copy's current state.
pub(super) fn fork(archive: &Archive) -> Result<(StorageWriter, Archive, ChainState), EmbeddedError> {
    let mut connection = Connection::open_in_memory()?;
    archive.read(|from| copy::into_connection(from, &mut connection))?;
    configure(&connection)?;
    let chain = load::chain(&connection)?;
    let connection = Arc::new(Mutex::new(connection));
    Ok((StorageWriter::new(Arc::clone(&connection)), Archive::Memory(connection), chain))
}

fn configure(connection: &Connection) -> Result<(), EmbeddedError> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Checkpoint less often than SQLite's default of 1,000 pages, so that frequently changed pages
    // are written to the file less often.
    Ok(connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
         PRAGMA busy_timeout = 5000; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;",
    )?)
}

/// Returns an error if a file without a chain has tables nevertheless.
fn reject_foreign(connection: &Connection) -> Result<(), EmbeddedError> {
    let table = "SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1";
    match connection.query_row(table, [], |row| row.get(0)).optional()? {
        None => Ok(()),
        Some(table) => Err(EmbeddedError::Foreign(table)),
    }
}

fn create(connection: &mut Connection, genesis: &Genesis) -> Result<(), EmbeddedError> {
    let changes = genesis.changes();
    let block = Arc::new(genesis.block(&changes));
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.execute("INSERT INTO chain (chain_id) VALUES (?1)", [genesis.chain_id])?;
    write::blocks(&transaction, &[StagedBlock { block, changes }])?;
    // In the same transaction as the tables: an interrupted creation leaves the layout at 0.
    transaction.pragma_update(None, "user_version", LAYOUT)?;
    transaction.commit()?;
    Ok(())
}

fn stored<'a>(row: &'a Row<'_>) -> Result<StoredBlock<'a>, EmbeddedError> {
    let optional = |column| -> Result<Option<&'a [u8]>, EmbeddedError> {
        Ok(row.get_ref(column)?.as_blob_or_null().map_err(rusqlite::Error::from)?)
    };
    let mined = match (optional(2)?, optional(3)?, optional(4)?) {
        (Some(sender), Some(transaction), Some(receipt)) => Some((sender, transaction, receipt)),
        (None, None, None) => None,
        _ => return Err(EmbeddedError::corrupt("blocks", "a transaction without sender or receipt")),
    };
    Ok(StoredBlock { hash: blob(row, 0)?, header: blob(row, 1)?, mined })
}

/// Decodes an account from the columns nonce, balance and code hash.
fn view(row: &Row<'_>, code: impl Fn(&B256) -> Option<Bytecode>) -> Result<AccountView, EmbeddedError> {
    // SQLite integers are signed: the cast restores a nonce that `write` stored with the reverse
    // cast.
    let nonce = row.get::<_, i64>(0)? as u64;
    let balance = number(blob(row, 1)?);
    let code_hash = hash_at(row, 2, "accounts")?;
    let code = match code_hash {
        KECCAK256_EMPTY => Bytecode::default(),
        hash => code(&hash).ok_or_else(|| EmbeddedError::corrupt("codes", format!("no code {hash}")))?,
    };
    Ok(AccountView { nonce, balance, code_hash, code })
}

fn blob<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], EmbeddedError> {
    Ok(row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?)
}

fn hash_at(row: &Row<'_>, column: usize, table: &'static str) -> Result<B256, EmbeddedError> {
    B256::try_from(blob(row, column)?).map_err(|error| EmbeddedError::corrupt(table, error))
}

/// Decodes a number. More than 32 bytes are never written.
fn number(bytes: &[u8]) -> U256 {
    U256::try_from_be_slice(bytes).unwrap_or_default()
}
