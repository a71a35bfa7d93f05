//! Checks of the passkey assertion of an act that the account contract does not make: origin,
//! relying party, and the exact form of the client data.
//!
//! The contract itself checks the signature against the owner's public key.

use alloy_primitives::B256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::passkey::RelyingParty;

/// The length of authenticator data without extensions: the hash of the relying-party id, the flags
/// and the counter.
const AUTHENTICATOR_DATA_LEN: usize = 37;
const USER_PRESENT: u8 = 1 << 0;
const USER_VERIFIED: u8 = 1 << 2;
const BACKUP_ELIGIBLE: u8 = 1 << 3;
const BACKED_UP: u8 = 1 << 4;

/// The reason why an assertion is rejected: the requirement that it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AssertionRefusal {
    #[error("must have client data with type, challenge and origin, as JSON")]
    ClientDataMalformed,
    #[error("must have the type webauthn.get")]
    WrongType,
    #[error("must sign the digest of the act")]
    WrongChallenge,
    #[error("must be made on this site")]
    WrongOrigin,
    #[error("must not be made in a page of another site")]
    CrossOrigin,
    #[error("must have complete authenticator data")]
    AuthenticatorDataMalformed,
    #[error("must be made with a passkey of this site")]
    WrongRelyingParty,
    #[error("must be made by a verified user")]
    UserNotVerified,
    #[error("must not be backed up if the passkey cannot be")]
    BackupImpossible,
}

/// The members of the client data that decide. Browsers may add others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    r#type: String,
    challenge: String,
    origin: String,
    #[serde(default)]
    cross_origin: bool,
}

/// Checks the assertion of an act with this digest.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_assertion(
    client_data_json: &str,
    authenticator_data: &[u8],
    digest: B256,
    site: &RelyingParty,
) -> Result<(), AssertionRefusal> {
    let data: ClientData =
        serde_json::from_str(client_data_json).map_err(|_| AssertionRefusal::ClientDataMalformed)?;
    if data.r#type != "webauthn.get" {
        return Err(AssertionRefusal::WrongType);
    }
    if data.challenge != URL_SAFE_NO_PAD.encode(digest) {
        return Err(AssertionRefusal::WrongChallenge);
    }
    if data.origin != site.origin() {
        return Err(AssertionRefusal::WrongOrigin);
    }
    if data.cross_origin {
        return Err(AssertionRefusal::CrossOrigin);
    }
    check_authenticator_data(authenticator_data, site.id())
}

fn check_authenticator_data(data: &[u8], rp_id: &str) -> Result<(), AssertionRefusal> {
    let (hash, flags) = match (data.get(..32), data.get(32)) {
        (Some(hash), Some(flags)) if data.len() >= AUTHENTICATOR_DATA_LEN => (hash, *flags),
        _ => return Err(AssertionRefusal::AuthenticatorDataMalformed),
    };
    if hash != Sha256::digest(rp_id).as_slice() {
        return Err(AssertionRefusal::WrongRelyingParty);
    }
    let is_set = |flag: u8| flags & flag != 0;
    if !is_set(USER_PRESENT) || !is_set(USER_VERIFIED) {
        return Err(AssertionRefusal::UserNotVerified);
    }
    if is_set(BACKED_UP) && !is_set(BACKUP_ELIGIBLE) {
        return Err(AssertionRefusal::BackupImpossible);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: B256 = B256::repeat_byte(7);

    fn site() -> RelyingParty {
        RelyingParty::new("https://foretell.example", None).unwrap()
    }

    fn client_data(kind: &str, challenge: B256, origin: &str, rest: &str) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(challenge);
        format!(r#"{{"type":"{kind}","challenge":"{challenge}","origin":"{origin}"{rest}}}"#)
    }

    fn authenticator_data(rp_id: &str, flags: u8) -> Vec<u8> {
        let mut data = Sha256::digest(rp_id).to_vec();
        data.extend([flags, 0, 0, 0, 9]);
        data
    }

    fn check(client_data: &str, authenticator_data: &[u8]) -> Result<(), AssertionRefusal> {
        check_assertion(client_data, authenticator_data, DIGEST, &site())
    }

    #[test]
    fn an_assertion_of_this_site_over_the_digest_passes() {
        let authenticator = authenticator_data("foretell.example", 0x05);
        for rest in ["", r#","crossOrigin":false"#, r#","crossOrigin":false,"other_keys":"x""#] {
            let client = client_data("webauthn.get", DIGEST, "https://foretell.example", rest);
            assert_eq!(check(&client, &authenticator), Ok(()), "{rest}");
        }
        let client = client_data("webauthn.get", DIGEST, "https://foretell.example", "");
        for flags in [0x0d, 0x1d, 0xdd] {
            assert_eq!(check(&client, &authenticator_data("foretell.example", flags)), Ok(()), "{flags:x}");
        }
    }

    #[test]
    fn client_data_of_another_use_is_rejected() {
        use AssertionRefusal::*;
        let here = "https://foretell.example";
        let authenticator = authenticator_data("foretell.example", 0x05);
        let long = format!(
            r#"{{"type":"webauthn.get","challenge":"{}","origin":"{here}"}}"#,
            URL_SAFE_NO_PAD.encode([7; 40])
        );
        for (client, refusal) in [
            (client_data("webauthn.create", DIGEST, here, ""), WrongType),
            (client_data("webauthn.get", B256::ZERO, here, ""), WrongChallenge),
            (long, WrongChallenge),
            (client_data("webauthn.get", DIGEST, "https://foretell.example:8443", ""), WrongOrigin),
            (client_data("webauthn.get", DIGEST, "http://foretell.example", ""), WrongOrigin),
            (client_data("webauthn.get", DIGEST, "https://evil.foretell.example", ""), WrongOrigin),
            (client_data("webauthn.get", DIGEST, here, r#","crossOrigin":true"#), CrossOrigin),
            (client_data("webauthn.get", DIGEST, here, r#","crossOrigin":"no""#), ClientDataMalformed),
            (client_data("webauthn.get", DIGEST, here, r#","type":"webauthn.get""#), ClientDataMalformed),
            ("[]".to_owned(), ClientDataMalformed),
            (String::new(), ClientDataMalformed),
            (r#"{"type":"webauthn.get"}"#.to_owned(), ClientDataMalformed),
        ] {
            assert_eq!(check(&client, &authenticator), Err(refusal), "{client}");
        }
    }

    #[test]
    fn authenticator_data_of_another_site_or_without_verification_is_rejected() {
        use AssertionRefusal::*;
        let client = client_data("webauthn.get", DIGEST, "https://foretell.example", "");
        for (flags, refusal) in [
            (0x00, UserNotVerified),
            (0x01, UserNotVerified),
            (0x04, UserNotVerified),
            (0x15, BackupImpossible),
        ] {
            let data = authenticator_data("foretell.example", flags);
            assert_eq!(check(&client, &data), Err(refusal), "{flags:x}");
        }
        assert_eq!(check(&client, &authenticator_data("evil.example", 0x05)), Err(WrongRelyingParty));
        let short = &authenticator_data("foretell.example", 0x05)[..36];
        assert_eq!(check(&client, short), Err(AuthenticatorDataMalformed));
        assert_eq!(check(&client, &[]), Err(AuthenticatorDataMalformed));
    }
}
