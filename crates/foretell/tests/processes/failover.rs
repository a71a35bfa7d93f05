//! The primary of PostgreSQL is killed under load, and Patroni promotes its synchronous standby: no
//! acknowledged trade is lost, and the service continues by itself.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::process::Command;

use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::oracle;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/patroni");

/// Two servers of PostgreSQL that fail over.
struct Servers {
    folder: PathBuf,
    url: String,
}

impl Servers {
    async fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("foretell-failover-{}", std::process::id()));
        let url = Self::run("start", &folder).await;
        Self { folder, url }
    }

    async fn kill_leader(&self) -> String {
        Self::run("kill-leader", &self.folder).await
    }

    async fn leader(&self) -> String {
        Self::run("leader", &self.folder).await
    }

    async fn run(command: &str, folder: &Path) -> String {
        let output = Command::new(SCRIPT).arg(command).arg(folder).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(std::process::Command::new(SCRIPT).arg("stop").arg(&self.folder).status());
    }
}

fn failovers() -> usize {
    std::env::var("FORETELL_FAILOVERS").ok().and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Trades until `count` trades are acknowledged, and returns the longest time between two of them.
async fn longest_gap(clients: &Clients, count: usize) -> Duration {
    let mut last = Instant::now();
    let mut longest = Duration::ZERO;
    for _ in 0..count {
        clients.trade_more(1).await;
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_of_the_database_loses_no_acknowledged_trade() {
    for round in 0..failovers() {
        let servers = Servers::start().await;
        let Some(cluster) = Cluster::prepare_on(servers.url.clone(), None).await else { return };
        let process = cluster.serve(0).await;
        let clients = Clients::start(cluster.traders.clone());
        clients.send_to(&[&process.base_url]);
        clients.trade_more(300).await;
        let killed = servers.kill_leader().await;
        let gap = longest_gap(&clients, 300).await;
        let acknowledged = clients.finish().await;
        assert_ne!(servers.leader().await, killed);
        let parts = cluster.parts().await;
        oracle::settled(&parts.ctx.store).await;
        oracle::check(&parts.ctx.store, &parts.ctx.chain, &acknowledged).await;
        parts.ctx.store.close().await;
        eprintln!(
            "failover {round}: {killed} killed, {} trades acknowledged, 0 lost, {} ms without one",
            acknowledged.len(),
            gap.as_millis()
        );
    }
}
