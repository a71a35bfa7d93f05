//! Intents: one trade of a delegated key, packed into the three words that the Gate reads.

use std::fmt;
use std::str::FromStr;

use alloy::consensus::Transaction as _;
use alloy::providers::Provider;
use alloy::sol_types::SolCall;
use alloy_primitives::{Address, B256, Bytes, U256};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::chain::Chain;
use crate::bindings::Gate;
use crate::error::ChainError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[repr(u8)]
pub enum IntentSide {
    /// Spend exactly `usdc_atomic`, fee included; receive at least `tokens_wad`.
    BuyForUsdc = 0,
    /// Receive exactly `tokens_wad`; spend at most `usdc_atomic`, fee included.
    BuyTokens = 1,
    /// Give exactly `tokens_wad`; receive at least `usdc_atomic`, after the fee.
    SellTokens = 2,
    /// Receive exactly `usdc_atomic`, after the fee; give at most `tokens_wad`.
    SellForUsdc = 3,
    /// Give the whole balance, at most `tokens_wad`; receive at least `usdc_atomic`, after the fee.
    SellAll = 4,
}

impl IntentSide {
    /// All sides, in the contract's order.
    pub const ALL: [Self; 5] =
        [Self::BuyForUsdc, Self::BuyTokens, Self::SellTokens, Self::SellForUsdc, Self::SellAll];

    /// Returns true if USDC leaves the account.
    pub const fn is_buy(self) -> bool {
        matches!(self, Self::BuyForUsdc | Self::BuyTokens)
    }

    pub(super) fn from_wire(value: u8) -> Result<Self, ChainError> {
        let side = Self::ALL.get(usize::from(value)).copied();
        side.ok_or_else(|| ChainError::Decode(format!("there is no side {value}")))
    }
}

impl fmt::Display for IntentSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuyForUsdc => "buyForUsdc",
            Self::BuyTokens => "buyTokens",
            Self::SellTokens => "sellTokens",
            Self::SellForUsdc => "sellForUsdc",
            Self::SellAll => "sellAll",
        })
    }
}

impl FromStr for IntentSide {
    type Err = ChainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let side = Self::ALL.into_iter().find(|side| side.to_string() == text);
        side.ok_or_else(|| ChainError::Decode(format!("there is no side {text:?}")))
    }
}

/// A trade requested by a delegated key. `side` decides which of the two amounts is exact; the
/// other one is a bound that the contracts enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The smart account that trades.
    pub account: Address,
    /// The API key's index among the account's policies.
    pub key_index: u32,
    /// Unique for the account and key, from 1 and below 2^28. The Gate rejects a nonce that is more
    /// than 32 below the highest one used.
    pub nonce: u32,
    /// In Unix seconds. In a later block the intent fails with `DeadlinePassed`.
    pub deadline_s: u32,
    /// The hub's id of the market.
    pub market_id: u64,
    /// Counted from 0.
    pub outcome: u8,
    pub side: IntentSide,
    /// Exact amount or bound, by `side`.
    pub usdc_atomic: u64,
    /// Exact amount or bound, by `side`.
    pub tokens_wad: u128,
    /// The id under which events report the trade.
    pub trade_id: Uuid,
}

impl Intent {
    /// Packs the intent into the words `who`, `what` and `bound` of `IGate.Intent`.
    pub fn pack(&self) -> [U256; 3] {
        // Bits: account 160, key index 32, nonce 32, deadline 32.
        let who = (U256::from_be_slice(self.account.as_slice()) << 96)
            | (U256::from(self.key_index) << 64)
            | (U256::from(self.nonce) << 32)
            | U256::from(self.deadline_s);
        // Bits: market 64, outcome 8, side 8, USDC 64.
        let what = (U256::from(self.market_id) << 80)
            | (U256::from(self.outcome) << 72)
            | (U256::from(self.side as u8) << 64)
            | U256::from(self.usdc_atomic);
        // Bits: tokens 128, trade id 128.
        let bound = (U256::from(self.tokens_wad) << 128) | U256::from(self.trade_id.as_u128());
        [who, what, bound]
    }

    /// Unpacks the words `who`, `what` and `bound`.
    ///
    /// # Errors
    ///
    /// `Decode` if the words are not an intent.
    pub fn unpack([who, what, bound]: [U256; 3]) -> Result<Self, ChainError> {
        let low_u32 = |word: U256| (word & U256::from(u32::MAX)).to::<u32>();
        let low_u64 = |word: U256| (word & U256::from(u64::MAX)).to::<u64>();
        let low_u128 = |word: U256| (word & U256::from(u128::MAX)).to::<u128>();
        Ok(Self {
            account: Address::from_slice(&who.to_be_bytes::<32>()[..20]),
            key_index: low_u32(who >> 64),
            nonce: low_u32(who >> 32),
            deadline_s: low_u32(who),
            market_id: low_u64(what >> 80),
            outcome: (what >> 72usize).byte(0),
            side: IntentSide::from_wire((what >> 64usize).byte(0))?,
            usdc_atomic: low_u64(what),
            tokens_wad: low_u128(bound >> 128),
            trade_id: Uuid::from_u128(low_u128(bound)),
        })
    }
}

impl Chain {
    /// Returns the intents that a transaction passed to the Gate. Returns none if the transaction
    /// called something else or the node does not have it.
    pub async fn intents_of(&self, tx_hash: B256) -> Result<Vec<Intent>, ChainError> {
        let found = self.provider.get_transaction_by_hash(tx_hash).await.map_err(ChainError::of_read)?;
        let Some(transaction) = found.filter(|found| found.to() == Some(self.contracts.gate)) else {
            return Ok(Vec::new());
        };
        let Ok(call) = Gate::executeCall::abi_decode(transaction.input()) else { return Ok(Vec::new()) };
        call.intents.into_iter().map(|words| Intent::unpack([words.who, words.what, words.bound])).collect()
    }
}

/// Returns the calldata of `Gate.execute` for at most 100 intents. The sender must be an executor.
pub fn execute_calldata(intents: &[Intent]) -> Bytes {
    let intents = intents.iter().map(|intent| {
        let [who, what, bound] = intent.pack();
        Gate::Intent { who, what, bound }
    });
    Gate::executeCall { intents: intents.collect() }.abi_encode().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_is_packed_from_the_high_bits_down() {
        let intent = Intent {
            account: Address::repeat_byte(0xaa),
            key_index: 1,
            nonce: 2,
            deadline_s: 3,
            market_id: 0x0405,
            outcome: 6,
            side: IntentSide::SellAll,
            usdc_atomic: 7,
            tokens_wad: 8,
            trade_id: Uuid::from_u128(9),
        };
        let [who, what, bound] = intent.pack().map(|word| format!("{word:064x}"));
        assert_eq!(who, format!("{}000000010000000200000003", "aa".repeat(20)));
        assert_eq!(what, format!("{}000000000000040506040000000000000007", "0".repeat(28)));
        assert_eq!(bound, format!("{:032x}{:032x}", 8, 9));
        assert_eq!(Intent::unpack(intent.pack()), Ok(intent));
    }

    #[test]
    fn side_names_round_trip() {
        for side in IntentSide::ALL {
            assert_eq!(side.to_string().parse(), Ok(side));
            assert_eq!(IntentSide::from_wire(side as u8), Ok(side));
        }
        assert!(IntentSide::from_wire(5).is_err());
    }
}
