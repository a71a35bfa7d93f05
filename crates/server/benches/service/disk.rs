//! The disk's own pace: what a durable write costs in the same seconds.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::sample::median;

const PAGE: usize = 4_096;
/// The file's length in pages. They are overwritten in a circle, as a database's journal is once it has been
/// checkpointed: a file that grows would cost the file system more with every write.
const PAGES: u64 = 1_000;
/// Between two writes, so that the probe is no load of its own.
const PAUSE: Duration = Duration::from_millis(10);

/// A file to write to, on the disk of the folder that is given.
#[derive(Debug)]
pub struct Disk(File);

impl Disk {
    /// Makes the file.
    pub fn probe_in(folder: &Path) -> Self {
        let path = folder.join("probe");
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path).expect("a file");
        file.write_all(&vec![1; PAGE * PAGES as usize]).expect("space for the file");
        file.sync_all().expect("the disk takes it");
        Self(file)
    }

    /// Does `work` and beside it writes a page with `fdatasync` now and then. Gives what the work gave, and the median
    /// time of the writes in microseconds: the disk's pace in just these seconds, which the next ones may not have.
    pub async fn beside<T>(&self, work: impl Future<Output = T>) -> (T, f64) {
        let mut file = self.0.try_clone().expect("another handle");
        let (working, over) = mpsc::channel::<()>();
        let probe = std::thread::spawn(move || {
            let mut times_us = Vec::new();
            while over.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                times_us.push(write(&mut file, times_us.len() as u64).as_secs_f64() * 1e6);
            }
            times_us
        });
        let done = work.await;
        drop(working);
        (done, median(probe.join().expect("the probe's writes")))
    }
}

fn write(file: &mut File, number: u64) -> Duration {
    let start = Instant::now();
    file.seek(SeekFrom::Start(number % PAGES * PAGE as u64)).expect("a place in the file");
    file.write_all(&[number as u8; PAGE]).expect("the page is written");
    file.sync_data().expect("the page is durable");
    start.elapsed()
}
