//! An upgrade from the last release without an outage: its processes serve on the new schema until they are replaced
//! one after the other.
//!
//! `FORETELL_RELEASE_BEFORE` names the binary of the last release, which `scripts/release-before` builds.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use store::testing::{TestDatabase, TestFolder};
use tokio::process::Command;

use crate::anvil::{Anvil, FUNDER_KEY};
use crate::clients::{Clients, Trader};
use crate::cluster::parts;
use crate::oracle;
use crate::service::{Process, command_of, program};

const USERS: usize = 3;
/// Between the trades of a client, so that it stays within the limits of its key.
const PAUSE: Duration = Duration::from_millis(30);

/// Contracts on a node, a database, and the folder with the secrets: all made by the release before.
struct Deployment {
    before: OsString,
    home: TestFolder,
    folders: [TestFolder; 4],
    database: TestDatabase,
    anvil: Anvil,
}

impl Deployment {
    /// Returns `None` without the binary, PostgreSQL or anvil.
    async fn make() -> Option<Self> {
        let Some(before) = std::env::var_os("FORETELL_RELEASE_BEFORE") else {
            eprintln!("FORETELL_RELEASE_BEFORE is not set: no upgrade is tested");
            return None;
        };
        let database = TestDatabase::create().await?;
        let anvil = Anvil::start().await?;
        let folders = std::array::from_fn(|_| TestFolder::create());
        let made = Self { before, home: TestFolder::create(), folders, database, anvil };
        let mut deploy = made.command(&made.before, made.home.path());
        deploy.args(["deploy", "--executors", "2", "--hourly-volume-cap", "1000000"]);
        deploy.args(["--fund-wei", "1000000000000000000"]).env("FORETELL_FUNDER_KEY", FUNDER_KEY);
        assert!(deploy.status().await.unwrap().success());
        made.migrate(&made.before).await;
        Some(made)
    }

    fn command(&self, program: &OsStr, folder: &Path) -> Command {
        let mut command = command_of(program, folder);
        command.args(["--database-url", &self.database.url, "--rpc-url", &self.anvil.url]);
        command
    }

    async fn migrate(&self, program: &OsStr) {
        let migrated = self.command(program, self.home.path()).arg("migrate").status().await;
        assert!(migrated.unwrap().success());
    }

    async fn serve(&self, program: &OsStr, index: usize) -> Process {
        let folder = self.folders[index].path();
        let mut command = self.command(program, folder);
        command.arg("--contracts").arg(self.home.path().join("contracts.json"));
        command.arg("--secrets-file").arg(self.home.path().join("secrets.json"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("RUST_LOG", "error");
        Process::start(command, folder).await
    }

    /// Runs `foretell admin` of the release before and returns its JSON output.
    async fn admin(&self, args: &[&str]) -> Value {
        let mut command = self.command(&self.before, self.home.path());
        command.args(["admin", "--json"]).args(args).stdout(Stdio::piped());
        let output = command.output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?} of {args:?}"))
    }

    async fn id(&self, args: &[&str]) -> String {
        self.admin(args).await["id"].as_str().unwrap().to_owned()
    }

    /// Creates two markets, and users who can trade.
    async fn populate(&self) -> Vec<Trader> {
        let mut markets = Vec::new();
        for question in ["Does it rain?", "Does it snow?"] {
            let market = ["market", "create", "--question", question, "--outcome", "Yes", "--outcome", "No"];
            let terms = ["--liquidity", "5000", "--fee-bps", "100", "--end-time", "30d"];
            markets.push(self.id(&[&market[..], &terms].concat()).await);
        }
        let mut traders = Vec::new();
        for number in 0..USERS {
            let user =
                self.id(&["user", "create", "--name", &format!("user {number}"), "--generate-owner"]).await;
            self.admin(&["account", "provision", "--user", &user]).await;
            self.admin(&["account", "fund", "--user", &user, "--usdc", "10000"]).await;
            let issue = ["key", "issue", "--user", &user, "--tier", "mm", "--name", "key", "--scopes", "all"];
            let issued = self.admin(&[&issue[..], &["--requests-per-minute", "1000000"]].concat()).await;
            traders
                .push(Trader { key: issued["key"].as_str().unwrap().to_owned(), markets: markets.clone() });
        }
        traders
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_from_the_last_release_loses_no_trade() {
    let Some(deployment) = Deployment::make().await else { return };
    let traders = deployment.populate().await;
    let first = deployment.serve(&deployment.before, 0).await;
    let second = deployment.serve(&deployment.before, 1).await;
    let clients = Clients::start_paced(traders, PAUSE);
    clients.send_to(&[&first.base_url, &second.base_url]);
    clients.trade_more(100).await;
    // From here, processes of the release before work on the new schema.
    deployment.migrate(program()).await;
    clients.trade_more(300).await;

    let third = deployment.serve(program(), 2).await;
    clients.send_to(&[&second.base_url, &third.base_url]);
    first.terminate().await;
    // Both releases at once.
    clients.trade_more(200).await;
    let fourth = deployment.serve(program(), 3).await;
    clients.send_to(&[&third.base_url, &fourth.base_url]);
    second.terminate().await;
    clients.trade_more(100).await;

    let acknowledged = clients.finish().await;
    let parts = parts(deployment.home.path(), &deployment.database.url, &deployment.anvil.url).await;
    oracle::settled(&parts.ctx.store).await;
    oracle::check(&parts.ctx.store, &parts.ctx.chain, &acknowledged).await;
    let not_completed = "SELECT COUNT(*) FROM trades WHERE status <> 'completed'";
    assert_eq!(oracle::number(&parts.ctx.store, not_completed).await, 0);
    parts.ctx.store.close().await;
    eprintln!("an upgrade with {} acknowledged trades, all completed", acknowledged.len());
}
