//! The speed of the disk: the cost of a durable write during the measurement.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::sample::median;

const PAGE: usize = 4_096;
/// Length of the file in pages. Pages are overwritten cyclically, like a database journal after a
/// checkpoint. A growing file would make each write more expensive.
const PAGES: u64 = 1_000;
/// Pause between two writes, so that the probe itself causes no load.
const PAUSE: Duration = Duration::from_millis(10);

/// The file to write, on the disk of the given folder.
#[derive(Debug)]
pub struct Disk(File);

impl Disk {
    pub fn probe_in(folder: &Path) -> Self {
        let path = folder.join("probe");
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path).expect("a file");
        file.write_all(&vec![1; PAGE * PAGES as usize]).expect("space for the file");
        file.sync_all().expect("the disk takes it");
        Self(file)
    }

    /// Runs `work` and meanwhile occasionally writes a page with `fdatasync`. Returns the result of
    /// `work` and the median write time in microseconds. The disk's speed varies, so it must be
    /// measured at the same time.
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
