//! `foretell admin user`.

use alloy_primitives::Address;
use app::accounts;
use chain::{Owner, Signer};
use clap::{Args, Subcommand};
use domain::ErrorCode;
use domain::ids::UserId;
use store::StoreError;
use store::users::{Account, User};

use super::ctx::AdminCtx;
use super::key::key_record;
use super::output::{Answer, Record};
use super::subject::{self, Subject};
use super::values::{BadValue, PageArgs, usdc_text};
use super::{missing, owners, refuse};
use crate::config::Environment;
use crate::run::StartError;

/// What can be done with users.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Add a user and name the owner of the smart account, whose address is known from then on
    Create(CreateArgs),
    /// Users, the newest first
    List(PageArgs),
    /// A user, the account and its keys
    Show {
        #[command(flatten)]
        user: Subject<subject::User>,
    },
}

/// What a user is made of.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// A name for the operator
    #[arg(long)]
    name: String,
    #[command(flatten)]
    owner: OwnerArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct OwnerArgs {
    /// The owner is the holder of this address
    #[arg(long, value_name = "0xADDRESS")]
    owner_eoa: Option<Address>,
    /// The owner is this passkey: its P-256 public key, x and y, 64 bytes in hex
    #[arg(long, value_name = "HEX", value_parser = passkey)]
    owner_passkey: Option<Owner>,
    /// Development only: make an owner's key and keep it in the data folder's owners.json
    #[arg(long)]
    generate_owner: bool,
}

fn passkey(text: &str) -> Result<Owner, BadValue> {
    match text.parse() {
        Ok(owner @ Owner::Passkey { .. }) => Ok(owner),
        _ => Err(BadValue::new("a passkey is 64 bytes of a P-256 key, x and y, in hex")),
    }
}

pub async fn run(verb: Verb, admin: &AdminCtx) -> Result<Answer, StartError> {
    match verb {
        Verb::Create(args) => create(args, admin).await.map(Answer::One),
        Verb::List(page) => list(page, admin).await,
        Verb::Show { user: Subject(user) } => show(user, admin).await.map(Answer::One),
    }
}

async fn create(args: CreateArgs, admin: &AdminCtx) -> Result<Record, StartError> {
    let OwnerArgs { owner_eoa, owner_passkey, generate_owner } = args.owner;
    if generate_owner && admin.config.environment == Environment::Live {
        return Err(refuse(
            ErrorCode::ValidationFailed,
            "--generate-owner is for development: give the owner's address or passkey.",
        ));
    }
    let ctx = admin.online().await?;
    let generated = if generate_owner { Some(Signer::random(ctx.random())?) } else { None };
    let named = owner_eoa.map(Owner::Eoa).or(owner_passkey);
    let owner = generated.as_ref().map(Signer::owner).or(named);
    // The group of arguments lets exactly one through.
    let owner = owner.ok_or_else(|| refuse(ErrorCode::ValidationFailed, "An owner is wanted."))?;
    let (user, account) = accounts::create_user(&ctx, &args.name, &owner).await?;
    if let Some(generated) = &generated {
        owners::add(&admin.config.data_dir, user.id, generated)?;
    }
    Ok(user_record(&user, Some(&account)).with("ownerKeyStored", generated.is_some()))
}

async fn list(page: PageArgs, admin: &AdminCtx) -> Result<Answer, StartError> {
    let users: Result<Vec<_>, StoreError> = admin
        .store
        .read((page.after.map(UserId), page.limit), |tx, (after, limit)| {
            Box::pin(store::users::list(tx, *after, *limit))
        })
        .await;
    let records = users?.iter().map(|(user, account)| user_record(user, account.as_ref())).collect();
    Ok(Answer::Many(records, &["id", "name", "address", "createdAt"]))
}

async fn show(user: UserId, admin: &AdminCtx) -> Result<Record, StartError> {
    let (user, account) = find(admin, user).await?;
    let keys: Result<Vec<_>, StoreError> =
        admin.store.read(user.id, |tx, id| Box::pin(store::keys::list(tx, *id))).await;
    let keys: Vec<Record> = keys?.iter().map(key_record).collect();
    Ok(user_record(&user, account.as_ref()).with("keys", keys))
}

/// A user and the account.
pub async fn find(admin: &AdminCtx, user: UserId) -> Result<(User, Option<Account>), StartError> {
    let found: Result<_, StoreError> = admin
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

fn user_record(user: &User, account: Option<&Account>) -> Record {
    Record::new()
        .with("id", user.id)
        .with("name", &user.name)
        .with("address", account.map(|account| &account.address))
        .with("owner", account.map(|account| &account.owner))
        .with("reservedUsdc", account.map(|account| usdc_text(account.reserved)))
        .with("createdAt", user.created_at)
}
