//! Transactions, write-ahead: count, fees, sign, send and receipt are separate steps, so that the caller can
//! store the signed bytes before they leave. The same bytes may be sent any number of times; they land at
//! most once.

use std::time::Duration;

use alloy::consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy::eips::BlockId;
use alloy::eips::eip2718::Encodable2718;
use alloy::providers::Provider;
use alloy::rpc::types::TransactionRequest;
use alloy::transports::RpcError;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};

use super::chain::Chain;
use super::error::ChainError;
use super::event::Event;
use super::revert::Revert;
use super::signer::Signer;

/// What a plain transfer uses.
const TRANSFER_GAS: u64 = 21_000;
/// How long `transact` waits for its receipt.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(60);
/// How many looks in a row must find the nonce used and no receipt before the transaction counts as displaced: the nodes
/// behind one address may not all have the newest block.
const LOOKS_WHEN_DISPLACED: u32 = 3;

/// What became of a transaction that was sent.
enum Sent {
    /// It is in a block.
    Mined(Receipt),
    /// Another transaction has its nonce, so it can never be in one.
    Displaced(String),
}

/// EIP-1559 fees, wei per gas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fees {
    /// The most that is paid in all.
    pub max_fee_per_gas: u128,
    /// The most that is paid to the block's builder.
    pub max_priority_fee_per_gas: u128,
}

impl Fees {
    /// What a unit of gas costs at the present base fee, priority fee included. An estimate offers the priority fee and twice
    /// the base fee.
    pub const fn price(self) -> u128 {
        let base_fee = self.max_fee_per_gas.saturating_sub(self.max_priority_fee_per_gas) / 2;
        base_fee.saturating_add(self.max_priority_fee_per_gas)
    }

    /// The same, offering at most `ceiling` in all; `None` if the present price is above it.
    #[must_use]
    pub fn within(self, ceiling: u128) -> Option<Self> {
        (self.price() <= ceiling).then(|| Self {
            max_fee_per_gas: self.max_fee_per_gas.min(ceiling),
            max_priority_fee_per_gas: self.max_priority_fee_per_gas.min(ceiling),
        })
    }

    /// Both raised by an eighth, rounded up, and by 1 wei at least: the least that nodes take in place of a
    /// transaction that is stuck.
    #[must_use]
    pub fn bumped(self) -> Self {
        let bumped = |fee: u128| fee.saturating_add(fee.div_ceil(8).max(1));
        Self {
            max_fee_per_gas: bumped(self.max_fee_per_gas),
            max_priority_fee_per_gas: bumped(self.max_priority_fee_per_gas),
        }
    }
}

/// All that a transaction says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The contract called; none to create one.
    pub to: Option<Address>,
    /// The calldata, or the code that creates the contract.
    pub data: Bytes,
    /// Native currency sent along, wei.
    pub value: U256,
    /// The sender's count.
    pub nonce: u64,
    /// The most gas it may use.
    pub gas_limit: u64,
    /// What is paid for gas.
    pub fees: Fees,
}

/// A signed transaction, ready to be stored and sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTx {
    /// Its hash, by which its receipt is found.
    pub hash: B256,
    /// The bytes to send.
    pub raw: Bytes,
}

/// What the node said to a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// It is in the pool, or in a block already.
    Accepted,
    /// The node had these very bytes.
    AlreadyKnown,
    /// Another transaction, or this one, took the nonce: look for receipts.
    NonceTooLow,
    /// The pool holds another transaction of this nonce, or asks for higher fees.
    Underpriced,
    /// Refused for another reason, in the node's words; it is not in the pool.
    Rejected(String),
}

/// A transaction that is in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The transaction.
    pub tx_hash: B256,
    /// The block's height.
    pub block_number: u64,
    /// The block's hash.
    pub block_hash: B256,
    /// Whether it did not revert.
    pub success: bool,
    /// What it used.
    pub gas_used: u64,
    /// What a unit of it cost, wei.
    pub effective_gas_price: u128,
    /// The contract it created.
    pub contract_address: Option<Address>,
    /// What hub and Gate logged in it, in order.
    pub events: Vec<Event>,
}

impl Chain {
    /// How many of the address's transactions are in blocks: the nonce of its next one, unless some are in
    /// flight.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn transaction_count(&self, address: Address) -> Result<u64, ChainError> {
        self.provider.get_transaction_count(address).await.map_err(ChainError::of_read)
    }

    /// How many of the address's transactions are in blocks up to this height.
    ///
    /// # Errors
    /// What a read gives; `Rejected` if the node does not have that block's state.
    pub async fn transaction_count_at(&self, address: Address, block: u64) -> Result<u64, ChainError> {
        let count = self.provider.get_transaction_count(address).block_id(BlockId::number(block));
        count.await.map_err(ChainError::of_read)
    }

    /// Fees that get a transaction into one of the next blocks.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn fees(&self) -> Result<Fees, ChainError> {
        let fees = self.provider.estimate_eip1559_fees().await.map_err(ChainError::of_read)?;
        Ok(Fees {
            max_fee_per_gas: fees.max_fee_per_gas,
            max_priority_fee_per_gas: fees.max_priority_fee_per_gas,
        })
    }

    /// Native currency of an address, wei: what its transactions' gas is paid from.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn native_balance(&self, address: Address) -> Result<U256, ChainError> {
        self.provider.get_balance(address).await.map_err(ChainError::of_read)
    }

    /// Gas that the transaction would use now.
    ///
    /// # Errors
    /// `Reverted` where it would revert, and what else a read gives.
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

    /// Signs an EIP-1559 transaction. Pure: the same input gives the same bytes.
    ///
    /// # Errors
    /// `Rejected` if the signature cannot be made, `Unreachable` if the chain is not known yet.
    pub fn sign(&self, signer: &Signer, tx: &Transaction) -> Result<SignedTx, ChainError> {
        let chain_id = match self.chain_id() {
            0 => return Err(ChainError::Unreachable("no node has been seen yet".to_owned())),
            chain_id => chain_id,
        };
        let unsigned = TxEip1559 {
            chain_id,
            nonce: tx.nonce,
            gas_limit: tx.gas_limit,
            max_fee_per_gas: tx.fees.max_fee_per_gas,
            max_priority_fee_per_gas: tx.fees.max_priority_fee_per_gas,
            to: tx.to.map_or(TxKind::Create, TxKind::Call),
            value: tx.value,
            access_list: Default::default(),
            input: tx.data.clone(),
        };
        let signature = signer.signature(unsigned.signature_hash())?;
        let signed = TxEnvelope::from(unsigned.into_signed(signature));
        Ok(SignedTx { hash: *signed.tx_hash(), raw: signed.encoded_2718().into() })
    }

    /// Sends signed bytes, once.
    ///
    /// # Errors
    /// `Ambiguous` only: no answer, or none that can be read. The bytes may have arrived; send the same ones
    /// again.
    pub async fn send_raw(&self, raw: &[u8]) -> Result<SendOutcome, ChainError> {
        match self.provider.send_raw_transaction(raw).await {
            Ok(_) => Ok(SendOutcome::Accepted),
            Err(RpcError::ErrorResp(payload)) if payload.is_retry_err() => {
                Err(ChainError::Ambiguous(payload.to_string()))
            }
            Err(RpcError::ErrorResp(payload)) => Ok(refusal(&payload.message)),
            Err(error) => Err(ChainError::Ambiguous(ChainError::of_read(error).to_string())),
        }
    }

    /// The receipt, once the transaction is in a block.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn receipt(&self, hash: B256) -> Result<Option<Receipt>, ChainError> {
        let receipt = self.provider.get_transaction_receipt(hash).await.map_err(ChainError::of_read)?;
        let Some(receipt) = receipt else { return Ok(None) };
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

    /// Sends a transaction and waits for its receipt, 60 s at most: for operators and set-up, where nothing must
    /// survive a crash. Several processes may use the key at the same time: a transaction whose nonce another one took is
    /// signed again under the next.
    ///
    /// # Errors
    /// `Reverted` if it would revert, in which case it is not sent, or did; `Rejected` if the node refuses it;
    /// `Ambiguous` if it is not known to be in a block in time.
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

    /// How many looks fit into the time that `transact` waits.
    const fn polls(&self) -> u128 {
        RECEIPT_TIMEOUT.as_millis().div_ceil(self.poll_interval.as_millis())
    }

    /// How many transactions the address has in blocks and in the node's pool.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn pending_transaction_count(&self, address: Address) -> Result<u64, ChainError> {
        self.provider.get_transaction_count(address).pending().await.map_err(ChainError::of_read)
    }

    /// Sends native currency, in wei, and waits as [`Self::transact`] does.
    ///
    /// # Errors
    /// As [`Self::transact`].
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

    pub(super) async fn transact_at(
        &self,
        signer: &Signer,
        nonce: u64,
        to: Option<Address>,
        data: Bytes,
    ) -> Result<Receipt, ChainError> {
        match self.try_transact_at(signer, nonce, to, data).await? {
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
        // State may move between the estimate and the block: a fifth on top.
        let gas_limit = gas.saturating_add(gas / 5);
        self.send_and_wait(signer, Transaction { to, data, value: U256::ZERO, nonce, gas_limit, fees }).await
    }

    async fn send_and_wait(&self, signer: &Signer, tx: Transaction) -> Result<Sent, ChainError> {
        let signed = self.sign(signer, &tx)?;
        match self.send_raw(&signed.raw).await? {
            SendOutcome::Accepted | SendOutcome::AlreadyKnown => {}
            // Another transaction of this nonce is in a block or in the pool, and this one is not.
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
            // A node that stumbles after the sending does not undo it: go on asking.
            match self.receipt(hash).await {
                Ok(Some(receipt)) => return Ok(Sent::Mined(receipt)),
                // Only a receipt that is still missing after the nonce was seen used says that another one has it.
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

    /// Runs the reverted transaction again on the state before its block, which mostly gives the same reason.
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

/// What a node's refusal means. There are no codes for it: the words of geth and reth, which others follow,
/// decide.
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
    fn a_bump_is_an_eighth_rounded_up_and_never_nothing() {
        let bumped =
            |fee| Fees { max_fee_per_gas: fee, max_priority_fee_per_gas: fee }.bumped().max_fee_per_gas;
        assert_eq!([bumped(0), bumped(1), bumped(8), bumped(9), bumped(u128::MAX)], [1, 2, 9, 11, u128::MAX]);
    }

    #[test]
    fn fees_within_a_ceiling_offer_at_most_that_and_none_are_offered_below_the_present_price() {
        // A base fee of 50 and a priority fee of 2.
        let fees = Fees { max_fee_per_gas: 102, max_priority_fee_per_gas: 2 };
        assert_eq!(fees.price(), 52);
        assert_eq!(fees.within(102), Some(fees));
        assert_eq!(fees.within(52).map(|fees| fees.max_fee_per_gas), Some(52));
        assert_eq!(fees.within(51), None);
    }

    #[test]
    fn refusals_are_read_from_the_words_of_the_common_nodes() {
        assert_eq!(refusal("already known"), SendOutcome::AlreadyKnown);
        assert_eq!(refusal("transaction already imported"), SendOutcome::AlreadyKnown);
        assert_eq!(refusal("nonce too low: next nonce 5, tx nonce 4"), SendOutcome::NonceTooLow);
        assert_eq!(refusal("replacement transaction underpriced"), SendOutcome::Underpriced);
        assert_eq!(refusal("max fee per gas less than block base fee"), SendOutcome::Underpriced);
        assert_eq!(refusal("no funds"), SendOutcome::Rejected("no funds".to_owned()));
    }
}
