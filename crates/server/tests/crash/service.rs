//! The binary as a process that can be killed.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use store::testing::{TestDatabase, TestFolder};
use tokio::process::{Child, Command};

/// A demonstration service: embedded chain, and the database of the test.
pub struct Service {
    folder: TestFolder,
    database: Option<TestDatabase>,
    process: Option<Child>,
    base_url: String,
    http: reqwest::Client,
}

impl Service {
    /// On SQLite in a folder of its own.
    pub fn on_sqlite() -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
        Self { folder: TestFolder::create(), database: None, process: None, base_url: String::new(), http }
    }

    /// On a PostgreSQL database of its own; `None` where the tests have no cluster.
    pub async fn on_postgres() -> Option<Self> {
        let database = TestDatabase::create().await?;
        Some(Self { database: Some(database), ..Self::on_sqlite() })
    }

    /// Where it listens now.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// What `dev.json` says.
    pub async fn demonstration(&mut self) -> Value {
        self.start().await;
        let found = self.file("dev.json");
        self.kill().await;
        found.unwrap()
    }

    /// A file of the data folder, where it is there and whole.
    fn file(&self, name: &str) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(self.folder.path().join(name)).ok()?).ok()
    }

    /// Starts the process and waits until it is ready.
    pub async fn start(&mut self) {
        // The last life's address must not be taken for this one's.
        drop(std::fs::remove_file(self.folder.path().join("service.json")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        command.arg("--data-dir").arg(self.folder.path()).args(["dev", "--listen", "127.0.0.1:0"]);
        if let Some(database) = &self.database {
            command.env("FORETELL_DATABASE_URL", &database.url);
        }
        command.stdout(Stdio::null()).kill_on_drop(true);
        self.process = Some(command.spawn().unwrap());
        let mut polls = tokio::time::interval(Duration::from_millis(5));
        for _ in 0..24_000 {
            polls.tick().await;
            if let Some(status) = self.process.as_mut().unwrap().try_wait().unwrap() {
                panic!("the service ended by itself: {status}");
            }
            let Some(service) = self.file("service.json") else { continue };
            let base_url = service["baseUrl"].as_str().unwrap().to_owned();
            let ready = self.http.get(format!("{base_url}/v1/ready")).send().await;
            if ready.is_ok_and(|ready| ready.status() == 200) {
                self.base_url = base_url;
                return;
            }
        }
        panic!("the service is not ready after two minutes");
    }

    /// Lets the process work for that long.
    pub async fn live_for(&mut self, time: Duration) {
        // The end of the process within that time would be its own doing.
        let ended = tokio::time::timeout(time, self.process.as_mut().unwrap().wait()).await;
        assert!(ended.is_err(), "the service ended by itself: {ended:?}");
    }

    /// Ends the process as a power cut would.
    pub async fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().await.unwrap();
        }
    }

    /// Waits until no trade is open.
    pub async fn settle(&self) {
        let store = self.store().await;
        let mut polls = tokio::time::interval(Duration::from_millis(20));
        for _ in 0..3_000 {
            polls.tick().await;
            let open: Result<i64, store::StoreError> = store
                .read((), |tx, ()| {
                    Box::pin(async move {
                        const SQL: &str = "SELECT COUNT(*) FROM trades WHERE ended_at_ms IS NULL";
                        Ok(tx.find(SQL, &[], |row| row.int(0)).await?.unwrap_or(0))
                    })
                })
                .await;
            if open.unwrap() == 0 {
                return;
            }
        }
        panic!("trades are still open after a minute");
    }

    /// The service's database, read from beside it.
    pub async fn store(&self) -> store::Store {
        let url = match &self.database {
            Some(database) => database.url.clone(),
            None => format!("sqlite:{}", self.folder.path().join("foretell.db").display()),
        };
        store::Store::open(&url).await.unwrap()
    }

    /// The service's chain, over its JSON-RPC.
    pub async fn chain(&self) -> chain::Chain {
        let service = self.file("service.json").unwrap();
        let contracts = serde_json::from_value(service["contracts"].clone()).unwrap();
        let provider = chain::http_provider(service["rpcUrl"].as_str().unwrap()).unwrap();
        chain::Chain::connect(provider, contracts).await.unwrap()
    }
}
