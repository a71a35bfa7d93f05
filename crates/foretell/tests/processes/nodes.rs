//! A service whose nodes are missing, fail under load, return wrong data, or serve another chain.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use store::Store;
use store::testing::TestFolder;
use testkit::{RpcFault, RpcProxy};

use crate::anvil::Anvil;
use crate::clients::{AcknowledgedTrades, Clients, Trader};
use crate::cluster::{deploy, parts, populate};
use crate::oracle;
use crate::service::{Process, foretell};

/// Faults of a node that returns wrong data, without those that only make it slow.
const LIES: &[RpcFault] = &[
    RpcFault::Stale(3),
    RpcFault::Stalled,
    RpcFault::Contradictory(2),
    RpcFault::Empty,
    RpcFault::Forked(0),
    RpcFault::OtherChain,
    RpcFault::WrongType,
    RpcFault::Html,
    RpcFault::OtherId,
    RpcFault::LostAnswer,
];

/// A service on SQLite that reaches anvil only through proxies.
struct Stage {
    home: TestFolder,
    anvil: Anvil,
    proxies: Vec<RpcProxy>,
    traders: Vec<Trader>,
    http: reqwest::Client,
}

impl Stage {
    /// Deploys the contracts and creates accounts and markets. Returns `None` without anvil.
    async fn prepare(nodes: usize) -> Option<Self> {
        let anvil = Anvil::start().await?;
        let home = TestFolder::create();
        deploy(home.path(), &anvil.url, "1").await;
        let traders = populate(home.path(), &database_url(&home), &anvil.url).await;
        let mut proxies = Vec::new();
        for _ in 0..nodes {
            proxies.push(RpcProxy::start(&anvil.url).await);
        }
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
        Some(Self { home, anvil, proxies, traders, http })
    }

    fn command(&self) -> tokio::process::Command {
        let mut command = foretell(self.home.path());
        for proxy in &self.proxies {
            command.args(["--rpc-url", proxy.url()]);
        }
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.env("RUST_LOG", "error");
        command
    }

    async fn get(&self, service: &Process, path: &str) -> u16 {
        let key = &self.traders[0].key;
        let sent = self.http.get(format!("{}{path}", service.base_url)).header("X-API-Key", key).send();
        sent.await.unwrap().status().as_u16()
    }

    /// Sends one trade. Returns status, `Retry-After` and body.
    async fn trade(&self, service: &Process, name: &str) -> (u16, Option<String>, Value) {
        let Trader { key, markets } = &self.traders[0];
        let body = json!({ "marketId": markets[0], "outcomeIndex": 0, "side": "buy", "amount": "1.50" });
        let sent = self
            .http
            .post(format!("{}/v1/trades", service.base_url))
            .header("X-API-Key", key)
            .header("Idempotency-Key", name)
            .json(&body)
            .send();
        let answer = sent.await.unwrap();
        let retry_after = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        (answer.status().as_u16(), retry_after, answer.json().await.unwrap())
    }

    /// Waits at most ten seconds until readiness has this status.
    async fn until_ready_is(&self, service: &Process, status: u16) {
        // An address without a key has 300 requests per minute.
        let mut looks = tokio::time::interval(Duration::from_millis(250));
        for _ in 0..40 {
            looks.tick().await;
            if self.get(service, "/v1/ready").await == status {
                return;
            }
        }
        panic!("/v1/ready does not become {status} within ten seconds");
    }

    /// Waits until all trades have ended, and compares the acknowledged ones with the chain.
    async fn check(&self, acknowledged: &AcknowledgedTrades) {
        let parts = parts(self.home.path(), &database_url(&self.home), &self.anvil.url).await;
        oracle::settled(&parts.ctx.store).await;
        oracle::check(&parts.ctx.store, &parts.ctx.chain, acknowledged).await;
        parts.ctx.store.close().await;
    }
}

fn database_url(home: &TestFolder) -> String {
    format!("sqlite:{}", home.path().join("foretell.db").display())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_a_node_serves_reads_and_trades_once_a_node_responds() {
    let Some(stage) = Stage::prepare(1).await else { return };
    stage.proxies[0].set(RpcFault::Refused).await;
    let service = Process::start_unready(stage.command(), stage.home.path()).await;
    assert_eq!(stage.get(&service, "/v1/ready").await, 503);
    for path in ["/v1/health", "/v1/markets", "/v1/trades", "/v1/events", "/api/markets", "/api/leaderboard"]
    {
        assert_eq!(stage.get(&service, path).await, 200, "{path}");
    }
    let (status, retry_after, body) = stage.trade(&service, "without-a-node").await;
    assert_eq!((status, retry_after.as_deref()), (503, Some("1")), "{body}");
    assert_eq!(body["code"], "DEPENDENCY_UNAVAILABLE");
    assert_eq!(body["extensions"]["submission"], "not_submitted", "{body}");

    stage.proxies[0].heal();
    stage.until_ready_is(&service, 200).await;
    let (status, _, body) = stage.trade(&service, "with-a-node").await;
    assert_eq!(status, 201, "{body}");
    let id = body["trade"]["id"].as_str().unwrap().to_owned();
    stage.check(&[("with-a-node".to_owned(), id)].into()).await;
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_under_load_and_returns_loses_no_trade() {
    let Some(stage) = Stage::prepare(1).await else { return };
    let mut service = Process::start(stage.command(), stage.home.path()).await;
    let clients = Clients::start(stage.traders.clone());
    clients.send_to(&[&service.base_url]);
    for fault in [RpcFault::Refused, RpcFault::Frozen, RpcFault::LostAnswer] {
        service.live_for(Duration::from_secs(1)).await;
        stage.proxies[0].set(fault).await;
        service.live_for(Duration::from_millis(1_500)).await;
        stage.proxies[0].heal();
        stage.until_ready_is(&service, 200).await;
    }
    let acknowledged = clients.finish_after(20).await;
    stage.check(&acknowledged).await;
    eprintln!("{} trades acknowledged over a node that died three times", acknowledged.len());
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lying_node_beside_a_correct_one_does_not_repeat_trades() {
    let Some(stage) = Stage::prepare(2).await else { return };
    let mut service = Process::start(stage.command(), stage.home.path()).await;
    let clients = Clients::start(stage.traders.clone());
    clients.send_to(&[&service.base_url]);
    let seed = u64::from(std::process::id());
    eprintln!("storm seed {seed}");
    for liar in &stage.proxies {
        let storm = liar.storm_of(seed, LIES);
        service.live_for(Duration::from_secs(4)).await;
        drop(storm);
        service.live_for(Duration::from_secs(1)).await;
    }
    let acknowledged = clients.finish_after(20).await;
    stage.check(&acknowledged).await;
    eprintln!("{} trades acknowledged over a node that lies", acknowledged.len());
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_switches_to_another_chain_is_not_used() {
    let Some(stage) = Stage::prepare(1).await else { return };
    let twin = Anvil::start_from_2023().await.unwrap();
    // The same secrets starting from the same nonce: the contracts have the same addresses.
    deploy(stage.home.path(), &twin.url, "1").await;
    let mut service = Process::start(stage.command(), stage.home.path()).await;
    let clients = Clients::start(stage.traders.clone());
    clients.send_to(&[&service.base_url]);
    service.live_for(Duration::from_secs(2)).await;
    let before = settled(&stage).await;

    stage.proxies[0].forward_to(&twin.url);
    stage.until_ready_is(&service, 503).await;
    service.live_for(Duration::from_secs(2)).await;
    let (status, retry_after, body) = stage.trade(&service, "on-the-twin").await;
    assert_eq!((status, retry_after.as_deref()), (503, Some("1")), "{body}");
    assert!(settled(&stage).await >= before);
    let elsewhere = TestFolder::create();
    let on_twin = parts(stage.home.path(), &database_url(&elsewhere), &twin.url).await;
    for executor in on_twin.secrets.executors().unwrap() {
        let sent = on_twin.ctx.chain.transaction_count(executor.address()).await.unwrap();
        assert_eq!(sent, 0, "a transaction was sent to the twin");
    }

    stage.proxies[0].forward_to(&stage.anvil.url);
    stage.until_ready_is(&service, 200).await;
    let acknowledged = clients.finish().await;
    stage.check(&acknowledged).await;
    service.kill().await;
}

/// Returns the number of trades that have ended.
async fn settled(stage: &Stage) -> i64 {
    let store = Store::open(&database_url(&stage.home)).await.unwrap();
    let ended = oracle::number(
        &store,
        "SELECT COUNT(*) FROM trades WHERE ended_at_ms IS NOT NULL AND status = 'completed'",
    );
    let ended = ended.await;
    store.close().await;
    ended
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_without_a_service_reads_the_blocks_and_says_so() {
    let Some(stage) = Stage::prepare(1).await else { return };
    let database = stage.home.path().join("foretell.db");
    let earlier = std::fs::read(&database).unwrap();
    let service = Process::start(stage.command(), stage.home.path()).await;
    let (status, _, body) = stage.trade(&service, "after-the-backup").await;
    assert_eq!(status, 201, "{body}");
    let store = Store::open(&database_url(&stage.home)).await.unwrap();
    oracle::settled(&store).await;
    store.close().await;
    service.terminate().await;
    for end in ["-wal", "-shm"] {
        drop(std::fs::remove_file(format!("{}{end}", database.display())));
    }
    std::fs::write(&database, earlier).unwrap();

    let mut recover = foretell(stage.home.path());
    recover.args(["--rpc-url", stage.proxies[0].url(), "admin", "--json", "recover"]);
    let output = recover.stdout(Stdio::piped()).stderr(Stdio::piped()).output().await.unwrap();
    let progress = String::from_utf8(output.stderr).unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["recoveredTrades"], 1, "{report} {progress}");
    assert!(progress.contains("is not settled yet. Blocks read: up to"), "{progress}");
    assert!(progress.contains("; this command reads them"), "{progress}");
    // The backup does not have the idempotency key, so only the trades are compared.
    stage.check(&[].into()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_urls_come_from_a_file_and_are_checked() {
    let Some(stage) = Stage::prepare(1).await else { return };
    let file = stage.home.path().join("nodes");
    std::fs::write(&file, format!("{}\nhttp://127.0.0.1:1/secret-key\n", stage.proxies[0].url())).unwrap();
    let mut check = foretell(stage.home.path());
    check.arg("--rpc-url-file").arg(&file).args(["config", "check"]).stdout(Stdio::piped());
    let output = check.output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 of 2 nodes") && text.contains("127.0.0.1:1: does not answer"), "{text}");
    assert!(!text.contains("secret-key"), "{text}");
    let unanimous = foretell(stage.home.path())
        .arg("--rpc-url-file")
        .arg(&file)
        .args(["--node-agreement", "2", "config", "check"])
        .status();
    assert!(!unanimous.await.unwrap().success());
}
