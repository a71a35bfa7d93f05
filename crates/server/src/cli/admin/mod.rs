//! `foretell admin`: users, accounts, keys, markets and content, for the operator.
//!
//! It works beside a running service. What is only stored goes to the database; what needs the chain goes through the
//! JSON-RPC endpoint of the running service, which then follows the chain's events as it does for everything else. One
//! file per noun: its arguments, what each verb does, and the record that it prints.

mod account;
mod aggregates;
mod audit;
mod backup;
mod chapter;
mod consent;
mod ctx;
mod delegation;
mod import;
mod key;
mod market;
mod organization;
mod output;
mod owners;
mod partner;
mod recover;
mod secrets;
mod subject;
mod switch;
mod sync;
mod thread;
mod trade;
mod user;
mod values;

use app::AppError;
use app::markets::InvalidState;
use chain::ChainError;
use clap::{Args, Subcommand};
use domain::ErrorCode;
use store::audit_log::Actor;

use crate::config::Config;
use crate::run::StartError;
use ctx::AdminCtx;
use output::Answer;

/// What `foretell admin` takes.
#[derive(Debug, Args)]
pub struct AdminArgs {
    /// Print JSON, also on a terminal
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    noun: Noun,
}

#[derive(Debug, Subcommand)]
enum Noun {
    /// People and programs that trade
    #[command(subcommand)]
    User(user::Verb),
    /// Smart accounts
    #[command(subcommand)]
    Account(account::Verb),
    /// What keys may spend of an account, on chain
    #[command(subcommand)]
    Delegation(delegation::Verb),
    /// API keys
    #[command(subcommand)]
    Key(key::Verb),
    /// Markets
    #[command(subcommand)]
    Market(Box<market::Verb>),
    /// Organizations: they own threads
    #[command(subcommand)]
    Organization(organization::Verb),
    /// Partners of organizations
    #[command(subcommand)]
    Partner(partner::Verb),
    /// Threads: collections of markets with a time window
    #[command(subcommand)]
    Thread(Box<thread::Verb>),
    /// Chapters of threads
    #[command(subcommand)]
    Chapter(chapter::Verb),
    /// Import organizations, partners, threads, chapters and markets from a file
    Import(import::ImportArgs),
    /// Sums over markets and movements
    #[command(subcommand)]
    Aggregates(aggregates::Verb),
    /// The log of administrative acts
    #[command(subcommand)]
    Audit(audit::Verb),
    /// Routes and trading, switched off and on again
    #[command(subcommand)]
    Switch(switch::Verb),
    /// Reading the chain: how far it has come, reading again, markets in quarantine
    #[command(subcommand)]
    Sync(sync::Verb),
    /// Trades that do not end
    #[command(subcommand)]
    Trade(trade::Verb),
    /// Copy what the service keeps into a folder, while it runs or not
    Backup(backup::BackupArgs),
    /// Check a backup and put its files in place; the service must not run
    Restore(backup::RestoreArgs),
    /// Bring a database that was set back in line with the chain
    Recover(recover::RecoverArgs),
    /// What the service keeps sealed
    #[command(subcommand)]
    Secrets(secrets::Verb),
}

/// Does what the arguments say and prints the outcome: JSON where it is asked for or standard output is no terminal.
pub async fn run(args: AdminArgs, config: Config, actor: Actor) -> Result<(), StartError> {
    if let Noun::Restore(restore) = args.noun {
        // There may be no database yet.
        return backup::restore(restore, &config, actor).await?.print(args.json);
    }
    let admin = AdminCtx::open(config, actor).await?;
    let answer = dispatch(args.noun, args.json, &admin).await;
    admin.close().await;
    answer.map_err(explain)?.print(args.json)
}

async fn dispatch(noun: Noun, json: bool, admin: &AdminCtx) -> Result<Answer, StartError> {
    match noun {
        Noun::User(verb) => user::run(verb, admin).await,
        Noun::Account(verb) => account::run(verb, admin).await,
        Noun::Delegation(verb) => delegation::run(verb, admin).await,
        Noun::Key(verb) => key::run(verb, admin).await,
        Noun::Market(verb) => market::run(*verb, admin).await,
        Noun::Organization(verb) => organization::run(verb, admin).await,
        Noun::Partner(verb) => partner::run(verb, admin).await,
        Noun::Thread(verb) => thread::run(*verb, admin).await,
        Noun::Chapter(verb) => chapter::run(verb, admin).await,
        Noun::Import(args) => import::run(args, json, admin).await,
        Noun::Aggregates(verb) => aggregates::run(verb, admin).await,
        Noun::Audit(verb) => audit::run(verb, admin).await,
        Noun::Switch(verb) => switch::run(verb, admin).await,
        Noun::Sync(verb) => sync::run(verb, admin).await,
        Noun::Trade(verb) => trade::run(verb, admin).await,
        Noun::Backup(args) => backup::run(args, admin).await,
        Noun::Recover(args) => recover::run(args, admin).await,
        Noun::Restore(_) => Ok(Answer::Printed),
        Noun::Secrets(verb) => secrets::run(verb, admin).await,
    }
}

/// A refusal with words of its own.
fn refuse(code: ErrorCode, detail: impl Into<String>) -> StartError {
    AppError::new(code).detail(detail).into()
}

/// There is nothing with this id.
fn missing(what: &str) -> StartError {
    refuse(ErrorCode::ResourceNotFound, format!("There is no {what} with this id."))
}

/// What an API keeps to itself, the operator is told: which field it is, and what the chain or the database said.
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
    fn the_operator_is_told_which_field_it_is() {
        let error = explain(AppError::field("/slug", "is already taken").into());
        assert_eq!(error.to_string(), "VALIDATION_FAILED: slug is already taken");
    }

    #[test]
    fn a_state_that_does_not_allow_the_act_has_its_own_error() {
        let error =
            explain(AppError::new(ErrorCode::InternalError).caused_by(InvalidState("RESOLVED")).into());
        assert_eq!((error.to_string().as_str(), error.code()), ("the market is RESOLVED", "INVALID_STATE"));
    }

    #[test]
    fn the_operator_is_told_what_the_chain_said() {
        let told = |error: ChainError| explain(AppError::from(error).into()).to_string();
        assert_eq!(told(ChainError::Rejected("why not".to_owned())), "chain: refused: why not");
        let unreachable = told(ChainError::Unreachable("no connection".to_owned()));
        assert!(unreachable.ends_with("(the node cannot be reached: no connection)"), "{unreachable}");
    }
}
