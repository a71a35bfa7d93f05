//! The data folder. Only its owner may access it, which is enforced at creation and checked at each
//! start.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use crate::config::ResolvedConfig;
use crate::dev::{DevFile, OWNERS_FILE};
use crate::service_file::ServiceFile;
use crate::start_error::StartError;

/// Permission bits of the group and of other users.
const OTHERS: u32 = 0o077;
/// Permission bits that are never accepted on a file with secrets, whatever its owner: write for
/// the group, and anything for other users. Group read is accepted, because containers mount
/// secrets as group-readable files of another owner.
const NEVER: u32 = 0o027;
/// Files that identify an existing data folder.
const KNOWN_FILES: [&str; 7] =
    ["secrets.json", "service.json", "dev.json", "contracts.json", "foretell.db", "chain.db", "lock"];

/// Creates the data folder if it is missing, and restricts the folder and its secret files to their
/// owner.
pub fn prepare(config: &ResolvedConfig) -> Result<(), StartError> {
    let folder = &config.data_dir;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| file_error(folder, source))?;
    close_folder(folder)?;
    let in_folder = [ServiceFile::path(folder), DevFile::path(folder), folder.join(OWNERS_FILE)];
    in_folder.iter().chain([&config.secrets_file]).try_for_each(|path| close_file(path))
}

fn file_error(path: &Path, source: io::Error) -> StartError {
    StartError::File { path: path.display().to_string(), source }
}

fn mode_of(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o777)
}

fn close_folder(folder: &Path) -> Result<(), StartError> {
    let mode = mode_of(folder).map_err(|source| file_error(folder, source))?;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let shown = folder.display();
    // Restricting a folder that other programs use would break them.
    if !is_data_folder(folder).map_err(|source| file_error(folder, source))? {
        return Err(StartError::Other(format!(
            "the data folder {shown} is open to other users (mode {mode:04o}) and contains files of other programs: use a separate folder, or run `chmod 700 {shown}`"
        )));
    }
    fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(|error| {
        StartError::Other(format!(
            "the data folder {shown} is open to other users (mode {mode:04o}) and its mode cannot be changed ({error}): its owner must run `chmod 700 {shown}`"
        ))
    })?;
    tracing::warn!(folder = %shown, mode = %format!("{mode:04o}"), "the data folder was open to other users: its mode was set to 0700");
    Ok(())
}

/// Returns whether the folder is empty or was used as a data folder before.
fn is_data_folder(folder: &Path) -> io::Result<bool> {
    let known = KNOWN_FILES.iter().any(|name| folder.join(name).exists());
    Ok(known || fs::read_dir(folder)?.next().is_none())
}

fn close_file(path: &Path) -> Result<(), StartError> {
    let mode = match mode_of(path) {
        Ok(mode) => mode,
        // The file may be created later. If a required file is missing, the code that reads it
        // reports so.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(file_error(path, source)),
    };
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let shown = path.display();
    match fs::set_permissions(path, Permissions::from_mode(0o600)) {
        Ok(()) => {
            tracing::warn!(file = %shown, mode = %format!("{mode:04o}"), "a file with secrets was open to other users: its mode was set to 0600");
            Ok(())
        }
        // The file belongs to another user, e.g. a secret mounted into a container.
        Err(_) if mode & NEVER == 0 => Ok(()),
        Err(error) => Err(StartError::Other(format!(
            "{shown} contains secrets, is open to other users (mode {mode:04o}), and its mode cannot be changed ({error}): its owner must run `chmod 600 {shown}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use store::testing::TestFolder;

    fn config(folder: &Path) -> ResolvedConfig {
        let options = Settings { data_dir: Some(folder.to_owned()), ..Settings::default() };
        options.decide().unwrap()
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_and_secrets_that_are_too_open_are_closed() {
        let folder = TestFolder::create();
        let folder = folder.path().join("data");
        prepare(&config(&folder)).unwrap();
        assert_eq!(mode_of(&folder).unwrap(), 0o700, "a new folder is closed");
        let secrets: Vec<_> =
            ["secrets.json", "service.json", "dev.json", OWNERS_FILE].map(|name| folder.join(name)).into();
        for (path, mode) in secrets.iter().zip([0o644, 0o640, 0o604, 0o666]) {
            fs::write(path, "{}").unwrap();
            set(path, mode);
        }
        fs::write(folder.join("contracts.json"), "{}").unwrap();
        set(&folder.join("contracts.json"), 0o644);
        set(&folder, 0o755);
        prepare(&config(&folder)).unwrap();
        assert_eq!(mode_of(&folder).unwrap(), 0o700);
        assert!(secrets.iter().all(|path| mode_of(path).unwrap() == 0o600));
        assert_eq!(mode_of(&folder.join("contracts.json")).unwrap(), 0o644, "it holds no secret");
    }

    #[test]
    fn an_open_folder_of_other_programs_is_rejected_unchanged() {
        let folder = TestFolder::create();
        let folder = folder.path().join("shared");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("notes.txt"), "").unwrap();
        set(&folder, 0o755);
        let refused = prepare(&config(&folder)).unwrap_err().to_string();
        assert!(refused.contains("chmod 700") && refused.contains("0755"), "{refused}");
        assert_eq!(mode_of(&folder).unwrap(), 0o755);
        set(&folder, 0o700);
        prepare(&config(&folder)).unwrap();
    }
}
