//! A copy of the demonstration, served by its own process.

use std::path::Path;

use serde_json::{Value, json};
use store::testing::TestFolder;
use testkit::RpcProxy;

use crate::service::{Demonstration, Process, foretell, read_json};

/// A copy of the demonstration, served by its own process.
pub struct Site {
    demonstration: &'static Demonstration,
    process: Option<Process>,
    /// The process that has the chain, if the site's own reaches it over JSON-RPC.
    chain: Option<(Process, TestFolder)>,
    folder: TestFolder,
    http: reqwest::Client,
    port: u16,
}

impl Site {
    pub async fn start() -> Self {
        let demonstration = Demonstration::on_sqlite().await;
        let folder = TestFolder::create();
        demonstration.write_to(folder.path());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut site = Self { demonstration, process: None, chain: None, folder, http, port: 0 };
        site.serve().await;
        site
    }

    /// Kills the process and starts another one on the same port.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.serve().await;
    }

    /// Kills the process.
    pub async fn stop(&mut self) {
        self.process.take().unwrap().kill().await;
    }

    /// Starts a process, on the port of the one before.
    pub async fn serve(&mut self) {
        let mut command = foretell(self.folder.path());
        command.args(["dev", "--listen", &format!("127.0.0.1:{}", self.port)]);
        let process = Process::start(command, self.folder.path()).await;
        self.port = process.base_url.rsplit_once(':').unwrap().1.parse().unwrap();
        self.process = Some(process);
    }

    /// Continues the chain in another process, which the site reaches only through a proxy.
    pub async fn detach_chain(&mut self) -> RpcProxy {
        self.process.take().unwrap().kill().await;
        let folder = TestFolder::create();
        copy_files(self.folder.path(), folder.path());
        let mut command = foretell(folder.path());
        command.args(["dev", "--listen", "127.0.0.1:0", "--rpc-listen", "127.0.0.1:0"]);
        let chain = Process::start(command, folder.path()).await;
        let contents = read_json(&folder.path().join("dev.json")).unwrap();
        let node = RpcProxy::start(contents["rpcUrl"].as_str().unwrap()).await;
        self.chain = Some((chain, folder));

        let mut command = foretell(self.folder.path());
        command.args(["serve", "--environment", "test", "--webhook-targets", "local", "--web", "on"]);
        command.args(["--rpc-url", node.url(), "--app-url", &self.url("")]);
        command.args(["--listen", &format!("127.0.0.1:{}", self.port)]);
        self.process = Some(Process::start(command, self.folder.path()).await);
        node
    }

    /// Returns the URL of a page.
    pub fn url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }

    /// Runs `foretell admin` next to the service and returns its JSON output.
    pub async fn admin(&self, args: &[&str]) -> Value {
        let output =
            foretell(self.folder.path()).args(["admin", "--json"]).args(args).output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text:?} of {args:?}: {error}"))
    }

    /// Returns the path of the first market with this status and number of outcomes.
    pub fn market(&self, status: &str, is_of_two: bool) -> String {
        let markets = self.demonstration.contents["markets"].as_array().unwrap();
        let found = markets.iter().find(|market| {
            market["status"] == status && (market["outcomes"].as_array().unwrap().len() == 2) == is_of_two
        });
        format!("/markets/{}", found.unwrap()["id"].as_str().unwrap())
    }

    /// Buys the first outcome of a market through the API.
    pub async fn buy(&self, market: &str, usdc: &str) {
        let key = self.demonstration.contents["users"][1]["keys"][0]["key"].as_str().unwrap();
        self.buy_with(key, market, usdc).await;
    }

    /// Buys the first outcome of a market through the API, with this key.
    pub async fn buy_with(&self, key: &str, market: &str, usdc: &str) {
        let id = market.rsplit_once('/').unwrap().1;
        let body = json!({ "marketId": id, "outcomeIndex": 0, "side": "buy", "amount": usdc });
        let request = self.http.post(self.url("/v1/trades")).header("X-API-Key", key);
        let request = request.header("Idempotency-Key", format!("buy-{usdc}")).json(&body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 201, "{}", response.text().await.unwrap());
    }
}

/// Copies the files of a folder, without its sockets.
fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
