//! Webhooks: what is told to the keys' endpoints.

mod endpoint;
mod redeliver;
mod rotate;
pub mod sender;
mod url;

pub use endpoint::{Endpoint, endpoint};
pub use redeliver::{redeliver, send_test};
pub use rotate::{Rotated, rotate_secret};
pub use url::check_url;
