//! How the domain's values are bound: ids and big numbers as text, USDC as an integer.

use domain::ids::{
    BatchId, CorrelationId, DelegationChangeId, EventId, KeyId, MarketId, OrganizationId, PartnerId,
    RedemptionId, ThreadId, TradeId, UserId,
};
use domain::{Timestamp, Usdc, UsdcDelta, Wad};

use crate::{Row, StoreError, Value};

macro_rules! bind_as_text {
    ($($id:ty),*) => {$(
        impl From<$id> for Value<'_> {
            fn from(id: $id) -> Self {
                Self::from(id.to_string())
            }
        }
    )*};
}
bind_as_text!(
    UserId,
    KeyId,
    TradeId,
    MarketId,
    ThreadId,
    OrganizationId,
    PartnerId,
    BatchId,
    DelegationChangeId,
    RedemptionId,
    EventId,
    CorrelationId,
    Wad
);

impl From<Usdc> for Value<'_> {
    /// Atomic units. No amount of USDC that exists comes near 2^63 of them.
    fn from(usdc: Usdc) -> Self {
        Self::Int(i64::try_from(usdc.atomic()).unwrap_or(i64::MAX))
    }
}

impl From<UsdcDelta> for Value<'_> {
    fn from(delta: UsdcDelta) -> Self {
        Self::Int(delta.0)
    }
}

impl Row<'_> {
    /// An amount of USDC in atomic units.
    pub fn usdc(&self, column: usize) -> Result<Usdc, StoreError> {
        self.number(column).map(Usdc::from_atomic)
    }

    /// An amount of USDC in atomic units, or NULL.
    pub fn opt_usdc(&self, column: usize) -> Result<Option<Usdc>, StoreError> {
        Ok(self.opt_number(column)?.map(Usdc::from_atomic))
    }

    /// A list of texts, stored as JSON.
    pub fn texts(&self, column: usize) -> Result<Vec<String>, StoreError> {
        serde_json::from_str(self.str(column)?).map_err(|_| self.corrupt(column, "not a JSON list of texts"))
    }
}

/// The sort key that a list starts behind: newest first, so everything before the end of time.
pub(crate) fn position_or_end(after: Option<&domain::page::Position>) -> (Timestamp, &str) {
    after.map_or((Timestamp::from_ms(i64::MAX), ""), |position| (position.created_at, position.id.as_str()))
}

impl StoreError {
    /// A row that the schema's references promise is not there.
    pub(crate) fn missing(table: &str) -> Self {
        Self::driver(format!("a row of {table} that must exist does not"))
    }

    /// A value that should always turn into JSON did not.
    pub(crate) fn unwritable(error: &serde_json::Error) -> Self {
        Self::driver(format!("a value does not turn into JSON: {error}"))
    }
}
