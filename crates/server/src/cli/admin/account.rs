//! `foretell admin account`.

use app::accounts;
use clap::Subcommand;
use domain::ids::UserId;
use domain::{Timestamp, Usdc};
use store::StoreError;
use store::keys::Key;

use super::ctx::AdminCtx;
use super::delegation::{SignedArgs, authorise};
use super::output::{Answer, Record};
use super::subject::{self, Subject};
use super::user;
use super::values::{decimal, usdc_text};
use crate::run::StartError;

/// What can be done with accounts.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make the account on chain and let the Gate move its USDC; no key is enabled by it
    Provision {
        #[command(flatten)]
        user: Subject<subject::User>,
        #[command(flatten)]
        signed: SignedArgs,
    },
    /// Give the account new test USDC; test chains only
    Fund {
        #[command(flatten)]
        user: Subject<subject::User>,
        /// How much, such as 1000 or 0.5
        #[arg(long, value_name = "USDC")]
        usdc: Usdc,
    },
    /// What the account holds and which keys may spend it
    Show {
        #[command(flatten)]
        user: Subject<subject::User>,
    },
}

pub async fn run(verb: Verb, admin: &AdminCtx) -> Result<Answer, StartError> {
    match verb {
        Verb::Provision { user: Subject(user), signed } => provision(user, signed, admin).await,
        Verb::Fund { user: Subject(user), usdc } => fund(user, usdc, admin).await,
        Verb::Show { user: Subject(user) } => show(user, admin).await,
    }
    .map(Answer::One)
}

async fn provision(user: UserId, signed: SignedArgs, admin: &AdminCtx) -> Result<Record, StartError> {
    user::find(admin, user).await?;
    let ctx = admin.online().await?;
    let done = authorise(admin, &ctx, user, &[], signed.into()).await?;
    Ok(Record::new().with("userId", user).with("provisioned", done.is_done()).and(done.record()))
}

async fn fund(user: UserId, usdc: Usdc, admin: &AdminCtx) -> Result<Record, StartError> {
    user::find(admin, user).await?;
    let ctx = admin.online().await?;
    let minter = admin.secrets()?.roles.deployer()?;
    let receipt = accounts::fund(&ctx, &minter, user, usdc).await?;
    let address = accounts::address_of(&accounts::account_of(&ctx, user).await?)?;
    let balance = ctx.chain.usdc_balance(address).await?;
    Ok(Record::new()
        .with("userId", user)
        .with("address", address.to_string().to_lowercase())
        .with("fundedUsdc", usdc_text(usdc))
        .with("balanceUsdc", decimal(&balance.to_string(), 6))
        .with("txHash", receipt.tx_hash.to_string()))
}

async fn show(user: UserId, admin: &AdminCtx) -> Result<Record, StartError> {
    let (user, _) = user::find(admin, user).await?;
    let ctx = admin.online().await?;
    let account = accounts::account_of(&ctx, user.id).await?;
    let address = accounts::address_of(&account)?;
    let keys: Result<Vec<Key>, StoreError> =
        admin.store.read(user.id, |tx, id| Box::pin(store::keys::list(tx, *id))).await;
    let state = ctx.chain.account_state(address, 0).await?;
    let mut delegations = Vec::new();
    for key in keys?.iter().filter(|key| key.revoked_at.is_none()) {
        let policy = ctx.chain.policy(address, key.key_index).await?;
        let usdc = |atomic| usdc_text(Usdc::from_atomic(atomic));
        let expires_at = (policy.expiry_s != 0).then(|| Timestamp::from_s(policy.expiry_s));
        delegations.push(
            Record::new()
                .with("keyId", key.id)
                .with("keyIndex", key.key_index)
                .with("enabled", policy.is_live(ctx.now().s()))
                .with("perTradeUsdc", usdc(policy.per_trade_usdc_atomic))
                .with("dailyUsdc", usdc(policy.daily_usdc_atomic))
                .with("expiresAt", expires_at),
        );
    }
    Ok(Record::new()
        .with("userId", user.id)
        .with("address", &account.address)
        .with("owner", &account.owner)
        .with("provisioned", state.provisioned)
        .with("balanceUsdc", decimal(&state.usdc_balance_atomic.to_string(), 6))
        .with("reservedUsdc", usdc_text(account.reserved))
        .with("gateApproved", !state.gate_allowance_atomic.is_zero())
        .with("delegations", delegations))
}
