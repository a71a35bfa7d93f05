//! The CPU time of a PostgreSQL cluster on this machine.

use std::collections::HashMap;
use std::fs;

use store::{Store, StoreError};

/// Microseconds per tick of `/proc/<pid>/stat`.
const TICK_US: f64 = 10_000.0;

/// A cluster: its first process, whose children are the others.
#[derive(Debug, Clone, Copy)]
pub struct Cluster(u32);

impl Cluster {
    /// Returns the cluster of a database. `None` if it does not run on this machine.
    pub async fn of(store: &Store) -> Option<Self> {
        let backend: Result<Option<u32>, StoreError> = store
            .read((), |tx, ()| Box::pin(tx.find("SELECT pg_backend_pid() AS pid", &[], |row| row.get("pid"))))
            .await;
        let (_, parent) = read(backend.ok()??)?;
        Some(Self(parent))
    }

    /// Returns the user and system time of all its processes, also of those that have ended, in
    /// microseconds.
    pub fn cpu_us(self) -> f64 {
        let processes = fs::read_dir("/proc").expect("Linux").filter_map(|entry| {
            let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let (ticks, parent) = read(id)?;
            if parent == self.0 { Some(ticks.own) } else { (id == self.0).then_some(ticks.own + ticks.ended) }
        });
        processes.sum::<f64>() * TICK_US
    }
}

struct Ticks {
    own: f64,
    /// Those of children that have ended.
    ended: f64,
}

/// Reads a process's times and its parent: fields 4 and 14 to 17 of proc(5).
fn read(id: u32) -> Option<(Ticks, u32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The command's name may contain spaces and parentheses.
    let fields: HashMap<usize, &str> = stat.rsplit(')').next()?.split_whitespace().enumerate().collect();
    let ticks = |field: usize| fields.get(&field)?.parse::<f64>().ok();
    let own = ticks(11)? + ticks(12)?;
    Some((Ticks { own, ended: ticks(13)? + ticks(14)? }, fields.get(&1)?.parse().ok()?))
}
