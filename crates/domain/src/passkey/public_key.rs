//! The public key of a passkey.

use alloy_primitives::B256;
use p256::EncodedPoint;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use p256::ecdsa::{Signature, VerifyingKey};

use super::PasskeyRefusal;

/// The canonical CBOR of a COSE key in front of x: a map of 5 members, key type EC2 (1: 2),
/// algorithm ES256 (3: -7), curve P-256 (-1: 1), and the head of x (-2: 32 bytes).
const COSE_PREFIX: [u8; 10] = [0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20];
/// The head of y (-3: 32 bytes).
const COSE_Y: [u8; 3] = [0x22, 0x58, 0x20];

/// A P-256 public key: a point of the curve, as the account contract requires of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey {
    x: B256,
    y: B256,
}

impl PublicKey {
    /// # Errors
    /// `WrongKey` if the point is not on the curve.
    pub fn new(x: B256, y: B256) -> Result<Self, PasskeyRefusal> {
        let key = Self { x, y };
        key.verifying_key().map(|_| key)
    }

    /// Reads 64 bytes: x and y, big-endian.
    ///
    /// # Errors
    /// `WrongKey` if the length is not 64, or the point is not on the curve.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PasskeyRefusal> {
        match bytes.split_at_checked(32) {
            Some((x, y)) if y.len() == 32 => Self::new(B256::from_slice(x), B256::from_slice(y)),
            _ => Err(PasskeyRefusal::WrongKey),
        }
    }

    pub const fn x(&self) -> B256 {
        self.x
    }

    pub const fn y(&self) -> B256 {
        self.y
    }

    /// Returns x and y, big-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.x.0, self.y.0].concat()
    }

    /// Returns the key as CTAP2 encodes it in authenticator data, byte for byte.
    pub(super) fn to_cose(self) -> Vec<u8> {
        [&COSE_PREFIX[..], &self.x.0, &COSE_Y, &self.y.0].concat()
    }

    /// Checks a signature over a SHA-256 digest. Accepts `s` in either half: authenticators return
    /// both.
    pub(super) fn verify(&self, digest: &[u8], signature: &Signature) -> Result<(), PasskeyRefusal> {
        let verified = self.verifying_key()?.verify_prehash(digest, signature);
        verified.map_err(|_| PasskeyRefusal::WrongSignature)
    }

    fn verifying_key(&self) -> Result<VerifyingKey, PasskeyRefusal> {
        let point = EncodedPoint::from_affine_coordinates(&self.x.0.into(), &self.y.0.into(), false);
        VerifyingKey::from_encoded_point(&point).map_err(|_| PasskeyRefusal::WrongKey)
    }
}
