//! An event before it is numbered. Units of work collect such events.

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, TradeId, UserId};

/// An event to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub id: EventId,
    /// The user who receives it.
    pub user_id: UserId,
    pub kind: EventKind,
    /// The key whose action caused it. Such an event may be posted to the key's webhook URL.
    pub key_id: Option<KeyId>,
    /// The trade that it reports, if any.
    pub trade_id: Option<TradeId>,
    /// The JSON body, as it is sent.
    pub body: String,
    pub at: Timestamp,
}
