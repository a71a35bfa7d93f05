//! The cache of leaderboards.

use std::collections::HashMap;
use std::sync::Arc;

use alloy_primitives::Address;
use domain::{Timestamp, UsdcDelta};
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use store::public::{Leader, LeaderSort, Timeframe};

/// The maximum number of accounts with a cached position value.
const MOST_VALUED: usize = 8_192;

/// The cache.
#[derive(Debug)]
pub struct Leaderboards {
    pub(crate) ranked: Mutex<HashMap<(Timeframe, LeaderSort), Arc<Ranking>>>,
    pub(crate) valued: Cache<Address, (Timestamp, UsdcDelta)>,
    pub(crate) all_valued: tokio::sync::Mutex<Option<(Timestamp, Arc<Values>)>>,
}

impl Default for Leaderboards {
    fn default() -> Self {
        Self {
            ranked: Mutex::default(),
            valued: Cache::new(MOST_VALUED),
            all_valued: tokio::sync::Mutex::default(),
        }
    }
}

/// The value of each account's open positions minus their cost.
pub type Values = HashMap<Address, UsdcDelta>;

/// A ranking and the time it was read. Locked while it is computed, so that concurrent requests
/// wait for one computation.
pub(crate) type Ranking = tokio::sync::Mutex<Option<(Timestamp, Arc<[Leader]>)>>;
