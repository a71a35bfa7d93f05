//! A passkey in software, for tests.
#![expect(clippy::expect_used, reason = "what a test cannot do without fails it")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::hazmat::PrehashSigner;
use p256::ecdsa::{Signature, SigningKey};
use sha2::{Digest, Sha256};

use super::{Assertion, BackupState, Challenge, PublicKey, Registration, RelyingParty};
use alloy_primitives::B256;

/// A passkey and the browser that it is used in. It behaves well; a test changes its fields to make
/// it misbehave.
#[derive(Debug, Clone)]
pub struct SoftKey {
    signing: SigningKey,
    pub credential_id: Vec<u8>,
    /// Set by [`Self::register`].
    pub user_handle: Option<Vec<u8>>,
    pub rp_id: String,
    pub origin: String,
    /// The browser's `crossOrigin`.
    pub is_cross_origin: bool,
    pub is_user_present: bool,
    pub is_user_verified: bool,
    pub backup: BackupState,
    /// The counter of its last signature.
    pub counter: u32,
    /// Added to the counter for each signature. 0 for a passkey without a counter.
    pub counter_step: u32,
    /// Signs with `s` in the upper half.
    pub has_high_s: bool,
}

impl SoftKey {
    /// Creates a passkey of this relying party, which depends only on the seed.
    ///
    /// # Panics
    /// If the seed is 0 or not below the order of P-256.
    pub fn new(party: &RelyingParty, seed: [u8; 32]) -> Self {
        Self {
            signing: SigningKey::from_slice(&seed).expect("a seed below the group's order"),
            credential_id: Sha256::digest(seed).to_vec(),
            user_handle: None,
            rp_id: party.id().to_owned(),
            origin: party.origin().to_owned(),
            is_cross_origin: false,
            is_user_present: true,
            is_user_verified: true,
            backup: BackupState::DeviceBound,
            counter: 0,
            counter_step: 1,
            has_high_s: false,
        }
    }

    pub fn public_key(&self) -> PublicKey {
        let point = self.signing.verifying_key().to_encoded_point(false);
        let [x, y] = [point.x(), point.y()].map(|it| B256::from_slice(it.expect("an uncompressed point")));
        PublicKey::new(x, y).expect("a point of the curve")
    }

    /// Registers the passkey, as `navigator.credentials.create()` does.
    pub fn register(&mut self, challenge: &Challenge) -> Registration {
        self.user_handle = Some(challenge.user_handle().to_vec());
        let mut authenticator_data = self.authenticator_data(0x40);
        authenticator_data.extend([0; 16]);
        let length = u16::try_from(self.credential_id.len()).expect("a short credential id");
        authenticator_data.extend(length.to_be_bytes());
        authenticator_data.extend(&self.credential_id);
        authenticator_data.extend(self.public_key().to_cose());
        Registration {
            credential_id: self.credential_id.clone(),
            authenticator_data,
            client_data_json: self.client_data("webauthn.create", &challenge.to_bytes()),
            public_key: self.public_key().to_bytes(),
            transports: vec!["internal".to_owned()],
        }
    }

    /// Signs a challenge, as `navigator.credentials.get()` does: that of a sign-in, or the 32 bytes
    /// of a batch's digest.
    pub fn assert(&mut self, challenge: &[u8]) -> Assertion {
        self.counter += self.counter_step;
        let client_data_json = self.client_data("webauthn.get", challenge);
        self.sign(self.authenticator_data(0), client_data_json)
    }

    /// Signs these bytes, whatever they are.
    ///
    /// # Panics
    /// Never: any digest can be signed.
    pub fn sign(&self, authenticator_data: Vec<u8>, client_data_json: Vec<u8>) -> Assertion {
        let signed = Sha256::new()
            .chain_update(&authenticator_data)
            .chain_update(Sha256::digest(&client_data_json))
            .finalize();
        let signature: Signature = self.signing.sign_prehash(&signed).expect("a digest can be signed");
        let low = signature.normalize_s().unwrap_or(signature);
        let signature = if self.has_high_s {
            Signature::from_scalars(low.r().to_bytes(), (-low.s()).to_bytes()).expect("nonzero scalars")
        } else {
            low
        };
        Assertion {
            credential_id: self.credential_id.clone(),
            authenticator_data,
            client_data_json,
            signature: signature.to_der().as_bytes().to_vec(),
            user_handle: self.user_handle.clone(),
        }
    }

    /// Returns the authenticator data without a credential.
    pub fn authenticator_data(&self, further_flags: u8) -> Vec<u8> {
        let backup = match self.backup {
            BackupState::DeviceBound => 0,
            BackupState::Eligible => 0x08,
            BackupState::BackedUp => 0x18,
        };
        let user = u8::from(self.is_user_present) | u8::from(self.is_user_verified) << 2;
        let mut data = Sha256::digest(&self.rp_id).to_vec();
        data.push(user | backup | further_flags);
        data.extend(self.counter.to_be_bytes());
        data
    }

    /// Returns the client data, spelled as browsers do.
    pub fn client_data(&self, kind: &str, challenge: &[u8]) -> Vec<u8> {
        let (challenge, origin) = (URL_SAFE_NO_PAD.encode(challenge), &self.origin);
        let cross_origin = self.is_cross_origin;
        format!(r#"{{"type":"{kind}","challenge":"{challenge}","origin":"{origin}","crossOrigin":{cross_origin}}}"#)
            .into_bytes()
    }
}
