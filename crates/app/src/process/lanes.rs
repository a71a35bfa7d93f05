//! The lanes as this process last read them.

use std::sync::Arc;

use alloy_primitives::Address;
use domain::Timestamp;
use domain::lane::{LaneState, assign};
use parking_lot::RwLock;
use store::lanes::{Lane, assignable};

/// The lanes as this process last read them.
#[derive(Debug, Default)]
pub struct Lanes(RwLock<Arc<[Lane]>>);

impl Lanes {
    /// Returns the lanes that a list of executors has until they are read from the database.
    pub(crate) fn of_executors(executors: &[Address]) -> Self {
        let at = Timestamp::from_ms(0);
        let lanes = (0u16..).zip(executors).map(|(lane, executor)| Lane::of_file(lane, *executor, at));
        Self(RwLock::new(lanes.collect()))
    }

    /// Returns the lane of an account.
    pub fn of(&self, account: Address) -> u16 {
        assign(account, &assignable(&self.0.read()))
    }

    /// Returns the lanes that have an executor or still have its trades, by their numbers.
    pub fn in_use(&self) -> Vec<Lane> {
        self.0.read().iter().filter(|lane| lane.state != LaneState::Removed).cloned().collect()
    }

    /// Returns all lanes by their numbers, with the removed ones.
    pub fn list(&self) -> Vec<Lane> {
        self.0.read().to_vec()
    }

    /// Returns the lane of an executor.
    pub fn find(&self, executor: Address) -> Option<Lane> {
        self.0.read().iter().find(|lane| lane.executor == executor).cloned()
    }

    pub(crate) fn replace(&self, lanes: Vec<Lane>) {
        *self.0.write() = lanes.into();
    }
}
