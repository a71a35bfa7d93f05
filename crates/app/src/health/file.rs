//! A file of SQLite that must stay the one that was opened, with its write-ahead log. A process can go
//! on writing to a file that somebody has deleted, and everything that it writes is then lost. New
//! commits are only in the log at first.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A watched file.
#[derive(Debug)]
pub(super) struct WatchedFile {
    path: PathBuf,
    /// The device and number of the file when it was first seen.
    identity: Option<(u64, u64)>,
    /// The greatest length that was seen. The files of databases never shrink while they are in use.
    longest: u64,
    log: PathBuf,
    /// The device and number of the log when it was first seen. It exists from the first commit on, as
    /// long as the database is open, and may shrink.
    log_identity: Option<(u64, u64)>,
}

impl WatchedFile {
    pub(super) fn new(path: &Path) -> Self {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Self { path: path.to_owned(), identity: None, longest: 0, log: log.into(), log_identity: None }
    }

    /// Returns what is wrong with the file, if anything.
    pub(super) fn find_fault(&mut self) -> Option<&'static str> {
        self.judge(fs::metadata(&self.path)).or_else(|| self.judge_log(fs::metadata(&self.log)))
    }

    fn judge(&mut self, found: io::Result<Metadata>) -> Option<&'static str> {
        let Ok(found) = found else { return Some("its file is gone") };
        let identity = (found.dev(), found.ino());
        if *self.identity.get_or_insert(identity) != identity {
            return Some("its file was replaced by another one");
        }
        if found.len() < self.longest {
            return Some("its file was truncated");
        }
        self.longest = found.len();
        None
    }

    fn judge_log(&mut self, found: io::Result<Metadata>) -> Option<&'static str> {
        let found = found.ok().map(|found| (found.dev(), found.ino()));
        match (self.log_identity, found) {
            (None, _) => {
                self.log_identity = found;
                None
            }
            (Some(_), None) => Some("its write-ahead log is gone"),
            (Some(first), Some(found)) if first != found => {
                Some("its write-ahead log was replaced by another one")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::testing::TestFolder;

    #[test]
    fn a_file_that_is_deleted_replaced_or_truncated_is_found() {
        let folder = TestFolder::create();
        let path = folder.path().join("some.db");
        fs::write(&path, [0; 100]).unwrap();
        let mut file = WatchedFile::new(&path);
        assert_eq!(file.find_fault(), None);
        fs::write(&path, [0; 200]).unwrap();
        assert_eq!(file.find_fault(), None, "it has grown");
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(150).unwrap();
        assert_eq!(file.find_fault(), Some("its file was truncated"));
        fs::rename(&path, folder.path().join("other.db")).unwrap();
        assert_eq!(file.find_fault(), Some("its file is gone"));
        fs::write(&path, [0; 300]).unwrap();
        assert_eq!(file.find_fault(), Some("its file was replaced by another one"));
    }

    #[test]
    fn a_write_ahead_log_that_is_deleted_or_replaced_is_found() {
        let folder = TestFolder::create();
        let (path, log) = (folder.path().join("some.db"), folder.path().join("some.db-wal"));
        fs::write(&path, [0; 100]).unwrap();
        let mut file = WatchedFile::new(&path);
        assert_eq!(file.find_fault(), None, "nothing was committed yet");
        for length in [200, 0] {
            fs::write(&log, vec![0_u8; length]).unwrap();
            assert_eq!(file.find_fault(), None, "it grows and shrinks");
        }
        fs::rename(&log, folder.path().join("other")).unwrap();
        assert_eq!(file.find_fault(), Some("its write-ahead log is gone"));
        fs::write(&log, [0; 100]).unwrap();
        assert_eq!(file.find_fault(), Some("its write-ahead log was replaced by another one"));
    }
}
