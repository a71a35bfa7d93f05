//! The client data: the JSON with which the browser states type, challenge and origin.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Challenge, PasskeyRefusal, RelyingParty};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ceremony {
    Create,
    Get,
}

impl Ceremony {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "webauthn.create",
            Self::Get => "webauthn.get",
        }
    }
}

/// The members that are checked. Browsers may add others.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    r#type: String,
    challenge: String,
    origin: String,
    #[serde(default)]
    cross_origin: bool,
    top_origin: Option<IgnoredAny>,
}

impl ClientData {
    fn read(json: &[u8]) -> Result<Self, PasskeyRefusal> {
        serde_json::from_slice(json).map_err(|_| PasskeyRefusal::ClientDataMalformed)
    }
}

/// Returns the challenge that the client data names, so that the caller can look it up.
///
/// # Errors
/// `ClientDataMalformed`, or `WrongChallenge` if it is not a challenge to sign in, such as the 32
/// bytes of a batch's digest.
pub fn challenge_of(client_data_json: &[u8]) -> Result<Challenge, PasskeyRefusal> {
    ClientData::read(client_data_json)?.challenge.parse().map_err(|_| PasskeyRefusal::WrongChallenge)
}

/// Checks type, challenge and origin.
pub(super) fn verify(
    json: &[u8],
    ceremony: Ceremony,
    party: &RelyingParty,
    challenge: &[u8],
) -> Result<(), PasskeyRefusal> {
    let data = ClientData::read(json)?;
    let challenge = URL_SAFE_NO_PAD.encode(challenge);
    if data.r#type != ceremony.as_str() {
        return Err(PasskeyRefusal::WrongType);
    }
    if data.challenge != challenge {
        return Err(PasskeyRefusal::WrongChallenge);
    }
    if data.origin != party.origin() {
        return Err(PasskeyRefusal::WrongOrigin);
    }
    if data.cross_origin || data.top_origin.is_some() {
        return Err(PasskeyRefusal::CrossOrigin);
    }
    // The contract compares these members byte by byte, at their first occurrence. A browser that
    // spells them in another way could sign in but not move its own funds.
    let is_spelled = |name: &str, value: &str| has_member(json, name, value);
    if is_spelled("type", ceremony.as_str()) && is_spelled("challenge", &challenge) {
        Ok(())
    } else {
        Err(PasskeyRefusal::ClientDataMalformed)
    }
}

fn has_member(json: &[u8], name: &str, value: &str) -> bool {
    let Ok(text) = std::str::from_utf8(json) else { return false };
    let name = format!("\"{name}\":");
    let first = text.split_once(&name).map(|(_, rest)| rest);
    first
        .and_then(|rest| rest.strip_prefix('"')?.strip_prefix(value))
        .is_some_and(|rest| rest.starts_with('"'))
}
