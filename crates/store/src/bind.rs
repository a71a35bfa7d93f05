//! Conversions between domain values and SQL values, in both directions. Ids and large numbers are
//! stored as text, USDC as an integer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use alloy_primitives::{Address, B256};
use domain::credential::{CredentialKey, CredentialKind, Role};
use domain::event::EventKind;
use domain::ids::{
    AdminActId, BatchId, CorrelationId, CredentialId, DelegationChangeId, EventId, KeyId, MarketId,
    OrganizationId, OwnerActId, PartnerId, RedemptionId, SessionId, ThreadId, TradeId, UserId,
};
use domain::key::{IpAllowlist, KeyKind, Scopes, Tier};
use domain::lane::{LaneState, SignerKind};
use domain::market::MarketStatus;
use domain::owner_act::{OwnerActFailure, OwnerActKind, OwnerActStatus};
use domain::passkey::{BackupState, Challenge};
use domain::risk::RiskRefusal;
use domain::trade::{AmountType, HoldReason, Side, TraceStage};
use domain::webhook::DeliveryStatus;
use domain::{ErrorCode, Timestamp, Usdc, UsdcDelta, Wad, delegation, redemption, trade};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::not_a;
use crate::record::ToColumn;
use crate::{Cell, FromColumn, SqlValue, StoreError};

/// Values that are cheap to copy.
macro_rules! copied_to_column {
    ($($type:ty),* $(,)?) => {$(
        impl ToColumn for $type {
            fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
                Ok(SqlValue::from(*self))
            }
        }
    )*};
}
copied_to_column!(i64, u32, u16, u8, bool, Timestamp, Usdc, UsdcDelta, Address);

/// Values that are stored as one of their words.
macro_rules! word_to_column {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::record::ToColumn for $type {
            fn to_column(&self) -> ::core::result::Result<$crate::SqlValue<'_>, $crate::StoreError> {
                Ok($crate::SqlValue::from(self.as_str()))
            }
        }
    )*};
}
pub(crate) use word_to_column;

word_to_column!(
    MarketStatus,
    OwnerActKind,
    OwnerActStatus,
    OwnerActFailure,
    BackupState,
    CredentialKind,
    LaneState,
    SignerKind,
);

impl ToColumn for u64 {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        SqlValue::try_from(*self)
    }
}

impl ToColumn for String {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        Ok(SqlValue::from(self))
    }
}

impl<T: ToColumn> ToColumn for Option<T> {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        self.as_ref().map_or(Ok(SqlValue::Null), T::to_column)
    }
}

impl ToColumn for Vec<u8> {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        Ok(SqlValue::from(self))
    }
}

impl ToColumn for u128 {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        Ok(SqlValue::from(self.to_string()))
    }
}

impl ToColumn for Vec<String> {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        to_json(self)
    }
}

impl ToColumn for IpAddr {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        Ok(SqlValue::from(self.to_string()))
    }
}

impl ToColumn for Vec<Wad> {
    fn to_column(&self) -> Result<SqlValue<'_>, StoreError> {
        to_json(self)
    }
}

/// Values that are stored as their text.
macro_rules! stored_as_text {
    ($($type:ty),* $(,)?) => {$(
        impl From<$type> for SqlValue<'_> {
            fn from(value: $type) -> Self {
                Self::from(value.to_string())
            }
        }
        column_from_text!($type);
        copied_to_column!($type);
    )*};
}

/// Columns that are decoded by [`str::parse`].
macro_rules! column_from_text {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::FromColumn for $type {
            fn from_column(
                cell: $crate::Cell<'_>,
            ) -> ::core::result::Result<Self, ::std::borrow::Cow<'static, str>> {
                cell.text()?.parse().map_err(|_| $crate::engine::not_a::<Self>())
            }
        }
    )*};
}
pub(crate) use column_from_text;

stored_as_text!(
    UserId,
    KeyId,
    TradeId,
    MarketId,
    ThreadId,
    OrganizationId,
    PartnerId,
    BatchId,
    DelegationChangeId,
    OwnerActId,
    AdminActId,
    RedemptionId,
    EventId,
    CorrelationId,
    CredentialId,
    SessionId,
    Wad,
    B256,
    Challenge,
    CredentialKey,
);

column_from_text!(
    Address,
    AmountType,
    BackupState,
    CredentialKind,
    DeliveryStatus,
    ErrorCode,
    EventKind,
    HoldReason,
    IpAddr,
    KeyKind,
    LaneState,
    MarketStatus,
    OwnerActFailure,
    OwnerActKind,
    OwnerActStatus,
    RiskRefusal,
    Role,
    Scopes,
    Side,
    SignerKind,
    Tier,
    TraceStage,
    delegation::Kind,
    delegation::Status,
    redemption::RedemptionStatus,
    trade::Status,
    // Fees are 128-bit numbers, so they are stored as text.
    u128,
);

macro_rules! column_from_integer {
    ($($type:ty),*) => {$(
        impl FromColumn for $type {
            fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
                Self::try_from(cell.int()?).map_err(|_| not_a::<Self>())
            }
        }
    )*};
}
column_from_integer!(i64, u64, u32, u16, u8, usize);

impl FromColumn for bool {
    /// SQLite has no truth values, only 0 and 1.
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        cell.int().map(|n| n != 0)
    }
}

impl FromColumn for String {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        cell.text().map(str::to_owned)
    }
}

impl FromColumn for Vec<u8> {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        cell.bytes().map(<[u8]>::to_vec)
    }
}

impl FromColumn for Timestamp {
    /// Milliseconds since the epoch.
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        cell.int().map(Self::from_ms)
    }
}

impl FromColumn for Usdc {
    /// Atomic units.
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        u64::from_column(cell).map(Self::from_atomic)
    }
}

impl FromColumn for UsdcDelta {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        cell.int().map(Self)
    }
}

impl FromColumn for IpAllowlist {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        Self::from_stored(cell.text()?).map_err(|_| "not a list of networks".into())
    }
}

impl FromColumn for Vec<String> {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        from_json(cell, "not a JSON list of texts")
    }
}

impl FromColumn for Vec<Wad> {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        let texts = Vec::<String>::from_column(cell)?;
        let numbers: Result<Self, _> = texts.iter().map(|text| text.parse()).collect();
        numbers.map_err(|_| "not a list of WAD".into())
    }
}

impl FromColumn for BTreeMap<String, String> {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        from_json(cell, "not a JSON object of texts")
    }
}

impl FromColumn for serde_json::Map<String, serde_json::Value> {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        from_json(cell, "not a JSON object")
    }
}

/// Encodes a column of JSON.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<SqlValue<'static>, StoreError> {
    serde_json::to_string(value).map(SqlValue::from).map_err(|error| StoreError::unwritable(&error))
}

/// Decodes a column of JSON.
pub(crate) fn from_json<T: DeserializeOwned>(
    cell: Cell<'_>,
    otherwise: &'static str,
) -> Result<T, Cow<'static, str>> {
    serde_json::from_str(cell.text()?).map_err(|_| otherwise.into())
}

impl From<Address> for SqlValue<'_> {
    /// Lower-case hex, not the checksummed form.
    fn from(address: Address) -> Self {
        Self::from(format!("{address:#x}"))
    }
}

impl From<Usdc> for SqlValue<'_> {
    /// Atomic units. The whole supply of USDC is far below 2^63 units, so the cap is never reached.
    fn from(usdc: Usdc) -> Self {
        Self::Int(i64::try_from(usdc.atomic()).unwrap_or(i64::MAX))
    }
}

impl From<UsdcDelta> for SqlValue<'_> {
    fn from(delta: UsdcDelta) -> Self {
        Self::Int(delta.0)
    }
}

/// Adds two amounts.
///
/// # Errors
/// `Driver` if the sum is out of range.
pub(crate) fn add_usdc(one: Usdc, other: Usdc) -> Result<Usdc, StoreError> {
    one.checked_add(other).ok_or_else(|| StoreError::driver("a sum of USDC is out of range"))
}

/// The position after which a list starts. Lists are sorted newest first, so without a cursor this
/// is the greatest timestamp.
pub(crate) fn position_or_end(after: Option<&domain::page::PagePosition>) -> (Timestamp, &str) {
    after.map_or((Timestamp::from_ms(i64::MAX), ""), |position| (position.created_at, position.id.as_str()))
}

impl StoreError {
    /// An error for a missing row that must exist according to the schema's references.
    pub(crate) fn missing(table: &str) -> Self {
        Self::driver(format!("a required row of {table} does not exist"))
    }

    /// An error for a value that failed to serialize as JSON.
    pub(crate) fn unwritable(error: &serde_json::Error) -> Self {
        Self::driver(format!("a value cannot be written as JSON: {error}"))
    }
}
