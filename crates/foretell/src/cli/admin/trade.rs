//! `foretell admin trade`: investigates trades that do not end.

use app::audit_log::{Act, around};
use app::ledger::{TradeRepair, repair_trade};
use clap::Subcommand;
use serde_json::json;

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::subject::{self, Subject};
use crate::start_error::StartError;

/// Commands for trades.
#[derive(Debug, Subcommand)]
pub enum TradeCommand {
    /// Look up an executing trade on the chain, then end it or have the same intent signed again
    Repair {
        #[command(flatten)]
        trade: Subject<subject::Trade>,
    },
}

pub async fn run(command: TradeCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let TradeCommand::Repair { trade: Subject(id) } = command;
    let ctx = admin.online().await?;
    let act = Act::new("trade.repair", format!("trade:{id}"));
    let made = |repaired: &TradeRepair| json!({ "repair": repaired.as_str() });
    let repaired = around(&ctx, act, repair_trade(&ctx, id), made).await?;
    let (status, block) = match repaired {
        TradeRepair::HadEnded(status) | TradeRepair::NotExecuting(status) | TradeRepair::Ended(status) => {
            (Some(status.as_str()), None)
        }
        TradeRepair::AwaitsBlock(block) => (None, Some(block)),
        TradeRepair::SignedAgain | TradeRepair::BatchOpen => (None, None),
    };
    let record = OutputRecord::new().with("trade", id.to_string()).with("repair", repaired.as_str());
    Ok(CommandOutput::One(record.with("status", status).with("awaitsBlock", block)))
}
