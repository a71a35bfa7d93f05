//! Open trades of accounts in other lanes. After a change of the lanes an account's trades may be in
//! two of them, and the newer ones must wait for the older ones.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use alloy_primitives::Address;
use domain::Timestamp;
use domain::ids::TradeId;

use super::row::Trade;
use crate::{Row, StoreError, Tx, params};

/// A trade's place in the order of its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub id: TradeId,
    pub account: Address,
    pub created_at: Timestamp,
}

impl Place {
    pub(super) fn of(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self { id: row.get("id")?, account: row.get("account")?, created_at: row.get("created_at_ms")? })
    }
}

/// The oldest open trade of each account that is in another lane.
#[derive(Debug, Default)]
pub struct Elsewhere(HashMap<Address, (Timestamp, TradeId)>);

impl Elsewhere {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether an older trade of the same account is open in another lane.
    pub fn precedes(&self, trade: &Trade) -> bool {
        self.is_before(&Place { id: trade.id, account: trade.account, created_at: trade.created_at })
    }

    pub(super) fn is_before(&self, place: &Place) -> bool {
        // Compared with the id, so that of two trades one is always the older one: otherwise both
        // could wait for each other.
        self.0.get(&place.account).is_some_and(|oldest| *oldest < (place.created_at, place.id))
    }

    /// Returns the accounts with such a trade.
    pub fn accounts(&self) -> impl Iterator<Item = Address> {
        self.0.keys().copied()
    }
}

/// Returns the accounts that have open trades in the lane.
pub async fn list_open_accounts(tx: &mut Tx, lane: u16) -> Result<HashSet<Address>, StoreError> {
    const SQL: &str = "SELECT DISTINCT account FROM trades
        WHERE lane = $1 AND ended_at_ms IS NULL AND status IN ('pending', 'validating', 'executing')";
    let accounts: Vec<Address> = tx.list(SQL, &params![lane], |row| row.only()).await?;
    Ok(accounts.into_iter().collect())
}

/// Returns the open trades of all other lanes. Trades that wait for their confirmation are not in a
/// queue and are left out.
pub async fn list_elsewhere(tx: &mut Tx, lane: u16) -> Result<Elsewhere, StoreError> {
    const SQL: &str = "SELECT id, account, created_at_ms FROM trades
        WHERE ended_at_ms IS NULL AND status IN ('pending', 'validating', 'executing') AND lane <> $1";
    let mut oldest = HashMap::new();
    for Place { id, account, created_at } in tx.list(SQL, &params![lane], Place::of).await? {
        match oldest.entry(account) {
            Entry::Vacant(entry) => drop(entry.insert((created_at, id))),
            Entry::Occupied(mut entry) => {
                let first = (created_at, id).min(*entry.get());
                entry.insert(first);
            }
        }
    }
    Ok(Elsewhere(oldest))
}
