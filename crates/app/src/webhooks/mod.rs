//! Webhooks: what is told to the keys' endpoints.

mod dispatcher;
mod endpoint;
mod redeliver;
mod rotate;
pub mod sender;
mod url;

pub use dispatcher::{Dispatcher, Pulse, dispatch_due};
pub use endpoint::{Endpoint, endpoint};
pub use redeliver::{redeliver, send_test};
pub use rotate::{Rotated, rotate_secret};
pub use url::check_url;

use domain::webhook::target::TargetPolicy;

/// Settings of deliveries.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where deliveries may go.
    pub targets: TargetPolicy,
    /// The most queues that one process works through at once, each with one attempt under way.
    pub max_in_flight: u32,
    /// How long a queue is held without being renewed: long enough that a sender can begin attempts for a while.
    pub hold_ms: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { targets: TargetPolicy::public(), max_in_flight: 1_024, hold_ms: 20_000 }
    }
}
