//! `foretell admin`: the operator's commands for users, accounts, keys, markets, roles and content.
//!
//! The commands work while the service is running. They write rows to the database themselves. What
//! needs the chain goes through the service's JSON-RPC endpoint, and the service's sync reads the
//! events. Each noun has a file with its arguments, its commands and the records that they print.

mod account;
mod act;
mod aggregates;
mod audit;
mod backup;
mod chapter;
mod consent;
mod ctx;
mod delegation;
mod executor;
mod executor_lane;
mod import;
mod key;
mod market;
mod organization;
mod output;
mod owner_batch;
mod owner_keys;
mod partner;
mod recover;
mod role;
mod secrets;
mod signer;
mod subject;
mod switch;
mod sync;
mod thread;
mod trade;
mod user;
mod values;

use std::path::{Path, PathBuf};

use app::{AppError, InvalidState};
use chain::ChainError;
use clap::{Args, Subcommand};
use domain::ErrorCode;
use secrecy::zeroize::Zeroizing;
use store::audit_log::Actor;

use crate::config::ResolvedConfig;
use crate::secrets::{KeyText, RoleSecrets};
use crate::start_error::StartError;
use ctx::AdminCtx;
pub(super) use ctx::{NO_CONTRACTS, NOWHERE};
use output::CommandOutput;

/// The arguments of `foretell admin`.
#[derive(Debug, Args)]
pub struct AdminArgs {
    /// Print JSON, also on a terminal
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    role_keys: RoleKeys,
    #[command(subcommand)]
    noun: Noun,
}

/// Key files of roles for one command. Outside development the secrets file has no keys of roles.
#[derive(Debug, Default, Args)]
pub struct RoleKeys {
    /// File with the private key of the owner
    #[arg(long, global = true, value_name = "FILE", env = "FORETELL_OWNER_KEY_FILE")]
    owner_key_file: Option<PathBuf>,
    /// File with the private key of the resolver
    #[arg(long, global = true, value_name = "FILE", env = "FORETELL_RESOLVER_KEY_FILE")]
    resolver_key_file: Option<PathBuf>,
    /// File with the private key of the guardian
    #[arg(long, global = true, value_name = "FILE", env = "FORETELL_GUARDIAN_KEY_FILE")]
    guardian_key_file: Option<PathBuf>,
}

impl RoleKeys {
    /// Replaces keys of the secrets file by those of the given files.
    fn put_into(&self, roles: &mut RoleSecrets) -> Result<(), StartError> {
        let files = [
            (&self.owner_key_file, &mut roles.owner),
            (&self.resolver_key_file, &mut roles.resolver),
            (&self.guardian_key_file, &mut roles.guardian),
        ];
        for (file, key) in files {
            if let Some(path) = file {
                *key = Some(read_key(path)?);
            }
        }
        Ok(())
    }
}

/// Reads the private key in a file.
fn read_key(path: &Path) -> Result<KeyText, StartError> {
    let text = std::fs::read_to_string(path)
        .map(Zeroizing::new)
        .map_err(|source| StartError::File { path: path.display().to_string(), source })?;
    Ok(text.trim().into())
}

#[derive(Debug, Subcommand)]
enum Noun {
    /// Manage users: the people and programs that trade
    #[command(subcommand)]
    User(user::UserCommand),
    /// Manage smart accounts
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Manage delegations: what keys may spend of an account on chain
    #[command(subcommand)]
    Delegation(delegation::DelegationCommand),
    /// Manage API keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Manage markets
    #[command(subcommand)]
    Market(Box<market::MarketCommand>),
    /// Manage the roles of the deployment and their holders
    #[command(subcommand)]
    Role(Box<role::RoleCommand>),
    /// Manage executors, which send trades to the chain, and their hourly caps
    #[command(subcommand)]
    Executor(executor::ExecutorCommand),
    /// Manage organizations, which own threads
    #[command(subcommand)]
    Organization(organization::OrganizationCommand),
    /// Manage partners of organizations
    #[command(subcommand)]
    Partner(partner::PartnerCommand),
    /// Manage threads: collections of markets with a time window
    #[command(subcommand)]
    Thread(Box<thread::ThreadCommand>),
    /// Manage chapters of threads
    #[command(subcommand)]
    Chapter(chapter::ChapterCommand),
    /// Import organizations, partners, threads, chapters and markets from a file
    Import(import::ImportArgs),
    /// Check and rebuild the stored sums over markets and movements
    #[command(subcommand)]
    Aggregates(aggregates::AggregatesCommand),
    /// Read and verify the log of administrative acts
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Turn routes or all trading off and on
    #[command(subcommand)]
    Switch(switch::SwitchCommand),
    /// Show the chain sync, reread blocks, and manage quarantined markets
    #[command(subcommand)]
    Sync(sync::SyncCommand),
    /// Repair trades that do not end
    #[command(subcommand)]
    Trade(trade::TradeCommand),
    /// Copy the service's data into a folder, while it is running or stopped
    Backup(backup::BackupArgs),
    /// Check a backup and restore its files. The service must be stopped
    Restore(backup::RestoreArgs),
    /// Recover a database that was restored from an old copy, from the chain
    Recover(recover::RecoverArgs),
    /// Manage the stored secrets
    #[command(subcommand)]
    Secrets(secrets::SecretsCommand),
}

/// Runs a command and prints its result: as JSON with `--json` or if standard output is not a
/// terminal.
pub async fn run(args: AdminArgs, config: ResolvedConfig, actor: Actor) -> Result<(), StartError> {
    if let Noun::Restore(restore) = args.noun {
        // The database may not exist yet.
        return backup::restore(restore, &config, actor).await?.print(args.json);
    }
    let admin = AdminCtx::open(config, actor).await?.with_role_keys(args.role_keys);
    let answer = dispatch(args.noun, args.json, &admin).await;
    admin.close().await;
    answer.map_err(explain)?.print(args.json)
}

async fn dispatch(noun: Noun, json: bool, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match noun {
        Noun::User(command) => user::run(command, admin).await,
        Noun::Account(command) => account::run(command, admin).await,
        Noun::Delegation(command) => delegation::run(command, admin).await,
        Noun::Key(command) => key::run(command, admin).await,
        Noun::Market(command) => market::run(*command, admin).await,
        Noun::Role(command) => role::run(*command, admin).await,
        Noun::Executor(command) => executor::run(command, admin).await,
        Noun::Organization(command) => organization::run(command, admin).await,
        Noun::Partner(command) => partner::run(command, admin).await,
        Noun::Thread(command) => thread::run(*command, admin).await,
        Noun::Chapter(command) => chapter::run(command, admin).await,
        Noun::Import(args) => import::run(args, json, admin).await,
        Noun::Aggregates(command) => aggregates::run(command, admin).await,
        Noun::Audit(command) => audit::run(command, admin).await,
        Noun::Switch(command) => switch::run(command, admin).await,
        Noun::Sync(command) => sync::run(command, admin).await,
        Noun::Trade(command) => trade::run(command, admin).await,
        Noun::Backup(args) => backup::run(args, admin).await,
        Noun::Recover(args) => recover::run(args, admin).await,
        // Already handled by `run`, before the database was opened.
        Noun::Restore(_) => Ok(CommandOutput::Printed),
        Noun::Secrets(command) => secrets::run(command, admin).await,
    }
}

/// Creates an error with its own text.
fn refuse(code: ErrorCode, detail: impl Into<String>) -> StartError {
    AppError::new(code).detail(detail).into()
}

/// Creates the error for an unknown id.
fn missing(what: &str) -> StartError {
    refuse(ErrorCode::ResourceNotFound, format!("There is no {what} with this id."))
}

/// Adds to an error what the API does not tell its clients: the field, and the message of the chain
/// or the database.
fn explain(error: StartError) -> StartError {
    let StartError::App(mut error) = error else { return error };
    if let Some(fields) = error.extensions.get("errors").and_then(|errors| errors.as_array()) {
        let text = |field: &serde_json::Value, member: &str| {
            field
                .get(member)
                .and_then(|text| text.as_str())
                .unwrap_or_default()
                .trim_start_matches('/')
                .to_owned()
        };
        let fields: Vec<String> = fields
            .iter()
            .map(|field| format!("{} {}", text(field, "pointer"), text(field, "detail")))
            .collect();
        error.detail = fields.join("; ");
    }
    let Some(source) = &error.source else { return error.into() };
    if let Some(state) = source.downcast_ref::<InvalidState>() {
        return StartError::InvalidState(state.to_string());
    }
    if let Some(chain) = source.downcast_ref::<ChainError>() {
        // These errors of the chain have a reason that the public detail hides.
        let says_more = matches!(chain, ChainError::Rejected(_) | ChainError::Decode(_));
        if says_more || error.code == ErrorCode::InternalError {
            return chain.clone().into();
        }
    }
    error.detail = format!("{} ({source})", error.detail);
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_wrong_field() {
        let error = explain(AppError::field("/slug", "is already taken").into());
        assert_eq!(error.to_string(), "VALIDATION_FAILED: slug is already taken");
    }

    #[test]
    fn a_state_that_forbids_the_act_has_its_own_error() {
        let error =
            explain(AppError::invalid_state(ErrorCode::InternalError, "the market is RESOLVED").into());
        assert_eq!((error.to_string().as_str(), error.code()), ("the market is RESOLVED", "INVALID_STATE"));
    }

    #[test]
    fn an_error_of_the_chain_is_shown_to_the_operator() {
        let message = |error: ChainError| explain(AppError::from(error).into()).to_string();
        assert_eq!(message(ChainError::Rejected("why not".to_owned())), "chain: rejected: why not");
        let unreachable = message(ChainError::Unreachable("no connection".to_owned()));
        assert!(unreachable.ends_with("(the node cannot be reached: no connection)"), "{unreachable}");
    }
}
