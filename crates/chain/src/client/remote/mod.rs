//! Clients of remote signers.

mod http;
#[cfg(any(feature = "aws-kms", feature = "gcp-kms"))]
mod kms;
mod web3signer;

use std::sync::Arc;

pub use web3signer::Web3signer;

use super::lane_signer::RemoteKey;
use crate::error::ChainError;

/// Opens a key of AWS KMS, without a request. A key that is not an ARN needs a region; `endpoint`
/// replaces that of the region.
///
/// # Errors
///
/// `Rejected` if a value cannot be used, or without the feature `aws-kms`.
#[cfg(feature = "aws-kms")]
pub fn open_aws_key(
    key: &str,
    region: Option<&str>,
    endpoint: Option<&str>,
) -> Result<Arc<dyn RemoteKey>, ChainError> {
    Ok(Arc::new(kms::AwsKey::new(key, region, endpoint)?))
}

/// Opens a key of GCP KMS, without a request: the resource name of its version.
///
/// # Errors
///
/// `Rejected` if the name cannot be used, or without the feature `gcp-kms`.
#[cfg(feature = "gcp-kms")]
pub fn open_gcp_key(version: &str) -> Result<Arc<dyn RemoteKey>, ChainError> {
    Ok(Arc::new(kms::GcpKey::new(version)?))
}

#[cfg(not(feature = "aws-kms"))]
pub fn open_aws_key(_: &str, _: Option<&str>, _: Option<&str>) -> Result<Arc<dyn RemoteKey>, ChainError> {
    Err(not_built("aws-kms"))
}

#[cfg(not(feature = "gcp-kms"))]
pub fn open_gcp_key(_: &str) -> Result<Arc<dyn RemoteKey>, ChainError> {
    Err(not_built("gcp-kms"))
}

#[cfg(not(all(feature = "aws-kms", feature = "gcp-kms")))]
fn not_built(feature: &str) -> ChainError {
    ChainError::Rejected(format!(
        "this binary was built without {feature}: build it with --features {feature}"
    ))
}
