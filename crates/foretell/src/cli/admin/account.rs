//! `foretell admin account`.

use app::owner_acts::OwnerActRequest;
use app::{Ctx, accounts};
use chain::AccountOwner;
use clap::Subcommand;
use domain::ids::UserId;
use domain::{Timestamp, Usdc};

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::owner_batch::{Consent, SignedArgs, authorise};
use super::subject::{self, Subject};
use super::user::OwnerArgs;
use super::values::{decimal, usdc_text};
use super::{owner_keys, user};
use crate::start_error::StartError;

/// Commands for accounts.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Create the account on chain and approve its USDC for the Gate. This enables no key
    Provision {
        #[command(flatten)]
        user: Subject<subject::User>,
        #[command(flatten)]
        signed: SignedArgs,
    },
    /// Mint test USDC to the account. Only works on test chains
    Fund {
        #[command(flatten)]
        user: Subject<subject::User>,
        /// The amount of USDC, such as 1000 or 0.5
        #[arg(long, value_name = "USDC")]
        usdc: Usdc,
    },
    /// Show the account's balance and the keys that may spend it
    Show {
        #[command(flatten)]
        user: Subject<subject::User>,
    },
    /// Manage the account's owners. Each owner has full control of the account
    #[command(subcommand)]
    Owners(OwnersCommand),
}

/// Commands for an account's owners.
#[derive(Debug, Subcommand)]
pub enum OwnersCommand {
    /// List the current owners, read from the chain
    List {
        #[command(flatten)]
        user: Subject<subject::User>,
    },
    /// Add an owner (at most 16). Prints a digest for a current owner to sign if no owner key is
    /// available
    Add {
        #[command(flatten)]
        user: Subject<subject::User>,
        #[command(flatten)]
        owner: OwnerArgs,
        #[command(flatten)]
        signed: SignedArgs,
    },
    /// Remove an owner, except the last one. Prints a digest for a current owner to sign if no
    /// owner key is available
    Remove {
        #[command(flatten)]
        user: Subject<subject::User>,
        /// The owner: an address, or 64 bytes of a passkey, in hex
        #[arg(long, value_name = "HEX")]
        owner: AccountOwner,
        #[command(flatten)]
        signed: SignedArgs,
    },
}

pub async fn run(command: AccountCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        AccountCommand::Provision { user: Subject(user), signed } => provision(user, signed, admin).await,
        AccountCommand::Fund { user: Subject(user), usdc } => fund(user, usdc, admin).await,
        AccountCommand::Show { user: Subject(user) } => show(user, admin).await,
        AccountCommand::Owners(command) => return run_owners(command, admin).await,
    }
    .map(CommandOutput::One)
}

async fn run_owners(command: OwnersCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        OwnersCommand::List { user: Subject(user) } => list_owners(user, admin).await,
        OwnersCommand::Add { user: Subject(user), owner, signed } => {
            add_owner(user, owner, signed, admin).await.map(CommandOutput::One)
        }
        OwnersCommand::Remove { user: Subject(user), owner, signed } => {
            user::find(admin, user).await?;
            let ctx = admin.online().await?;
            let request = OwnerActRequest::RemoveOwner(owner);
            let done = authorise(admin, &ctx, user, &request, signed.into()).await?;
            owner_change(&ctx, user, owner, "removed", &done).await.map(CommandOutput::One)
        }
    }
}

async fn list_owners(user: UserId, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    user::find(admin, user).await?;
    let read = accounts::owners(&admin.online().await?, user).await?;
    let records = read.owners.iter().map(|owner| {
        let kind = match owner {
            AccountOwner::Eoa(_) => "eoa",
            AccountOwner::Passkey { .. } => "passkey",
        };
        OutputRecord::new()
            .with("kind", kind)
            .with("owner", owner)
            .with("isFirst", owner.to_string() == read.account.first_owner)
            .with("provisioned", read.provisioned)
    });
    Ok(CommandOutput::Many(records.collect(), &["kind", "owner", "isFirst"]))
}

async fn add_owner(
    user: UserId,
    owner: OwnerArgs,
    signed: SignedArgs,
    admin: &AdminCtx,
) -> Result<OutputRecord, StartError> {
    user::find(admin, user).await?;
    let ctx = admin.online().await?;
    let (owner, generated) = owner.owner(admin, &ctx)?;
    // Store the key first: an owner on chain whose key is lost would be useless.
    if let Some(generated) = &generated {
        owner_keys::add(&admin.config.data_dir, user, generated)?;
    }
    let done = authorise(admin, &ctx, user, &OwnerActRequest::AddOwner(owner), signed.into()).await?;
    let change = owner_change(&ctx, user, owner, "added", &done).await?;
    Ok(change.with("ownerKeyStored", generated.is_some()))
}

/// Returns the result of a change of owners, which `changed` names, with the current owners.
async fn owner_change(
    ctx: &Ctx,
    user: UserId,
    owner: AccountOwner,
    changed: &'static str,
    done: &Consent,
) -> Result<OutputRecord, StartError> {
    let owners = accounts::owners(ctx, user).await?.owners;
    let record = OutputRecord::new().with("userId", user).with("owner", owner).with(changed, done.is_done());
    Ok(record.with("owners", owners).and(done.record()))
}

async fn provision(user: UserId, signed: SignedArgs, admin: &AdminCtx) -> Result<OutputRecord, StartError> {
    user::find(admin, user).await?;
    let ctx = admin.online().await?;
    let done =
        authorise(admin, &ctx, user, &OwnerActRequest::Enable { keys: Vec::new() }, signed.into()).await?;
    Ok(OutputRecord::new().with("userId", user).with("provisioned", done.is_done()).and(done.record()))
}

async fn fund(user: UserId, usdc: Usdc, admin: &AdminCtx) -> Result<OutputRecord, StartError> {
    user::find(admin, user).await?;
    let ctx = admin.online().await?;
    let minter = admin.secrets()?.roles.deployer()?;
    let receipt = accounts::fund(&ctx, &minter, user, usdc).await?;
    let address = accounts::account_of(&ctx, user).await?.address;
    // Read it back from the chain instead of adding, because the account may have received other
    // funds.
    let balance = ctx.chain.usdc_balance(address).await?;
    Ok(OutputRecord::new()
        .with("userId", user)
        .with("address", address)
        .with("fundedUsdc", usdc_text(usdc))
        .with("balanceUsdc", decimal(&balance.to_string(), 6))
        .with("txHash", receipt.tx_hash.to_string()))
}

async fn show(user: UserId, admin: &AdminCtx) -> Result<OutputRecord, StartError> {
    let (user, _) = user::find(admin, user).await?;
    let ctx = admin.online().await?;
    let accounts::Owners { account, owners, .. } = accounts::owners(&ctx, user.id).await?;
    let address = account.address;
    let keys = admin.store.read(user.id, |tx, id| Box::pin(store::keys::list(tx, *id))).await;
    // Balance and approval do not depend on the key index.
    let state = ctx.chain.account_state(address, 0).await?;
    let mut delegations = Vec::new();
    for key in keys?.iter().filter(|key| key.revoked_at.is_none()) {
        let policy = ctx.chain.policy(address, key.key_index).await?;
        let usdc = |atomic| usdc_text(Usdc::from_atomic(atomic));
        let expires_at = (policy.expiry_s != 0).then(|| Timestamp::from_s(policy.expiry_s));
        delegations.push(
            OutputRecord::new()
                .with("keyId", key.id)
                .with("keyIndex", key.key_index)
                .with("enabled", policy.is_live(ctx.now().s()))
                .with("perTradeUsdc", usdc(policy.per_trade_usdc_atomic))
                .with("dailyUsdc", usdc(policy.daily_usdc_atomic))
                .with("salePerTradeUsdc", usdc(policy.sale_per_trade_usdc_atomic))
                .with("saleDailyUsdc", usdc(policy.sale_daily_usdc_atomic))
                .with("expiresAt", expires_at),
        );
    }
    Ok(OutputRecord::new()
        .with("userId", user.id)
        .with("address", address)
        .with("owners", owners)
        .with("provisioned", state.provisioned)
        .with("balanceUsdc", decimal(&state.usdc_balance_atomic.to_string(), 6))
        .with("reservedUsdc", usdc_text(account.reserved))
        .with("gateApproved", !state.gate_allowance_atomic.is_zero())
        .with("delegations", delegations))
}
