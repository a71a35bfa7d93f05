//! `foretell admin trade`: looking into a trade that does not end.

use app::audit_log::{Act, around};
use app::trades::{TradeRepair, repair};
use clap::Subcommand;
use serde_json::json;

use super::ctx::AdminCtx;
use super::output::{Answer, Record};
use super::subject::{self, Subject};
use crate::run::StartError;

/// What can be done with trades.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Find out from the chain what became of an executing trade; end it, or let it be signed again as the same intent
    Repair {
        #[command(flatten)]
        trade: Subject<subject::Trade>,
    },
}

pub async fn run(verb: Verb, admin: &AdminCtx) -> Result<Answer, StartError> {
    let Verb::Repair { trade: Subject(id) } = verb;
    let ctx = admin.online().await?;
    let act = Act::new("trade.repair", format!("trade:{id}"));
    let made = |repaired: &TradeRepair| json!({ "repair": repaired.as_str() });
    let repaired = around(&ctx, act, repair(&ctx, id), made).await?;
    let (status, block) = match repaired {
        TradeRepair::HadEnded(status) | TradeRepair::NotExecuting(status) | TradeRepair::Ended(status) => {
            (Some(status.as_str()), None)
        }
        TradeRepair::AwaitsBlock(block) => (None, Some(block)),
        TradeRepair::SignedAgain | TradeRepair::BatchOpen => (None, None),
    };
    let record = Record::new().with("trade", id.to_string()).with("repair", repaired.as_str());
    Ok(Answer::One(record.with("status", status).with("awaitsBlock", block)))
}
