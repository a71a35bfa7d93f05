//! Challenges, and the passkeys and wallets that answer them.
//!
//! An answer is verified before its transaction, with values that were read. The transaction then
//! uses the challenge and raises the passkey's counter, each by a compare-and-set, so an answer
//! counts at most once, in any process.

mod proof;
mod registration;

use domain::credential::CredentialKey;
use domain::ids::UserId;
use domain::passkey::{Challenge, ChallengePurpose};
use domain::time::MINUTE_MS;
use domain::wallet::WalletText;

use alloy_primitives::Address;
use chain::AccountOwner;
use store::StoreError;

use crate::accounts::account_of;
use crate::config::WebSettings;
use crate::{Ctx, PersonError};

pub use proof::{Proof, VerifiedProof, WalletProof, use_proof, verify_proof, verify_sign_in};
pub use registration::{NewCredential, insert_credential, use_registration, verify_registration};
pub use store::challenges::IssuedChallenge;

/// The time for which a challenge can be answered.
pub(crate) const CHALLENGE_MS: i64 = 5 * MINUTE_MS;
/// The setting that stores the relying-party id.
const RP_ID: &str = "web.rp_id";

/// Returns the settings of the web application.
///
/// # Errors
/// `WebOff`
pub fn web(ctx: &Ctx) -> Result<&WebSettings, PersonError> {
    ctx.config.web.as_ref().ok_or(PersonError::WebOff)
}

/// Issues a challenge. `user_id` is the only user who may answer it; `None` for sign-up and
/// sign-in.
pub async fn issue_challenge(
    ctx: &Ctx,
    purpose: ChallengePurpose,
    user_id: Option<UserId>,
) -> Result<IssuedChallenge, PersonError> {
    web(ctx)?;
    let now = ctx.now();
    let challenge = Challenge::new(purpose, ctx.random());
    let issued =
        IssuedChallenge { challenge, user_id, created_at: now, expires_at: now.plus_ms(CHALLENGE_MS) };
    ctx.store.write(issued, |tx, issued| Box::pin(store::challenges::insert(tx, issued))).await?;
    Ok(issued)
}

/// Returns the text that the wallet at `address` must sign for a challenge. A wallet that signs in may
/// name an `account`. One that is added always names that of the user, whatever the page says.
pub async fn wallet_text(
    ctx: &Ctx,
    issued: &IssuedChallenge,
    address: Address,
    account: Option<Address>,
) -> Result<String, PersonError> {
    let account = match (issued.challenge.purpose(), issued.user_id) {
        (ChallengePurpose::SignIn, _) => account,
        (ChallengePurpose::AddKey, Some(user_id)) => Some(account_of(ctx, user_id).await?.address),
        _ => None,
    };
    let text = WalletText {
        party: &web(ctx)?.party,
        address,
        chain_id: ctx.chain.chain_id(),
        challenge: &issued.challenge,
        account,
        issued_at: issued.created_at,
        expires_at: issued.expires_at,
    };
    Ok(text.write())
}

/// Returns the account owner with this key.
pub const fn owner_of(key: &CredentialKey) -> AccountOwner {
    match key {
        CredentialKey::Wallet(address) => AccountOwner::Eoa(*address),
        CredentialKey::Passkey(key) => AccountOwner::Passkey { x: key.x(), y: key.y() },
    }
}

/// Returns a challenge that this user may answer now.
async fn find_open(
    ctx: &Ctx,
    challenge: Challenge,
    purpose: ChallengePurpose,
    user_id: Option<UserId>,
) -> Result<IssuedChallenge, PersonError> {
    let found = ctx
        .store
        .read((challenge, ctx.now()), |tx, (challenge, now)| {
            Box::pin(store::challenges::find_open(tx, challenge, *now))
        })
        .await?;
    let is_meant = |issued: &IssuedChallenge| challenge.purpose() == purpose && issued.user_id == user_id;
    found.filter(is_meant).ok_or(PersonError::ChallengeUnusable)
}

/// The reason why a service does not start with its relying-party id.
#[derive(Debug, thiserror::Error)]
pub enum RelyingPartyError {
    #[error(
        "rp-id is {configured}, but the passkeys in the database belong to {stored}: with another rp-id they \
         could not sign in. Set rp-id to {stored}"
    )]
    Changed { stored: String, configured: String },
    #[error("database: {0}")]
    Store(#[from] StoreError),
}

/// Checks that the relying-party id is the one of the first passkey. Run it before the service
/// starts.
pub async fn check_relying_party(ctx: &Ctx) -> Result<(), RelyingPartyError> {
    let Some(web) = &ctx.config.web else { return Ok(()) };
    let stored = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_setting(tx, RP_ID))).await?;
    match stored {
        Some(stored) if stored != web.party.id() => {
            Err(RelyingPartyError::Changed { stored, configured: web.party.id().to_owned() })
        }
        _ => Ok(()),
    }
}
