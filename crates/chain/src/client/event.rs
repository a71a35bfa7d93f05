//! Decodes the logs of the hub and the Gate into the crate's own events.

use alloy::providers::Provider;
use alloy::rpc::types::{Filter, Log};
use alloy::sol_types::{SolEvent, SolEventInterface};
use alloy_primitives::{Address, B256, U256};
use uuid::Uuid;

use super::chain::Chain;
use super::intent::IntentSide;
use super::state::{ChainMarketStatus, market_and_outcome};
use crate::bindings::{Account, Gate, MarketHub};
use crate::error::ChainError;
use crate::revert::Revert;

/// A decoded log with its position on the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainEvent {
    pub block_number: u64,
    pub block_hash: B256,
    pub tx_hash: B256,
    /// Its position among all logs of the block.
    pub log_index: u64,
    /// The block's time in Unix seconds, if the node returns it with the log.
    pub timestamp_s: Option<u64>,
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// `quantities_wad` are the opening `q_i`, `cost_wad` is the opening `C`.
    MarketCreated {
        market_id: u64,
        reference: B256,
        outcomes: u8,
        fee_bps: u16,
        close_time_s: u64,
        liquidity_usdc_atomic: u64,
        cost_wad: U256,
        quantities_wad: Vec<U256>,
    },
    /// `status` is the new status.
    MarketStatusChanged { market_id: u64, status: ChainMarketStatus },
    /// A result was proposed. It can be vetoed until `finalizable_at_s` (Unix seconds).
    ResolutionProposed { market_id: u64, payouts_wad: Vec<U256>, finalizable_at_s: u64 },
    /// A cancel at the reference prices was proposed. It can be vetoed until `finalizable_at_s`
    /// (Unix seconds).
    CancelProposed { market_id: u64, payouts_wad: Vec<U256>, finalizable_at_s: u64 },
    /// The guardian vetoed the proposal of a result or a cancel.
    ResolutionVetoed { market_id: u64 },
    /// `payouts_wad` is the payment for one token of each outcome.
    MarketResolved { market_id: u64, payouts_wad: Vec<U256> },
    /// `payouts_wad` is the payment for one token of each outcome.
    MarketCancelled { market_id: u64, payouts_wad: Vec<U256> },
    /// An account exchanged USDC for the same number of tokens of every outcome (`is_split`), or
    /// such tokens for USDC. `cost_wad` is `C` afterwards. Every `q_i` changed by the same amount
    /// as `C`.
    SetsMoved { account: Address, market_id: u64, is_split: bool, usdc_atomic: u64, cost_wad: U256 },
    /// `trade_id` is `None` if the trade did not come through the Gate. `cost_wad` and
    /// `quantity_wad` are `C` and `q_i` afterwards.
    Trade {
        trade_id: Option<Uuid>,
        account: Address,
        market_id: u64,
        outcome: u8,
        side: IntentSide,
        usdc_atomic: u64,
        tokens_wad: u128,
        fee_atomic: u64,
        cost_wad: U256,
        quantity_wad: U256,
    },
    /// A position was paid.
    Redeemed { account: Address, market_id: u64, outcome: u8, tokens_wad: u128, usdc_atomic: u64 },
    /// Tokens moved between two holders outside of trading.
    Transfer { sender: Address, receiver: Address, market_id: u64, outcome: u8, tokens_wad: u128 },
    /// The Gate consumed an intent's nonce without a trade.
    IntentFailed { trade_id: Uuid, account: Address, key_index: u32, nonce: u32, reason: Revert },
    /// The intent's nonce was already consumed: an earlier event has its result.
    IntentDuplicate { trade_id: Uuid, account: Address, key_index: u32, nonce: u32 },
    /// A key's caps and expiry were set, reduced or revoked (`expiry_s` is then 0).
    PolicySet {
        account: Address,
        key_index: u32,
        per_trade_usdc_atomic: u64,
        daily_usdc_atomic: u64,
        sale_per_trade_usdc_atomic: u64,
        sale_daily_usdc_atomic: u64,
        expiry_s: u64,
    },
    /// A log of the hub or the Gate that cannot be decoded, for example a transfer of a token id
    /// that does not exist. Any address can cause such a log. `market_id` is the market that the
    /// log names, if it names one.
    Undecodable { market_id: Option<u64>, detail: String },
}

impl EventKind {
    /// The hub's id of the market that the event belongs to, if any.
    pub fn market_id(&self) -> Option<u64> {
        match self {
            Self::MarketCreated { market_id, .. }
            | Self::MarketStatusChanged { market_id, .. }
            | Self::ResolutionProposed { market_id, .. }
            | Self::ResolutionVetoed { market_id }
            | Self::MarketResolved { market_id, .. }
            | Self::MarketCancelled { market_id, .. }
            | Self::CancelProposed { market_id, .. }
            | Self::SetsMoved { market_id, .. }
            | Self::Trade { market_id, .. }
            | Self::Redeemed { market_id, .. }
            | Self::Transfer { market_id, .. } => Some(*market_id),
            Self::Undecodable { market_id, .. } => *market_id,
            Self::IntentFailed { .. } | Self::IntentDuplicate { .. } | Self::PolicySet { .. } => None,
        }
    }
}

impl EventKind {
    /// Returns true if the event changed a position.
    pub fn moves_position(&self) -> bool {
        match self {
            Self::Trade { .. } | Self::Redeemed { .. } | Self::SetsMoved { .. } => true,
            // Any address can transfer 0 tokens from any position.
            Self::Transfer { tokens_wad, .. } => *tokens_wad > 0,
            _ => false,
        }
    }
}

/// A batch signed by an owner that an account has executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutedBatch {
    /// The digest that the owner signed.
    pub digest: B256,
    pub tx_hash: B256,
    pub block_number: u64,
}

impl Chain {
    /// Returns the event that settled an intent, a `Trade` or an `IntentFailed`, if it happened in
    /// `from_block` or later.
    pub async fn settle_event(
        &self,
        trade_id: Uuid,
        account: Address,
        from_block: u64,
    ) -> Result<Option<ChainEvent>, ChainError> {
        // The contracts store the 16 bytes of the UUID left-aligned in an indexed `bytes32`.
        let mut id = B256::ZERO;
        id[..16].copy_from_slice(trade_id.as_bytes());
        let filter = self
            .log_filter()
            .from_block(from_block)
            .event_signature(vec![MarketHub::Trade::SIGNATURE_HASH, Gate::Failed::SIGNATURE_HASH])
            .topic1(id);
        // Another account can use the same trade id: also compare the account.
        let is_of_account = |event: &ChainEvent| match &event.kind {
            EventKind::Trade { account: of, .. } | EventKind::IntentFailed { account: of, .. } => {
                *of == account
            }
            _ => false,
        };
        Ok(self.events_of(&filter).await?.into_iter().find(is_of_account))
    }

    /// Returns the batch that the account executed with this nonce, if that happened in `from_block`
    /// or later.
    pub async fn executed_batch(
        &self,
        account: Address,
        nonce: u64,
        from_block: u64,
    ) -> Result<Option<ExecutedBatch>, ChainError> {
        let filter = Filter::new()
            .address(account)
            .from_block(from_block)
            .event_signature(Account::Executed::SIGNATURE_HASH)
            .topic1(B256::from(U256::from(nonce)));
        let logs = self.provider.get_logs(&filter).await.map_err(ChainError::of_read)?;
        let Some(log) = logs.iter().find(|log| !log.removed) else { return Ok(None) };
        let executed = Account::Executed::decode_log(&log.inner)?.data;
        match (log.transaction_hash, log.block_number) {
            (Some(tx_hash), Some(block_number)) => {
                Ok(Some(ExecutedBatch { digest: executed.digest, tx_hash, block_number }))
            }
            _ => Err(ChainError::Decode("a log of a block that is not mined".to_owned())),
        }
    }

    pub(super) fn log_filter(&self) -> Filter {
        Filter::new().address(vec![self.contracts.hub, self.contracts.gate])
    }

    pub(super) async fn events_of(&self, filter: &Filter) -> Result<Vec<ChainEvent>, ChainError> {
        let logs = self.provider.get_logs(filter).await.map_err(ChainError::of_read)?;
        let mut events = self.decode_logs(&logs)?;
        events.sort_by_key(|event| (event.block_number, event.log_index));
        Ok(events)
    }

    /// Decodes the logs of the hub and the Gate and drops all others.
    ///
    /// A log that does not decode becomes an [`EventKind::Undecodable`] instead of an error,
    /// because any address can make the contracts emit one. An error would stop the sync.
    pub(super) fn decode_logs(&self, logs: &[Log]) -> Result<Vec<ChainEvent>, ChainError> {
        let mut events = Vec::with_capacity(logs.len());
        for log in logs.iter().filter(|log| !log.removed) {
            let kind = if log.address() == self.contracts.hub {
                of_hub(log).unwrap_or_else(|error| Some(undecodable(market_of(log), &error)))
            } else if log.address() == self.contracts.gate {
                of_gate(log).unwrap_or_else(|error| Some(undecodable(None, &error)))
            } else {
                None
            };
            let Some(kind) = kind else { continue };
            let place = (log.block_number, log.block_hash, log.transaction_hash, log.log_index);
            let (Some(block_number), Some(block_hash), Some(tx_hash), Some(log_index)) = place else {
                return Err(ChainError::Decode("a log of a block that is not mined".to_owned()));
            };
            let timestamp_s = log.block_timestamp;
            events.push(ChainEvent { block_number, block_hash, tx_hash, log_index, timestamp_s, kind });
        }
        Ok(events)
    }
}

fn undecodable(market_id: Option<u64>, error: &ChainError) -> EventKind {
    EventKind::Undecodable { market_id, detail: error.to_string() }
}

/// Returns the market that a log of the hub names, for logs that do not decode.
fn market_of(log: &Log) -> Option<u64> {
    let word = |topic: usize| log.topics().get(topic).map(|topic| U256::from_be_bytes(topic.0));
    let of_token = |topic: usize| market_and_outcome(word(topic)?).ok().map(|(market_id, _)| market_id);
    match *log.topic0()? {
        MarketHub::Trade::SIGNATURE_HASH => {
            // The low bytes of the first word are the market, the outcome and the side.
            let market_id = log.data().data.get(22..30)?;
            market_id.try_into().ok().map(u64::from_be_bytes)
        }
        MarketHub::Transfer::SIGNATURE_HASH => of_token(3),
        MarketHub::SetsSplit::SIGNATURE_HASH | MarketHub::SetsMerged::SIGNATURE_HASH => {
            word(2).and_then(|market_id| u64::try_from(market_id).ok())
        }
        MarketHub::Redeemed::SIGNATURE_HASH => of_token(2),
        _ => word(1).and_then(|market_id| u64::try_from(market_id).ok()),
    }
}

fn of_hub(log: &Log) -> Result<Option<EventKind>, ChainError> {
    use MarketHub::MarketHubEvents as Hub;
    // Ignore events that are not in the committed ABI.
    if !log.topic0().is_some_and(|topic| Hub::SELECTORS.contains(topic)) {
        return Ok(None);
    }
    let kind = match Hub::decode_log(&log.inner)?.data {
        Hub::MarketCreated(event) => EventKind::MarketCreated {
            market_id: event.marketId,
            reference: event.r#ref,
            outcomes: event.outcomes,
            fee_bps: event.feeBps,
            close_time_s: event.closeTime.into(),
            liquidity_usdc_atomic: event.liquidity,
            cost_wad: event.cost,
            quantities_wad: event.quantities,
        },
        Hub::MarketStatusChanged(event) => EventKind::MarketStatusChanged {
            market_id: event.marketId,
            status: ChainMarketStatus::from_wire(event.status)?,
        },
        Hub::ResolutionProposed(event) => EventKind::ResolutionProposed {
            market_id: event.marketId,
            payouts_wad: event.payouts,
            finalizable_at_s: event.finalizableAt,
        },
        Hub::ResolutionVetoed(event) => EventKind::ResolutionVetoed { market_id: event.marketId },
        Hub::MarketResolved(event) => {
            EventKind::MarketResolved { market_id: event.marketId, payouts_wad: event.payouts }
        }
        Hub::MarketCancelled(event) => {
            EventKind::MarketCancelled { market_id: event.marketId, payouts_wad: event.payouts }
        }
        Hub::CancelProposed(event) => EventKind::CancelProposed {
            market_id: event.marketId,
            payouts_wad: event.payouts,
            finalizable_at_s: event.finalizableAt,
        },
        Hub::SetsSplit(event) => EventKind::SetsMoved {
            account: event.account,
            market_id: event.marketId,
            is_split: true,
            usdc_atomic: event.usdc,
            cost_wad: event.cost,
        },
        Hub::SetsMerged(event) => EventKind::SetsMoved {
            account: event.account,
            market_id: event.marketId,
            is_split: false,
            usdc_atomic: event.usdc,
            cost_wad: event.cost,
        },
        Hub::Trade(event) => trade_of(&event)?,
        Hub::Redeemed(event) => {
            let (market_id, outcome) = market_and_outcome(event.tokenId)?;
            EventKind::Redeemed {
                account: event.account,
                market_id,
                outcome,
                tokens_wad: event.tokens,
                usdc_atomic: event.usdc,
            }
        }
        // Mints and burns: the trade, redemption, split or merge emits its own event.
        Hub::Transfer(event) if event.sender.is_zero() || event.receiver.is_zero() => return Ok(None),
        Hub::Transfer(event) => {
            let (market_id, outcome) = market_and_outcome(event.id)?;
            let tokens_wad = u128::try_from(event.amount)
                .map_err(|_| ChainError::Decode(format!("{} tokens are above 128 bits", event.amount)))?;
            EventKind::Transfer {
                sender: event.sender,
                receiver: event.receiver,
                market_id,
                outcome,
                tokens_wad,
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(kind))
}

/// Unpacks the three packed words of a trade. `IMarketHub` documents their layout.
fn trade_of(event: &MarketHub::Trade) -> Result<EventKind, ChainError> {
    let (what, amounts, state) = (event.what, event.amounts, event.state);
    let low = |word: U256, bits: usize| word & ((U256::ONE << bits) - U256::ONE);
    let (market_id, outcome) = market_and_outcome(low(what >> 8, 72))?;
    let trade_id = Uuid::from_bytes(event.tradeId.0);
    Ok(EventKind::Trade {
        // Direct trades on the hub have a zero id.
        trade_id: (!trade_id.is_nil()).then_some(trade_id),
        account: Address::from_slice(&what.to_be_bytes::<32>()[..20]),
        market_id,
        outcome,
        side: IntentSide::from_wire(what.byte(0))?,
        usdc_atomic: low(amounts >> 192, 64).to(),
        tokens_wad: low(amounts, 128).to(),
        fee_atomic: low(amounts >> 128, 64).to(),
        cost_wad: state >> 128,
        quantity_wad: low(state, 128),
    })
}

fn of_gate(log: &Log) -> Result<Option<EventKind>, ChainError> {
    use Gate::GateEvents;
    if !log.topic0().is_some_and(|topic| GateEvents::SELECTORS.contains(topic)) {
        return Ok(None);
    }
    let kind = match GateEvents::decode_log(&log.inner)?.data {
        GateEvents::PolicySet(event) => EventKind::PolicySet {
            account: event.account,
            key_index: event.key,
            per_trade_usdc_atomic: event.perTrade,
            daily_usdc_atomic: event.daily,
            sale_per_trade_usdc_atomic: event.salePerTrade,
            sale_daily_usdc_atomic: event.saleDaily,
            expiry_s: event.expiry.into(),
        },
        GateEvents::Failed(event) => EventKind::IntentFailed {
            trade_id: Uuid::from_bytes(event.tradeId.0),
            account: event.account,
            key_index: event.key,
            nonce: event.nonce,
            reason: Revert::from_data(&event.reason),
        },
        GateEvents::Duplicate(event) => EventKind::IntentDuplicate {
            trade_id: Uuid::from_bytes(event.tradeId.0),
            account: event.account,
            key_index: event.key,
            nonce: event.nonce,
        },
        _ => return Ok(None),
    };
    Ok(Some(kind))
}
