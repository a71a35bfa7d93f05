//! Restoring a backup.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::{Clock, Timestamp};
use serde_json::json;
use store::audit_log::{Act, Actor, note};
use store::recoveries::Opening;
use store::{Store, StoreError};

use super::manifest::failed;
use super::{CHAIN, DATABASE, Manifest, check_chain, keep_private, places};
use crate::config::Config;
use crate::run::{StartError, lock_folder};

/// What a restore writes, and over what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replace {
    /// Moves files that are there aside.
    pub existing: bool,
    /// Restores the database only: everything else is whole.
    pub database_only: bool,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The backup.
    pub manifest: Manifest,
    /// The files that were written.
    pub written: Vec<PathBuf>,
    /// Files that were there before, where they are now.
    pub moved: Vec<PathBuf>,
}

/// Checks a backup and puts its files where the service looks for them. The next start begins a recovery.
pub async fn restore(
    config: &Config,
    actor: Actor,
    clock: Arc<dyn Clock>,
    from: &Path,
    replace: Replace,
) -> Result<Restored, StartError> {
    let manifest = Manifest::read(from)?;
    manifest.check_files(from)?;
    let wanted = |name: &str| manifest.has(name) && (!replace.database_only || name == DATABASE);
    let files: Vec<(&str, PathBuf)> = places(config).into_iter().filter(|(name, _)| wanted(name)).collect();
    if files.is_empty() {
        return Err(StartError::Other("the backup has nothing to restore here".to_owned()));
    }
    let chain = if replace.database_only { config.data_dir.join(CHAIN) } else { from.join(CHAIN) };
    check_contents(&manifest, from, &chain)?;
    crate::data_folder::prepare(config)?;
    let _lock = lock_folder(&config.data_dir)?;
    let (written, moved) = put(from, &files, replace, clock.now())?;
    if wanted(DATABASE) {
        mark(config, actor, clock, &manifest).await?;
    }
    Ok(Restored { manifest, written, moved })
}

fn check_contents(manifest: &Manifest, from: &Path, chain: &Path) -> Result<(), StartError> {
    if manifest.has(DATABASE) {
        store::backup::check_sqlite(&from.join(DATABASE))?;
    }
    if manifest.has(CHAIN) {
        chain::embedded::file::read_file(&from.join(CHAIN))?;
    }
    check_chain(manifest, chain)
}

/// Writes all files beside their places before the first one is moved, so that a full disk changes nothing.
fn put(
    from: &Path,
    files: &[(&str, PathBuf)],
    replace: Replace,
    now: Timestamp,
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), StartError> {
    if let Some((_, there)) = files.iter().find(|(_, to)| to.exists() && !replace.existing) {
        return Err(StartError::Other(format!(
            "{} exists: give --force to move the files that are there aside",
            there.display()
        )));
    }
    let mut ready = Vec::new();
    for (name, to) in files {
        let beside = with_suffix(to, ".restoring");
        fs::copy(from.join(name), &beside).map_err(|source| failed(&beside, source))?;
        keep_private(&beside)?;
        ready.push((beside, to.clone()));
    }
    let mut moved = Vec::new();
    for (beside, to) in &ready {
        // The journals of a database belong to the file that is moved.
        for suffix in ["", "-wal", "-shm"] {
            let there = with_suffix(to, suffix);
            if there.exists() {
                let aside = with_suffix(to, &format!(".replaced-{}{suffix}", now.s()));
                fs::rename(&there, &aside).map_err(|source| failed(&there, source))?;
                moved.push(aside);
            }
        }
        fs::rename(beside, to).map_err(|source| failed(to, source))?;
    }
    Ok((ready.into_iter().map(|(_, to)| to).collect(), moved))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Opens a recovery in the restored database: what happened after the backup is lost, whether the chain shows it or not.
async fn mark(
    config: &Config,
    actor: Actor,
    clock: Arc<dyn Clock>,
    manifest: &Manifest,
) -> Result<(), StartError> {
    let store = Store::open(&config.database_url).await?;
    crate::migrate::apply(&store, &clock, actor.clone(), &config.data_dir).await?;
    let acting = store.acting_as(actor, Arc::clone(&clock));
    let from_block = manifest.database.as_ref().and_then(|part| part.block).map_or(0, |block| block + 1);
    let detail = format!("a backup of {} was restored", manifest.created_at);
    let opening = Opening { reason: "restore", detail, from_block };
    let after = json!({ "createdAt": manifest.created_at, "version": manifest.version });
    let marked: Result<(), StoreError> = acting
        .write((opening, after, clock.now()), |tx, (opening, after, now)| {
            Box::pin(async move {
                note(tx, Act::new("restore", "service").after(after));
                store::leases::end_all(tx).await?;
                app::recovery::open(tx, opening, *now).await.map(drop)
            })
        })
        .await;
    store.close().await;
    Ok(marked?)
}
