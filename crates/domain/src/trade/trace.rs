//! The events of a trade's trace that are not moves: the money set aside and given back, and the transactions that carry
//! the trade. Each is stored with what it tells, in one transaction. Amounts are USDC in atomic units.

use alloy_primitives::B256;
use serde_json::{Map, Value};

use super::{HoldReason, Status, TraceEvent, TraceStage};
use crate::Timestamp;
use crate::event::EventKind;
use crate::ids::{BatchId, EventId};
use crate::money::Usdc;

impl TraceEvent {
    /// An event without attributes.
    pub(super) fn new(stage: TraceStage, kind: &'static str, status: Status, at: Timestamp) -> Self {
        Self { stage, kind, status, at, attributes: Map::new() }
    }

    /// With one more attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.to_owned(), value.into());
        self
    }

    /// The trade has set `usdc` of cap and balance aside.
    pub fn funds_reserved(usdc: Usdc, status: Status, at: Timestamp) -> Self {
        Self::new(TraceStage::Funding, "funds.reserved", status, at).with("reservedUsdc", usdc.to_string())
    }

    /// The trade has ended and gives `usdc` back that it did not spend.
    pub fn funds_released(usdc: Usdc, status: Status, at: Timestamp) -> Self {
        Self::new(TraceStage::Funding, "funds.released", status, at).with("releasedUsdc", usdc.to_string())
    }

    /// The transaction that carries the trade was signed and stored; it is sent from now on until it is mined.
    pub fn batch_signed(batch_id: BatchId, tx_hash: &str, at: Timestamp) -> Self {
        Self::of_batch("batch.signed", batch_id, at).with("txHash", tx_hash)
    }

    /// The same batch was signed at higher fees, because no block took it.
    pub fn batch_replaced(batch_id: BatchId, tx_hash: &str, at: Timestamp) -> Self {
        Self::of_batch("batch.replaced", batch_id, at).with("txHash", tx_hash)
    }

    /// The batch will never carry the trade; the same intent goes into another.
    pub fn batch_lost(batch_id: BatchId, ending: &str, at: Timestamp) -> Self {
        Self::of_batch("batch.lost", batch_id, at).with("reason", ending)
    }

    /// The intent of the trade never ran, because another intent had used its nonce; the trade gets another nonce.
    pub fn intent_renewed(at: Timestamp) -> Self {
        Self::new(TraceStage::Execution, "intent.renewed", Status::Executing, at)
    }

    /// The trade was written again from the chain, which had decided it, because its row was lost or set back.
    pub fn recovered(block_number: u64, tx_hash: B256, at: Timestamp) -> Self {
        Self::new(TraceStage::Execution, "trade.recovered", Status::Executing, at)
            .with("txHash", tx_hash.to_string())
            .with("blockNumber", block_number)
    }

    /// The trade waits for something outside of itself before it is signed.
    pub fn held(reason: HoldReason, status: Status, at: Timestamp) -> Self {
        Self::new(TraceStage::Execution, "signing.held", status, at).with("reason", reason.as_str())
    }

    /// Something became of an event of the trade on its way to the receiver.
    pub fn of_webhook(
        kind: &'static str,
        event_id: EventId,
        event: EventKind,
        status: Status,
        at: Timestamp,
    ) -> Self {
        Self::new(TraceStage::Webhook, kind, status, at)
            .with("eventId", event_id.to_string())
            .with("eventType", event.as_str())
    }

    fn of_batch(kind: &'static str, batch_id: BatchId, at: Timestamp) -> Self {
        Self::new(TraceStage::Execution, kind, Status::Executing, at).with("batchId", batch_id.to_string())
    }
}
