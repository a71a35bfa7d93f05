//! `foretell admin user`.

use alloy_primitives::Address;
use app::user_log::UserLogEntry;
use app::{Ctx, accounts, people};
use chain::{AccountOwner, Signer};
use clap::{Args, Subcommand};
use domain::credential::Role;
use domain::ids::UserId;
use domain::key::Tier;
use domain::{ErrorCode, Timestamp};
use store::users::{Account, User};

use super::ctx::AdminCtx;
use super::key::key_record;
use super::output::{CommandOutput, OutputRecord};
use super::subject::{self, Subject};
use super::values::{BadValue, PageArgs, usdc_text};
use super::{missing, owner_keys, refuse};
use crate::config::EnvironmentSetting;
use crate::start_error::StartError;

/// Commands for users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Create a user and set the owner of the smart account. Prints the address of the account
    Create(CreateUserArgs),
    /// List users, newest first
    List(PageArgs),
    /// Make a user an admin of the web application. The user must have a passkey
    Promote {
        #[command(flatten)]
        user: Subject<subject::User>,
    },
    /// Make an admin an ordinary user again
    Demote {
        #[command(flatten)]
        user: Subject<subject::User>,
    },
    /// Change the tier of the key that a user trades with in the web application
    Tier {
        #[arg(value_name = "ID")]
        user: UserId,
        /// free, developer, enterprise or mm
        tier: Tier,
    },
    /// Show a user, the account and its keys
    Show {
        #[command(flatten)]
        user: Subject<subject::User>,
    },
    /// List what a user did with their own account, newest first
    Log {
        #[command(flatten)]
        user: Subject<subject::User>,
        /// The maximum number of rows
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Only entries before this instant
        #[arg(long, value_name = "INSTANT")]
        before: Option<Timestamp>,
    },
}

/// The properties of a new user.
#[derive(Debug, Args)]
pub struct CreateUserArgs {
    /// The name of the user, for the operator
    #[arg(long)]
    name: String,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// The owner of an account.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct OwnerArgs {
    /// The owner is the holder of this address
    #[arg(long, value_name = "0xADDRESS")]
    owner_eoa: Option<Address>,
    /// The owner is this passkey: its P-256 public key, x and y, 64 bytes in hex
    #[arg(long, value_name = "HEX", value_parser = passkey)]
    owner_passkey: Option<AccountOwner>,
    /// Only for development: generate an owner key and store it in owners.json in the data folder
    #[arg(long)]
    generate_owner: bool,
}

impl OwnerArgs {
    /// Returns the owner, and its key if it was generated here.
    ///
    /// # Errors
    ///
    /// `VALIDATION_FAILED` if a generated key is requested outside development.
    pub fn owner(self, admin: &AdminCtx, ctx: &Ctx) -> Result<(AccountOwner, Option<Signer>), StartError> {
        // In production, an owner's key must never be on the service's machine.
        if self.generate_owner && admin.config.environment == EnvironmentSetting::Live {
            return Err(refuse(
                ErrorCode::ValidationFailed,
                "--generate-owner is only for development: set the owner's address or passkey.",
            ));
        }
        let generated = if self.generate_owner { Some(Signer::random(ctx.random())?) } else { None };
        let named = self.owner_eoa.map(AccountOwner::Eoa).or(self.owner_passkey);
        // Clap's argument group guarantees exactly one of them.
        let owner = generated.as_ref().map(Signer::owner).or(named);
        let owner = owner.ok_or_else(|| refuse(ErrorCode::ValidationFailed, "An owner is required."))?;
        Ok((owner, generated))
    }
}

fn passkey(text: &str) -> Result<AccountOwner, BadValue> {
    match text.parse() {
        Ok(owner @ AccountOwner::Passkey { .. }) => Ok(owner),
        _ => Err(BadValue::new("a passkey must be 64 bytes in hex: x and y of a P-256 public key")),
    }
}

pub async fn run(command: UserCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        UserCommand::Create(args) => create(args, admin).await.map(CommandOutput::One),
        UserCommand::List(page) => list(page, admin).await,
        UserCommand::Promote { user: Subject(user) } => set_role(user, Role::Admin, admin).await,
        UserCommand::Demote { user: Subject(user) } => set_role(user, Role::User, admin).await,
        UserCommand::Tier { user, tier } => set_tier(user, tier, admin).await,
        UserCommand::Show { user: Subject(user) } => show(user, admin).await.map(CommandOutput::One),
        UserCommand::Log { user: Subject(user), limit, before } => log(user, before, limit, admin).await,
    }
}

async fn create(args: CreateUserArgs, admin: &AdminCtx) -> Result<OutputRecord, StartError> {
    let ctx = admin.online().await?;
    let (owner, generated) = args.owner.owner(admin, &ctx)?;
    let (user, account) = accounts::create_user(&ctx, &args.name, &owner).await?;
    if let Some(generated) = &generated {
        owner_keys::add(&admin.config.data_dir, user.id, generated)?;
    }
    Ok(user_record(&user, Some(&account)).with("ownerKeyStored", generated.is_some()))
}

async fn list(page: PageArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let users = admin
        .store
        .read((page.after.map(UserId), page.limit), |tx, (after, limit)| {
            Box::pin(store::users::list(tx, *after, *limit))
        })
        .await;
    let records = users?.iter().map(|(user, account)| user_record(user, account.as_ref())).collect();
    Ok(CommandOutput::Many(records, &["id", "name", "address", "createdAt"]))
}

async fn show(user: UserId, admin: &AdminCtx) -> Result<OutputRecord, StartError> {
    let (user, account) = find(admin, user).await?;
    let keys = admin.store.read(user.id, |tx, id| Box::pin(store::keys::list(tx, *id))).await;
    let keys: Vec<OutputRecord> = keys?.iter().map(key_record).collect();
    let owners = accounts::stored_owners(&admin.ctx()?, user.id).await?;
    Ok(user_record(&user, account.as_ref()).with("owners", owners).with("keys", keys))
}

async fn log(
    user: UserId,
    before: Option<Timestamp>,
    limit: u32,
    admin: &AdminCtx,
) -> Result<CommandOutput, StartError> {
    find(admin, user).await?;
    let entries = app::user_log::list(&admin.ctx()?, user, before, limit).await?;
    let record = |entry: &UserLogEntry| {
        let detail = entry.detail.as_deref().and_then(|text| serde_json::from_str(text).ok());
        OutputRecord::new()
            .with("at", entry.at.to_string())
            .with("action", &*entry.action)
            .with("subject", &*entry.subject)
            .with("ip", entry.ip.to_string())
            .with("more", entry.more)
            .with("lastAt", entry.last_at.to_string())
            .with("detail", detail.unwrap_or(serde_json::Value::Null))
    };
    Ok(CommandOutput::Many(entries.iter().map(record).collect(), &["at", "action", "subject", "ip", "more"]))
}

async fn set_role(user: UserId, role: Role, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    people::set_role(&admin.ctx()?, user, role).await?;
    show(user, admin).await.map(CommandOutput::One)
}

async fn set_tier(user: UserId, tier: Tier, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    people::set_tier(&admin.ctx()?, user, tier).await?;
    show(user, admin).await.map(CommandOutput::One)
}

/// Returns a user and its account, or a not-found error.
pub async fn find(admin: &AdminCtx, user: UserId) -> Result<(User, Option<Account>), StartError> {
    let found = admin
        .store
        .read(user, |tx, id| {
            Box::pin(async move {
                Ok((store::users::find(tx, *id).await?, store::users::find_account(tx, *id).await?))
            })
        })
        .await;
    let (user, account) = found?;
    Ok((user.ok_or_else(|| missing("user"))?, account))
}

fn user_record(user: &User, account: Option<&Account>) -> OutputRecord {
    OutputRecord::new()
        .with("id", user.id)
        .with("name", &user.name)
        .with("address", account.map(|account| account.address))
        .with("firstOwner", account.map(|account| &account.first_owner))
        .with("reservedUsdc", account.map(|account| usdc_text(account.reserved)))
        .with("role", user.role)
        .with("tier", user.tier)
        .with("createdAt", user.created_at)
}
