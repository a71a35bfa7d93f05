//! What can go wrong between the service and the chain.

use alloy::sol_types;
use alloy::transports::http::reqwest;
use alloy::transports::{RpcError, TransportError, TransportErrorKind};

use super::revert::Revert;

/// A call or a transaction that did not succeed, by what the caller may do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The node cannot be reached or is out of order; nothing was sent. Try again later.
    #[error("the node cannot be reached: {0}")]
    Unreachable(String),
    /// A transaction may or may not have been sent. Never to be retried under another nonce: look for the
    /// receipt, or send the same bytes again.
    #[error("the transaction may have been sent: {0}")]
    Ambiguous(String),
    /// The contracts refused.
    #[error("the contracts refused: {0}")]
    Reverted(Revert),
    /// The node refused the request, or the caller's values cannot be put into one. Nothing was sent.
    #[error("refused: {0}")]
    Rejected(String),
    /// The node's answers do not fit together: a block is missing below the newest one, or logs are not those of
    /// their block. Mostly a load balancer before nodes of different heights. Try again later.
    #[error("the node's answers do not fit together: {0}")]
    Inconsistent(String),
    /// The node's answer is not what the contracts or the protocol say it should be.
    #[error("the answer does not decode: {0}")]
    Decode(String),
}

impl ChainError {
    /// Of a request that changes nothing, where an unclear end is just a missing answer.
    pub(crate) fn of_read(error: TransportError) -> Self {
        if let RpcError::ErrorResp(payload) = &error {
            if let Some(data) = payload.as_revert_data() {
                return Self::Reverted(Revert::from_data(&data));
            }
            if payload.message.contains("revert") {
                return Self::Reverted(Revert::Other(payload.message.to_string()));
            }
            // Rate limits and the like.
            let busy = payload.is_retry_err();
            return if busy {
                Self::Unreachable(payload.to_string())
            } else {
                Self::Rejected(payload.to_string())
            };
        }
        match error {
            RpcError::Transport(kind) => Self::Unreachable(describe(&kind)),
            RpcError::NullResp => Self::Decode(error.to_string()),
            // Without the text, which can be long.
            RpcError::DeserError { err, .. } => Self::Decode(err.to_string()),
            other => Self::Rejected(other.to_string()),
        }
    }
}

impl From<sol_types::Error> for ChainError {
    fn from(error: sol_types::Error) -> Self {
        Self::Decode(error.to_string())
    }
}

/// What went wrong on the way, without the node's URL, which may hold an access key and would end up in the
/// logs.
fn describe(kind: &TransportErrorKind) -> String {
    let error = match kind {
        TransportErrorKind::Custom(error) => error.downcast_ref::<reqwest::Error>(),
        _ => None,
    };
    match error {
        Some(error) if error.is_timeout() => "no answer in time".to_owned(),
        Some(error) if error.is_connect() => "no connection".to_owned(),
        Some(error) if error.is_body() || error.is_decode() => "the answer broke off".to_owned(),
        Some(_) => "the connection broke".to_owned(),
        None => kind.to_string(),
    }
}
