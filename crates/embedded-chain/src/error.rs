//! Errors: [`EmbeddedError`] for the node itself, [`RpcError`] for one JSON-RPC call.
//!
//! Codes and messages are those of geth, because clients match on them: -32000 for a rejected
//! transaction, 3 for a revert with its data, -32601 for an unknown method and -32602 for bad
//! parameters.

use std::borrow::Cow;

use alloy::rpc::json_rpc::ErrorPayload;
use alloy::sol_types::{Panic, Revert, SolError as _};
use alloy_primitives::{Bytes, hex};
use serde_json::value::RawValue;

#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// SQLite failed. The chain is unchanged.
    #[error("the chain's database: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the chain's database belongs to chain id {stored}, not {asked}")]
    ChainId {
        /// The id in the file.
        stored: u64,
        asked: u64,
    },
    /// The file has the layout of another version of this program.
    #[error("the chain's database has layout {found}, but this program requires layout {expected}")]
    Layout {
        /// The layout of the file.
        found: i64,
        expected: i64,
    },
    /// The file has tables of another program.
    #[error("the chain's database is one of another program, with the table {0}")]
    Foreign(String),
    /// A stored row does not decode.
    #[error("the chain's database has a corrupt row in {table}: {what}")]
    Corrupt {
        /// A table, or a table and a column.
        table: &'static str,
        what: String,
    },
    #[error("the chain's writer thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The virtual machine failed for a reason other than the transaction or the database.
    #[error("the virtual machine: {0}")]
    Machine(String),
}

impl EmbeddedError {
    pub(super) fn corrupt(table: &'static str, what: impl ToString) -> Self {
        Self::Corrupt { table, what: what.to_string() }
    }
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    pub code: i64,
    /// Clients match on this text.
    pub message: Cow<'static, str>,
    /// The returned bytes of a revert, as a hex string.
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    fn plain(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn parse() -> Self {
        Self::plain(-32700, "parse error")
    }

    pub(super) fn request(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32600, why)
    }

    pub(super) fn method(name: &str) -> Self {
        Self::plain(-32601, format!("the method {name} does not exist/is not available"))
    }

    pub(super) fn params(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32602, why)
    }

    /// A valid request was rejected. The code is geth's general error code.
    pub(super) fn refused(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32000, why)
    }

    /// The response would exceed a limit of this node.
    pub(super) fn limit(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32005, why)
    }

    pub(super) fn internal(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32603, why)
    }

    /// A revert. The message includes the reason if the data contains one.
    pub(super) fn reverted(output: &Bytes) -> Self {
        let message = match reason(output) {
            Some(reason) => Cow::Owned(format!("execution reverted: {reason}")),
            None => Cow::Borrowed("execution reverted"),
        };
        let data = serde_json::value::to_raw_value(&hex::encode_prefixed(output)).ok();
        Self { code: 3, message, data }
    }
}

impl From<EmbeddedError> for RpcError {
    /// Logs the error, because the caller only learns that the node failed.
    fn from(error: EmbeddedError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "the embedded chain failed");
        Self::internal("the embedded chain could not read or write its database")
    }
}

impl From<RpcError> for ErrorPayload {
    fn from(RpcError { code, message, data }: RpcError) -> Self {
        Self { code, message, data }
    }
}

/// Returns the text of an `Error(string)` or `Panic(uint256)`. Custom errors have no text that this
/// node knows.
fn reason(output: &[u8]) -> Option<String> {
    if let Ok(revert) = Revert::abi_decode(output) {
        return Some(revert.reason);
    }
    Panic::abi_decode(output).ok().map(|panic| panic.to_string())
}
