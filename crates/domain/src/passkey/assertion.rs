//! Assertions: signatures of a registered passkey.

use alloy_primitives::B256;
use p256::ecdsa::Signature;
use sha2::{Digest, Sha256};

use super::authenticator_data::{AuthenticatorData, BackupState};
use super::client_data::{self, Ceremony};
use super::{Challenge, PasskeyRefusal, PublicKey, RelyingParty};

/// The result of `navigator.credentials.get()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// `rawId`
    pub credential_id: Vec<u8>,
    /// `response.authenticatorData`
    pub authenticator_data: Vec<u8>,
    /// `response.clientDataJSON`
    pub client_data_json: Vec<u8>,
    /// `response.signature`, in DER
    pub signature: Vec<u8>,
    /// `response.userHandle`
    pub user_handle: Option<Vec<u8>>,
}

impl Assertion {
    /// Returns `r` and `s` of the signature, as the account contract reads them.
    ///
    /// # Errors
    /// `WrongSignature` if it is not an ECDSA signature in DER.
    pub fn scalars(&self) -> Result<(B256, B256), PasskeyRefusal> {
        let (r, s) = self.read_signature()?.split_bytes();
        Ok((B256::from_slice(&r), B256::from_slice(&s)))
    }

    fn read_signature(&self) -> Result<Signature, PasskeyRefusal> {
        Signature::from_der(&self.signature).map_err(|_| PasskeyRefusal::WrongSignature)
    }
}

/// A registered passkey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passkey {
    pub key: PublicKey,
    /// The signature counter of its last use. 0 for passkeys without a counter.
    pub counter: u32,
}

/// The state of a passkey after a valid assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasskeyUse {
    pub counter: u32,
    pub backup: BackupState,
}

/// Verifies an assertion for a challenge to sign in.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify_assertion(
    party: &RelyingParty,
    challenge: &Challenge,
    passkey: &Passkey,
    given: &Assertion,
) -> Result<PasskeyUse, PasskeyRefusal> {
    verify(party, &challenge.to_bytes(), passkey, given)
}

/// Verifies an assertion over the digest of an account's batch: the contract's own checks, and
/// those of origin, relying party and counter, which the contract lacks.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify_batch_assertion(
    party: &RelyingParty,
    digest: &B256,
    passkey: &Passkey,
    given: &Assertion,
) -> Result<PasskeyUse, PasskeyRefusal> {
    verify(party, digest.as_slice(), passkey, given)
}

/// Checks the statements of an assertion over the digest of an account's batch that the contract
/// does not check: origin, relying party and the exact form of the client data.
///
/// The contract itself checks the signature against the owner's public key.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_batch_statements(
    party: &RelyingParty,
    digest: &B256,
    client_data_json: &[u8],
    authenticator_data: &[u8],
) -> Result<(), PasskeyRefusal> {
    client_data::verify(client_data_json, Ceremony::Get, party, digest.as_slice())?;
    AuthenticatorData::read(authenticator_data)?.verify(party).map(drop)
}

fn verify(
    party: &RelyingParty,
    challenge: &[u8],
    passkey: &Passkey,
    given: &Assertion,
) -> Result<PasskeyUse, PasskeyRefusal> {
    client_data::verify(&given.client_data_json, Ceremony::Get, party, challenge)?;
    let data = AuthenticatorData::read(&given.authenticator_data)?;
    let backup = data.verify(party)?;
    let signed = Sha256::new()
        .chain_update(&given.authenticator_data)
        .chain_update(Sha256::digest(&given.client_data_json))
        .finalize();
    passkey.key.verify(&signed, &given.read_signature()?)?;
    // Checked last: only a valid signature makes the counter trustworthy. Authenticators without a
    // counter, such as those that sync, always send 0.
    let has_no_counter = data.counter == 0 && passkey.counter == 0;
    if data.counter <= passkey.counter && !has_no_counter {
        return Err(PasskeyRefusal::CounterWentBack);
    }
    Ok(PasskeyUse { counter: data.counter, backup })
}
