//! `foretell admin delegation`: what a key may spend of an account. Only the account's owner can enable it; the service can
//! end it at any time.

use std::time::{Duration, Instant};

use alloy_primitives::Bytes;
use app::{Ctx, accounts, delegations};
use chain::{Batch, Owner, Receipt};
use clap::{Args, Subcommand};
use domain::delegation::{Ceilings, Change};
use domain::ids::{KeyId, UserId};
use domain::{ErrorCode, Timestamp, Usdc};
use serde_json::{Value, json};
use store::StoreError;
use store::delegations::DelegationChange;
use store::keys::Key;

use super::ctx::AdminCtx;
use super::output::{Answer, Record};
use super::subject::{self, Subject};
use super::values::{When, hex_bytes};
use super::{key, missing, owners, refuse, user};
use crate::run::StartError;

/// The most changes that are listed.
const LISTED: u32 = 1_000;
/// Between two looks whether a change is final.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

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
        #[command(flatten)]
        key: Subject<subject::Key>,
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// Lower what a key may spend on chain, without the account's owner; only the owner can raise it again
    Reduce {
        #[command(flatten)]
        key: Subject<subject::Key>,
        #[command(flatten)]
        to: ReduceArgs,
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// Changes that are not on chain yet
    Pending,
}

/// What a delegation is lowered to.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = true)]
pub struct ReduceArgs {
    /// The most USDC of one trade
    #[arg(long, value_name = "USDC")]
    per_trade_limit: Option<Usdc>,
    /// USDC of any 24 hours
    #[arg(long, value_name = "USDC")]
    daily_spend_limit: Option<Usdc>,
    /// When it ends: an instant such as 2027-01-01T00:00:00Z, or a time from now such as 1h
    #[arg(long)]
    expires: Option<When>,
}

/// Whether to wait for the chain.
#[derive(Debug, Clone, Copy, Args)]
pub struct WaitArgs {
    /// Wait until the change is final on chain, at most this many seconds [default: 60]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u32>,
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
        Verb::Revoke { key: Subject(key), wait } => change(key, Change::Revoke, wait, admin).await,
        Verb::Reduce { key: Subject(key), to, wait } => {
            let ReduceArgs { per_trade_limit: per_trade, daily_spend_limit: daily, expires } = to;
            let expires_at = expires.map(|when| when.from(admin.now()));
            change(key, Change::Reduce(Ceilings { per_trade, daily, expires_at }), wait, admin).await
        }
        Verb::Pending => return pending(admin).await,
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

async fn change(key: KeyId, change: Change, wait: WaitArgs, admin: &AdminCtx) -> Result<Record, StartError> {
    let key = key::find(admin, key).await?;
    let queued = delegations::queue(&admin.ctx()?, key.id, change).await?;
    let change = follow(admin, queued, wait).await?;
    Ok(Record::new().with("keyId", key.id).with("userId", key.user_id).with("delegation", record(&change)))
}

async fn pending(admin: &AdminCtx) -> Result<Answer, StartError> {
    let open: Result<Vec<DelegationChange>, StoreError> =
        admin.store.read((), |tx, ()| Box::pin(store::delegations::list_open(tx, LISTED))).await;
    let open = open?;
    let records = open.iter().map(|change| Record::new().with("keyId", change.key_id).and(record(change)));
    Ok(Answer::Many(records.collect(), &["keyId", "change", "onChain", "error", "since"]))
}

/// Waits for a change if that is asked for; the change as it is then.
pub async fn follow(
    admin: &AdminCtx,
    change: DelegationChange,
    wait: WaitArgs,
) -> Result<DelegationChange, StartError> {
    let Some(seconds) = wait.wait else { return Ok(change) };
    let deadline = Instant::now() + Duration::from_secs(seconds.into());
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    loop {
        looks.tick().await;
        let id = change.id;
        let found: Result<_, StoreError> =
            admin.store.read(id, |tx, id| Box::pin(store::delegations::find(tx, *id))).await;
        let change = found?.ok_or_else(|| missing("delegation change"))?;
        if change.ended_at.is_some() {
            return Ok(change);
        }
        if Instant::now() >= deadline {
            let status = change.status;
            let why = change.error.map(|error| format!(" ({error})")).unwrap_or_default();
            return Err(refuse(
                ErrorCode::DependencyUnavailable,
                format!(
                    "The change is stored and will be made, but after {seconds} s it is still {status}{why}."
                ),
            ));
        }
    }
}

/// What is told of a change.
pub fn record(change: &DelegationChange) -> Record {
    Record::new()
        .with("change", change.change.kind())
        .with("onChain", change.status)
        .with("txHash", &change.tx_hash)
        .with("error", &change.error)
        .with("since", change.created_at)
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
