//! Registrations: a new passkey.

use super::authenticator_data::{AuthenticatorData, BackupState};
use super::client_data::{self, Ceremony};
use super::{Challenge, PasskeyRefusal, PublicKey, RelyingParty};

const AAGUID_LENGTH: usize = 16;
/// The maximum length that WebAuthn allows for a credential id.
const MAX_ID_LENGTH: usize = 1_023;
/// The transports that WebAuthn names. A page uses them only as hints.
const TRANSPORTS: [&str; 6] = ["ble", "hybrid", "internal", "nfc", "smart-card", "usb"];

/// The result of `navigator.credentials.create()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// `rawId`
    pub credential_id: Vec<u8>,
    /// `response.getAuthenticatorData()`
    pub authenticator_data: Vec<u8>,
    /// `response.clientDataJSON`
    pub client_data_json: Vec<u8>,
    /// x and y of `response.getPublicKey()`, 64 bytes
    pub public_key: Vec<u8>,
    /// `response.getTransports()`
    pub transports: Vec<String>,
}

/// A passkey whose registration is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPasskey {
    pub credential_id: Vec<u8>,
    pub key: PublicKey,
    pub counter: u32,
    pub backup: BackupState,
    pub transports: Vec<String>,
}

/// Verifies a registration for `challenge`. There is no attestation: the service does not restrict
/// the authenticator's model.
///
/// The key comes from the browser's `getPublicKey()`. It is compared with the canonical COSE key in
/// the authenticator data, which must consist of these bytes, so no CBOR is parsed.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify_registration(
    party: &RelyingParty,
    challenge: &Challenge,
    given: &Registration,
) -> Result<NewPasskey, PasskeyRefusal> {
    client_data::verify(&given.client_data_json, Ceremony::Create, party, &challenge.to_bytes())?;
    let data = AuthenticatorData::read(&given.authenticator_data)?;
    let backup = data.verify(party)?;
    if !data.has_credential() {
        return Err(PasskeyRefusal::AuthenticatorDataMalformed);
    }
    let (id, cose) = read_credential(data.rest)?;
    if id != given.credential_id || id.is_empty() || id.len() > MAX_ID_LENGTH {
        return Err(PasskeyRefusal::WrongCredentialId);
    }
    let key = PublicKey::from_bytes(&given.public_key)?;
    let extensions = cose.strip_prefix(key.to_cose().as_slice()).ok_or(PasskeyRefusal::WrongKey)?;
    if data.has_extensions() == extensions.is_empty() {
        return Err(PasskeyRefusal::AuthenticatorDataMalformed);
    }
    let is_known = |transport: &&String| TRANSPORTS.contains(&transport.as_str());
    let mut transports: Vec<String> = given.transports.iter().filter(is_known).cloned().collect();
    transports.sort_unstable();
    transports.dedup();
    Ok(NewPasskey { credential_id: id.to_vec(), key, counter: data.counter, backup, transports })
}

/// Splits the new credential into its id, and its key with the extensions.
fn read_credential(bytes: &[u8]) -> Result<(&[u8], &[u8]), PasskeyRefusal> {
    let (_, rest) =
        bytes.split_at_checked(AAGUID_LENGTH).ok_or(PasskeyRefusal::AuthenticatorDataMalformed)?;
    let [high, low, rest @ ..] = rest else { return Err(PasskeyRefusal::AuthenticatorDataMalformed) };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    rest.split_at_checked(length).ok_or(PasskeyRefusal::AuthenticatorDataMalformed)
}
