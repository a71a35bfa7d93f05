//! The types of events.

use crate::words::words;

words! {
    /// The type of an event.
    EventKind, UnknownEventKind {
        /// A high-value trade waits for its confirmation.
        ConfirmationRequired = "trade.confirmation-required",
        /// A trade was completed.
        TradeCompleted = "trade.completed",
        /// A trade failed.
        TradeFailed = "trade.failed",
        /// The risk engine rejected a trade.
        TradeRejected = "trade.rejected",
        /// A trade reached any other status.
        StatusChanged = "trade.status-changed",
        /// A claim was paid.
        RedemptionCompleted = "redemption.completed",
        /// A market in which the user has a position was resolved or cancelled.
        MarketResolved = "market.resolved",
        /// A settled position pays and has not been claimed.
        PositionClaimable = "position.claimable",
        /// A user requested a test of a receiver.
        Test = "webhook.test",
    }
}

impl EventKind {
    /// Returns true if events of this type are posted to the key's URL. Other events are only in
    /// the feed.
    pub const fn is_delivered(self) -> bool {
        self.is_basic() || matches!(self, Self::Test)
    }

    /// Returns true if the feed includes this type by default.
    pub const fn is_basic(self) -> bool {
        matches!(
            self,
            Self::ConfirmationRequired | Self::TradeCompleted | Self::TradeFailed | Self::TradeRejected
        )
    }
}
