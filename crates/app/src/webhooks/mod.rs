//! Webhooks: the URLs and secrets of keys, and the delivery of events to them.
//!
//! `dispatcher` works through the queues, and `sender` makes the HTTP requests.

mod dispatcher;
mod endpoint;
mod redeliver;
pub mod rewrap;
mod rotate;
pub mod secret;
pub mod sender;
mod url;

pub use dispatcher::{Dispatcher, SIGN as DISPATCHER_SIGN, dispatch_due};
pub use endpoint::{ReceiverState, endpoint};
pub(crate) use redeliver::{queue_test, replay};
pub use redeliver::{redeliver, send_test};
pub(crate) use rotate::rotate;
pub use rotate::{Rotated, rotate_secret};
pub(crate) use url::host_of;
pub use url::{check_url, set_webhook_url};
