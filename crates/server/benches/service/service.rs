//! The real binary, as `foretell dev` on a database of its own.

use std::process::Stdio;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use domain::Clock;
use domain::time::SystemClock;
use http_body_util::Full;
use hyper::{Request, StatusCode};
use serde_json::Value;
use store::sized::{self, Size};
use store::testing::{TestDatabase, TestFolder};
use store::{Store, StoreError};
use tokio::process::{Child, Command};

use crate::load::{Ask, ask_once};
use crate::process::Process;

/// How often the service is asked whether it is ready, and its database whether it is done.
const LOOK: Duration = Duration::from_millis(2);
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A demonstration service.
pub struct Service {
    folder: TestFolder,
    database: Option<TestDatabase>,
    child: Option<Child>,
    address: String,
    proxies: Option<&'static str>,
    demonstration: Option<Demonstration>,
}

/// What can be traded in the demonstration, and by whom.
#[derive(Debug, Clone)]
pub struct Demonstration {
    /// A key of the tier `developer` for each user: the one with the same daily cap for all of them.
    pub keys: Vec<String>,
    /// Open markets with the numbers of their outcomes.
    pub markets: Vec<(String, usize)>,
}

impl Service {
    /// On SQLite.
    pub fn on_sqlite() -> Self {
        let folder = TestFolder::create();
        Self {
            folder,
            database: None,
            child: None,
            address: String::new(),
            proxies: None,
            demonstration: None,
        }
    }

    /// On SQLite, running, with so much of everything beside the demonstration, and behind a proxy of this machine: loads come from as
    /// many addresses as they say.
    pub async fn filled_with(size: Size) -> Self {
        let mut service = Self { proxies: Some("127.0.0.1/32"), ..Self::on_sqlite() };
        service.start_lifted().await;
        service.stop().await;
        let store = service.store().await;
        sized::fill(&store, size, SystemClock::default().now()).await.expect("it is filled");
        store.close().await;
        service.start().await;
        service
    }

    /// On PostgreSQL, where a cluster is named.
    pub async fn on_postgres() -> Option<Self> {
        let database = TestDatabase::create().await?;
        Some(Self { database: Some(database), ..Self::on_sqlite() })
    }

    /// The engine's name.
    pub const fn engine(&self) -> &'static str {
        if self.database.is_some() { "PostgreSQL" } else { "SQLite" }
    }

    /// Whether it is the engine that the goals are set for.
    pub const fn is_embedded(&self) -> bool {
        self.database.is_none()
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The folder of its files.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The process.
    pub fn process(&self) -> Process {
        Process::of(self.child.as_ref().and_then(Child::id).expect("the service runs"))
    }

    /// Starts it and gives the time until it was ready.
    pub async fn start(&mut self) -> Duration {
        // The last life's address must not be taken for this one's.
        drop(std::fs::remove_file(self.folder().join("service.json")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FORETELL_")) {
            command.env_remove(name);
        }
        command.arg("--data-dir").arg(self.folder()).args(["dev", "--listen", "127.0.0.1:0"]);
        // A queue of many buys in one market moves its price far, and none of them is to be refused for it.
        command.env("FORETELL_DEFAULT_SLIPPAGE_BPS", "10000");
        if let Some(database) = &self.database {
            command.env("FORETELL_DATABASE_URL", &database.url);
        }
        if let Some(proxies) = self.proxies {
            command.env("FORETELL_TRUSTED_PROXIES", proxies);
        }
        command.stdout(Stdio::null()).kill_on_drop(true);
        let start = Instant::now();
        self.child = Some(command.spawn().expect("the binary starts"));
        let mut looks = tokio::time::interval(LOOK);
        while start.elapsed() < START_TIMEOUT {
            looks.tick().await;
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().expect("a child")) {
                panic!("the service ended by itself: {status}");
            }
            let Some(service) = self.file("service.json") else { continue };
            let base_url = service["baseUrl"].as_str().expect("its address");
            self.address = base_url.trim_start_matches("http://").to_owned();
            let ready = ask_once(&self.address, self.get("/v1/ready", "")).await;
            if ready.is_some_and(|(status, _)| status == StatusCode::OK) {
                return start.elapsed();
            }
        }
        panic!("the service is not ready after {START_TIMEOUT:?}");
    }

    /// Starts it for the first time, which makes the demonstration; its developers' keys may be used without pause from then on.
    pub async fn start_lifted(&mut self) -> Duration {
        let time = self.start().await;
        let store = self.store().await;
        store::testing::lift_request_limits(&store).await;
        store.close().await;
        self.demonstration = Some(self.read_demonstration());
        time
    }

    /// Ends it as an operator does.
    pub async fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let id = child.id().expect("the service runs").to_string();
            let asked = Command::new("kill").args(["-TERM", &id]).status().await;
            assert!(asked.expect("kill runs").success(), "the service cannot be asked to stop");
            let status = child.wait().await.expect("a child");
            assert!(status.success(), "the service stopped with {status}");
        }
    }

    /// A request of this route with this key.
    pub fn get(&self, route: &str, key: &str) -> Ask {
        let request = Request::get(route).header("host", &self.address).header("x-api-key", key);
        request.body(Full::default()).expect("a request")
    }

    /// What the first start made.
    pub fn demonstration(&self) -> Demonstration {
        self.demonstration.clone().expect("a start made it")
    }

    fn read_demonstration(&self) -> Demonstration {
        let file = self.file("dev.json").expect("dev.json is there");
        let list = |name: &str| file[name].as_array().expect("a list").clone();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let key = |user: &Value| {
            let keys = user["keys"].as_array().expect("a list").iter();
            text(&keys.into_iter().find(|key| key["tier"] == "developer").expect("a developer's key")["key"])
        };
        let open = list("markets").into_iter().filter(|market| market["status"] == "OPEN");
        let market = |market: Value| (text(&market["id"]), market["outcomes"].as_array().map_or(0, Vec::len));
        Demonstration { keys: list("users").iter().map(key).collect(), markets: open.map(market).collect() }
    }

    /// Its database, read from beside it, which costs the service nothing.
    pub async fn store(&self) -> Store {
        let url = match &self.database {
            Some(database) => database.url.clone(),
            None => format!("sqlite:{}", self.folder().join("foretell.db").display()),
        };
        Store::open(&url).await.expect("the database opens")
    }

    fn file(&self, name: &str) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(self.folder().join(name)).ok()?).ok()
    }
}

/// A POST of this JSON.
pub fn post(address: &str, route: &str, key: &str, idempotency_key: &str, body: String) -> Ask {
    let request = Request::post(route)
        .header("host", address)
        .header("x-api-key", key)
        .header("idempotency-key", idempotency_key)
        .header("content-type", "application/json");
    request.body(Full::new(Bytes::from(body))).expect("a request")
}

/// How many trades there are of these.
#[derive(Debug, Clone, Copy)]
pub enum Trades {
    /// Every one.
    All,
    /// On their way.
    Open,
    /// Executed and settled.
    Completed,
}

/// Counts trades.
pub async fn count(store: &Store, which: Trades) -> u64 {
    let sql = match which {
        Trades::All => "SELECT COUNT(*) FROM trades",
        Trades::Open => "SELECT COUNT(*) FROM trades WHERE ended_at_ms IS NULL",
        Trades::Completed => "SELECT COUNT(*) FROM trades WHERE status = 'completed'",
    };
    let counted: Result<Option<i64>, StoreError> =
        store.read(sql, |tx, sql| Box::pin(tx.find(sql, &[], |row| row.int(0)))).await;
    counted.expect("the database answers").map_or(0, i64::unsigned_abs)
}

/// Waits until no trade is open.
pub async fn settle(store: &Store) {
    let mut looks = tokio::time::interval(LOOK * 5);
    let start = Instant::now();
    while start.elapsed() < START_TIMEOUT {
        looks.tick().await;
        if count(store, Trades::Open).await == 0 {
            return;
        }
    }
    panic!("trades are still open after {START_TIMEOUT:?}");
}
