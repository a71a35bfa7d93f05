//! The files of an embedded database and an embedded chain. They belong together, and to their secrets:
//! none can be replaced or recreated without the others, and a damaged one must not be served from.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use app::Ctx;
use app::health::Storage;
use embedded_chain::file;
use secrecy::ExposeSecret;
use store::Store;
use tokio::task::JoinHandle;

use crate::config::ResolvedConfig;
use crate::start_error::StartError;

/// The name of the embedded chain's file.
pub const CHAIN_FILE: &str = "chain.db";

/// The time that a start waits for the check of each file. The check of a large file goes on while
/// the service runs, and the process becomes unready if it finds damage.
const CHECK_WAIT: Duration = Duration::from_millis(500);

/// What to do about files that do not belong together.
const ADVICE: &str = "restore both from one backup with `foretell admin restore`, or set data-dir and database-url to files \
    that belong together";

/// Checks that a database's file was not lost. Call it before the database is opened, because that
/// creates a missing file.
pub fn require_database(config: &ResolvedConfig) -> Result<(), StartError> {
    let chain = chain_file(config);
    let url = config.database_url.expose_secret();
    let Some(database) = url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path))
    else {
        return Ok(());
    };
    // The first start creates the database before the chain.
    if has_content(&chain) && !has_content(Path::new(database)) {
        return Err(StartError::Other(format!(
            "{database} is missing or empty, but {} has a chain that was used with it: {ADVICE}",
            chain.display()
        )));
    }
    Ok(())
}

/// Checks that the secrets were not lost. Call it before they are loaded, because that generates missing
/// ones, and new ones fit neither the chain nor what is encrypted in the database.
pub fn require_secrets(config: &ResolvedConfig) -> Result<(), StartError> {
    let chain = chain_file(config);
    // The first start creates the secrets before the chain.
    if has_content(&chain) && !config.secrets_file.exists() {
        return Err(StartError::Other(format!(
            "{} is missing, but {} has a chain that was used with it: put the file back, or restore all of them from one \
             backup with `foretell admin restore`",
            config.secrets_file.display(),
            chain.display()
        )));
    }
    Ok(())
}

/// Checks that the chain's file is the one that the database was written with. Call it before the
/// chain is opened, because that creates a missing file.
pub async fn require_chain(config: &ResolvedConfig, store: &Store) -> Result<(), StartError> {
    let path = chain_file(config);
    let last = store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
    let Some(last) = last? else { return Ok(()) };
    let (shown, number) = (path.display(), last.number);
    if !has_content(&path) {
        return Err(StartError::Other(format!(
            "{shown} is missing or empty, but the database knows its chain up to block {number}: {ADVICE}"
        )));
    }
    let found = file::block_hash(&path, number).map_err(|error| unusable(&path, &error))?;
    match found {
        Some(hash) if hash == last.hash => Ok(()),
        Some(_) => Err(StartError::Other(format!(
            "{shown} is not the chain of this database: their blocks {number} differ. {ADVICE}"
        ))),
        None => Err(StartError::Other(format!(
            "{shown} is older than the database, or not its chain: it lacks block {number}. {ADVICE}"
        ))),
    }
}

/// Checks that the database's file, if it has one, is one of this service and is not damaged. Call it
/// before the migrations, which would create tables in another program's file.
pub async fn check_database(store: &Store) -> Result<(), StartError> {
    Ok(store.check_file(CHECK_WAIT).await?)
}

/// A check of the chain's file that has not ended yet.
pub struct RunningCheck(JoinHandle<Result<(), StartError>>);

/// Checks every page of the chain's file. Returns the check if it takes longer than a start waits.
pub async fn check_chain(config: &ResolvedConfig) -> Result<Option<RunningCheck>, StartError> {
    let path = chain_file(config);
    if !has_content(&path) {
        return Ok(None);
    }
    let check = move || file::check_pages(&path).map_err(|error| unusable(&path, &error));
    let mut checking = tokio::task::spawn_blocking(check);
    match tokio::time::timeout(CHECK_WAIT, &mut checking).await {
        Ok(done) => done.unwrap_or_else(|error| Err(StartError::Other(error.to_string()))).map(|()| None),
        Err(_) => Ok(Some(RunningCheck(checking))),
    }
}

impl RunningCheck {
    /// Waits for the result.
    pub async fn wait(self) -> Result<(), StartError> {
        self.0.await.unwrap_or_else(|error| Err(StartError::Other(error.to_string())))
    }

    /// Makes the process unready if the check finds damage.
    pub fn report_to(self, ctx: &Ctx) {
        let process = Arc::clone(&ctx.process);
        tokio::spawn(async move {
            if let Ok(Err(error)) = self.0.await {
                process.serving.note_damage(Storage::Chain, error.to_string());
            }
        });
    }
}

/// Returns the error of a chain's file that cannot be read, with what to do about it.
pub fn unusable(path: &Path, error: &embedded_chain::EmbeddedError) -> StartError {
    StartError::Other(format!("{} cannot be used ({error}): {ADVICE}", path.display()))
}

fn chain_file(config: &ResolvedConfig) -> PathBuf {
    config.data_dir.join(CHAIN_FILE)
}

fn has_content(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.len() > 0)
}
