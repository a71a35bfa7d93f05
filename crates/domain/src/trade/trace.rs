//! Trace events that are not changes of state: reserving and releasing funds, and the transactions
//! that contain the trade. Each event is stored in the same database transaction as the change that
//! it reports. Amounts are USDC in atomic units.

use alloy_primitives::B256;
use serde_json::{Map, Value};

use super::{HoldReason, Status, TraceEvent, TraceStage};
use crate::Timestamp;
use crate::event_kind::EventKind;
use crate::ids::{BatchId, EventId};
use crate::money::Usdc;

impl TraceEvent {
    pub(super) fn new(stage: TraceStage, kind: &'static str, status: Status, at: Timestamp) -> Self {
        Self { stage, kind, status, at, attributes: Map::new() }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.to_owned(), value.into());
        self
    }

    /// The trade reserved `usdc` of its key's cap and of the balance.
    pub fn funds_reserved(usdc: Usdc, status: Status, at: Timestamp) -> Self {
        Self::new(TraceStage::Funding, "funds.reserved", status, at).with("reservedUsdc", usdc.to_string())
    }

    /// The trade ended and released `usdc` that it did not spend.
    pub fn funds_released(usdc: Usdc, status: Status, at: Timestamp) -> Self {
        Self::new(TraceStage::Funding, "funds.released", status, at).with("releasedUsdc", usdc.to_string())
    }

    /// The transaction with the trade was signed and stored. It will be sent until it is mined.
    pub fn batch_signed(batch_id: BatchId, tx_hash: B256, at: Timestamp) -> Self {
        Self::of_batch("batch.signed", batch_id, at).with("txHash", tx_hash.to_string())
    }

    /// The same batch was signed with higher fees, because it was not mined.
    pub fn batch_replaced(batch_id: BatchId, tx_hash: B256, at: Timestamp) -> Self {
        Self::of_batch("batch.replaced", batch_id, at).with("txHash", tx_hash.to_string())
    }

    /// The batch can no longer include the trade. The same intent goes into another batch.
    pub fn batch_lost(batch_id: BatchId, ending: &str, at: Timestamp) -> Self {
        Self::of_batch("batch.lost", batch_id, at).with("reason", ending)
    }

    /// The trade's intent never ran, because another intent used its nonce. The trade gets a new
    /// nonce.
    pub fn intent_renewed(at: Timestamp) -> Self {
        Self::new(TraceStage::Execution, "intent.renewed", Status::Executing, at)
    }

    /// The trade was restored from the chain, which had already decided it, because its row was
    /// lost or reset.
    pub fn recovered(block_number: u64, tx_hash: B256, at: Timestamp) -> Self {
        Self::new(TraceStage::Execution, "trade.recovered", Status::Executing, at)
            .with("txHash", tx_hash.to_string())
            .with("blockNumber", block_number)
    }

    /// The trade waits for an external condition before it is signed.
    pub fn held(reason: HoldReason, status: Status, at: Timestamp) -> Self {
        Self::new(TraceStage::Execution, "signing.held", status, at).with("reason", reason.as_str())
    }

    /// The delivery of one of the trade's events changed its status.
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
