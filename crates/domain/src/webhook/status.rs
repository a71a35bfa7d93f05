//! Where a delivery stands.

use crate::words::words;

/// How often an event may be asked for again.
pub const MAX_REPLAYS: u32 = 5;

words! {
    /// What became of an event that is posted to a key's URL.
    DeliveryStatus, UnknownDeliveryStatus {
        /// Queued, and not tried since.
        Pending = "pending",
        /// Acknowledged.
        Delivered = "delivered",
        /// Given up; it can be asked for again.
        Failed = "failed",
        /// Tried without success, and to be tried again.
        Retrying = "retrying",
        /// Not sent: the key had no URL when it happened.
        None = "none",
    }
}
