//! What can go wrong: [`EmbeddedError`] for the node itself, [`RpcError`] for one JSON-RPC call.
//!
//! Codes and messages are those of geth, because clients match on them: -32000 for a refused transaction, 3 for a
//! revert with its data, -32601 and -32602 for an unknown method and for bad parameters.

use std::borrow::Cow;

use alloy::rpc::json_rpc::ErrorPayload;
use alloy::sol_types::{Panic, Revert, SolError as _};
use alloy_primitives::{Bytes, hex};
use serde_json::value::RawValue;

/// The embedded chain could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// SQLite refused. The chain is as it was before the call.
    #[error("the chain's database: {0}")]
    Database(#[from] rusqlite::Error),
    /// The file holds the chain of another network.
    #[error("the chain's database belongs to chain id {stored}, not {asked}")]
    ChainId {
        /// The chain id in the file.
        stored: u64,
        /// The chain id that was asked for.
        asked: u64,
    },
    /// The file was written by a version of this program that keeps it in another form.
    #[error("the chain's database has layout {found}, this program reads layout {expected}")]
    Layout {
        /// The layout in the file.
        found: i64,
        /// The layout this program writes.
        expected: i64,
    },
    /// A stored row does not read as what it should be.
    #[error("the chain's database has a corrupt row in {table}: {what}")]
    Corrupt {
        /// The table of the row.
        table: &'static str,
        /// What was expected.
        what: String,
    },
    /// The writer thread could not be started.
    #[error("the chain's writer thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The virtual machine gave up for a reason that is neither the transaction's nor the database's.
    #[error("the virtual machine: {0}")]
    Machine(String),
}

impl EmbeddedError {
    pub(super) fn corrupt(table: &'static str, what: impl ToString) -> Self {
        Self::Corrupt { table, what: what.to_string() }
    }
}

/// A JSON-RPC error object.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// The JSON-RPC or geth error code.
    pub code: i64,
    /// The text that clients match on.
    pub message: Cow<'static, str>,
    /// For a revert, the returned bytes as a hex string.
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    fn plain(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The body is not JSON.
    pub(super) fn parse() -> Self {
        Self::plain(-32700, "parse error")
    }

    /// The JSON is not a request.
    pub(super) fn request(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32600, why)
    }

    pub(super) fn method(name: &str) -> Self {
        Self::plain(-32601, format!("the method {name} does not exist/is not available"))
    }

    pub(super) fn params(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32602, why)
    }

    /// The request is well formed and refused: geth's catch-all.
    pub(super) fn refused(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32000, why)
    }

    /// The answer would be larger than this node gives.
    pub(super) fn limit(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32005, why)
    }

    pub(super) fn internal(why: impl Into<Cow<'static, str>>) -> Self {
        Self::plain(-32603, why)
    }

    /// A revert, with its reason in words where the data carries one.
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
    /// Logged here because here the cause is dropped: a caller learns only that the node failed.
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

/// The words of an `Error(string)` or `Panic(uint256)`; custom errors have none that are known here.
fn reason(output: &[u8]) -> Option<String> {
    if let Ok(revert) = Revert::abi_decode(output) {
        return Some(revert.reason);
    }
    Panic::abi_decode(output).ok().map(|panic| panic.to_string())
}
