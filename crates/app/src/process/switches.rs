//! The kill switches as this process last read them.

use std::collections::BTreeSet;

use domain::ErrorCode;
use parking_lot::RwLock;

use crate::AppError;

/// The retry time in seconds for rejected requests.
const RETRY_AFTER_S: u32 = 30;
/// The retry time in seconds during a recovery.
const RECOVERY_RETRY_AFTER_S: u32 = 5;

/// A halt of all trading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Halt {
    /// The operator's reason.
    pub reason: Option<String>,
}

/// The switches as this process last read them.
#[derive(Debug, Default)]
pub struct Switches(RwLock<Off>);

#[derive(Debug, Default)]
pub(crate) struct Off {
    /// The operator's words, if trading is halted.
    pub trading: Option<Halt>,
    /// A recovery is open, so no lane signs.
    pub recovering: bool,
    pub routes: BTreeSet<String>,
}

impl Switches {
    /// Returns whether new trades are neither accepted nor executed.
    pub fn is_trading_halted(&self) -> bool {
        self.0.read().trading.is_some()
    }

    /// Returns the halt of all trading, if there is one.
    pub fn halt(&self) -> Option<Halt> {
        self.0.read().trading.clone()
    }

    /// Returns whether a recovery is open, so that no lane signs.
    pub fn is_recovering(&self) -> bool {
        self.0.read().recovering
    }

    /// Checks that the route is enabled and, if it `trades`, that trading is not halted.
    ///
    /// # Errors
    /// `ROUTE_DISABLED`, `API_TRADE_PROCESSING_HALTED`. `DEPENDENCY_UNAVAILABLE` for `trades`
    /// during a recovery.
    pub fn check(&self, method: &str, path: &str, trades: bool) -> Result<(), AppError> {
        let off = self.0.read();
        let is_named = |name: &String| name.split_once(' ') == Some((method, path));
        if off.routes.iter().any(is_named) {
            Err(AppError::new(ErrorCode::RouteDisabled).retry_after_s(RETRY_AFTER_S))
        } else if trades && off.trading.is_some() {
            Err(halted())
        } else if trades && off.recovering {
            Err(recovering())
        } else {
            Ok(())
        }
    }

    /// Checks that trades can be created. The switch of `POST /v1/trades` holds for every way to create
    /// one: batches, the tools for agents, the ticket and the orders of owners.
    ///
    /// # Errors
    /// `ROUTE_DISABLED`.
    pub fn check_new_trade(&self) -> Result<(), AppError> {
        self.check("POST", "/v1/trades", false)
    }

    /// Checks that positions can be claimed. The switch of `POST /v1/redemptions` holds for every way to
    /// claim one.
    ///
    /// # Errors
    /// `ROUTE_DISABLED`.
    pub fn check_new_claim(&self) -> Result<(), AppError> {
        self.check("POST", "/v1/redemptions", false)
    }

    /// Returns the names of the routes that are disabled.
    pub fn disabled_routes(&self) -> Vec<String> {
        self.0.read().routes.iter().cloned().collect()
    }

    pub(crate) fn replace(&self, off: Off) {
        *self.0.write() = off;
    }
}

/// The error for a trade while all trading is halted.
pub fn halted() -> AppError {
    AppError::new(ErrorCode::ApiTradeProcessingHalted).retry_after_s(RETRY_AFTER_S)
}

fn recovering() -> AppError {
    let detail = "Trading is paused until restored data has been compared with the chain. Reads still work. Try again later.";
    AppError::new(ErrorCode::DependencyUnavailable).detail(detail).retry_after_s(RECOVERY_RETRY_AFTER_S)
}
