//! The current state, completely in memory, and the overlay on which blocks execute before they are
//! durable.
//!
//! [`ChainState`] is behind one read-write lock, so that a reader sees a consistent state, head
//! block and set of hashes. Only the miner writes to it, and only after the database has committed.
//! Before that, the miner executes on an [`Overlay`] under the read lock, so neither execution nor
//! the disk delays calls.

use std::collections::VecDeque;
use std::sync::Arc;

use alloy_primitives::map::{AddressMap, B256Map, HashMap};
use alloy_primitives::{Address, B256, U256};

use crate::account::{AccountChange, AccountView, Bytecode};
use crate::block::SealedBlock;
use crate::error::EmbeddedError;
use crate::evm::ReadState;

/// The number of blocks in memory. Older blocks are read from the database.
pub(super) const RECENT_BLOCKS: usize = 1_024;
/// The reach of the `BLOCKHASH` instruction, in blocks.
pub(super) const REACHABLE_HASHES: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct Account {
    /// The id of the account's row in the database. Ids are never reused.
    pub id: i64,
    pub view: AccountView,
    /// All slots ever written. A slot set to zero may remain as zero.
    pub storage: HashMap<U256, U256>,
}

/// A block and its changes, sorted by address.
#[derive(Debug, Clone)]
pub(super) struct StagedBlock {
    pub block: Arc<SealedBlock>,
    pub changes: Vec<AccountChange>,
}

/// The chain as readers see it.
#[derive(Debug)]
pub(super) struct ChainState {
    accounts: AddressMap<Account>,
    codes: B256Map<Bytecode>,
    next_id: i64,
    /// The newest blocks without a gap, oldest first. Never empty.
    recent: VecDeque<Arc<SealedBlock>>,
    numbers: B256Map<u64>,
    transactions: B256Map<u64>,
    /// The hashes of the newest blocks without a gap, oldest first. The last one is the head's.
    hashes: VecDeque<B256>,
}

impl ChainState {
    /// Creates a chain with the newest block `head`. `hashes` are those of the newest blocks, with
    /// the head's last.
    pub fn new(
        accounts: AddressMap<Account>,
        codes: B256Map<Bytecode>,
        head: Arc<SealedBlock>,
        hashes: VecDeque<B256>,
    ) -> Self {
        let next_id = accounts.values().map(|account| account.id + 1).max().unwrap_or(0);
        let mut chain = Self {
            accounts,
            codes,
            next_id,
            recent: VecDeque::new(),
            numbers: B256Map::default(),
            transactions: B256Map::default(),
            hashes,
        };
        chain.remember(head);
        chain
    }

    pub fn head(&self) -> &Arc<SealedBlock> {
        // Cannot panic: the constructor adds a block, and `remember` removes one only above the
        // limit.
        &self.recent[self.recent.len() - 1]
    }

    pub fn account(&self, address: &Address) -> Option<&Account> {
        self.accounts.get(address)
    }

    pub fn code(&self, hash: &B256) -> Option<&Bytecode> {
        self.codes.get(hash)
    }

    /// Returns the blocks in memory from `number` on, oldest first.
    pub fn recent_from(&self, number: u64) -> impl Iterator<Item = &Arc<SealedBlock>> {
        let skip = number.saturating_sub(self.oldest_recent());
        self.recent.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX))
    }

    /// Returns the number of the oldest block in memory.
    pub fn oldest_recent(&self) -> u64 {
        self.recent[0].header.number
    }

    pub fn recent_block(&self, number: u64) -> Option<&Arc<SealedBlock>> {
        let index = number.checked_sub(self.oldest_recent())?;
        self.recent.get(usize::try_from(index).ok()?)
    }

    /// Returns the number of a block in memory by its hash.
    pub fn recent_number(&self, hash: &B256) -> Option<u64> {
        self.numbers.get(hash).copied()
    }

    /// Returns the number of the block in memory that contains the transaction.
    pub fn recent_transaction(&self, hash: &B256) -> Option<u64> {
        self.transactions.get(hash).copied()
    }

    /// Makes durable blocks visible to readers.
    pub fn apply(&mut self, staged: Vec<StagedBlock>) {
        for StagedBlock { block, changes } in staged {
            for change in changes {
                self.next_id = self.next_id.max(change.id + 1);
                if change.new_code {
                    self.codes.insert(change.after.code_hash, change.after.code.clone());
                }
                let account = self.accounts.entry(change.address).or_insert_with(|| Account {
                    id: change.id,
                    view: AccountView::default(),
                    storage: HashMap::default(),
                });
                account.view = change.after;
                account.storage.extend(change.slots);
            }
            self.hashes.push_back(block.hash);
            if self.hashes.len() > REACHABLE_HASHES {
                self.hashes.pop_front();
            }
            self.remember(block);
        }
    }

    fn remember(&mut self, block: Arc<SealedBlock>) {
        self.numbers.insert(block.hash, block.header.number);
        if let Some(mined) = &block.mined {
            self.transactions.insert(mined.hash(), block.header.number);
        }
        self.recent.push_back(block);
        if self.recent.len() > RECENT_BLOCKS
            && let Some(old) = self.recent.pop_front()
        {
            self.numbers.remove(&old.hash);
            if let Some(mined) = &old.mined {
                self.transactions.remove(&mined.hash());
            }
        }
    }

    fn hash_of(&self, number: u64) -> B256 {
        let back = self.head().header.number.checked_sub(number).and_then(|back| usize::try_from(back).ok());
        let index = back.and_then(|back| self.hashes.len().checked_sub(back + 1));
        index.map_or(B256::ZERO, |index| self.hashes[index])
    }
}

impl ReadState for ChainState {
    fn account(&self, address: Address) -> Result<Option<AccountView>, EmbeddedError> {
        Ok(self.accounts.get(&address).map(|account| account.view.clone()))
    }

    fn slot(&self, address: Address, slot: U256) -> Result<U256, EmbeddedError> {
        let value = self.accounts.get(&address).and_then(|account| account.storage.get(&slot));
        Ok(value.copied().unwrap_or_default())
    }

    fn block_hash(&self, number: u64) -> Result<B256, EmbeddedError> {
        Ok(self.hash_of(number))
    }
}

/// Executed blocks that are not durable yet, on top of the chain.
#[derive(Debug)]
pub(super) struct Overlay<'a> {
    chain: &'a ChainState,
    accounts: AddressMap<Account>,
    next_id: i64,
    staged: Vec<StagedBlock>,
}

impl<'a> Overlay<'a> {
    pub fn new(chain: &'a ChainState) -> Self {
        Self { chain, accounts: AddressMap::default(), next_id: chain.next_id, staged: Vec::new() }
    }

    /// Returns the parent of the next block.
    pub fn head(&self) -> &Arc<SealedBlock> {
        self.staged.last().map_or_else(|| self.chain.head(), |staged| &staged.block)
    }

    /// Returns true if a staged block contains the transaction.
    pub fn holds(&self, transaction: &B256) -> bool {
        self.staged
            .iter()
            .any(|staged| staged.block.mined.as_ref().is_some_and(|mined| mined.hash() == *transaction))
    }

    /// Adds a block, so that the next one executes on its changes.
    pub fn stage(&mut self, block: Arc<SealedBlock>, mut changes: Vec<AccountChange>) {
        for change in &mut changes {
            let account = self.accounts.entry(change.address).or_insert_with(|| {
                let id = self.chain.accounts.get(&change.address).map_or_else(
                    || {
                        // Assign the id before the commit, because the history rows refer to it.
                        self.next_id += 1;
                        self.next_id - 1
                    },
                    |account| account.id,
                );
                // Only changed slots are stored here. Reads of other slots fall through to the
                // chain.
                Account { id, view: AccountView::default(), storage: HashMap::default() }
            });
            change.id = account.id;
            account.view = change.after.clone();
            account.storage.extend(change.slots.iter().copied());
        }
        self.staged.push(StagedBlock { block, changes });
    }

    pub fn into_staged(self) -> Vec<StagedBlock> {
        self.staged
    }
}

impl ReadState for Overlay<'_> {
    fn account(&self, address: Address) -> Result<Option<AccountView>, EmbeddedError> {
        match self.accounts.get(&address) {
            Some(account) => Ok(Some(account.view.clone())),
            None => ReadState::account(self.chain, address),
        }
    }

    fn slot(&self, address: Address, slot: U256) -> Result<U256, EmbeddedError> {
        match self.accounts.get(&address).and_then(|account| account.storage.get(&slot)) {
            Some(value) => Ok(*value),
            None => self.chain.slot(address, slot),
        }
    }

    fn block_hash(&self, number: u64) -> Result<B256, EmbeddedError> {
        let staged = self.staged.iter().find(|staged| staged.block.header.number == number);
        Ok(staged.map_or_else(|| self.chain.hash_of(number), |staged| staged.block.hash))
    }
}
