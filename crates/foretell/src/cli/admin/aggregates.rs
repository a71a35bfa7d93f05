//! `foretell admin aggregates`: verifies or rebuilds the aggregates of markets and movements.

use app::ledger::aggregates::{AggregatesVerification, Difference, rebuild, verify};
use clap::Subcommand;
use domain::ErrorCode;

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::refuse;
use crate::start_error::StartError;

/// The commands for sums.
#[derive(Debug, Subcommand)]
pub enum AggregatesCommand {
    /// Compare every sum with a fresh computation, and movements with the chain's events; fail if
    /// they differ
    Verify,
    /// Forget every sum and make all of them again
    Rebuild,
}

/// Maximum number of listed differences.
const MOST_LISTED: usize = 100;

pub async fn run(command: AggregatesCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let ctx = admin.ctx()?;
    if let AggregatesCommand::Rebuild = command {
        rebuild(&ctx).await?;
    }
    let verified = verify(&ctx).await?;
    if verified.differences.is_empty() {
        return Ok(CommandOutput::One(record(&verified)));
    }
    Err(refuse(ErrorCode::InternalError, summary(&verified)))
}

fn record(verified: &AggregatesVerification) -> OutputRecord {
    OutputRecord::new()
        .with("block", verified.block)
        .with("markets", verified.markets)
        .with("movements", verified.movements)
        .with("differences", verified.differences.len())
}

fn summary(verified: &AggregatesVerification) -> String {
    let line = |difference: &Difference| {
        let Difference { what, kept, computed } = difference;
        format!("\n{what}: {kept} is stored, {computed} is correct")
    };
    let lines: String = verified.differences.iter().take(MOST_LISTED).map(line).collect();
    let rest = verified.differences.len().saturating_sub(MOST_LISTED);
    let more = if rest > 0 { format!("\nand {rest} more") } else { String::new() };
    format!("{} sums are wrong.{lines}{more}", verified.differences.len())
}
