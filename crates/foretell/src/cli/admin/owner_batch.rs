//! Batches that an account owner signs: they are prepared, printed for signing elsewhere, and
//! relayed. In development, the service's machine may hold an owner's key and sign immediately.

use alloy_primitives::Bytes;
use app::accounts::{self, OwnerChange};
use app::{AppError, Ctx};
use chain::{AccountOwner, Receipt, Signer, UnsignedBatch};
use clap::Args;
use domain::Timestamp;
use domain::ids::UserId;
use serde_json::{Value, json};
use store::keys::Key;

use super::ctx::AdminCtx;
use super::output::OutputRecord;
use super::owner_keys;
use super::values::hex_bytes;
use crate::start_error::StartError;

/// The owner's signature over a printed batch.
#[derive(Debug, Clone, Args)]
pub struct SignedArgs {
    /// An owner's signature in hex: 65 bytes of an EOA, or a passkey's 64 bytes and its assertion in the account contract's form
    #[arg(long, value_name = "HEX", requires = "deadline", value_parser = hex_bytes)]
    signature: Option<Bytes>,
    /// The deadline that was printed with the signed batch, in Unix seconds
    #[arg(long, value_name = "SECONDS", requires = "signature")]
    deadline: Option<u64>,
}

/// An owner's signature over the batch with this deadline.
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

/// The purpose of a batch.
#[derive(Clone, Copy)]
pub enum Purpose<'a> {
    /// Deploys the account if necessary, and enables these keys.
    Enable(&'a [Key]),
    /// Changes the account's owners.
    ChangeOwners(OwnerChange),
}

impl Purpose<'_> {
    async fn prepare(
        self,
        ctx: &Ctx,
        user_id: UserId,
        deadline_s: Option<u64>,
    ) -> Result<UnsignedBatch, AppError> {
        match self {
            Self::Enable(keys) => accounts::batch_to_enable(ctx, user_id, keys, deadline_s).await,
            Self::ChangeOwners(change) => {
                accounts::batch_to_change_owners(ctx, user_id, change, deadline_s).await
            }
        }
    }

    async fn sign_and_relay(
        self,
        ctx: &Ctx,
        relayer: &Signer,
        owner: &Signer,
        user_id: UserId,
    ) -> Result<(UnsignedBatch, Receipt), AppError> {
        match self {
            Self::Enable(keys) => accounts::enable_keys(ctx, relayer, owner, user_id, keys).await,
            Self::ChangeOwners(change) => accounts::change_owners(ctx, relayer, owner, user_id, change).await,
        }
    }
}

impl From<Purpose<'_>> for accounts::BatchPurpose {
    fn from(purpose: Purpose<'_>) -> Self {
        match purpose {
            Purpose::Enable(_) => Self::Enable,
            Purpose::ChangeOwners(change) => change.into(),
        }
    }
}

/// The result of requesting an owner's consent.
pub enum Consent {
    /// The owner has signed, and the batch is in a block.
    Done(UnsignedBatch, Receipt),
    /// An owner must sign this batch. The number is the chain id.
    Wanted(UnsignedBatch, u64),
}

impl Consent {
    /// Returns whether the batch is in a block.
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done(..))
    }

    /// Returns the members that commands print.
    pub fn record(&self) -> OutputRecord {
        match self {
            Self::Done(batch, receipt) => OutputRecord::new()
                .with("address", batch.account.to_string().to_lowercase())
                .with("txHash", receipt.tx_hash.to_string()),
            Self::Wanted(batch, chain_id) => OutputRecord::new()
                .with("address", batch.account.to_string().to_lowercase())
                .with("sign", to_sign(batch, *chain_id))
                .with(
                    "next",
                    "Let an owner sign the digest, then run the same command with --signature and --deadline.",
                ),
        }
    }
}

/// Requests an owner's consent to a batch. Uses the given signature, or an owner's key in the data
/// folder, or otherwise returns the data to sign.
pub async fn authorise(
    admin: &AdminCtx,
    ctx: &Ctx,
    user_id: UserId,
    purpose: Purpose<'_>,
    signed: Option<Signed>,
) -> Result<Consent, StartError> {
    // The deadline is part of the signed digest, so the batch must be prepared with the same one.
    let deadline_s = signed.as_ref().map(|signed| signed.deadline_s);
    let batch = purpose.prepare(ctx, user_id, deadline_s).await?;
    let relayer = || admin.secrets().and_then(|secrets| Ok(secrets.roles.relayer()?));
    if let Some(Signed { signature, .. }) = signed {
        let receipt = accounts::relay(ctx, &relayer()?, user_id, purpose.into(), &batch, signature).await?;
        return Ok(Consent::Done(batch, receipt));
    }
    let keys = owner_keys::find(&admin.config.data_dir, user_id)?;
    match keys.iter().find(|key| batch.owners.contains(&key.owner())) {
        Some(key) => {
            let (batch, receipt) = purpose.sign_and_relay(ctx, &relayer()?, key, user_id).await?;
            Ok(Consent::Done(batch, receipt))
        }
        None => Ok(Consent::Wanted(batch, ctx.chain.chain_id())),
    }
}

fn to_sign(batch: &UnsignedBatch, chain_id: u64) -> Value {
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
        "owners": batch.owners,
        "chainId": chain_id,
        "nonce": batch.nonce,
        "deadline": batch.deadline_s,
        "expiresAt": Timestamp::from_s(batch.deadline_s),
        "calls": calls,
    });
    // A wallet displays and signs typed data. A passkey signs the digest as its challenge, so it
    // needs none.
    if batch.owners.iter().any(|owner| matches!(owner, AccountOwner::Eoa(_))) {
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
