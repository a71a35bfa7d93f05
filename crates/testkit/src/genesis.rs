//! The first block of the chains of tests.

use domain::Timestamp;

/// The start time of every test.
pub const START: Timestamp = Timestamp::from_s(1_800_000_000);
pub const CHAIN_ID: u64 = 31_337;
