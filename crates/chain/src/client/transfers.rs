//! Transfers of USDC from and to an account.

use alloy::providers::Provider;
use alloy::rpc::types::{Filter, Log};
use alloy::sol_types::SolEvent;
use alloy_primitives::{Address, B256};

use super::chain::Chain;
use crate::bindings::token::Token;
use crate::error::ChainError;

/// A transfer of USDC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsdcTransfer {
    pub block_number: u64,
    /// Its position among all logs of the block.
    pub log_index: u64,
    pub tx_hash: B256,
    /// The block's time in Unix seconds.
    pub timestamp_s: u64,
    /// The zero address if the USDC was minted.
    pub sender: Address,
    pub receiver: Address,
    pub usdc_atomic: u64,
}

impl Chain {
    /// Returns the transfers of USDC from or to an account in the blocks `from..=to`, in chain order.
    /// The caller must limit the range: nodes reject large ranges with `Rejected`.
    ///
    /// # Errors
    ///
    /// `Decode` if a log is not a transfer of a block.
    pub async fn usdc_transfers(
        &self,
        account: Address,
        from: u64,
        to: u64,
    ) -> Result<Vec<UsdcTransfer>, ChainError> {
        let filter = || {
            Filter::new()
                .address(self.contracts.usdc)
                .from_block(from)
                .to_block(to)
                .event_signature(Token::Transfer::SIGNATURE_HASH)
        };
        let account = account.into_word();
        let (sent, received) = (filter().topic1(account), filter().topic2(account));
        let (sent, received) =
            tokio::try_join!(self.provider.get_logs(&sent), self.provider.get_logs(&received))
                .map_err(ChainError::of_read)?;
        let mut transfers = Vec::with_capacity(sent.len() + received.len());
        for log in sent.iter().chain(&received).filter(|log| !log.removed) {
            transfers.push(self.usdc_transfer(log).await?);
        }
        transfers.sort_by_key(|transfer| (transfer.block_number, transfer.log_index));
        // A transfer to oneself is in both answers.
        transfers.dedup();
        Ok(transfers)
    }

    async fn usdc_transfer(&self, log: &Log) -> Result<UsdcTransfer, ChainError> {
        let place = (log.block_number, log.log_index, log.transaction_hash);
        let (Some(block_number), Some(log_index), Some(tx_hash)) = place else {
            return Err(ChainError::Decode("a log of a block that is not mined".to_owned()));
        };
        let Token::Transfer { from, to, value } = Token::Transfer::decode_log(&log.inner)?.data;
        // Only some nodes return the block's time with a log.
        let timestamp_s = match log.block_timestamp {
            Some(timestamp_s) => timestamp_s,
            None => self.header(block_number).await?.timestamp,
        };
        let usdc_atomic = value.try_into().map_err(|_| {
            ChainError::Decode(format!("a transfer of {value} atomic units, more than USDC can have"))
        })?;
        Ok(UsdcTransfer {
            block_number,
            log_index,
            tx_hash,
            timestamp_s,
            sender: from,
            receiver: to,
            usdc_atomic,
        })
    }

    /// Returns the first block at or after the time `at_s`, or `head` if all blocks before it are
    /// older.
    pub async fn first_block_since(&self, at_s: u64, head: u64) -> Result<u64, ChainError> {
        let (mut older, mut since) = (0, head);
        while older < since {
            let middle = older + (since - older) / 2;
            match self.header(middle).await?.timestamp < at_s {
                true => older = middle + 1,
                false => since = middle,
            }
        }
        Ok(since)
    }
}
