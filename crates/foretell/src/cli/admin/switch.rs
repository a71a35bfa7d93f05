//! `foretell admin switch`: turns routes or all trading off in all processes within a second.

use app::kill_switches::{Setting, TRADING, set};
use clap::{Args, Subcommand};
use domain::ErrorCode;
use store::kill_switches::KillSwitch;

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::refuse;
use crate::run::switchable_routes;
use crate::start_error::StartError;

/// Commands for kill switches.
#[derive(Debug, Subcommand)]
pub enum SwitchCommand {
    /// List every kill switch that was ever set, with its last change and reason
    List,
    /// Disable a route: requests get 503 ROUTE_DISABLED
    Disable(RouteArgs),
    /// Enable a route again
    Enable(RouteArgs),
    /// Halt trading: accept no new trades and sign none that wait. Reads, redemptions and signed
    /// trades continue
    Halt(WhyArgs),
    /// Resume trading
    Resume(WhyArgs),
}

/// A route.
#[derive(Debug, Args)]
pub struct RouteArgs {
    /// The method and path of the route, such as POST /v1/trades
    #[arg(value_name = "ROUTE", num_args = 1..=2, required = true)]
    route: Vec<String>,
    #[command(flatten)]
    why: WhyArgs,
}

/// The notes that are stored with the time.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The reason. The web application shows that of a halt on every page
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Your name [default: the name in the audit log]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

pub async fn run(command: SwitchCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        SwitchCommand::List => list(admin).await,
        SwitchCommand::Disable(args) => set_route(args, Setting::Off, admin).await,
        SwitchCommand::Enable(args) => set_route(args, Setting::On, admin).await,
        SwitchCommand::Halt(why) => set_switch(TRADING, why, Setting::Off, admin).await,
        SwitchCommand::Resume(why) => set_switch(TRADING, why, Setting::On, admin).await,
    }
}

async fn list(admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let switches = admin.store.read((), |tx, ()| Box::pin(store::kill_switches::list(tx))).await;
    let columns = &["switch", "state", "since", "by", "reason"];
    Ok(CommandOutput::Many(switches?.iter().map(record).collect(), columns))
}

async fn set_route(args: RouteArgs, setting: Setting, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let name = known(&args.route.join(" "))?;
    set_switch(&name, args.why, setting, admin).await
}

async fn set_switch(
    name: &str,
    why: WhyArgs,
    setting: Setting,
    admin: &AdminCtx,
) -> Result<CommandOutput, StartError> {
    // An operator may act on behalf of another person.
    let by = why.by.as_ref().unwrap_or(&admin.actor.name);
    let switch = set(&admin.ctx()?, name, setting, by, why.reason).await?;
    Ok(CommandOutput::One(record(&switch)))
}

/// Returns the switchable route with this name.
fn known(name: &str) -> Result<String, StartError> {
    let routes = switchable_routes();
    if routes.iter().any(|route| route == name) {
        return Ok(name.to_owned());
    }
    let detail = format!("There is no kill switch for {name:?}. The routes are: {}.", routes.join(", "));
    Err(refuse(ErrorCode::ValidationFailed, detail))
}

fn record(switch: &KillSwitch) -> OutputRecord {
    let since = switch.thrown_at.unwrap_or(switch.changed_at);
    OutputRecord::new()
        .with("switch", &switch.name)
        .with("state", if switch.thrown_at.is_some() { "off" } else { "on" })
        .with("since", since)
        .with("by", &switch.changed_by)
        .with("reason", &switch.reason)
        .with("changedAt", switch.changed_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_without_a_switch_is_rejected_with_those_that_have_one() {
        assert_eq!(known("POST /v1/trades").ok().as_deref(), Some("POST /v1/trades"));
        for name in ["", "trading", "post /v1/trades", "/v1/trades", "GET /v1/health", "GET /v1/trades/7"] {
            let message = known(name).unwrap_err().to_string();
            assert!(message.contains("GET /v1/markets/{id}/quote, "), "{message}");
        }
    }
}
