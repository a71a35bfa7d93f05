//! PostgreSQL's own throughput on this machine, for comparison: pgbench's TPC-B with 32 clients.

use std::path::{Path, PathBuf};
use std::time::Duration;

use store::testing::TestDatabase;
use store::{Store, StoreError};
use tokio::process::Command;

use crate::report::Report;

const FOLDER: &str = "/usr/lib/postgresql";

/// A database for pgbench.
pub struct TpcB {
    program: PathBuf,
    database: TestDatabase,
}

impl TpcB {
    /// Fills a database. `None` if pgbench is not installed.
    pub async fn prepare(report: &mut Report) -> Option<Self> {
        let database = TestDatabase::create().await?;
        if setting(&database.url, "fsync").await != "on" {
            report
                .note("The PostgreSQL cluster runs with fsync off: its commits wait for no disk.".to_owned());
        }
        let Some(program) = find() else {
            report.note(format!("pgbench is not under {FOLDER}: R7 to R7c are not measured."));
            return None;
        };
        match call(&program, &["--initialize", "--quiet", "--scale=10", &database.url]).await {
            Ok(_) => Some(Self { program, database }),
            Err(why) => {
                report.note(format!("pgbench did not run: {why}"));
                None
            }
        }
    }

    /// Returns the transactions per second.
    pub async fn run(&self, time: Duration) -> Result<f64, String> {
        // pgbench runs for whole seconds.
        let time = format!("--time={}", time.as_secs().max(1));
        let said = call(&self.program, &["--client=32", "--jobs=2", &time, &self.database.url]).await?;
        let rate = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        rate.ok_or_else(|| format!("it said {said:?}"))
    }
}

fn find() -> Option<PathBuf> {
    let versions = std::fs::read_dir(FOLDER).ok()?;
    let programs = versions.filter_map(|version| Some(version.ok()?.path().join("bin/pgbench")));
    programs.filter(|program| program.exists()).max()
}

async fn call(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().await.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

async fn setting(url: &str, name: &'static str) -> String {
    const SQL: &str = "SELECT setting FROM pg_settings WHERE name = $1";
    let store = Store::open(url).await.expect("the database opens");
    let read: Result<Option<String>, StoreError> = store
        .read(name, |tx, name| {
            Box::pin(async move { tx.find(SQL, &[(*name).into()], |row| row.get("setting")).await })
        })
        .await;
    store.close().await;
    read.ok().flatten().unwrap_or_default()
}
