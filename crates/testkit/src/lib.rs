//! The test application: a whole service without HTTP, on a fresh database, over the embedded chain or another node, with
//! a clock that stands still until a test moves it.
//!
//! Nothing runs by itself: workers are stepped with [`TestApp::run_workers`]. [`Faults`] cut the way to the chain at a
//! chosen request, [`Branches`] let the chain abandon what it said, and [`TestApp::assert_ledger_equals_chain`] holds the
//! database against the contracts.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what a test cannot do without fails it")]

mod anvil;
mod app;
mod branches;
mod faults;
pub mod http;
pub mod hub;
mod lagging;
mod ledger;
mod ledger_events;
mod market;
mod receiver;
mod redemptions;
mod redis;
mod request;
mod rows;
mod rpc_proxy;
mod setup;
mod user;
mod workers;

pub use anvil::Anvil;
pub use app::TestApp;
pub use branches::Branches;
pub use faults::{Fault, Faults, Held};
pub use market::{TestMarket, market_of};
pub use receiver::{Delivered, Receiver, Reply};
pub use redis::TestRedis;
pub use request::Request;
pub use rows::Rows;
pub use rpc_proxy::{RpcFault, RpcProxy, Schedule, Storm};
pub use setup::{CHAIN_ID, Roles, START, Setup, signer};
pub use user::{TestKey, TestUser, UserBuilder, key_of};
pub use workers::Workers;
