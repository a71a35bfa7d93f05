//! Webhooks: what is posted to receivers, when, and what follows from their answers.

mod status;

pub use status::{DeliveryStatus, MAX_REPLAYS, UnknownDeliveryStatus};
