//! The event sink's stream in NATS JetStream.

mod publisher;
mod settings;
mod stream;
mod tls;

pub use publisher::NatsPublisher;
pub use settings::{GivenNatsSettings, NatsSettings, NatsSettingsError};
