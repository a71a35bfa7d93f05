//! `foretell admin audit`: the log of administrative actions.

use app::audit_log::{self, Entry, Filter};
use clap::{Args, Subcommand};
use domain::{ErrorCode, Timestamp};

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord, print_line};
use super::refuse;
use super::values::Ago;
use crate::start_error::StartError;

/// Commands for the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List entries, newest first
    List {
        #[command(flatten)]
        filter: FilterArgs,
        /// The maximum number of rows
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Only entries with smaller numbers than this one
        #[arg(long, value_name = "SEQ", default_value_t = i64::MAX, hide_default_value = true)]
        before: i64,
    },
    /// Print entries as one JSON object per line, oldest first
    Export {
        #[command(flatten)]
        filter: FilterArgs,
    },
    /// Verify that no entry is missing or was changed, and fail otherwise
    Verify,
}

/// The entries to show.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Only entries since an instant such as 2027-01-01T00:00:00Z, or a time ago such as 7d
    #[arg(long)]
    since: Option<Ago>,
    /// Only actions of this actor
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Only this action, such as key.revoke, or a family of actions, such as key
    #[arg(long)]
    action: Option<String>,
    /// Only actions on this subject, such as key:018f0000-0000-7000-8000-000000000001 or
    /// switch:trading
    #[arg(long)]
    subject: Option<String>,
}

impl FilterArgs {
    fn filter(self, now: Timestamp) -> Filter {
        let Self { since, by, action, subject } = self;
        Filter { since: since.map(|ago| ago.from(now)), actor: by, action, subject }
    }
}

pub async fn run(command: AuditCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let ctx = admin.ctx()?;
    match command {
        AuditCommand::List { filter, limit, before } => {
            let entries = audit_log::list(&ctx, filter.filter(ctx.now()), before, limit).await?;
            let columns = &["seq", "at", "actor", "action", "subject", "phase", "reason"];
            Ok(CommandOutput::Many(entries.iter().map(record).collect(), columns))
        }
        AuditCommand::Export { filter } => {
            let filter = filter.filter(ctx.now());
            let line = |entry: &Entry| print_line(&audit_log::to_json(entry).to_string());
            audit_log::export(&ctx, filter, line).await?;
            Ok(CommandOutput::Printed)
        }
        AuditCommand::Verify => {
            let verified = audit_log::verify(&ctx).await?;
            match verified.broken_at {
                None => Ok(CommandOutput::One(OutputRecord::new().with("entries", verified.entries))),
                Some(seq) => Err(refuse(
                    ErrorCode::InternalError,
                    format!(
                        "Entry {seq} of the audit log is missing or was changed; {} entries before it are intact.",
                        verified.entries
                    ),
                )),
            }
        }
    }
}

fn record(entry: &Entry) -> OutputRecord {
    let json = audit_log::to_json(entry);
    let members =
        ["seq", "at", "actor", "osUser", "host", "action", "subject", "phase", "before", "after", "hash"];
    let record = members.into_iter().fold(OutputRecord::new(), |record, name| record.with(name, &json[name]));
    record.with("reason", &json["after"]["reason"])
}
