//! The test application: a whole service without HTTP, on a fresh database, over the embedded chain
//! or another node, with a clock that only the test moves.
//!
//! Nothing runs by itself: workers are stepped with [`TestApp::run_workers`]. [`Faults`] break the
//! connection to the chain at a chosen request, and [`Branches`] reorganize the chain.
//! [`TestApp::assert_ledger_equals_chain`] compares the database with the contracts.
//!
//! Unless they return a `Result`, all helpers panic when the service, database or chain fails.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what a test cannot do without fails it")]

mod anvil;
mod app;
mod branches;
mod faults;
mod genesis;
pub mod hub;
mod key;
mod lagging;
mod ledger;
mod ledger_events;
mod market;
mod owner_act;
mod party;
mod people;
mod receiver;
mod redemptions;
mod redis;
mod request;
mod roles;
mod rows;
mod rpc_proxy;
mod setup;
mod user;
mod web3signer;
mod workers;

pub use anvil::Anvil;
pub use app::TestApp;
pub use branches::Branches;
pub use domain::passkey::SoftKey;
pub use faults::{Fault, Faults, HeldRequest};
pub use genesis::{CHAIN_ID, START};
pub use key::{TestKey, enable_keys, key_of};
pub use market::{TestMarket, market_of};
pub use owner_act::wallet_signature;
pub use party::{APP_URL, relying_party};
pub use people::{CLIENT_IP, batch_signature, device, device_at, person_in};
pub use receiver::{Delivered, Receiver, Reply};
pub use redis::{REDIS_URL, TestRedis};
pub use request::Request;
pub use roles::{Roles, signer};
pub use rows::RowCounts;
pub use rpc_proxy::{RpcFault, RpcProxy, Schedule, Storm};
pub use setup::Setup;
pub use user::{TestUser, UserBuilder};
pub use web3signer::{FakeWeb3signer, SignerMode};
pub use workers::Workers;
