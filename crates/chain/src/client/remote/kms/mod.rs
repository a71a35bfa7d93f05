//! Keys in the key services of clouds, which sign digests over HTTP.

#[cfg(feature = "aws-kms")]
mod aws;
mod credentials;
mod encoding;
#[cfg(feature = "gcp-kms")]
mod gcp;
mod session;
#[cfg(test)]
mod tests;

#[cfg(feature = "aws-kms")]
pub use aws::AwsKey;
#[cfg(feature = "gcp-kms")]
pub use gcp::GcpKey;
