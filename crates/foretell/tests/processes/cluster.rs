//! Two processes on one PostgreSQL and one anvil. They are set up with the binary's own commands,
//! loaded in parallel, and one of them is killed under load.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::U256;
use app::keys::{IssueKey, issue};
use app::ledger::Sync;
use app::markets::NewMarket;
use app::worker::{Progress, Worker};
use chain::{Signer, calls};
use domain::Usdc;
use domain::key::{IpAllowlist, LimitOverrides, Scopes, Tier};
use domain::time::{DAY_MS, SystemClock};
use foretell::config::Settings;
use foretell::entropy::SystemEntropy;
use foretell::run::Parts;
use foretell::secrets::Secrets;
use serde_json::json;
use store::testing::{TestDatabase, TestFolder};
use tokio::process::Command;

use crate::anvil::{Anvil, FUNDER_KEY};
use crate::clients::{Clients, Trader, post};
use crate::oracle;
use crate::service::{Process, foretell};

/// Contracts on a node, a database, and the folders of two processes.
pub struct Cluster {
    home: TestFolder,
    folders: [TestFolder; 2],
    database_url: String,
    /// The database, unless it belongs to the caller. It is removed with the cluster.
    database: Option<TestDatabase>,
    pub anvil: Anvil,
    /// Users who can trade.
    pub traders: Vec<Trader>,
}

impl Cluster {
    /// Deploys the contracts, migrates the schema, and creates accounts and a market. Returns
    /// `None` without PostgreSQL or anvil.
    pub async fn prepare() -> Option<Self> {
        let database = TestDatabase::create().await?;
        let url = database.url.clone();
        Self::prepare_on(url, Some(database)).await
    }

    /// Like [`Self::prepare`], on the empty database at this URL.
    pub async fn prepare_on(database_url: String, database: Option<TestDatabase>) -> Option<Self> {
        let anvil = Anvil::start().await?;
        let home = TestFolder::create();
        deploy(home.path(), &anvil.url, "3").await;
        let mut migrate = foretell(home.path());
        migrate.args(["--database-url", &database_url, "migrate"]);
        assert!(migrate.status().await.unwrap().success());
        let traders = populate(home.path(), &database_url, &anvil.url).await;
        let folders = [TestFolder::create(), TestFolder::create()];
        Some(Self { home, folders, database_url, database, anvil, traders })
    }

    /// Starts the process with this index.
    pub async fn serve(&self, index: usize) -> Process {
        self.serve_over(index, &self.anvil.url).await
    }

    /// Starts the process with this index, with another URL for the node.
    pub async fn serve_over(&self, index: usize, rpc_url: &str) -> Process {
        self.serve_with(index, rpc_url, &["--listen", "127.0.0.1:0"]).await
    }

    /// Starts the process with this index and these settings.
    pub async fn serve_with(&self, index: usize, rpc_url: &str, settings: &[&str]) -> Process {
        let folder = self.folders[index].path();
        let mut command = foretell(folder);
        command.args(["--database-url", &self.database_url, "--rpc-url", rpc_url]);
        command.arg("--contracts").arg(self.home.path().join("contracts.json"));
        command.arg("--secrets-file").arg(self.home.path().join("secrets.json"));
        command.arg("serve").args(settings);
        command.env("RUST_LOG", "error");
        Process::start(command, folder).await
    }

    /// Returns a command of the binary for a process with its own folder. It knows the database, the
    /// node and the deployment, but no secret.
    pub fn command_in(&self, folder: &Path) -> Command {
        let mut command = foretell(folder);
        command.args(["--database-url", &self.database_url, "--rpc-url", &self.anvil.url]);
        command.arg("--contracts").arg(self.home.path().join("contracts.json"));
        command.arg("--deployment").arg(self.home.path().join("deployment.json"));
        command
    }

    /// Returns the file with all secrets.
    pub fn secrets_file(&self) -> PathBuf {
        self.home.path().join("secrets.json")
    }

    /// Copies the database, while no process uses it.
    pub async fn copy_database(&self) -> TestDatabase {
        self.database.as_ref().unwrap().copy().await
    }

    /// Returns the folder of the process with this index.
    pub fn folder(&self, index: usize) -> &Path {
        self.folders[index].path()
    }

    /// Opens the service's parts in this process, to inspect them.
    pub async fn parts(&self) -> Parts {
        parts(self.home.path(), &self.database_url, &self.anvil.url).await
    }
}

/// Deploys the contracts to the chain of a node, with the secrets of `home`.
pub async fn deploy(home: &Path, rpc_url: &str, executors: &str) {
    let mut deploy = foretell(home);
    let funding = ["--fund-wei", "1000000000000000000"];
    deploy.args(["--rpc-url", rpc_url, "deploy", "--executors", executors, "--hourly-volume-cap", "1000000"]);
    deploy.args(funding);
    deploy.env("FORETELL_FUNDER_KEY", FUNDER_KEY);
    assert!(deploy.status().await.unwrap().success());
}

pub async fn parts(home: &Path, database_url: &str, rpc_url: &str) -> Parts {
    let options = Settings {
        data_dir: Some(home.to_owned()),
        database_url: Some(database_url.into()),
        rpc_url: Some(vec![rpc_url.into()]),
        ..Settings::default()
    };
    let config = options.decide().unwrap();
    let secrets = Secrets::load(&config.secrets_file).unwrap();
    Parts::open(&config, secrets, Arc::new(SystemClock::default()), Arc::new(SystemEntropy::default()))
        .await
        .unwrap()
}

/// Creates six users who can trade, and two markets.
pub async fn populate(home: &Path, database_url: &str, rpc_url: &str) -> Vec<Trader> {
    let parts = parts(home, database_url, rpc_url).await;
    let (ctx, roles) = (&parts.ctx, &parts.secrets.roles);
    let (deployer, resolver, relayer) =
        (roles.deployer().unwrap(), roles.resolver().unwrap(), roles.relayer().unwrap());
    let contracts = ctx.chain.contracts();
    let funds = U256::from(Usdc::from_whole(100_000).atomic());
    ctx.chain
        .transact(&deployer, Some(contracts.usdc), calls::mint(resolver.address(), funds))
        .await
        .unwrap();
    ctx.chain
        .transact(&resolver, Some(contracts.usdc), calls::approve(contracts.hub, U256::MAX))
        .await
        .unwrap();
    let mut markets = Vec::new();
    for question in ["Does it rain?", "Does it snow?"] {
        let new = NewMarket {
            id: None,
            question: question.to_owned(),
            description: None,
            category: None,
            tags: Vec::new(),
            outcomes: vec!["Yes".to_owned(), "No".to_owned()],
            opening_odds: Vec::new(),
            liquidity: Usdc::from_whole(5_000),
            fee_bps: 100,
            end_time: ctx.now().plus_ms(DAY_MS),
            thread_id: None,
            organization_id: None,
            partner_id: None,
            chapter_id: None,
            source_url: None,
            featured_position: None,
        };
        markets.push(app::markets::create(ctx, &resolver, new).await.unwrap().id.to_string());
    }
    let mut traders = Vec::new();
    for index in 0..6 {
        let owner = Signer::random(ctx.random()).unwrap();
        let (user, account) =
            app::accounts::create_user(ctx, &format!("user {index}"), &owner.owner()).await.unwrap();
        let mint = calls::mint(account.address, funds);
        ctx.chain.transact(&deployer, Some(contracts.usdc), mint).await.unwrap();
        let wanted = IssueKey {
            user_id: user.id,
            name: "key".to_owned(),
            tier: Tier::Mm,
            scopes: Some(Scopes::all()),
            expires_at: None,
            ip_allowlist: IpAllowlist::default(),
            webhook_url: None,
            api_version: None,
            is_agent: false,
            overrides: LimitOverrides { requests_per_minute: Some(1_000_000), ..Default::default() },
        };
        let issued = issue(ctx, wanted).await.unwrap();
        testkit::enable_keys(ctx, &relayer, &owner, user.id, &[issued.key]).await;
        traders.push(Trader { key: issued.plaintext.expose().to_owned(), markets: markets.clone() });
    }
    // Index the markets, so that the services see them.
    let sync = Sync::new("setup".to_owned(), 0);
    while sync.tick(ctx).await.unwrap() == Progress::More {}
    sync.release(ctx).await.unwrap();
    ctx.store.close().await;
    traders
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_and_a_kill_execute_every_trade_exactly_once() {
    let Some(cluster) = Cluster::prepare().await else { return };
    let (first, mut second) = (cluster.serve(0).await, cluster.serve(1).await);
    let clients = Clients::start(cluster.traders.clone());
    clients.send_to(&[&first.base_url, &second.base_url]);
    second.live_for(Duration::from_secs(3)).await;
    // The first process holds most leases. The second one takes over when they expire.
    first.kill().await;
    clients.send_to(&[&second.base_url]);
    second.live_for(Duration::from_secs(1)).await;
    let third = cluster.serve(0).await;
    clients.send_to(&[&second.base_url, &third.base_url]);
    second.live_for(Duration::from_secs(1)).await;
    let acknowledged = clients.finish_after(50).await;
    let parts = cluster.parts().await;
    oracle::settled(&parts.ctx.store).await;
    oracle::check(&parts.ctx.store, &parts.ctx.chain, &acknowledged).await;
    eprintln!("{} trades acknowledged by two processes", acknowledged.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_equal_requests_to_two_processes_create_one_trade() {
    let Some(cluster) = Cluster::prepare().await else { return };
    let (first, second) = (cluster.serve(0).await, cluster.serve(1).await);
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
    let Trader { key, markets } = &cluster.traders[0];
    let body = json!({ "marketId": markets[0], "outcomeIndex": 0, "side": "buy", "amount": "1.50" });
    let sends = (0..50).map(async |n| {
        let target = if n % 2 == 0 { &first.base_url } else { &second.base_url };
        // On a loaded machine, the first request may take more than the two seconds for which the
        // others wait. Like a client, send them again, for half a minute at most.
        let mut attempts = 0;
        loop {
            attempts += 1;
            let answer = post(&http, target, key, "one-and-the-same", &body).await;
            let is_in_progress =
                |(_, body): &(u16, serde_json::Value)| body["extensions"]["reason"] == "in_progress";
            if attempts == 15 || !answer.as_ref().is_some_and(is_in_progress) {
                return answer;
            }
        }
    });
    let answers = futures::future::join_all(sends).await;
    let mut ids: Vec<String> = Vec::new();
    for answer in answers {
        let (status, body) = answer.expect("an answer");
        assert_eq!(status, 201, "{body}");
        ids.push(body["trade"]["id"].as_str().unwrap().to_owned());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let parts = cluster.parts().await;
    assert_eq!(oracle::number(&parts.ctx.store, "SELECT COUNT(*) FROM trades").await, 1);
}
