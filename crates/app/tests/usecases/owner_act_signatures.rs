//! Signatures of acts: only a current owner's signature over exactly this act is stored.

use alloy_primitives::{B256, Bytes, U256};
use app::owner_acts::{self, ActOrigin, OwnerActRequest, OwnerSignature, PreparedAct};
use app::{AppError, accounts};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chain::{AccountOwner, Assertion, Signer, calls};
use domain::ErrorCode;
use domain::ids::UserId;
use domain::owner_act::{OwnerActFailure, OwnerActStatus};
use domain::passkey::RelyingParty;
use p256::ecdsa::signature::hazmat::PrehashSigner;
use p256::ecdsa::{Signature, SigningKey};
use sha2::{Digest, Sha256};
use store::Store;
use store::owner_acts::OwnerAct;
use testkit::{CLIENT_IP, TestApp, wallet_signature};

const SECP256K1_ORDER: U256 =
    alloy_primitives::uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

async fn sign(
    app: &TestApp,
    user_id: UserId,
    act: &OwnerAct,
    signature: &OwnerSignature,
) -> Result<OwnerAct, AppError> {
    owner_acts::sign(&app.ctx, user_id, act.id, signature, ActOrigin::User(CLIENT_IP)).await
}

fn deploys() -> OwnerActRequest {
    OwnerActRequest::Enable { keys: Vec::new() }
}

/// A passkey of a site.
struct Passkey {
    key: SigningKey,
    site: RelyingParty,
}

impl Passkey {
    fn new(byte: u8) -> Self {
        let site = RelyingParty::new("https://foretell.example", None).unwrap();
        Self { key: SigningKey::from_slice(&[byte; 32]).unwrap(), site }
    }

    fn owner(&self) -> AccountOwner {
        let point = self.key.verifying_key().to_encoded_point(false);
        let coordinate = |bytes: Option<_>| B256::from_slice(bytes.unwrap());
        AccountOwner::Passkey {
            x: coordinate(point.x().map(|x| x.as_slice())),
            y: coordinate(point.y().map(|y| y.as_slice())),
        }
    }

    /// Signs a challenge on the site `origin` with these flags.
    fn assert(&self, challenge: B256, origin: &str, flags: u8, high_s: bool) -> OwnerSignature {
        let client_data_json = format!(
            r#"{{"type":"webauthn.get","challenge":"{}","origin":"{origin}","crossOrigin":false}}"#,
            URL_SAFE_NO_PAD.encode(challenge)
        );
        let mut authenticator_data = Sha256::digest(self.site.id()).to_vec();
        authenticator_data.extend([flags, 0, 0, 0, 0]);
        let signed = [&authenticator_data[..], &Sha256::digest(&client_data_json)].concat();
        let signature: Signature = self.key.sign_prehash(&Sha256::digest(signed)).unwrap();
        let low = signature.normalize_s().unwrap_or(signature);
        let s = if high_s { -low.s() } else { low.s() };
        let assertion = Assertion {
            authenticator_data: authenticator_data.into(),
            client_data_json,
            r: B256::from_slice(&low.r().to_bytes()),
            s: B256::from_slice(&s.to_bytes()),
        };
        OwnerSignature::Passkey { owner: self.owner(), assertion, site: self.site.clone() }
    }
}

store::on_each_engine! {
    async fn a_passkey_signs_acts_with_either_half_of_s(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let passkey = Passkey::new(42);
        let (user, account) = accounts::create_user(&app.ctx, "ada", &passkey.owner()).await.unwrap();
        for (nonce, high_s) in [(0, true), (1, false)] {
            let prepared = owner_acts::prepare(&app.ctx, user.id, &deploys(), ActOrigin::User(CLIENT_IP), None).await;
            let act = prepared.unwrap().act;
            assert_eq!(act.nonce, nonce);
            let signature = passkey.assert(act.digest, passkey.site.origin(), 0x05, high_s);
            sign(&app, user.id, &act, &signature).await.unwrap();
            app.workers.execute(&app.ctx).await;
            assert_eq!(app.stored_act(act.id).await.status, OwnerActStatus::Done);
        }
        assert_eq!(app.ctx.chain.account_nonce(account.address).await.unwrap(), 2);
    }

    async fn only_an_assertion_of_this_site_over_this_act_is_stored(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let passkey = Passkey::new(42);
        let (user, _) = accounts::create_user(&app.ctx, "ada", &passkey.owner()).await.unwrap();
        let prepared = owner_acts::prepare(&app.ctx, user.id, &deploys(), ActOrigin::User(CLIENT_IP), None).await;
        let act = prepared.unwrap().act;
        let here = passkey.site.origin();
        let forged = match passkey.assert(act.digest, here, 0x05, false) {
            OwnerSignature::Passkey { owner, mut assertion, site } => {
                assertion.r = B256::repeat_byte(1);
                OwnerSignature::Passkey { owner, assertion, site }
            }
            other => panic!("not of a passkey: {other:?}"),
        };
        for (signature, detail) in [
            (passkey.assert(B256::ZERO, here, 0x05, false), "the challenge must be the one that the service issued"),
            (passkey.assert(act.digest, "https://evil.example", 0x05, false), "the origin must be that of the web application"),
            (passkey.assert(act.digest, here, 0x01, false), "the authenticator must verify the user"),
            (Passkey::new(43).assert(act.digest, here, 0x05, false), "of a current owner"),
            (forged, "of a current owner"),
        ] {
            let refused = sign(&app, user.id, &act, &signature).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::ValidationFailed);
            assert!(format!("{refused:?}").contains(detail), "{detail}: {refused:?}");
        }
        assert_eq!(app.stored_act(act.id).await, act, "nothing was stored");
    }

    async fn only_a_current_owners_wallet_signs(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let stranger = Signer::random([8; 32]).unwrap();
        let PreparedAct { act, .. } = app.prepare_act(&ada, &deploys()).await;
        let own = ada.owner.sign_digest(act.digest).unwrap();
        for wrong in [
            wallet_signature(&stranger, &act),
            OwnerSignature::Wallet(ada.owner.sign_digest(B256::ZERO).unwrap()),
            OwnerSignature::Wallet(own.slice(..64)),
            OwnerSignature::Wallet([&own[..], &[0]].concat().into()),
            OwnerSignature::Wallet(Bytes::new()),
        ] {
            let refused = sign(&app, ada.id, &act, &wrong).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::ValidationFailed, "{wrong:?}");
        }
        // Some wallets return a `v` of 0 or 1, or the other half of `s`.
        let s = SECP256K1_ORDER - U256::from_be_slice(&own[32..64]);
        let other = [&own[..32], &s.to_be_bytes::<32>(), &[28 - own[64]]].concat();
        let signed = sign(&app, ada.id, &act, &OwnerSignature::Wallet(other.into())).await.unwrap();
        assert_eq!((signed.status, signed.signature), (OwnerActStatus::Signed, Some(own.to_vec())));
    }

    async fn sending_a_signature_again_returns_the_act(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let PreparedAct { act, .. } = app.prepare_act(&ada, &deploys()).await;
        let signature = wallet_signature(&ada.owner, &act);
        let first = sign(&app, ada.id, &act, &signature).await.unwrap();
        assert_eq!(sign(&app, ada.id, &act, &signature).await.unwrap(), first);
        app.workers.execute(&app.ctx).await;
        assert_eq!(sign(&app, ada.id, &act, &signature).await.unwrap().status, OwnerActStatus::Done);
        let stranger = wallet_signature(&Signer::random([8; 32]).unwrap(), &act);
        let refused = sign(&app, ada.id, &act, &stranger).await.unwrap_err();
        assert_eq!(refused.detail, "The act is done.");
    }

    async fn an_account_has_at_most_one_signed_act(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let first = app.prepare_act(&ada, &deploys()).await.act;
        let second = app.prepare_act(&ada, &OwnerActRequest::EndApproval).await.act;
        let signatures = [&first, &second].map(|act| wallet_signature(&ada.owner, act));
        let (one, two) = tokio::join!(
            sign(&app, ada.id, &first, &signatures[0]),
            sign(&app, ada.id, &second, &signatures[1])
        );
        assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
        let refused = one.err().or(two.err()).unwrap();
        assert!(refused.detail.contains("nother act of the account is in progress"), "{refused}");
        app.workers.execute(&app.ctx).await;
        // The other act was prepared for the nonce that is used now.
        for (act, signature) in [&first, &second].into_iter().zip(&signatures) {
            match sign(&app, ada.id, act, signature).await {
                Ok(done) => assert_eq!(done.status, OwnerActStatus::Done),
                Err(refused) => assert!(refused.detail.contains("executed another batch first"), "{refused}"),
            }
        }
    }
}

#[tokio::test]
async fn an_act_of_an_owner_that_was_removed_meanwhile_fails() {
    let app = TestApp::new().await;
    let ada = app.user("ada").await;
    let second = Signer::random([7; 32]).unwrap();
    app.act(&ada, &OwnerActRequest::AddOwner(second.owner())).await;
    let PreparedAct { act, .. } = app.prepare_act(&ada, &OwnerActRequest::EndApproval).await;
    sign(&app, ada.id, &act, &wallet_signature(&second, &act)).await.unwrap();
    // The first owner removes the second one, without the service.
    app.as_owner(&ada, ada.account, calls::remove_owner(&second.owner())).await;
    app.workers.execute(&app.ctx).await;
    let failed = app.stored_act(act.id).await;
    assert_eq!(failed.failure, Some(OwnerActFailure::NonceUsed), "{failed:?}");
    let PreparedAct { act, .. } = app.prepare_act(&ada, &OwnerActRequest::EndApproval).await;
    let refused = sign(&app, ada.id, &act, &wallet_signature(&second, &act)).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ValidationFailed);
}
