//! Remote signers of lanes.

use std::sync::Arc;

use alloy_primitives::Address;
use chain::{ChainError, LaneSigner, RemoteKey, Web3signer, open_aws_key, open_gcp_key};
use domain::ErrorCode;
use domain::lane::SignerKind;
use serde::de::DeserializeOwned;
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
    /// AWS KMS.
    AwsKms(AwsKeySettings),
    /// GCP KMS.
    GcpKms(GcpKeySettings),
}

/// The settings of a signer that is a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerSettings {
    pub url: String,
}

/// A key in AWS KMS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AwsKeySettings {
    /// Its ARN, its id or `alias/NAME`.
    pub key: String,
    /// Needed if the key is not an ARN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Replaces the endpoint of the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A key in GCP KMS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GcpKeySettings {
    /// The resource name of its version.
    pub key: String,
}

impl ServerSettings {
    fn open(&self, executor: Address) -> Result<Arc<dyn RemoteKey>, ChainError> {
        Ok(Arc::new(Web3signer::new(&self.url, executor)?))
    }
}

impl AwsKeySettings {
    fn open(&self) -> Result<Arc<dyn RemoteKey>, ChainError> {
        open_aws_key(&self.key, self.region.as_deref(), self.url.as_deref())
    }
}

impl GcpKeySettings {
    fn open(&self) -> Result<Arc<dyn RemoteKey>, ChainError> {
        open_gcp_key(&self.key)
    }
}

impl SignerPlace {
    pub const fn kind(&self) -> SignerKind {
        match self {
            Self::File => SignerKind::File,
            Self::Web3signer(_) => SignerKind::Web3signer,
            Self::AwsKms(_) => SignerKind::AwsKms,
            Self::GcpKms(_) => SignerKind::GcpKms,
        }
    }

    /// Returns the settings in the form in which a lane stores them.
    pub(super) fn settings(&self) -> Option<Value> {
        match self {
            Self::File => None,
            Self::Web3signer(settings) => serde_json::to_value(settings).ok(),
            Self::AwsKms(settings) => serde_json::to_value(settings).ok(),
            Self::GcpKms(settings) => serde_json::to_value(settings).ok(),
        }
    }

    /// Returns the remote signer of the executor's key. `None` if the key is in a file.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` if the settings cannot be used.
    pub fn remote(&self, executor: Address) -> Result<Option<LaneSigner>, AppError> {
        let key = match self {
            Self::File => return Ok(None),
            Self::Web3signer(settings) => settings.open(executor),
            Self::AwsKms(settings) => settings.open(),
            Self::GcpKms(settings) => settings.open(),
        };
        Ok(Some(LaneSigner::Remote { address: executor, key: key.map_err(unusable)? }))
    }

    /// Asks the key service for the address of the key. `None` if the key is in a file or in a server
    /// with many keys.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` if the settings cannot be used. `DEPENDENCY_UNAVAILABLE` if the service does
    /// not answer or lacks the key.
    pub async fn find_address(&self) -> Result<Option<Address>, AppError> {
        let key = match self {
            Self::File | Self::Web3signer(_) => return Ok(None),
            Self::AwsKms(settings) => settings.open(),
            Self::GcpKms(settings) => settings.open(),
        };
        let unavailable = |reason| {
            let why = format!("the signer is not available: {reason}");
            AppError::new(ErrorCode::DependencyUnavailable).detail(why)
        };
        key.map_err(unusable)?.address().await.map(Some).map_err(unavailable)
    }

    /// Returns the place of a lane's key.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` if its settings are not readable.
    pub fn of(lane: &Lane) -> Result<Self, AppError> {
        match lane.signer {
            SignerKind::File => Ok(Self::File),
            SignerKind::Web3signer => settings_of(lane).map(Self::Web3signer),
            SignerKind::AwsKms => settings_of(lane).map(Self::AwsKms),
            SignerKind::GcpKms => settings_of(lane).map(Self::GcpKms),
        }
    }
}

fn settings_of<T: DeserializeOwned>(lane: &Lane) -> Result<T, AppError> {
    serde_json::from_str(lane.signer_settings.as_deref().unwrap_or_default()).map_err(|_| {
        let why = format!("the settings of the signer of lane {} are not readable", lane.lane);
        AppError::new(ErrorCode::ValidationFailed).detail(why)
    })
}

fn unusable(error: ChainError) -> AppError {
    AppError::new(ErrorCode::ValidationFailed).detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;

    fn stored(place: &SignerPlace) -> Lane {
        let settings = place.settings().map(|settings| settings.to_string());
        let lane = Lane::of_file(1, Address::ZERO, Timestamp::from_ms(0));
        Lane { signer: place.kind(), signer_settings: settings, ..lane }
    }

    #[test]
    fn a_place_is_read_as_it_was_stored() {
        let (key, url) = ("key".to_owned(), "https://signer".to_owned());
        let aws = AwsKeySettings { key: key.clone(), region: None, url: None };
        let places = [
            SignerPlace::File,
            SignerPlace::Web3signer(ServerSettings { url: url.clone() }),
            SignerPlace::AwsKms(aws.clone()),
            SignerPlace::AwsKms(AwsKeySettings {
                region: Some("eu-west-1".to_owned()),
                url: Some(url),
                ..aws
            }),
            SignerPlace::GcpKms(GcpKeySettings { key }),
        ];
        for place in places {
            assert_eq!(SignerPlace::of(&stored(&place)).unwrap(), place);
        }
    }

    #[test]
    fn a_place_whose_settings_belong_to_another_kind_is_not_used() {
        let lane = stored(&SignerPlace::Web3signer(ServerSettings { url: "https://signer".to_owned() }));
        for signer in [SignerKind::AwsKms, SignerKind::GcpKms] {
            let error = SignerPlace::of(&Lane { signer, ..lane.clone() }).unwrap_err();
            assert!(error.to_string().contains("the settings of the signer of lane 1"), "{error}");
        }
    }
}
