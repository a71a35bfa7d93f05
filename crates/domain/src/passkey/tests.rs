use alloy_primitives::B256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;

use super::*;

fn party() -> RelyingParty {
    RelyingParty::new("https://foretell.example", None).unwrap()
}

fn key() -> SoftKey {
    SoftKey::new(&party(), [42; 32])
}

fn challenge() -> Challenge {
    Challenge::new(ChallengePurpose::SignIn, [7; 32])
}

fn passkey(key: &SoftKey) -> Passkey {
    Passkey { key: key.public_key(), counter: key.counter }
}

fn verified(key: &SoftKey, given: &Assertion) -> Result<PasskeyUse, PasskeyRefusal> {
    verify_assertion(&party(), &challenge(), &Passkey { counter: 0, ..passkey(key) }, given)
}

/// Asserts with a passkey that `change` makes misbehave.
fn assert_with(change: impl FnOnce(&mut SoftKey)) -> Result<PasskeyUse, PasskeyRefusal> {
    let mut key = key();
    change(&mut key);
    let given = key.assert(&challenge().to_bytes());
    verified(&key, &given)
}

fn register_with(change: impl FnOnce(&mut SoftKey)) -> Result<NewPasskey, PasskeyRefusal> {
    let mut key = key();
    change(&mut key);
    verify_registration(&party(), &challenge(), &key.register(&challenge()))
}

#[test]
fn a_registered_passkey_signs_in() {
    let mut key = key();
    let new = verify_registration(&party(), &challenge(), &key.register(&challenge())).unwrap();
    assert_eq!((new.key, &new.credential_id), (key.public_key(), &key.credential_id));
    assert_eq!(
        (new.counter, new.backup, new.transports),
        (0, BackupState::DeviceBound, vec!["internal".into()])
    );
    let registered = Passkey { key: new.key, counter: new.counter };
    let given = key.assert(&challenge().to_bytes());
    let used = verify_assertion(&party(), &challenge(), &registered, &given);
    assert_eq!(used, Ok(PasskeyUse { counter: 1, backup: BackupState::DeviceBound }));
    assert_eq!(challenge_of(&given.client_data_json), Ok(challenge()));
}

#[test]
fn both_halves_of_s_are_accepted() {
    for has_high_s in [false, true] {
        assert!(assert_with(|key| key.has_high_s = has_high_s).is_ok(), "{has_high_s}");
    }
}

#[test]
fn a_misbehaving_authenticator_or_browser_is_rejected() {
    type Change = fn(&mut SoftKey);
    let cases: [(Change, PasskeyRefusal); 6] = [
        (|key| key.origin = "https://foretell.example.evil".into(), PasskeyRefusal::WrongOrigin),
        (|key| key.is_cross_origin = true, PasskeyRefusal::CrossOrigin),
        (|key| key.rp_id = "evil.example".into(), PasskeyRefusal::WrongRelyingParty),
        (|key| key.is_user_present = false, PasskeyRefusal::UserAbsent),
        (|key| key.is_user_verified = false, PasskeyRefusal::UserNotVerified),
        (|key| key.origin = "http://foretell.example".into(), PasskeyRefusal::WrongOrigin),
    ];
    for (change, refusal) in cases {
        assert_eq!(assert_with(change), Err(refusal));
        assert_eq!(register_with(change), Err(refusal));
    }
}

#[test]
fn backup_flags_must_not_contradict_each_other() {
    for backup in BackupState::ALL {
        assert_eq!(assert_with(|key| key.backup = *backup).unwrap().backup, *backup);
    }
    let key = key();
    let mut data = key.authenticator_data(0);
    data[32] |= 0x10;
    let given = key.sign(data, key.client_data("webauthn.get", &challenge().to_bytes()));
    assert_eq!(verified(&key, &given), Err(PasskeyRefusal::BackupContradictory));
}

#[test]
fn a_counter_must_grow_unless_the_passkey_has_none() {
    let table = [(0, 0, true), (0, 1, true), (5, 6, true), (5, 5, false), (5, 4, false), (5, 0, false)];
    for (stored, sent, accepted) in table {
        let mut key = key();
        (key.counter, key.counter_step) = (sent, 0);
        let given = key.assert(&challenge().to_bytes());
        let passkey = Passkey { counter: stored, ..passkey(&key) };
        let used = verify_assertion(&party(), &challenge(), &passkey, &given).map(|used| used.counter);
        let expected = if accepted { Ok(sent) } else { Err(PasskeyRefusal::CounterWentBack) };
        assert_eq!(used, expected, "{stored} {sent}");
    }
}

#[test]
fn an_answer_for_another_challenge_or_ceremony_is_rejected() {
    let mut key = key();
    for other in
        [Challenge::new(ChallengePurpose::SignIn, [8; 32]), Challenge::new(ChallengePurpose::StepUp, [7; 32])]
    {
        let given = key.assert(&other.to_bytes());
        assert_eq!(verified(&key, &given), Err(PasskeyRefusal::WrongChallenge));
    }
    let create = key.client_data("webauthn.create", &challenge().to_bytes());
    let given = key.sign(key.authenticator_data(0), create);
    assert_eq!(verified(&key, &given), Err(PasskeyRefusal::WrongType));
}

#[test]
fn a_batchs_assertion_never_signs_in_and_a_sign_in_never_signs_a_batch() {
    let mut key = key();
    let digest = B256::repeat_byte(7);
    let batch = key.assert(digest.as_slice());
    let before = Passkey { counter: 0, ..passkey(&key) };
    assert!(verify_batch_assertion(&party(), &digest, &before, &batch).is_ok());
    assert_eq!(challenge_of(&batch.client_data_json), Err(PasskeyRefusal::WrongChallenge));
    assert_eq!(verified(&key, &batch), Err(PasskeyRefusal::WrongChallenge));
    let sign_in = key.assert(&challenge().to_bytes());
    let refused = verify_batch_assertion(&party(), &digest, &before, &sign_in);
    assert_eq!(refused, Err(PasskeyRefusal::WrongChallenge));
}

#[test]
fn the_statements_of_a_batchs_assertion_are_checked_without_its_key() {
    type Change = fn(&mut SoftKey);
    let digest = B256::repeat_byte(7);
    let check = |change: Change, over: &[u8]| {
        let mut key = key();
        change(&mut key);
        let given = key.assert(over);
        check_batch_statements(&party(), &digest, &given.client_data_json, &given.authenticator_data)
    };
    assert_eq!(check(|_| (), digest.as_slice()), Ok(()));
    assert_eq!(check(|_| (), &challenge().to_bytes()), Err(PasskeyRefusal::WrongChallenge));
    let cases: [(Change, PasskeyRefusal); 4] = [
        (|key| key.origin = "https://foretell.example.evil".into(), PasskeyRefusal::WrongOrigin),
        (|key| key.is_cross_origin = true, PasskeyRefusal::CrossOrigin),
        (|key| key.rp_id = "evil.example".into(), PasskeyRefusal::WrongRelyingParty),
        (|key| key.is_user_verified = false, PasskeyRefusal::UserNotVerified),
    ];
    for (change, refusal) in cases {
        assert_eq!(check(change, digest.as_slice()), Err(refusal));
    }
}

#[test]
fn another_passkeys_signature_is_rejected() {
    let given = SoftKey::new(&party(), [43; 32]).assert(&challenge().to_bytes());
    assert_eq!(verified(&key(), &given), Err(PasskeyRefusal::WrongSignature));
}

#[test]
fn client_data_that_the_contract_could_not_read_is_rejected() {
    let key = key();
    let (challenge, origin) = (URL_SAFE_NO_PAD.encode(challenge().to_bytes()), party().origin().to_owned());
    let get = r#""type":"webauthn.get""#;
    let rest = format!(r#""challenge":"{challenge}","origin":"{origin}""#);
    let malformed = Err(PasskeyRefusal::ClientDataMalformed);
    let cases = [
        (format!("{{{get},{rest}}}"), Ok(())),
        // Chromium adds a member at random, and the order is free.
        (format!(r#"{{{rest},"other_keys_can_be_added_here":"x",{get}}}"#), Ok(())),
        (format!(r#"{{"type": "webauthn.get",{rest}}}"#), malformed),
        (format!(r#"{{"type":"webauthn\u002eget",{rest}}}"#), malformed),
        (format!(r#"{{"x":{{"type":"webauthn.create"}},{get},{rest}}}"#), malformed),
        (format!("{{{get},{get},{rest}}}"), malformed),
        (format!("{{{get},{rest},{rest}}}"), malformed),
        (format!(r#"{{{get},{rest},"crossOrigin":null}}"#), malformed),
        (format!(r#"{{{get},{rest},"crossOrigin":"false"}}"#), malformed),
        (format!(r#"{{{get},{rest},"topOrigin":"https://evil.example"}}"#), Err(PasskeyRefusal::CrossOrigin)),
        (format!("{{{get},{rest}}} "), Ok(())),
        (format!("{{{get},{rest}}}x"), malformed),
        (format!("\u{feff}{{{get},{rest}}}"), malformed),
        (format!("{{{get}}}"), malformed),
        ("[]".to_owned(), malformed),
        (String::new(), malformed),
    ];
    for (json, expected) in cases {
        let given = key.sign(key.authenticator_data(0), json.clone().into_bytes());
        let counter_free = Passkey { counter: 0, ..passkey(&key) };
        let used = verify_assertion(&party(), &self::challenge(), &counter_free, &given).map(drop);
        assert_eq!(used, expected, "{json}");
    }
    let given = key.sign(key.authenticator_data(0), vec![0xff, b'{', b'}']);
    assert_eq!(verified(&key, &given).map(drop), malformed);
}

#[test]
fn signatures_in_another_form_are_rejected() {
    let mut key = key();
    let whole = key.assert(&challenge().to_bytes());
    let (r, s) = whole.scalars().unwrap();
    let order = p256::elliptic_curve::scalar::ScalarPrimitive::<p256::NistP256>::MODULUS;
    let order = p256::elliptic_curve::bigint::ArrayEncoding::to_be_byte_array(&order);
    let der = |r: &[u8], s: &[u8]| {
        let integer = |n: &[u8]| [&[0x02, 33, 0][..], n].concat();
        [vec![0x30, 70], integer(r), integer(s)].concat()
    };
    for signature in [
        vec![],
        [r.0, s.0].concat(),
        [&whole.signature[..], &[0]].concat(),
        der(&[0; 32], &s.0),
        der(&r.0, &[0; 32]),
        der(&r.0, &order),
        der(&order, &s.0),
    ] {
        let given = Assertion { signature, ..whole.clone() };
        assert_eq!(verified(&key, &given), Err(PasskeyRefusal::WrongSignature));
    }
}

#[test]
fn a_registration_needs_the_same_id_and_key_in_both_places() {
    let whole = key().register(&challenge());
    let verify = |given: Registration| verify_registration(&party(), &challenge(), &given).map(drop);
    assert_eq!(verify(whole.clone()), Ok(()));
    let other_id = Registration { credential_id: vec![1; 32], ..whole.clone() };
    assert_eq!(verify(other_id), Err(PasskeyRefusal::WrongCredentialId));
    let other_key = SoftKey::new(&party(), [43; 32]).public_key().to_bytes();
    for public_key in [other_key, whole.public_key[..63].to_vec(), vec![], {
        let mut off_the_curve = whole.public_key.clone();
        off_the_curve[63] ^= 1;
        off_the_curve
    }] {
        assert_eq!(verify(Registration { public_key, ..whole.clone() }), Err(PasskeyRefusal::WrongKey));
    }
    let empty_id = register_with(|key| key.credential_id.clear());
    assert_eq!(empty_id, Err(PasskeyRefusal::WrongCredentialId));
    let long_id = register_with(|key| key.credential_id = vec![1; 1_024]);
    assert_eq!(long_id, Err(PasskeyRefusal::WrongCredentialId));
}

#[test]
fn a_registration_with_other_authenticator_data_is_rejected() {
    let whole = key().register(&challenge());
    let verify = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut given = whole.clone();
        change(&mut given.authenticator_data);
        verify_registration(&party(), &challenge(), &given).map(drop)
    };
    let malformed = Err(PasskeyRefusal::AuthenticatorDataMalformed);
    // Bytes after the key are extensions, and these have a flag.
    assert_eq!(verify(&|data| data.push(0xa0)), malformed);
    assert_eq!(verify(&|data| data[32] |= 0x80), malformed);
    assert_eq!(verify(&|data| (data[32] |= 0x80, data.push(0xa0)).1), Ok(()));
    assert_eq!(verify(&|data| data[32] &= !0x40), malformed);
    // Another algorithm than ES256 in the COSE key: -257 begins with 0x39.
    let algorithm = 37 + 16 + 2 + 32 + 4;
    assert_eq!(verify(&|data| data[algorithm] = 0x39), Err(PasskeyRefusal::WrongKey));
    for length in 0..whole.authenticator_data.len() {
        assert!(verify(&|data| data.truncate(length)).is_err(), "{length}");
    }
}

#[test]
fn only_known_transports_are_stored() {
    let mut given = key().register(&challenge());
    given.transports = ["usb", "nfc", "<script>", "usb"].map(str::to_owned).to_vec();
    let new = verify_registration(&party(), &challenge(), &given).unwrap();
    assert_eq!(new.transports, ["nfc", "usb"]);
}

proptest! {
    #[test]
    fn any_change_of_a_bit_is_rejected(part in 0..3_u8, at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut key = key();
        let mut given = key.assert(&challenge().to_bytes());
        let bytes = match part {
            0 => &mut given.authenticator_data,
            1 => &mut given.client_data_json,
            _ => &mut given.signature,
        };
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(verified(&key, &given).is_err());
    }

    #[test]
    fn every_key_can_be_registered_and_used(seed in any::<[u8; 32]>(), random in any::<[u8; 32]>()) {
        prop_assume!(seed != [0; 32] && seed[0] < 0xff);
        let challenge = Challenge::new(ChallengePurpose::SignUp, random);
        let mut key = SoftKey::new(&party(), seed);
        let new = verify_registration(&party(), &challenge, &key.register(&challenge)).unwrap();
        let given = key.assert(&challenge.to_bytes());
        let passkey = Passkey { key: new.key, counter: 0 };
        prop_assert!(verify_assertion(&party(), &challenge, &passkey, &given).is_ok());
    }

    #[test]
    fn arbitrary_bytes_are_rejected_without_a_panic(
        id in any::<Vec<u8>>(),
        data in prop::collection::vec(any::<u8>(), 0..200),
        json in any::<Vec<u8>>(),
        rest in any::<Vec<u8>>(),
    ) {
        let key = key();
        let client_data_json = key.client_data("webauthn.create", &challenge().to_bytes());
        // The head is right, so that the bytes after it are read.
        let authenticator_data = [key.authenticator_data(0x40), data.clone()].concat();
        let registration = Registration {
            credential_id: id.clone(),
            authenticator_data,
            client_data_json,
            public_key: rest.clone(),
            transports: vec![],
        };
        prop_assert!(verify_registration(&party(), &challenge(), &registration).is_err());
        let assertion = Assertion {
            credential_id: id,
            authenticator_data: data,
            client_data_json: json.clone(),
            signature: rest,
            user_handle: None,
        };
        prop_assert!(verified(&key, &assertion).is_err());
        prop_assert!(challenge_of(&json).is_err());
    }
}
