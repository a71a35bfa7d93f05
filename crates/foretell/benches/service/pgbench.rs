//! PostgreSQL's own throughput on this machine, for comparison: pgbench's TPC-B with 32 clients.

use std::path::{Path, PathBuf};

use store::testing::TestDatabase;
use store::{Store, StoreError};
use tokio::process::Command;

use crate::report::{Report, Row};

const FOLDER: &str = "/usr/lib/postgresql";

/// Runs pgbench if it is installed.
pub async fn run(report: &mut Report) {
    let Some(database) = TestDatabase::create().await else { return };
    let durable = setting(&database.url, "fsync").await == "on";
    if !durable {
        report.note("The PostgreSQL cluster runs with fsync off: its commits wait for no disk.".to_owned());
    }
    let Some(program) = find() else {
        report.note(format!("pgbench is not under {FOLDER}: not run."));
        return;
    };
    let rate = match bench(&program, &database.url).await {
        Ok(rate) => format!("{rate:.0}/s{}", if durable { "" } else { ", fsync off" }),
        Err(why) => {
            report.note(format!("pgbench did not run: {why}"));
            return;
        }
    };
    report.row(Row::new("pgbench TPC-B, 32 clients".to_owned(), rate));
}

fn find() -> Option<PathBuf> {
    let versions = std::fs::read_dir(FOLDER).ok()?;
    let programs = versions.filter_map(|version| Some(version.ok()?.path().join("bin/pgbench")));
    programs.filter(|program| program.exists()).max()
}

async fn bench(program: &Path, url: &str) -> Result<f64, String> {
    call(program, &["--initialize", "--quiet", "--scale=10", url]).await?;
    let said = call(program, &["--client=32", "--jobs=2", "--time=5", url]).await?;
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.ok_or_else(|| format!("it said {said:?}"))
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
