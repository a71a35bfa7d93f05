//! The status of a delivery.

use crate::words::words;

/// The maximum number of replays of an event.
pub const MAX_REPLAYS: u32 = 5;

words! {
    /// The delivery status of an event.
    DeliveryStatus, UnknownDeliveryStatus {
        /// Queued, and not attempted since.
        Pending = "pending",
        /// Acknowledged by the receiver.
        Delivered = "delivered",
        /// Given up. The user can request it again.
        Failed = "failed",
        /// Failed at least once, and will be retried.
        Retrying = "retrying",
        /// Not sent, because the key had no URL when the event happened.
        None = "none",
    }
}
