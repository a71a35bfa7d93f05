//! Remote signers of lanes.

use std::sync::Arc;

use alloy_primitives::Address;
use chain::{LaneSigner, Web3signer};
use domain::ErrorCode;
use domain::lane::SignerKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::lanes::Lane;

use crate::AppError;

/// The place of an executor's key, and how to reach it. It contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignerPlace {
    /// The secrets file of the process that runs the lane.
    File,
    /// A web3signer server.
    Web3signer(ServerSettings),
}

/// The settings of a signer that is a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerSettings {
    pub url: String,
}

impl SignerPlace {
    pub const fn kind(&self) -> SignerKind {
        match self {
            Self::File => SignerKind::File,
            Self::Web3signer(_) => SignerKind::Web3signer,
        }
    }

    /// Returns the settings in the form in which a lane stores them.
    pub(super) fn settings(&self) -> Option<Value> {
        match self {
            Self::File => None,
            Self::Web3signer(settings) => serde_json::to_value(settings).ok(),
        }
    }

    /// Returns the remote signer of the executor's key. `None` if the key is in a file.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` if the settings cannot be used.
    pub fn remote(&self, executor: Address) -> Result<Option<LaneSigner>, AppError> {
        match self {
            Self::File => Ok(None),
            Self::Web3signer(ServerSettings { url }) => {
                let key = Web3signer::new(url, executor).map_err(|error| unusable(error.to_string()))?;
                Ok(Some(LaneSigner::Remote { address: executor, key: Arc::new(key) }))
            }
        }
    }

    /// Returns the place of a lane's key.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` if its settings are not readable.
    pub fn of(lane: &Lane) -> Result<Self, AppError> {
        let settings = lane.signer_settings.as_deref().unwrap_or_default();
        match lane.signer {
            SignerKind::File => Ok(Self::File),
            SignerKind::Web3signer => serde_json::from_str(settings).map(Self::Web3signer).map_err(|_| {
                unusable(format!("the settings of the signer of lane {} are not readable", lane.lane))
            }),
        }
    }
}

fn unusable(why: String) -> AppError {
    AppError::new(ErrorCode::ValidationFailed).detail(why)
}
