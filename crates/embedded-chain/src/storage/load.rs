//! Loads the complete current state and the newest block at startup.

use std::collections::VecDeque;
use std::sync::Arc;

use alloy_primitives::map::{AddressMap, B256Map, HashMap};
use alloy_primitives::{Address, B256, Bytes, U256};
use rusqlite::Connection;

use super::archive::block;
use super::{blob, hash_at, number, view};
use crate::account::{self, Bytecode};
use crate::block::SealedBlock;
use crate::error::EmbeddedError;
use crate::state::{Account, ChainState, REACHABLE_HASHES};

pub(super) fn chain(connection: &Connection) -> Result<ChainState, EmbeddedError> {
    let mut codes: B256Map<Bytecode> = B256Map::default();
    let mut statement = connection.prepare("SELECT hash, code FROM codes")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let hash = hash_at(row, 0, "codes")?;
        let code = Bytes::copy_from_slice(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?);
        let code = account::stored_code(code)
            .ok_or_else(|| EmbeddedError::corrupt("codes", "malformed delegation"))?;
        codes.insert(hash, code);
    }

    let mut storages = slots(connection)?;
    let mut accounts: AddressMap<Account> = AddressMap::default();
    let mut statement = connection.prepare("SELECT nonce, balance, code_hash, id, address FROM accounts")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(3)?;
        let address =
            Address::try_from(blob(row, 4)?).map_err(|error| EmbeddedError::corrupt("accounts", error))?;
        let storage = storages.remove(&id).unwrap_or_default();
        accounts.insert(address, Account { id, view: view(row, |hash| codes.get(hash).cloned())?, storage });
    }

    let (head, hashes) = tip(connection)?;
    Ok(ChainState::new(accounts, codes, head, hashes))
}

fn slots(connection: &Connection) -> Result<HashMap<i64, HashMap<U256, U256>>, EmbeddedError> {
    let mut storages: HashMap<i64, HashMap<U256, U256>> = HashMap::default();
    let mut statement =
        connection.prepare("SELECT account, slot, value FROM slots ORDER BY account, slot")?;
    let mut rows = statement.query([])?;
    // Rows of the same account are adjacent, so each account's map is looked up once.
    let mut current: Option<(i64, HashMap<U256, U256>)> = None;
    while let Some(row) = rows.next()? {
        let account: i64 = row.get(0)?;
        let (slot, value) = (number(blob(row, 1)?), number(blob(row, 2)?));
        match &mut current {
            Some((id, storage)) if *id == account => {
                storage.insert(slot, value);
            }
            _ => {
                let next = (account, HashMap::from_iter([(slot, value)]));
                storages.extend(current.replace(next));
            }
        }
    }
    storages.extend(current);
    Ok(storages)
}

fn tip(connection: &Connection) -> Result<(Arc<SealedBlock>, VecDeque<B256>), EmbeddedError> {
    let mut statement = connection.prepare("SELECT hash FROM blocks ORDER BY number DESC LIMIT ?1")?;
    let mut rows = statement.query([REACHABLE_HASHES as i64])?;
    let mut hashes = VecDeque::with_capacity(REACHABLE_HASHES + 1);
    while let Some(row) = rows.next()? {
        hashes.push_front(hash_at(row, 0, "blocks")?);
    }
    let number: Option<u64> = connection.query_row("SELECT max(number) FROM blocks", [], |row| row.get(0))?;
    let head = number.map(|number| block(connection, number)).transpose()?.flatten();
    let head = head.ok_or_else(|| EmbeddedError::corrupt("blocks", "no newest block"))?;
    Ok((Arc::new(head), hashes))
}
