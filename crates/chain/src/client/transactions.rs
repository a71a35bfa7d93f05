//! Write-ahead transactions. Nonce, fees, signing, sending and the receipt are separate steps, so
//! that the caller can store the signed bytes before sending them. The same bytes can be sent any
//! number of times and are executed at most once.

use std::time::Duration;

use alloy::consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy::eips::BlockId;
use alloy::eips::eip2718::Encodable2718;
use alloy::providers::Provider;
use alloy::rpc::types::TransactionRequest;
use alloy::transports::RpcError;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};

use super::chain::Chain;
use super::event::ChainEvent;
use super::signer::Signer;
use crate::error::ChainError;
use crate::revert::Revert;

/// The gas of a plain transfer.
const TRANSFER_GAS: u64 = 21_000;
/// The time for which `transact` waits for a receipt.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(60);
/// The number of consecutive queries that must find the nonce used but no receipt before the
/// transaction counts as displaced. One query is not enough: the nodes behind one URL may not all
/// have the newest block.
const LOOKS_WHEN_DISPLACED: u32 = 3;

/// The result of a transaction that was sent.
enum Sent {
    Mined(Receipt),
    /// Another transaction used the nonce, so this one can never be mined.
    Displaced(String),
}

/// EIP-1559 fees, in wei per gas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fees {
    /// The maximum total fee.
    pub max_fee_per_gas: u128,
    /// The maximum fee for the block's builder.
    pub max_priority_fee_per_gas: u128,
}

impl Fees {
    /// Returns the price of a unit of gas at the current base fee, priority fee included. Assumes
    /// that `self` is an estimate, which offers the priority fee and twice the base fee.
    pub const fn price(self) -> u128 {
        let base_fee = self.max_fee_per_gas.saturating_sub(self.max_priority_fee_per_gas) / 2;
        base_fee.saturating_add(self.max_priority_fee_per_gas)
    }

    /// Limits the fees to `ceiling`. Returns `None` if the current price is above it.
    #[must_use]
    pub fn within(self, ceiling: u128) -> Option<Self> {
        (self.price() <= ceiling).then(|| Self {
            max_fee_per_gas: self.max_fee_per_gas.min(ceiling),
            max_priority_fee_per_gas: self.max_priority_fee_per_gas.min(ceiling),
        })
    }

    /// Raises both fees by an eighth, rounded up, and by at least 1 wei. This is the smallest raise
    /// at which nodes replace a pending transaction.
    #[must_use]
    pub fn bumped(self) -> Self {
        let bumped = |fee: u128| fee.saturating_add(fee.div_ceil(8).max(1));
        Self {
            max_fee_per_gas: bumped(self.max_fee_per_gas),
            max_priority_fee_per_gas: bumped(self.max_priority_fee_per_gas),
        }
    }
}

/// The content of a transaction before it is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The called contract; `None` to create one.
    pub to: Option<Address>,
    /// The calldata, or the creation code of the contract.
    pub data: Bytes,
    /// Native currency to send, in wei.
    pub value: U256,
    pub nonce: u64,
    pub gas_limit: u64,
    pub fees: Fees,
}

/// A signed transaction, ready to be stored and sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTx {
    pub hash: B256,
    pub raw: Bytes,
}

/// The node's answer to a sent transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// The transaction is in the pool or in a block.
    Accepted,
    /// The node already had exactly this transaction.
    AlreadyKnown,
    /// This or another transaction has used the nonce: look up the receipts.
    NonceTooLow,
    /// The pool has another transaction with this nonce, or requires higher fees.
    Underpriced,
    /// Rejected for another reason, with the node's message. The transaction is not in the pool.
    Rejected(String),
}

/// The receipt of a mined transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub tx_hash: B256,
    pub block_number: u64,
    pub block_hash: B256,
    /// False if the transaction reverted.
    pub success: bool,
    pub gas_used: u64,
    /// In wei per gas.
    pub effective_gas_price: u128,
    /// The address of the created contract, if any.
    pub contract_address: Option<Address>,
    /// The events of the hub and the Gate in the transaction, in order.
    pub events: Vec<ChainEvent>,
}

impl Chain {
    /// Returns the number of the address's mined transactions. This is its next nonce, unless
    /// transactions are pending.
    pub async fn transaction_count(&self, address: Address) -> Result<u64, ChainError> {
        self.provider.get_transaction_count(address).await.map_err(ChainError::of_read)
    }

    /// Returns the number of the address's transactions mined up to this height.
    ///
    /// # Errors
    ///
    /// `Rejected` if the node lacks that block's state.
    pub async fn transaction_count_at(&self, address: Address, block: u64) -> Result<u64, ChainError> {
        let count = self.provider.get_transaction_count(address).block_id(BlockId::number(block));
        count.await.map_err(ChainError::of_read)
    }

    /// Returns fees with which a transaction is likely to be in one of the next blocks.
    pub async fn fees(&self) -> Result<Fees, ChainError> {
        let fees = self.provider.estimate_eip1559_fees().await.map_err(ChainError::of_read)?;
        Ok(Fees {
            max_fee_per_gas: fees.max_fee_per_gas,
            max_priority_fee_per_gas: fees.max_priority_fee_per_gas,
        })
    }

    /// Returns the native balance that pays for the address's gas, in wei.
    pub async fn native_balance(&self, address: Address) -> Result<U256, ChainError> {
        self.provider.get_balance(address).await.map_err(ChainError::of_read)
    }

    /// Returns the gas that the transaction would use now.
    ///
    /// # Errors
    ///
    /// `Reverted` if it would revert.
    pub async fn estimate_gas(
        &self,
        from: Address,
        to: Option<Address>,
        data: Bytes,
    ) -> Result<u64, ChainError> {
        let request = TransactionRequest {
            from: Some(from),
            to: Some(to.map_or(TxKind::Create, TxKind::Call)),
            input: data.into(),
            ..TransactionRequest::default()
        };
        self.provider.estimate_gas(request).await.map_err(ChainError::of_read)
    }

    /// Signs an EIP-1559 transaction. Deterministic: the same input gives the same bytes.
    ///
    /// # Errors
    ///
    /// `Rejected` if the signature cannot be created. `Unreachable` if no node has reported the
    /// chain id yet.
    pub fn sign(&self, signer: &Signer, tx: &Transaction) -> Result<SignedTx, ChainError> {
        let unsigned = self.unsigned(tx)?;
        let signature = signer.signature(unsigned.signature_hash())?;
        let signed = TxEnvelope::from(unsigned.into_signed(signature));
        Ok(SignedTx { hash: *signed.tx_hash(), raw: signed.encoded_2718().into() })
    }

    /// Returns the transaction that is signed.
    ///
    /// # Errors
    ///
    /// `Unreachable` if no node has reported the chain id yet.
    pub(super) fn unsigned(&self, tx: &Transaction) -> Result<TxEip1559, ChainError> {
        // A signature for chain id 0 would be valid on no chain.
        let chain_id = match self.chain_id() {
            0 => return Err(ChainError::Unreachable("no node has been seen yet".to_owned())),
            chain_id => chain_id,
        };
        Ok(TxEip1559 {
            chain_id,
            nonce: tx.nonce,
            gas_limit: tx.gas_limit,
            max_fee_per_gas: tx.fees.max_fee_per_gas,
            max_priority_fee_per_gas: tx.fees.max_priority_fee_per_gas,
            to: tx.to.map_or(TxKind::Create, TxKind::Call),
            value: tx.value,
            access_list: Default::default(),
            input: tx.data.clone(),
        })
    }

    /// Sends signed bytes once.
    ///
    /// # Errors
    ///
    /// Only `Ambiguous`: no answer arrived, or the answer is unreadable. The node may have received
    /// the bytes: send the same ones again.
    pub async fn send_raw(&self, raw: &[u8]) -> Result<SendOutcome, ChainError> {
        match self.provider.send_raw_transaction(raw).await {
            Ok(_) => Ok(SendOutcome::Accepted),
            // A retryable error does not prove that the bytes went nowhere.
            Err(RpcError::ErrorResp(payload)) if payload.is_retry_err() => {
                Err(ChainError::Ambiguous(payload.to_string()))
            }
            Err(RpcError::ErrorResp(payload)) => Ok(refusal(&payload.message)),
            Err(error) => Err(ChainError::Ambiguous(ChainError::of_read(error).to_string())),
        }
    }

    /// Returns the receipt, or `None` while the transaction is not in a block.
    pub async fn receipt(&self, hash: B256) -> Result<Option<Receipt>, ChainError> {
        let receipt = self.provider.get_transaction_receipt(hash).await.map_err(ChainError::of_read)?;
        let Some(receipt) = receipt else { return Ok(None) };
        // A receipt without a block belongs to a pending transaction.
        let (Some(block_number), Some(block_hash)) = (receipt.block_number, receipt.block_hash) else {
            return Ok(None);
        };
        Ok(Some(Receipt {
            tx_hash: receipt.transaction_hash,
            block_number,
            block_hash,
            success: receipt.status(),
            gas_used: receipt.gas_used,
            effective_gas_price: receipt.effective_gas_price,
            contract_address: receipt.contract_address,
            events: self.decode_logs(receipt.logs())?,
        }))
    }

    /// Sends a transaction and waits up to 60 s for its receipt. For operators and setup, which
    /// need no protection against a crash.
    ///
    /// Several processes may use the key at the same time: if another transaction takes the nonce,
    /// this one is signed again with the next nonce.
    ///
    /// # Errors
    ///
    /// `Reverted` if it would revert (it is then not sent) or did revert. `Rejected` if the node
    /// rejects it. `Ambiguous` if no receipt arrives in time.
    pub async fn transact(
        &self,
        signer: &Signer,
        to: Option<Address>,
        data: Bytes,
    ) -> Result<Receipt, ChainError> {
        let mut pause = tokio::time::interval(self.poll_interval);
        let mut displaced = String::new();
        for _ in 0..self.polls() {
            pause.tick().await;
            let nonce = self.pending_transaction_count(signer.address()).await?;
            match self.try_transact_at(signer, nonce, to, data.clone()).await? {
                Sent::Mined(receipt) => return Ok(receipt),
                Sent::Displaced(why) => displaced = why,
            }
        }
        Err(ChainError::Rejected(displaced))
    }

    /// The number of receipt queries within the timeout of `transact`.
    const fn polls(&self) -> u128 {
        RECEIPT_TIMEOUT.as_millis().div_ceil(self.poll_interval.as_millis())
    }

    /// Returns the number of the address's transactions in blocks and in the node's pool.
    pub async fn pending_transaction_count(&self, address: Address) -> Result<u64, ChainError> {
        self.provider.get_transaction_count(address).pending().await.map_err(ChainError::of_read)
    }

    /// Sends native currency, in wei, and waits like [`Self::transact`].
    ///
    /// # Errors
    ///
    /// As for [`Self::transact`], and `Rejected` if another transaction takes the nonce.
    pub async fn send_native(&self, signer: &Signer, to: Address, wei: U256) -> Result<Receipt, ChainError> {
        let nonce = self.transaction_count(signer.address()).await?;
        let fees = self.fees().await?;
        let tx = Transaction {
            to: Some(to),
            data: Bytes::new(),
            value: wei,
            nonce,
            gas_limit: TRANSFER_GAS,
            fees,
        };
        match self.send_and_wait(signer, tx).await? {
            Sent::Mined(receipt) => Ok(receipt),
            Sent::Displaced(why) => Err(ChainError::Rejected(why)),
        }
    }

    async fn try_transact_at(
        &self,
        signer: &Signer,
        nonce: u64,
        to: Option<Address>,
        data: Bytes,
    ) -> Result<Sent, ChainError> {
        let from = signer.address();
        let (fees, gas) = tokio::try_join!(self.fees(), self.estimate_gas(from, to, data.clone()))?;
        // The state may change between the estimate and the block: add a fifth.
        let gas_limit = gas.saturating_add(gas / 5);
        self.send_and_wait(signer, Transaction { to, data, value: U256::ZERO, nonce, gas_limit, fees }).await
    }

    async fn send_and_wait(&self, signer: &Signer, tx: Transaction) -> Result<Sent, ChainError> {
        let signed = self.sign(signer, &tx)?;
        match self.send_raw(&signed.raw).await? {
            SendOutcome::Accepted | SendOutcome::AlreadyKnown => {}
            // Another transaction with this nonce is in a block or in the pool; this one is not.
            refused @ (SendOutcome::NonceTooLow | SendOutcome::Underpriced) => {
                return Ok(Sent::Displaced(format!("{refused:?}")));
            }
            refused => return Err(ChainError::Rejected(format!("{refused:?}"))),
        }
        match self.await_receipt(signer.address(), tx.nonce, signed.hash).await? {
            Sent::Mined(receipt) if !receipt.success => {
                Err(self.why_reverted(signer.address(), &tx, &receipt).await)
            }
            sent => Ok(sent),
        }
    }

    async fn await_receipt(&self, from: Address, nonce: u64, hash: B256) -> Result<Sent, ChainError> {
        let mut ticks = tokio::time::interval(self.poll_interval);
        let (mut looks_without, mut is_used) = (0, false);
        for _ in 0..=self.polls() {
            ticks.tick().await;
            // An error after sending does not undo it: continue polling.
            match self.receipt(hash).await {
                Ok(Some(receipt)) => return Ok(Sent::Mined(receipt)),
                // A missing receipt proves a displaced transaction only if the nonce was used
                // before the query.
                Ok(None) if is_used => looks_without += 1,
                _ => looks_without = 0,
            }
            if looks_without >= LOOKS_WHEN_DISPLACED {
                return Ok(Sent::Displaced(format!("another transaction took the nonce {nonce}")));
            }
            is_used = self.transaction_count(from).await.is_ok_and(|count| count > nonce);
        }
        Err(ChainError::Ambiguous(format!("no receipt of {hash} within 60 s")))
    }

    /// Returns the reason of a reverted transaction. Runs it again on the state before its block,
    /// which usually gives the same reason.
    async fn why_reverted(&self, from: Address, tx: &Transaction, receipt: &Receipt) -> ChainError {
        let request = TransactionRequest {
            from: Some(from),
            to: Some(tx.to.map_or(TxKind::Create, TxKind::Call)),
            input: tx.data.clone().into(),
            ..TransactionRequest::default()
        };
        let before = BlockId::number(receipt.block_number.saturating_sub(1));
        match self.provider.call(request).block(before).await.map_err(ChainError::of_read) {
            Err(ChainError::Reverted(reason)) => ChainError::Reverted(reason),
            _ => ChainError::Reverted(Revert::Other(format!("in transaction {}", receipt.tx_hash))),
        }
    }
}

const UNDERPRICED: &[&str] =
    &["underpriced", "fee too low", "feetoolow", "less than block base fee", "replacementnotallowed"];

/// Classifies a node's error message. There are no error codes for this: the messages of geth and
/// reth decide, which other nodes follow.
fn refusal(message: &str) -> SendOutcome {
    let lower = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| lower.contains(words));
    if says(&["already known", "already imported", "known transaction", "alreadyknown"]) {
        SendOutcome::AlreadyKnown
    } else if says(&["nonce too low", "nonce is too low", "old nonce", "oldnonce"]) {
        SendOutcome::NonceTooLow
    } else if says(UNDERPRICED) {
        SendOutcome::Underpriced
    } else {
        SendOutcome::Rejected(message.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fee_bump_is_an_eighth_rounded_up_and_at_least_one() {
        let bumped =
            |fee| Fees { max_fee_per_gas: fee, max_priority_fee_per_gas: fee }.bumped().max_fee_per_gas;
        assert_eq!([bumped(0), bumped(1), bumped(8), bumped(9), bumped(u128::MAX)], [1, 2, 9, 11, u128::MAX]);
    }

    #[test]
    fn a_fee_ceiling_below_the_current_price_gives_no_fees() {
        // A base fee of 50 and a priority fee of 2.
        let fees = Fees { max_fee_per_gas: 102, max_priority_fee_per_gas: 2 };
        assert_eq!(fees.price(), 52);
        assert_eq!(fees.within(102), Some(fees));
        assert_eq!(fees.within(52).map(|fees| fees.max_fee_per_gas), Some(52));
        assert_eq!(fees.within(51), None);
    }

    #[test]
    fn rejections_of_the_common_nodes_are_recognized() {
        assert_eq!(refusal("already known"), SendOutcome::AlreadyKnown);
        assert_eq!(refusal("transaction already imported"), SendOutcome::AlreadyKnown);
        assert_eq!(refusal("nonce too low: next nonce 5, tx nonce 4"), SendOutcome::NonceTooLow);
        assert_eq!(refusal("replacement transaction underpriced"), SendOutcome::Underpriced);
        assert_eq!(refusal("max fee per gas less than block base fee"), SendOutcome::Underpriced);
        assert_eq!(refusal("no funds"), SendOutcome::Rejected("no funds".to_owned()));
    }
}
