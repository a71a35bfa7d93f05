//! `foretell admin delegation`: what a key may spend of an account. Only the account's owner can enable it; the service can
//! end it at any time.

use alloy_primitives::Bytes;
use app::{Ctx, accounts};
use chain::{Batch, Owner, Receipt};
use clap::{Args, Subcommand};
use domain::ids::{KeyId, UserId};
use domain::{ErrorCode, Timestamp};
use serde_json::{Value, json};
use store::StoreError;
use store::keys::Key;

use super::ctx::AdminCtx;
use super::output::{Answer, Record};
use super::values::hex_bytes;
use super::{key, owners, refuse, user};
use crate::run::StartError;

/// What can be done with delegations.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Enable keys, and make the account if it is not there; prints what the owner has to sign where that is needed
    Enable {
        /// The user
        #[arg(long, value_name = "ID")]
        user: UserId,
        /// One key; all active keys of the user where absent
        #[arg(long, value_name = "ID")]
        key: Option<KeyId>,
        #[command(flatten)]
        signed: SignedArgs,
    },
    /// End a key's delegation on chain; the key itself stays
    Revoke {
        /// The key
        #[arg(long, value_name = "ID")]
        key: KeyId,
    },
}

/// The owner's answer to what was printed for signing.
#[derive(Debug, Clone, Args)]
pub struct SignedArgs {
    /// The owner's signature in hex: 65 bytes of an EOA, or a passkey's in the account contract's form
    #[arg(long, value_name = "HEX", requires = "deadline", value_parser = hex_bytes)]
    signature: Option<Bytes>,
    /// The deadline that was printed with what was signed, Unix seconds
    #[arg(long, value_name = "SECONDS", requires = "signature")]
    deadline: Option<u64>,
}

/// A signature over the batch of this deadline.
pub struct Signed {
    signature: Bytes,
    deadline_s: u64,
}

impl From<SignedArgs> for Option<Signed> {
    fn from(args: SignedArgs) -> Self {
        let signed = args.signature.zip(args.deadline);
        signed.map(|(signature, deadline_s)| Signed { signature, deadline_s })
    }
}

pub async fn run(verb: Verb, admin: &AdminCtx) -> Result<Answer, StartError> {
    match verb {
        Verb::Enable { user, key, signed } => enable(user, key, signed, admin).await,
        Verb::Revoke { key } => revoke(key, admin).await,
    }
    .map(Answer::One)
}

async fn enable(
    user: UserId,
    key: Option<KeyId>,
    signed: SignedArgs,
    admin: &AdminCtx,
) -> Result<Record, StartError> {
    let (user, _) = user::find(admin, user).await?;
    let ctx = admin.online().await?;
    let keys: Result<Vec<Key>, StoreError> =
        admin.store.read(user.id, |tx, id| Box::pin(store::keys::list(tx, *id))).await;
    let now = ctx.now();
    let active = |key: &Key| key.revoked_at.is_none() && key.expires_at.is_none_or(|at| at > now);
    let mut keys = keys?;
    keys.retain(|one| key.is_none_or(|id| id == one.id) && active(one));
    if keys.is_empty() {
        return Err(refuse(ErrorCode::ResourceNotFound, "The user has no such active key."));
    }
    let done = authorise(admin, &ctx, user.id, &keys, signed.into()).await?;
    let ids: Vec<KeyId> = keys.iter().map(|key| key.id).collect();
    Ok(Record::new()
        .with("userId", user.id)
        .with("keys", ids)
        .with("enabled", done.is_done())
        .and(done.record()))
}

async fn revoke(key: KeyId, admin: &AdminCtx) -> Result<Record, StartError> {
    let key = key::find(admin, key).await?;
    let ctx = admin.online().await?;
    let revoked = revoke_on_chain(admin, &ctx, &key).await?;
    Ok(Record::new().with("keyId", key.id).with("userId", key.user_id).with("revoked", revoked))
}

/// Ends a key's delegation; whether there was one.
pub async fn revoke_on_chain(admin: &AdminCtx, ctx: &Ctx, key: &Key) -> Result<bool, StartError> {
    let executors = admin.secrets()?.executors()?;
    let executor =
        executors.first().ok_or_else(|| StartError::Other("the secrets hold no executor".to_owned()))?;
    Ok(accounts::revoke_delegation(ctx, executor, key).await?)
}

/// What came of asking for the owner's consent.
pub enum Consent {
    /// It was there, and the batch is in a block.
    Done(Batch, Receipt),
    /// The owner has to sign this.
    Wanted(Batch, u64),
}

impl Consent {
    /// Whether the batch is in a block.
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done(..))
    }

    /// What is to be told of it.
    pub fn record(&self) -> Record {
        match self {
            Self::Done(batch, receipt) => Record::new()
                .with("address", batch.account.to_string().to_lowercase())
                .with("txHash", receipt.tx_hash.to_string()),
            Self::Wanted(batch, chain_id) => Record::new()
                .with("address", batch.account.to_string().to_lowercase())
                .with("sign", to_sign(batch, *chain_id))
                .with(
                    "next",
                    "The owner signs the digest; then the same command with --signature and --deadline.",
                ),
        }
    }
}

/// Lets the account's owner enable these keys: with the given signature, with the owner's key where it lies in the data
/// folder, or by telling what is to be signed.
pub async fn authorise(
    admin: &AdminCtx,
    ctx: &Ctx,
    user_id: UserId,
    keys: &[Key],
    signed: Option<Signed>,
) -> Result<Consent, StartError> {
    let deadline_s = signed.as_ref().map(|signed| signed.deadline_s);
    let batch = accounts::batch_to_enable(ctx, user_id, keys, deadline_s).await?;
    let relayer = || admin.secrets().and_then(|secrets| Ok(secrets.roles.relayer()?));
    if let Some(signed) = signed {
        let receipt = accounts::relay(ctx, &relayer()?, &batch, signed.signature).await?;
        return Ok(Consent::Done(batch, receipt));
    }
    let owner = owners::find(&admin.config.data_dir, user_id)?;
    match owner.filter(|owner| owner.owner() == batch.owner) {
        Some(owner) => {
            let (batch, receipt) = accounts::enable_keys(ctx, &relayer()?, &owner, user_id, keys).await?;
            Ok(Consent::Done(batch, receipt))
        }
        None => Ok(Consent::Wanted(batch, ctx.chain.chain_id())),
    }
}

fn to_sign(batch: &Batch, chain_id: u64) -> Value {
    let account = batch.account.to_string();
    let calls: Vec<Value> = batch
        .calls
        .iter()
        .map(|call| {
            json!({ "target": call.target.to_string(), "value": call.value.to_string(), "data": call.data.to_string() })
        })
        .collect();
    let mut wanted = json!({
        "digest": batch.digest.to_string(),
        "account": account,
        "owner": batch.owner,
        "chainId": chain_id,
        "nonce": batch.nonce,
        "deadline": batch.deadline_s,
        "expiresAt": Timestamp::from_s(batch.deadline_s),
        "calls": calls,
    });
    // A wallet shows and signs typed data; a passkey signs the digest as its challenge.
    if let Owner::Eoa(_) = batch.owner {
        let field = |name: &str, kind: &str| json!({ "name": name, "type": kind });
        wanted["typedData"] = json!({
            "types": {
                "EIP712Domain": [
                    field("name", "string"), field("version", "string"),
                    field("chainId", "uint256"), field("verifyingContract", "address"),
                ],
                "Call": [field("target", "address"), field("value", "uint256"), field("data", "bytes")],
                "Batch": [field("calls", "Call[]"), field("nonce", "uint256"), field("deadline", "uint256")],
            },
            "primaryType": "Batch",
            "domain": {
                "name": "Foretell Account", "version": "1", "chainId": chain_id, "verifyingContract": account,
            },
            "message": { "calls": calls, "nonce": batch.nonce.to_string(), "deadline": batch.deadline_s.to_string() },
        });
    }
    wanted
}
