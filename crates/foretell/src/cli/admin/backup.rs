//! `foretell admin backup` and `foretell admin restore`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use domain::Clock;
use domain::time::SystemClock;
use store::audit_log::{Act, Actor, note};

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use crate::backup::{self, Manifest, Replace};
use crate::config::ResolvedConfig;
use crate::start_error::StartError;

/// The destination of a backup.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// A new or empty folder. The backup contains the service's secrets: protect it like the data
    /// folder
    dir: PathBuf,
}

/// The backup to restore and the files to replace.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The folder of the backup
    dir: PathBuf,
    /// Move existing files aside
    #[arg(long)]
    force: bool,
    /// Only restore the database, and keep the chain, the secrets and the contracts
    #[arg(long)]
    database_only: bool,
}

/// Copies the service's files. The service may run in the meantime.
pub async fn run(args: BackupArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let manifest = backup::backup(&admin.config, admin.now(), &args.dir)?;
    // Recorded after the copy, so the backup does not contain its own audit entry.
    let noted = admin
        .store
        .write(manifest.clone(), |tx, manifest| {
            Box::pin(async move {
                store::operations::put_last_backup(tx, manifest.created_at).await?;
                note(tx, Act::new("backup", "service").after(manifest));
                Ok(())
            })
        })
        .await;
    noted?;
    let record = record(&manifest).with("folder", args.dir.display().to_string());
    Ok(CommandOutput::One(match manifest.database {
        Some(_) => record,
        None => record.with(
            "note",
            "The database is on a server: back it up or dump it before you run this command, so that the \
             chain's copy is not older than the database's.",
        ),
    }))
}

/// Checks a backup and restores its files. The service must not be running.
pub async fn restore(
    args: RestoreArgs,
    config: &ResolvedConfig,
    actor: Actor,
) -> Result<CommandOutput, StartError> {
    let clock: Arc<dyn Clock> = Arc::<SystemClock>::default();
    let replace = Replace { existing: args.force, database_only: args.database_only };
    let restored = backup::restore(config, actor, clock, &args.dir, replace).await?;
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    let next = if restored.manifest.database.is_some() {
        "Start the service: it compares the database with the chain before it signs a transaction."
    } else {
        "Restore the database on its server, start the service, and run `foretell admin recover`."
    };
    let record = record(&restored.manifest).with("written", paths(&restored.written));
    Ok(CommandOutput::One(record.with("movedAside", paths(&restored.moved)).with("next", next)))
}

fn record(manifest: &Manifest) -> OutputRecord {
    let database = manifest.database.as_ref();
    let chain = manifest.chain.as_ref();
    OutputRecord::new()
        .with("createdAt", manifest.created_at)
        .with("version", &manifest.version)
        .with("databaseBlock", database.and_then(|database| database.block))
        .with("chainBlock", chain.map(|chain| chain.head))
        .with("files", manifest.files.iter().map(|file| file.name.clone()).collect::<Vec<_>>())
}
