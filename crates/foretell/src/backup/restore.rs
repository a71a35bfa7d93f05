//! Restores backups.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::{Clock, Timestamp};
use serde_json::json;
use store::Store;
use store::audit_log::{Act, Actor, note};
use store::recoveries::Opening;

use super::manifest::failed;
use super::{CHAIN, DATABASE, Manifest, check_chain, keep_private, places};
use crate::config::ResolvedConfig;
use crate::run::lock_folder;
use crate::start_error::StartError;

/// Suffixes of SQLite's journal files.
const JOURNALS: [&str; 2] = ["-wal", "-shm"];

/// Options of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replace {
    /// Move existing files aside instead of failing.
    pub existing: bool,
    /// Restore only the database, because everything else is intact.
    pub database_only: bool,
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub manifest: Manifest,
    pub written: Vec<PathBuf>,
    /// The new paths of the files that existed before.
    pub moved: Vec<PathBuf>,
}

/// Checks a backup and moves its files into place. The next start of the service begins a recovery.
pub async fn restore(
    config: &ResolvedConfig,
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
        return Err(StartError::Other("the backup contains nothing to restore".to_owned()));
    }
    let chain = if replace.database_only { config.data_dir.join(CHAIN) } else { from.join(CHAIN) };
    check_contents(&manifest, from, &chain)?;
    crate::data_folder::prepare(config)?;
    // Fails if a service is running on this folder.
    let _lock = lock_folder(&config.data_dir)?;
    let staged = stage(from, &files, replace)?;
    // Mark the database before it is in place. If the restore is interrupted afterwards, a starting
    // process must not sign with an unmarked database.
    if let Some(database) = staged.iter().find(|file| file.name == DATABASE) {
        mark(config, &database.staged, actor, Arc::clone(&clock), &manifest).await?;
        // The mark must be durable before the database is in place.
        sync_to_disk(&database.staged)?;
    }
    let moved = swap(&staged, clock.now())?;
    Ok(Restored { manifest, written: staged.into_iter().map(|file| file.place).collect(), moved })
}

fn check_contents(manifest: &Manifest, from: &Path, chain: &Path) -> Result<(), StartError> {
    if manifest.has(DATABASE) {
        store::backup::check_sqlite(&from.join(DATABASE))?;
    }
    if manifest.has(CHAIN) {
        embedded_chain::file::read_file(&from.join(CHAIN))?;
    }
    check_chain(manifest, chain)
}

/// A file that was copied next to its final path.
struct Staged<'a> {
    name: &'a str,
    staged: PathBuf,
    place: PathBuf,
}

/// Copies all files next to their final paths before any file is replaced, so that a full disk
/// changes nothing.
fn stage<'a>(
    from: &Path,
    files: &[(&'a str, PathBuf)],
    replace: Replace,
) -> Result<Vec<Staged<'a>>, StartError> {
    if let Some((_, there)) = files.iter().find(|(_, to)| to.exists() && !replace.existing) {
        return Err(StartError::Other(format!(
            "{} exists: set --force to move the existing files aside",
            there.display()
        )));
    }
    let mut staged = Vec::new();
    for (name, place) in files {
        let beside = with_suffix(place, ".restoring");
        // Journals of an interrupted restore would be applied to this copy.
        for journal in JOURNALS.map(|suffix| with_suffix(&beside, suffix)) {
            if journal.exists() {
                fs::remove_file(&journal).map_err(|source| failed(&journal, source))?;
            }
        }
        fs::copy(from.join(name), &beside).map_err(|source| failed(&beside, source))?;
        keep_private(&beside)?;
        sync_to_disk(&beside)?;
        staged.push(Staged { name, staged: beside, place: place.clone() });
    }
    Ok(staged)
}

/// Moves the existing files aside and the staged ones into place. Returns the new paths of the
/// existing files.
fn swap(staged: &[Staged<'_>], now: Timestamp) -> Result<Vec<PathBuf>, StartError> {
    let mut moved = Vec::new();
    for Staged { staged, place, .. } in staged {
        // A database's journals belong to the old file, so they move with it.
        for suffix in [""].into_iter().chain(JOURNALS) {
            let there = with_suffix(place, suffix);
            if there.exists() {
                let aside = with_suffix(place, &format!(".replaced-{}{suffix}", now.s()));
                fs::rename(&there, &aside).map_err(|source| failed(&there, source))?;
                moved.push(aside);
            }
        }
        fs::rename(staged, place).map_err(|source| failed(place, source))?;
        if let Some(folder) = place.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            // Make the rename durable before the next file is replaced.
            sync_to_disk(folder)?;
        }
    }
    Ok(moved)
}

/// Syncs a file or a directory's entries to disk.
fn sync_to_disk(path: &Path) -> Result<(), StartError> {
    fs::File::open(path).and_then(|file| file.sync_all()).map_err(|source| failed(path, source))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Opens a recovery in the restored database `file`. Everything that happened after the backup is
/// missing, and the chain may not show all of it.
async fn mark(
    config: &ResolvedConfig,
    file: &Path,
    actor: Actor,
    clock: Arc<dyn Clock>,
    manifest: &Manifest,
) -> Result<(), StartError> {
    let store = Store::open(&format!("sqlite:{}", file.display())).await?;
    crate::migrate::apply(&store, &clock, actor.clone(), &config.deployment).await?;
    let acting = store.acting_as(actor, Arc::clone(&clock));
    let from_block = manifest.database.as_ref().and_then(|part| part.block).map_or(0, |block| block + 1);
    let detail = format!("the database was restored from a backup of {}", manifest.created_at);
    let opening = Opening { reason: "restore", detail, from_block };
    let after = json!({ "createdAt": manifest.created_at, "version": manifest.version });
    let marked = acting
        .write((opening, after, clock.now()), |tx, (opening, after, now)| {
            Box::pin(async move {
                note(tx, Act::new("restore", "service").after(after));
                // The leases are those of the moment of the backup. Their owners no longer exist.
                store::leases::end_all(tx).await?;
                app::recovery::open(tx, opening, *now).await.map(drop)
            })
        })
        .await;
    store.close().await;
    // Closing a database merges its journal into the file. Only the file is moved, so no journal
    // may remain.
    if with_suffix(file, "-wal").exists() {
        return Err(StartError::Other(format!("could not close {}", file.display())));
    }
    Ok(marked?)
}
