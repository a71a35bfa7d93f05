//! Batches that an account owner signs: they are prepared, printed for signing elsewhere, and
//! carried out by the running service. In development, the service's machine may hold an owner's key
//! and sign immediately.

use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes};
use app::audit_log::{self, Act};
use app::owner_acts::{self, ActOrigin, OwnerActRequest, OwnerSignature, PreparedAct};
use app::{AppError, Ctx};
use chain::{AccountOwner, Signer, UnsignedBatch, provision};
use clap::Args;
use domain::ids::UserId;
use domain::owner_act::{OwnerActKind, OwnerActStatus};
use domain::{ErrorCode, Timestamp};
use serde_json::{Value, json};
use store::owner_acts::OwnerAct;

use super::ctx::AdminCtx;
use super::output::OutputRecord;
use super::owner_keys;
use super::values::hex_bytes;
use crate::start_error::StartError;

/// The time that a command waits for the running service.
const WAIT: Duration = Duration::from_secs(60);
/// Interval between checks whether an act is in a block.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of attempts to sign a batch whose nonce another batch of the account used
/// first.
const SIGN_ATTEMPTS: u32 = 20;

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

/// The result of requesting an owner's consent.
pub enum Consent {
    /// The owner has signed, and the batch is in a block.
    Done(UnsignedBatch, B256),
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
            Self::Done(batch, tx_hash) => OutputRecord::new()
                .with("address", batch.account.to_string().to_lowercase())
                .with("txHash", tx_hash.to_string()),
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

/// Requests an owner's consent to an act. Uses the given signature, or an owner's key in the data
/// folder, or otherwise returns the data to sign.
pub async fn authorise(
    admin: &AdminCtx,
    ctx: &Ctx,
    user_id: UserId,
    request: &OwnerActRequest,
    signed: Option<Signed>,
) -> Result<Consent, StartError> {
    // The deadline is part of the signed digest, so the act must be prepared with the same one.
    let deadline_s = signed.as_ref().map(|signed| signed.deadline_s);
    let prepared = prepare(ctx, user_id, request, deadline_s).await?;
    if let Some(Signed { signature, .. }) = signed {
        return carry_out(ctx, &prepared, signature).await;
    }
    let keys = owner_keys::find(&admin.config.data_dir, user_id)?;
    match keys.iter().find(|key| prepared.batch.owners.contains(&key.owner())) {
        Some(key) => sign_and_carry_out(ctx, key, user_id, request).await,
        None => Ok(Consent::Wanted(prepared.batch, ctx.chain.chain_id())),
    }
}

async fn prepare(
    ctx: &Ctx,
    user_id: UserId,
    request: &OwnerActRequest,
    deadline_s: Option<u64>,
) -> Result<PreparedAct, AppError> {
    let deadline_s = match deadline_s {
        Some(deadline_s) => deadline_s,
        // Longer than in the web application, because the digest is carried to a signer elsewhere.
        None => provision::signature_deadline_s(&ctx.chain, ctx.now().s()).await?,
    };
    owner_acts::prepare(ctx, user_id, request, ActOrigin::Operator, Some(deadline_s)).await
}

/// Signs and carries out an act with an owner's key that is available.
///
/// If several acts of one account are signed concurrently, the chain executes only one of them. The
/// others are prepared and signed again, so that success always means that the act was executed.
async fn sign_and_carry_out(
    ctx: &Ctx,
    owner: &Signer,
    user_id: UserId,
    request: &OwnerActRequest,
) -> Result<Consent, StartError> {
    let mut attempt = 1;
    loop {
        if let Some(other) = owner_acts::find_in_progress(ctx, user_id).await? {
            follow(ctx, &other).await?;
        }
        let prepared = prepare(ctx, user_id, request, None).await?;
        let signature = owner.sign_digest(prepared.batch.digest).map_err(AppError::from)?;
        match carry_out(ctx, &prepared, signature).await {
            Err(_) if attempt < SIGN_ATTEMPTS && was_overtaken(ctx, &prepared).await? => attempt += 1,
            done => return done,
        }
    }
}

/// Returns whether another act of the account was signed or executed since this one was prepared.
async fn was_overtaken(ctx: &Ctx, prepared: &PreparedAct) -> Result<bool, AppError> {
    let other = owner_acts::find_in_progress(ctx, prepared.act.user_id).await?;
    if other.is_some_and(|other| other.id != prepared.act.id) {
        return Ok(true);
    }
    Ok(ctx.chain.account_nonce(prepared.batch.account).await? > prepared.batch.nonce)
}

/// Stores an owner's signature and waits until the running service has executed the act.
async fn carry_out(ctx: &Ctx, prepared: &PreparedAct, signature: Bytes) -> Result<Consent, StartError> {
    let PreparedAct { act, batch } = prepared;
    let calls: Vec<String> =
        batch.calls.iter().map(|call| format!("{} {}", call.target, call.data)).collect();
    let signer = AccountOwner::of_signature(&signature, batch.digest);
    let signed = json!({ "digest": batch.digest.to_string(), "calls": calls, "signer": signer });
    let entry = Act::new(action_of(act.kind), format!("account:{}", batch.account)).after(signed);
    let executed = async {
        let signature = OwnerSignature::Encoded(signature);
        let signed = owner_acts::sign(ctx, act.user_id, act.id, &signature, ActOrigin::Operator).await?;
        follow(ctx, &signed).await
    };
    let tx_hash = |tx_hash: &B256| json!({ "txHash": tx_hash.to_string() });
    let tx_hash = audit_log::around(ctx, entry, executed, tx_hash).await?;
    Ok(Consent::Done(batch.clone(), tx_hash))
}

/// Returns the action of an act in the audit log.
const fn action_of(kind: OwnerActKind) -> &'static str {
    match kind {
        OwnerActKind::Enable | OwnerActKind::EnableKey => "delegation.enable",
        OwnerActKind::RaiseCaps => "delegation.raise",
        OwnerActKind::Withdraw => "account.withdraw",
        OwnerActKind::SendPosition => "account.send_position",
        OwnerActKind::Trade => "account.trade",
        OwnerActKind::AddOwner => "account.owner.add",
        OwnerActKind::RemoveOwner => "account.owner.remove",
        OwnerActKind::EndApproval => "account.approval.end",
    }
}

/// Waits until an act is in a block, and returns its transaction.
async fn follow(ctx: &Ctx, act: &OwnerAct) -> Result<B256, AppError> {
    let deadline = Instant::now() + WAIT;
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    loop {
        looks.tick().await;
        let act = owner_acts::find(ctx, act.user_id, act.id).await?;
        if let Some(error) = owner_acts::error_of(&act) {
            return Err(error);
        }
        if act.status == OwnerActStatus::Done
            && let Some(tx_hash) = act.tx_hash
        {
            return Ok(tx_hash);
        }
        // The block need not be final, but the owners must be readable from it.
        if let Some(receipt) = owner_acts::find_receipt(ctx, &act).await? {
            return Ok(receipt.tx_hash);
        }
        if Instant::now() >= deadline {
            return Err(AppError::new(ErrorCode::DependencyUnavailable).detail(format!(
                "The batch is signed and stored, but the service has not executed it within {} s. Check that \
                 the service is running: it still sends the batch until the deadline.",
                WAIT.as_secs()
            )));
        }
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
