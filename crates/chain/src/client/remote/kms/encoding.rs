//! The forms in which key services return public keys and signatures.

use alloy::signers::utils::public_key_to_address;
use alloy_primitives::{Address, B256, Signature};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k256::ecdsa;
use k256::pkcs8::DecodePublicKey;

const OTHER_KEY: &str = "its public key is not one of the curve secp256k1";

/// Returns the address of a public key: SubjectPublicKeyInfo in DER.
#[cfg(feature = "aws-kms")]
pub fn address_of_der(der: &[u8]) -> Result<Address, String> {
    let key = ecdsa::VerifyingKey::from_public_key_der(der);
    key.map(|key| public_key_to_address(&key)).map_err(|_| OTHER_KEY.to_owned())
}

/// Returns the address of a public key: SubjectPublicKeyInfo in PEM.
#[cfg(feature = "gcp-kms")]
pub fn address_of_pem(pem: &str) -> Result<Address, String> {
    let key = ecdsa::VerifyingKey::from_public_key_pem(pem);
    key.map(|key| public_key_to_address(&key)).map_err(|_| OTHER_KEY.to_owned())
}

/// Reads an ECDSA-Sig-Value in DER. Services do not prefer the lower s, and do not return a parity.
pub fn signature_of_der(der: &[u8]) -> Result<Signature, String> {
    let signature =
        ecdsa::Signature::from_der(der).map_err(|_| "its answer is not a signature".to_owned())?;
    let (r, s) = signature.split_bytes();
    Ok(Signature::from_scalars_and_parity(B256::from_slice(&r), B256::from_slice(&s), false))
}

pub fn base64_of(bytes: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(bytes)
}

pub fn bytes_of(base64: &str) -> Result<Vec<u8>, String> {
    BASE64_STANDARD.decode(base64).map_err(|_| super::session::UNREADABLE.to_owned())
}
