//! Tests of an account that a passkey owns.

use alloy_primitives::B256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chain::{AccountOwner, Assertion, ChainError, Revert, provision};
use domain::passkey::{self, Passkey, RelyingParty, SoftKey};
use p256::ecdsa::signature::hazmat::PrehashSigner;
use p256::ecdsa::{Signature, SigningKey};
use sha2::{Digest, Sha256};

use crate::world::{KEY, Node, START_S, USDC, World, policy};

on_both_nodes!(
    passkey_owner_provisions_an_account_with_either_half_of_s,
    assertion_over_another_batch_is_refused,
    the_verifier_accepts_what_the_contract_accepts
);

/// Builds the assertion of a browser for the challenge: user present and verified, no extensions.
pub fn assert_challenge(key: &SigningKey, challenge: B256, high_s: bool) -> Assertion {
    let client_data_json = format!(
        r#"{{"type":"webauthn.get","challenge":"{}","origin":"https://foretell.example","crossOrigin":false}}"#,
        URL_SAFE_NO_PAD.encode(challenge)
    );
    let mut authenticator_data = Sha256::digest(b"foretell.example").to_vec();
    authenticator_data.extend([0x05, 0, 0, 0, 9]);
    let signed = [authenticator_data.clone(), Sha256::digest(client_data_json.as_bytes()).to_vec()].concat();
    let signature: Signature = key.sign_prehash(&Sha256::digest(signed)).unwrap();
    let low = signature.normalize_s().unwrap_or(signature);
    let s = if high_s { -low.s() } else { low.s() };
    Assertion {
        authenticator_data: authenticator_data.into(),
        client_data_json,
        r: B256::from_slice(&low.r().to_bytes()),
        s: B256::from_slice(&s.to_bytes()),
    }
}

pub fn owner(key: &SigningKey) -> AccountOwner {
    let point = key.verifying_key().to_encoded_point(false);
    AccountOwner::Passkey { x: B256::from_slice(point.x().unwrap()), y: B256::from_slice(point.y().unwrap()) }
}

async fn passkey_owner_provisions_an_account_with_either_half_of_s(node: Node) {
    let world = World::new(node).await;
    let key = SigningKey::from_slice(&[42; 32]).unwrap();
    for (key_index, high_s) in [(KEY, true), (KEY + 1, false)] {
        let policies = [policy(key_index, USDC, 2 * USDC)];
        let calls = provision::enabling_calls(world.chain.contracts(), &policies);
        let batch = world.prepare(owner(&key), calls).await;
        let signature = assert_challenge(&key, batch.digest, high_s).to_signature(&owner(&key)).unwrap();
        provision::relay(&world.chain, &world.relayer, &batch, signature).await.unwrap();
        let state = world.chain.account_state(batch.account, key_index).await.unwrap();
        assert!(state.provisioned && state.policy.is_live(START_S));
    }
}

async fn assertion_over_another_batch_is_refused(node: Node) {
    let world = World::new(node).await;
    let key = SigningKey::from_slice(&[42; 32]).unwrap();
    let batch = world.prepare(owner(&key), vec![]).await;
    let signature = assert_challenge(&key, B256::repeat_byte(1), false).to_signature(&owner(&key)).unwrap();
    let refused = provision::relay(&world.chain, &world.relayer, &batch, signature).await;
    assert_eq!(refused, Err(ChainError::Reverted(Revert::SignatureInvalid)));
}

/// Flags of the authenticator data, and the client data for a challenge.
type Case = (u8, fn(&str) -> String);

/// Assertions of a browser at the right origin. The verifier also checks what the contract cannot:
/// origin, relying party and counter.
const CASES: [Case; 12] = [
    (0x05, standard),
    (0x0d, standard),
    (0x1d, standard),
    (0x15, standard),
    (0x04, standard),
    (0x01, standard),
    (0x00, standard),
    (0x45, standard),
    (0x05, |c| format!(r#"{{"challenge":"{c}","origin":"{ORIGIN}","x":{{}},"type":"webauthn.get"}}"#)),
    (0x05, |c| format!(r#"{{"type":"webauthn.create","challenge":"{c}","origin":"{ORIGIN}"}}"#)),
    (0x05, |c| format!(r#"{{"type":"webauthn.get","challenge":"{c}=","origin":"{ORIGIN}"}}"#)),
    (0x05, |c| format!(r#"{{"type" : "webauthn.get","challenge":"{c}","origin":"{ORIGIN}"}}"#)),
];

const ORIGIN: &str = "https://foretell.example";

fn standard(challenge: &str) -> String {
    format!(r#"{{"type":"webauthn.get","challenge":"{challenge}","origin":"{ORIGIN}","crossOrigin":false}}"#)
}

async fn the_verifier_accepts_what_the_contract_accepts(node: Node) {
    let world = World::new(node).await;
    let party = RelyingParty::new(ORIGIN, None).unwrap();
    let mut key = SoftKey::new(&party, [42; 32]);
    let public_key = key.public_key();
    let owner = AccountOwner::Passkey { x: public_key.x(), y: public_key.y() };
    for (has_high_s, (flags, client_data)) in
        [false, true].into_iter().flat_map(|s| CASES.map(|case| (s, case)))
    {
        let batch = world.prepare(owner, vec![]).await;
        key.has_high_s = has_high_s;
        let mut authenticator_data = key.authenticator_data(0);
        authenticator_data[32] = flags;
        let json = client_data(&URL_SAFE_NO_PAD.encode(batch.digest));
        let given = key.sign(authenticator_data.clone(), json.clone().into_bytes());
        let passkey = Passkey { key: public_key, counter: 0 };
        let verified = passkey::verify_batch_assertion(&party, &batch.digest, &passkey, &given);
        let (r, s) = given.scalars().unwrap();
        let assertion =
            Assertion { authenticator_data: authenticator_data.into(), client_data_json: json.clone(), r, s };
        let relayed = match assertion.to_signature(&owner) {
            Ok(signature) => {
                provision::relay(&world.chain, &world.relayer, &batch, signature).await.map(drop)
            }
            Err(unreadable) => Err(unreadable),
        };
        assert_eq!(verified.is_ok(), relayed.is_ok(), "{flags:#x} {json}: {verified:?}, {relayed:?}");
    }
}

#[test]
fn client_data_without_a_challenge_is_rejected() {
    let key = SigningKey::from_slice(&[42; 32]).unwrap();
    let whole = assert_challenge(&key, B256::ZERO, false);
    let without = Assertion { client_data_json: r#"{"type":"webauthn.get"}"#.to_owned(), ..whole.clone() };
    assert!(matches!(without.to_signature(&owner(&key)), Err(ChainError::Rejected(_))));
    let no_s = Assertion { s: B256::repeat_byte(0xff), ..whole };
    assert!(matches!(no_s.to_signature(&owner(&key)), Err(ChainError::Rejected(_))));
}
