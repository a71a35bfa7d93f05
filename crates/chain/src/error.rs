//! Errors between the service and the chain.

use alloy::sol_types;
use alloy::transports::http::reqwest;
use alloy::transports::{RpcError, TransportError, TransportErrorKind};

use crate::revert::Revert;

/// A failed call or transaction. The variants differ in what the caller may do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The node cannot be reached or is busy, and nothing was sent. Retry later.
    #[error("the node cannot be reached: {0}")]
    Unreachable(String),
    /// The transaction may or may not have been sent. Never retry it under another nonce: look up
    /// the receipt, or send the same bytes again.
    #[error("the transaction may have been sent: {0}")]
    Ambiguous(String),
    /// The contracts reverted.
    #[error("the contracts reverted: {0}")]
    Reverted(Revert),
    /// The node rejected the request, or the caller's values cannot be encoded. Nothing was sent.
    #[error("rejected: {0}")]
    Rejected(String),
    /// The node's answers contradict each other: a block below the newest one is missing, or logs
    /// do not match their block. The usual cause is a load balancer in front of nodes of different
    /// heights. Retry later.
    #[error("the node's answers are inconsistent: {0}")]
    Inconsistent(String),
    /// The answer does not have the form that the contracts or the protocol specify.
    #[error("the answer cannot be decoded: {0}")]
    Decode(String),
}

impl ChainError {
    /// Converts the error of a request that changes nothing. An unclear result is then only a
    /// missing answer, never `Ambiguous`.
    pub(crate) fn of_read(error: TransportError) -> Self {
        if let RpcError::ErrorResp(payload) = &error {
            if let Some(data) = payload.as_revert_data() {
                return Self::Reverted(Revert::from_data(&data));
            }
            // Some nodes report a revert only in the message, without its data.
            if payload.message.contains("revert") {
                return Self::Reverted(Revert::Other(payload.message.to_string()));
            }
            // The node asks to retry later, for example because of a rate limit.
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
            // Omits the response body, which can be long.
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

/// Describes a transport error without the node's URL, which may contain an access key that must
/// not reach the logs.
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
