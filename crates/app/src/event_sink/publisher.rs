//! The broker that events are published to.

use async_trait::async_trait;
use domain::event::{EventKind, FeedPosition};
use domain::ids::{EventId, UserId};

/// An event as it is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingEvent {
    /// The broker ignores an event that it already has, by this id.
    pub id: EventId,
    pub user_id: UserId,
    pub kind: EventKind,
    pub position: FeedPosition,
    /// The JSON document, as the feed shows it.
    pub body: String,
}

/// Whether the broker has the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamState {
    Present,
    Missing,
}

/// The broker's answer to an event. Either way the event is in the stream, durably.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledgement {
    Stored,
    /// The stream already had it.
    Duplicate,
}

/// The broker is unreachable, or did not acknowledge. The text contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PublishError(pub String);

/// A stream of a broker.
#[async_trait]
pub trait EventPublisher: Send + Sync {
    /// The name under which the positions in this stream are stored.
    fn stream(&self) -> &str;

    /// Connects, unless it is connected, and looks for the stream.
    async fn open(&self) -> Result<StreamState, PublishError>;

    /// Creates the stream. Called after [`Self::open`] if the stream is missing.
    async fn create(&self) -> Result<(), PublishError>;

    /// Publishes an event, and returns when the broker has stored it.
    async fn publish(&self, event: &OutgoingEvent) -> Result<Acknowledgement, PublishError>;

    /// Closes the connection. What was not acknowledged may or may not be in the stream.
    async fn close(&self);
}
