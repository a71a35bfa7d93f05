//! People of the web application, with passkeys in software.

use std::net::{IpAddr, Ipv4Addr};

use alloy_primitives::{Address, B256, Bytes, eip191_hash_message};
use app::owner_acts::{self, ActOrigin, OwnerActRequest, OwnerSignature};
use app::passkeys::{
    IssuedChallenge, NewCredential, Proof, WalletProof, issue_challenge, owner_of, wallet_text,
};
use app::people::{Country, SignUp, sign_up};
use app::sessions::{self, Device, Person, SignedIn};
use app::{Ctx, PersonError, accounts};
use chain::{Assertion, Signer};
use domain::credential::CredentialKey;
use domain::ids::{KeyId, UserId};
use domain::owner_act::OwnerActStatus;
use domain::passkey::{ChallengePurpose, SoftKey};

use crate::{TestApp, TestUser, relying_party};

/// The address from which people use the web application.
pub const CLIENT_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));

const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64)";

/// The browser of a person.
pub fn device() -> Device {
    Device { ip: CLIENT_IP, user_agent: USER_AGENT.to_owned() }
}

/// A browser at this address.
pub fn device_at(ip: &str) -> Device {
    let ip: IpAddr = ip.parse().expect("an IP address");
    Device { ip, user_agent: USER_AGENT.to_owned() }
}

impl TestApp {
    /// Returns a new passkey that is not registered yet.
    pub fn soft_key(&self) -> SoftKey {
        SoftKey::new(&relying_party(), self.ctx.random())
    }

    /// Registers the passkey for a challenge of this purpose.
    pub async fn register(
        &self,
        key: &mut SoftKey,
        purpose: ChallengePurpose,
        user_id: Option<UserId>,
    ) -> NewCredential {
        let issued = issue_challenge(&self.ctx, purpose, user_id).await.unwrap();
        NewCredential::Passkey(key.register(&issued.challenge))
    }

    /// Signs up with a passkey.
    pub async fn try_sign_up(&self, key: &mut SoftKey) -> Result<SignedIn, PersonError> {
        let credential = self.register(key, ChallengePurpose::SignUp, None).await;
        sign_up(
            &self.ctx,
            &SignUp {
                name: Some("ada".to_owned()),
                credential,
                device: device(),
                country: Country::default(),
                accepted_terms: None,
            },
        )
        .await
    }

    /// Signs up with a new passkey.
    pub async fn sign_up(&self) -> (SoftKey, Person) {
        let mut key = self.soft_key();
        let signed_in = self.try_sign_up(&mut key).await.unwrap();
        (key, self.person(&signed_in).await)
    }

    /// Answers a challenge of this purpose with a passkey.
    pub async fn assert(
        &self,
        key: &mut SoftKey,
        purpose: ChallengePurpose,
        user_id: Option<UserId>,
    ) -> Proof {
        let issued = issue_challenge(&self.ctx, purpose, user_id).await.unwrap();
        Proof::Passkey(key.assert(&issued.challenge.to_bytes()))
    }

    /// Signs in with a passkey.
    pub async fn try_sign_in(&self, key: &mut SoftKey) -> Result<SignedIn, PersonError> {
        let proof = self.assert(key, ChallengePurpose::SignIn, None).await;
        sessions::sign_in(&self.ctx, &proof, None, &device()).await
    }

    /// Steps up with a passkey.
    pub async fn try_step_up(&self, person: &Person, key: &mut SoftKey) -> Result<SignedIn, PersonError> {
        let proof = self.assert(key, ChallengePurpose::StepUp, Some(person.user_id())).await;
        sessions::step_up(&self.ctx, person, &proof, &device()).await
    }

    /// Signs the service's text for a challenge of this purpose with a wallet.
    pub async fn sign_text(
        &self,
        wallet: &Signer,
        purpose: ChallengePurpose,
        user_id: Option<UserId>,
    ) -> WalletProof {
        let issued = issue_challenge(&self.ctx, purpose, user_id).await.unwrap();
        self.sign_issued(wallet, &issued, None).await
    }

    /// Signs the text with which a wallet signs in to the account that it names.
    pub async fn sign_text_of(&self, wallet: &Signer, account: Address) -> WalletProof {
        let issued = issue_challenge(&self.ctx, ChallengePurpose::SignIn, None).await.unwrap();
        self.sign_issued(wallet, &issued, Some(account)).await
    }

    async fn sign_issued(
        &self,
        wallet: &Signer,
        issued: &IssuedChallenge,
        account: Option<Address>,
    ) -> WalletProof {
        let text = wallet_text(&self.ctx, issued, wallet.address(), account).await.unwrap();
        let signature = wallet.sign_digest(eip191_hash_message(&text)).unwrap();
        WalletProof { challenge: issued.challenge, address: wallet.address(), account, signature }
    }

    /// Signs in with a user's wallet.
    pub async fn person_of(&self, user: &TestUser) -> Person {
        let proof = self.sign_text(&user.owner, ChallengePurpose::SignIn, None).await;
        let signed_in = sessions::sign_in(&self.ctx, &Proof::Wallet(proof), None, &device()).await.unwrap();
        self.person(&signed_in).await
    }

    /// Enables keys by an act that the passkey signs, which deploys the account if necessary.
    pub async fn enable_by_passkey(&self, person: &Person, key: &mut SoftKey, keys: Vec<KeyId>) {
        self.act_by_passkey(person, key, &OwnerActRequest::Enable { keys }).await;
    }

    /// Makes the wallet the only owner of the account of a person who signed up with the passkey.
    pub async fn replace_passkey(&self, person: &Person, key: &mut SoftKey, wallet: &Signer) {
        self.enable_by_passkey(person, key, vec![person.web_key().id]).await;
        self.act_by_passkey(person, key, &OwnerActRequest::AddOwner(wallet.owner())).await;
        let account = accounts::account_of(&self.ctx, person.user_id()).await.unwrap();
        let (id, owner) = (person.user_id(), wallet.clone());
        let user = TestUser { id, account: account.address, owner, salt: account.salt };
        let passkey = owner_of(&CredentialKey::Passkey(key.public_key()));
        let act = self.act(&user, &OwnerActRequest::RemoveOwner(passkey)).await;
        assert_eq!(act.status, OwnerActStatus::Done, "{act:?}");
    }

    async fn act_by_passkey(&self, person: &Person, key: &mut SoftKey, request: &OwnerActRequest) {
        let (ctx, user_id) = (&self.ctx, person.user_id());
        let act =
            owner_acts::prepare(ctx, user_id, request, ActOrigin::User(CLIENT_IP), None).await.unwrap().act;
        let signature = OwnerSignature::Encoded(batch_signature(key, act.digest));
        owner_acts::sign(ctx, user_id, act.id, &signature, ActOrigin::User(CLIENT_IP)).await.unwrap();
        self.workers.execute(ctx).await;
    }

    /// Returns the person with this session.
    ///
    /// # Panics
    /// If the session is not live.
    pub async fn person(&self, signed_in: &SignedIn) -> Person {
        person_in(&self.ctx, signed_in).await.expect("a live session")
    }
}

/// Returns the person with this session in a process, if it is live there.
pub async fn person_in(ctx: &Ctx, signed_in: &SignedIn) -> Option<Person> {
    sessions::find(ctx, signed_in.token.expose(), device().ip).await.unwrap()
}

/// Signs a batch's digest as the account contract expects it of a passkey.
pub fn batch_signature(key: &mut SoftKey, digest: B256) -> Bytes {
    let assertion = key.assert(digest.as_slice());
    let (r, s) = assertion.scalars().unwrap();
    let assertion = Assertion {
        authenticator_data: assertion.authenticator_data.into(),
        client_data_json: String::from_utf8(assertion.client_data_json).unwrap(),
        r,
        s,
    };
    assertion.to_signature(&owner_of(&CredentialKey::Passkey(key.public_key()))).unwrap()
}
