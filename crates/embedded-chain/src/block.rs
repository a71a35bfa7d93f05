//! Seals blocks and encodes them for the database.
//!
//! Blocks are regular Ethereum blocks: the hash is the hash of the header, and the transaction and
//! receipt roots are real tries. Only the state root differs, because this chain stores no state
//! trie. It is a hash of the parent's state root and the block's changes, so it still commits to
//! the whole state through its history.

use alloy::consensus::constants::{EMPTY_OMMER_ROOT_HASH, EMPTY_ROOT_HASH};
use alloy::consensus::proofs::{calculate_receipt_root, calculate_transaction_root};
use alloy::consensus::{Header, Receipt, ReceiptEnvelope, ReceiptWithBloom, Transaction as _, TxEnvelope};
use alloy::eips::eip2718::{Decodable2718 as _, Encodable2718 as _};
use alloy::eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_primitives::{Address, B256, Bytes, Keccak256, Log, address, keccak256, logs_bloom};

use crate::account::AccountChange;
use crate::error::EmbeddedError;
use crate::evm::{BlockContext, Execution, ExecutionOutcome};

/// The address that receives priority fees. Nobody has its key.
pub(super) const BENEFICIARY: Address = address!("0x00000000000000000000000000000000466f7265");

/// A decoded signed transaction with its signer.
#[derive(Debug, Clone)]
pub(super) struct SignedTransaction {
    pub envelope: TxEnvelope,
    pub sender: Address,
}

/// The only transaction of a block, with its receipt.
#[derive(Debug, Clone)]
pub(super) struct MinedTransaction {
    pub transaction: SignedTransaction,
    pub receipt: ReceiptEnvelope,
}

impl MinedTransaction {
    pub fn hash(&self) -> B256 {
        *self.transaction.envelope.tx_hash()
    }

    pub fn logs(&self) -> &[Log] {
        self.receipt.logs()
    }

    /// Returns the gas of this transaction. It equals the cumulative gas because the block has no
    /// other transaction.
    pub fn gas_used(&self) -> u64 {
        self.receipt.cumulative_gas_used()
    }

    pub fn created(&self) -> Option<Address> {
        let envelope = &self.transaction.envelope;
        envelope.to().is_none().then(|| self.transaction.sender.create(envelope.nonce()))
    }
}

/// A block that is durable or about to become so.
#[derive(Debug, Clone)]
pub(super) struct SealedBlock {
    pub hash: B256,
    pub header: Header,
    /// `None` in block 0 and in a block mined on request.
    pub mined: Option<MinedTransaction>,
}

/// Returns the environment of the block after `parent`. Its time is `now_s` (Unix seconds), or the
/// parent's time if that is later.
pub(super) fn next_context(chain_id: u64, parent: &SealedBlock, now_s: u64) -> BlockContext {
    let number = parent.header.number + 1;
    let mut entropy = Keccak256::new();
    entropy.update(parent.hash);
    entropy.update(number.to_be_bytes());
    BlockContext {
        chain_id,
        number,
        timestamp: parent.header.timestamp.max(now_s),
        gas_limit: parent.header.gas_limit,
        base_fee: parent.header.base_fee_per_gas.unwrap_or_default(),
        beneficiary: parent.header.beneficiary,
        // Predictable, so contracts must not rely on it. A chain with a single node has no better
        // source.
        prevrandao: entropy.finalize(),
    }
}

/// Returns the environment of a call at `block`.
pub(super) fn context_of(chain_id: u64, block: &SealedBlock) -> BlockContext {
    let header = &block.header;
    BlockContext {
        chain_id,
        number: header.number,
        timestamp: header.timestamp,
        gas_limit: header.gas_limit,
        base_fee: header.base_fee_per_gas.unwrap_or_default(),
        beneficiary: header.beneficiary,
        prevrandao: header.mix_hash,
    }
}

pub(super) fn seal_genesis(template: Header, timestamp_s: u64, changes: &[AccountChange]) -> SealedBlock {
    let template = Header { state_root: EMPTY_ROOT_HASH, beneficiary: BENEFICIARY, ..template };
    let mut header = header(&template, timestamp_s, changes);
    header.gas_limit = template.gas_limit;
    SealedBlock { hash: header.hash_slow(), header, mined: None }
}

pub(super) fn seal_empty(context: &BlockContext, parent: &SealedBlock) -> SealedBlock {
    let header = following(context, parent, &[]);
    SealedBlock { hash: header.hash_slow(), header, mined: None }
}

/// Seals the block of one executed transaction.
pub(super) fn seal(
    context: &BlockContext,
    parent: &SealedBlock,
    transaction: SignedTransaction,
    execution: Execution,
    changes: &[AccountChange],
) -> SealedBlock {
    let bloom = logs_bloom(&execution.logs);
    let receipt = Receipt {
        status: matches!(execution.ending, ExecutionOutcome::Returned(_)).into(),
        cumulative_gas_used: execution.gas_used,
        logs: execution.logs,
    };
    let receipt = ReceiptWithBloom { receipt, logs_bloom: bloom };
    let receipt = ReceiptEnvelope::from_typed(transaction.envelope.tx_type(), receipt);

    let mut header = following(context, parent, changes);
    header.transactions_root = calculate_transaction_root(std::slice::from_ref(&transaction.envelope));
    header.receipts_root = calculate_receipt_root(std::slice::from_ref(&receipt));
    header.logs_bloom = bloom;
    header.gas_used = execution.gas_used;
    SealedBlock { hash: header.hash_slow(), header, mined: Some(MinedTransaction { transaction, receipt }) }
}

fn following(context: &BlockContext, parent: &SealedBlock, changes: &[AccountChange]) -> Header {
    let mut header = header(&parent.header, context.timestamp, changes);
    header.parent_hash = parent.hash;
    header.number = context.number;
    header.mix_hash = context.prevrandao;
    header
}

/// Builds a header without transactions. The caller sets the number, parent hash and randomness.
fn header(parent: &Header, timestamp: u64, changes: &[AccountChange]) -> Header {
    Header {
        parent_hash: B256::ZERO,
        ommers_hash: EMPTY_OMMER_ROOT_HASH,
        beneficiary: parent.beneficiary,
        state_root: state_root(parent.state_root, changes),
        transactions_root: EMPTY_ROOT_HASH,
        receipts_root: EMPTY_ROOT_HASH,
        gas_limit: parent.gas_limit,
        timestamp,
        extra_data: Bytes::from_static(b"foretell"),
        base_fee_per_gas: parent.base_fee_per_gas,
        withdrawals_root: Some(EMPTY_ROOT_HASH),
        // Headers must have these fields since Cancun and Prague, even without blobs.
        blob_gas_used: Some(0),
        excess_blob_gas: Some(0),
        parent_beacon_block_root: Some(B256::ZERO),
        requests_hash: Some(EMPTY_REQUESTS_HASH),
        ..Header::default()
    }
}

/// Returns the parent's root if nothing changed, otherwise a hash of it and the sorted changes.
fn state_root(parent: B256, changes: &[AccountChange]) -> B256 {
    if changes.is_empty() {
        return parent;
    }
    let mut bytes = Vec::with_capacity(32 + changes.len() * 160);
    bytes.extend_from_slice(parent.as_slice());
    for change in changes {
        bytes.extend_from_slice(change.address.as_slice());
        bytes.extend_from_slice(&change.after.nonce.to_be_bytes());
        bytes.extend_from_slice(&change.after.balance.to_be_bytes::<32>());
        bytes.extend_from_slice(change.after.code_hash.as_slice());
        // The length separates the slots from the next account's data.
        bytes.extend_from_slice(&(change.slots.len() as u64).to_be_bytes());
        for (slot, value) in &change.slots {
            bytes.extend_from_slice(&slot.to_be_bytes::<32>());
            bytes.extend_from_slice(&value.to_be_bytes::<32>());
        }
    }
    keccak256(bytes)
}

/// The columns of a stored block. Gas, fees and a created contract's address are derived from
/// these.
#[derive(Debug)]
pub(super) struct StoredBlock<'a> {
    pub hash: &'a [u8],
    pub header: &'a [u8],
    /// Sender, transaction and receipt, the latter two in EIP-2718 encoding.
    pub mined: Option<(&'a [u8], &'a [u8], &'a [u8])>,
}

impl StoredBlock<'_> {
    pub fn header(&self) -> Result<Header, EmbeddedError> {
        alloy::rlp::decode_exact(self.header).map_err(|error| EmbeddedError::corrupt("blocks.header", error))
    }

    pub fn decode(&self) -> Result<SealedBlock, EmbeddedError> {
        let hash = B256::try_from(self.hash).map_err(|error| EmbeddedError::corrupt("blocks.hash", error))?;
        let mined = self.mined.map(|(sender, transaction, receipt)| -> Result<_, EmbeddedError> {
            let sender =
                Address::try_from(sender).map_err(|error| EmbeddedError::corrupt("blocks.sender", error))?;
            let envelope = TxEnvelope::decode_2718_exact(transaction)
                .map_err(|error| EmbeddedError::corrupt("blocks.transaction", error))?;
            let receipt = ReceiptEnvelope::decode_2718_exact(receipt)
                .map_err(|error| EmbeddedError::corrupt("blocks.receipt", error))?;
            Ok(MinedTransaction { transaction: SignedTransaction { envelope, sender }, receipt })
        });
        Ok(SealedBlock { hash, header: self.header()?, mined: mined.transpose()? })
    }
}

impl SealedBlock {
    pub fn encoded_header(&self) -> Vec<u8> {
        alloy::rlp::encode(&self.header)
    }
}

impl MinedTransaction {
    pub fn encoded_transaction(&self) -> Vec<u8> {
        self.transaction.envelope.encoded_2718()
    }

    pub fn encoded_receipt(&self) -> Vec<u8> {
        self.receipt.encoded_2718()
    }
}
