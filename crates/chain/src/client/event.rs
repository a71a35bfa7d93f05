//! What the hub and the Gate log, in the service's words.

use alloy::providers::Provider;
use alloy::rpc::types::{Filter, Log};
use alloy::sol_types::{SolEvent, SolEventInterface};
use alloy_primitives::{Address, B256, U256};
use uuid::Uuid;

use super::bindings::{Gate, MarketHub};
use super::chain::Chain;
use super::error::ChainError;
use super::intent::Side;
use super::revert::Revert;
use super::state::{MarketStatus, market_and_outcome};

/// One log, and where it stands on the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The block's height.
    pub block_number: u64,
    /// The block's hash.
    pub block_hash: B256,
    /// The transaction.
    pub tx_hash: B256,
    /// Its place among the block's logs.
    pub log_index: u64,
    /// The block's time, Unix seconds, where the node says it with the log.
    pub timestamp_s: Option<u64>,
    /// What happened.
    pub kind: EventKind,
}

/// What the contracts report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are those of IMarketHub and IGate, with their units in their names"
)]
pub enum EventKind {
    /// A market came to be. `quantities_wad` are the opening `q_i`, `cost_wad` the opening `C`.
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
    /// A market moved on.
    MarketStatusChanged { market_id: u64, status: MarketStatus },
    /// A resolution that may be vetoed until then.
    ResolutionProposed { market_id: u64, payouts_wad: Vec<U256>, finalizable_at_s: u64 },
    /// The proposal was thrown out.
    ResolutionVetoed { market_id: u64 },
    /// The market is decided: what one token of each outcome pays.
    MarketResolved { market_id: u64, payouts_wad: Vec<U256> },
    /// The market is called off. Without payouts, holders get `scale_wad` / 1e18 of their cost basis.
    MarketCancelled { market_id: u64, payouts_wad: Vec<U256>, scale_wad: U256 },
    /// A scaled-down refund was raised.
    MarketToppedUp { market_id: u64, usdc_atomic: u64, scale_wad: U256 },
    /// A trade. Without an id where it was made past the Gate; `cost_wad` and `quantity_wad` are `C` and
    /// `q_i` after it.
    Trade {
        trade_id: Option<Uuid>,
        account: Address,
        market_id: u64,
        outcome: u8,
        side: Side,
        usdc_atomic: u64,
        tokens_wad: u128,
        fee_atomic: u64,
        cost_wad: U256,
        quantity_wad: U256,
    },
    /// A position was paid out.
    Redeemed { account: Address, market_id: u64, outcome: u8, tokens_wad: u128, usdc_atomic: u64 },
    /// A position changed hands outside of trading.
    Transfer { sender: Address, receiver: Address, market_id: u64, outcome: u8, tokens_wad: u128 },
    /// An intent is settled without a trade.
    IntentFailed { trade_id: Uuid, account: Address, key_index: u32, nonce: u32, reason: Revert },
    /// An intent's nonce was spent before: its outcome is an earlier event.
    IntentDuplicate { trade_id: Uuid, account: Address, key_index: u32, nonce: u32 },
    /// A key's caps and expiry were set, reduced or revoked (expiry zero).
    PolicySet {
        account: Address,
        key_index: u32,
        per_trade_usdc_atomic: u64,
        daily_usdc_atomic: u64,
        expiry_s: u64,
    },
    /// A log of the hub or the Gate that these contracts do not write, or only a stranger can make them
    /// write: a transfer of a token that does not exist. `market_id` is the market that it names, if it
    /// names one.
    Undecodable { market_id: Option<u64>, detail: String },
}

impl EventKind {
    /// The hub's number of the market that the event is about, if it is about one.
    pub fn market_id(&self) -> Option<u64> {
        match self {
            Self::MarketCreated { market_id, .. }
            | Self::MarketStatusChanged { market_id, .. }
            | Self::ResolutionProposed { market_id, .. }
            | Self::ResolutionVetoed { market_id }
            | Self::MarketResolved { market_id, .. }
            | Self::MarketCancelled { market_id, .. }
            | Self::MarketToppedUp { market_id, .. }
            | Self::Trade { market_id, .. }
            | Self::Redeemed { market_id, .. }
            | Self::Transfer { market_id, .. } => Some(*market_id),
            Self::Undecodable { market_id, .. } => *market_id,
            Self::IntentFailed { .. } | Self::IntentDuplicate { .. } | Self::PolicySet { .. } => None,
        }
    }
}

impl EventKind {
    /// Whether the event changed what somebody holds.
    pub fn moves_position(&self) -> bool {
        match self {
            Self::Trade { .. } | Self::Redeemed { .. } => true,
            // Anybody can move nothing out of anybody's position.
            Self::Transfer { tokens_wad, .. } => *tokens_wad > 0,
            _ => false,
        }
    }
}

impl Chain {
    /// How an intent was settled, if it was in `from_block` or later: its `Trade` or `IntentFailed`.
    ///
    /// # Errors
    /// What [`Chain::events`] gives.
    pub async fn settle_event(
        &self,
        trade_id: Uuid,
        account: Address,
        from_block: u64,
    ) -> Result<Option<Event>, ChainError> {
        let mut id = B256::ZERO;
        id[..16].copy_from_slice(trade_id.as_bytes());
        let filter = self
            .log_filter()
            .from_block(from_block)
            .event_signature(vec![MarketHub::Trade::SIGNATURE_HASH, Gate::Failed::SIGNATURE_HASH])
            .topic1(id)
            .topic2(account.into_word());
        Ok(self.events_of(&filter).await?.into_iter().next())
    }

    pub(super) fn log_filter(&self) -> Filter {
        Filter::new().address(vec![self.contracts.hub, self.contracts.gate])
    }

    pub(super) async fn events_of(&self, filter: &Filter) -> Result<Vec<Event>, ChainError> {
        let logs = self.provider.get_logs(filter).await.map_err(ChainError::of_read)?;
        let mut events = self.decode_logs(&logs)?;
        events.sort_by_key(|event| (event.block_number, event.log_index));
        Ok(events)
    }

    /// Those of the logs that are the hub's or the Gate's and mean something to the service. Anybody can make the
    /// contracts log something, so a log that does not decode is an event like the others and not an error.
    pub(super) fn decode_logs(&self, logs: &[Log]) -> Result<Vec<Event>, ChainError> {
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
            events.push(Event { block_number, block_hash, tx_hash, log_index, timestamp_s, kind });
        }
        Ok(events)
    }
}

fn undecodable(market_id: Option<u64>, error: &ChainError) -> EventKind {
    EventKind::Undecodable { market_id, detail: error.to_string() }
}

/// The market that a log of the hub names in its topics, for logs that do not decode.
fn market_of(log: &Log) -> Option<u64> {
    let word = |topic: usize| log.topics().get(topic).map(|topic| U256::from_be_bytes(topic.0));
    let of_token = |topic: usize| market_and_outcome(word(topic)?).ok().map(|(market_id, _)| market_id);
    match *log.topic0()? {
        MarketHub::Trade::SIGNATURE_HASH | MarketHub::Transfer::SIGNATURE_HASH => of_token(3),
        MarketHub::Redeemed::SIGNATURE_HASH => of_token(2),
        _ => word(1).and_then(|market_id| u64::try_from(market_id).ok()),
    }
}

fn of_hub(log: &Log) -> Result<Option<EventKind>, ChainError> {
    use MarketHub::MarketHubEvents as Hub;
    // An event that is not in the committed interface is of no interest.
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
            status: MarketStatus::from_wire(event.status)?,
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
        Hub::MarketCancelled(event) => EventKind::MarketCancelled {
            market_id: event.marketId,
            payouts_wad: event.payouts,
            scale_wad: event.scale,
        },
        Hub::MarketToppedUp(event) => EventKind::MarketToppedUp {
            market_id: event.marketId,
            usdc_atomic: event.usdc,
            scale_wad: event.scale,
        },
        Hub::Trade(event) => {
            let (market_id, outcome) = market_and_outcome(event.tokenId)?;
            let trade_id = Uuid::from_bytes(event.tradeId.0);
            EventKind::Trade {
                trade_id: (!trade_id.is_nil()).then_some(trade_id),
                account: event.account,
                market_id,
                outcome,
                side: Side::from_wire(event.side)?,
                usdc_atomic: event.usdc,
                tokens_wad: event.tokens,
                fee_atomic: event.fee,
                cost_wad: event.cost,
                quantity_wad: event.quantity,
            }
        }
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
