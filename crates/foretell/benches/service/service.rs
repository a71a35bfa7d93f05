//! The real binary, run as `foretell dev` on its own database.

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

use crate::delay;
use crate::load::{Ask, ask_once};
use crate::process::Process;

/// Polling interval for the service's readiness and for its database.
const LOOK: Duration = Duration::from_millis(2);
const START_TIMEOUT: Duration = Duration::from_secs(120);

pub struct Service {
    folder: TestFolder,
    database: Option<TestDatabase>,
    /// The database's URL for the service, if it is another one.
    database_url: Option<String>,
    child: Option<Child>,
    address: String,
    proxies: Option<&'static str>,
    demonstration: Option<Demonstration>,
}

/// The tradable parts of the demonstration.
#[derive(Debug, Clone)]
pub struct Demonstration {
    /// A key of the tier `developer` per user, so that all keys have the same daily cap.
    pub keys: Vec<String>,
    /// Open markets with their number of outcomes.
    pub markets: Vec<(String, usize)>,
}

impl Service {
    pub fn on_sqlite() -> Self {
        let folder = TestFolder::create();
        Self {
            folder,
            database: None,
            database_url: None,
            child: None,
            address: String::new(),
            proxies: None,
            demonstration: None,
        }
    }

    /// Starts a service on SQLite with additional data of the given size. Its address is configured
    /// as a proxy, so that loads can set their client addresses.
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

    /// Returns a service on PostgreSQL, or `None` if no cluster is configured.
    pub async fn on_postgres() -> Option<Self> {
        let database = TestDatabase::create().await?;
        Some(Self { database: Some(database), ..Self::on_sqlite() })
    }

    /// Like [`Self::on_postgres`], with a database that is `one_way` away.
    pub async fn on_distant_postgres(one_way: Duration) -> Option<Self> {
        let mut service = Self::on_postgres().await?;
        let database = service.database.as_ref()?;
        // The cluster of the tests is reached over TCP: postgres://user@host:port/name.
        let (_, rest) = database.url.split_once('@')?;
        let cluster = rest.split('/').next()?.to_owned();
        let proxy = delay::start(cluster.clone(), one_way);
        service.database_url = Some(database.url.replace(&cluster, &proxy.to_string()));
        Some(service)
    }

    pub const fn engine(&self) -> &'static str {
        if self.database.is_some() { "PostgreSQL" } else { "SQLite" }
    }

    /// Returns whether the goals apply to its engine.
    pub const fn is_embedded(&self) -> bool {
        self.database.is_none()
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub fn process(&self) -> Process {
        Process::of(self.child.as_ref().and_then(Child::id).expect("the service runs"))
    }

    /// Starts the service and returns the time until it was ready.
    pub async fn start(&mut self) -> Duration {
        // Remove the file of the last run, so that its address is not used for this one.
        drop(std::fs::remove_file(self.folder().join("service.json")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FORETELL_")) {
            command.env_remove(name);
        }
        command.arg("--data-dir").arg(self.folder()).args(["dev", "--listen", "127.0.0.1:0"]);
        // Many queued buys in one market move its price far, and none of them may be rejected for
        // slippage.
        command.env("FORETELL_DEFAULT_SLIPPAGE_BPS", "10000");
        if let Some(database) = &self.database {
            command.env("FORETELL_DATABASE_URL", self.database_url.as_ref().unwrap_or(&database.url));
        }
        if let Some(proxies) = self.proxies {
            command.env("FORETELL_TRUSTED_PROXIES", proxies);
            // Loads come from as many networks as they need, but also search more than all may together.
            command.env("FORETELL_BUDGET", "searches.total=off");
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

    /// Starts the service for the first time, which seeds the demonstration, and lifts the rate
    /// limits of its developer keys.
    pub async fn start_lifted(&mut self) -> Duration {
        let time = self.start().await;
        let store = self.store().await;
        store::testing::lift_request_limits(&store).await;
        store.close().await;
        self.demonstration = Some(self.read_demonstration());
        time
    }

    /// Stops the service like an operator does.
    pub async fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let id = child.id().expect("the service runs").to_string();
            let asked = Command::new("kill").args(["-TERM", &id]).status().await;
            assert!(asked.expect("kill runs").success(), "the service cannot be asked to stop");
            let status = child.wait().await.expect("a child");
            assert!(status.success(), "the service stopped with {status}");
        }
    }

    /// Creates a GET request for this route with this key.
    pub fn get(&self, route: &str, key: &str) -> Ask {
        let request = Request::get(route).header("host", &self.address).header("x-api-key", key);
        request.body(Full::default()).expect("a request")
    }

    /// Returns the demonstration that the first start created.
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

    /// Opens the service's database directly, which causes no load in the service.
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

/// Creates a POST request with a JSON body.
pub fn post(address: &str, route: &str, key: &str, idempotency_key: &str, body: String) -> Ask {
    let request = Request::post(route)
        .header("host", address)
        .header("x-api-key", key)
        .header("idempotency-key", idempotency_key)
        .header("content-type", "application/json");
    request.body(Full::new(Bytes::from(body))).expect("a request")
}

/// A selection of trades.
#[derive(Debug, Clone, Copy)]
pub enum Trades {
    All,
    Completed,
}

pub async fn count(store: &Store, which: Trades) -> u64 {
    let sql = match which {
        Trades::All => "SELECT COUNT(*) FROM trades",
        Trades::Completed => "SELECT COUNT(*) FROM trades WHERE status = 'completed'",
    };
    let counted: Result<Option<i64>, StoreError> =
        store.read(sql, |tx, sql| Box::pin(tx.find(sql, &[], |row| row.only::<i64>()))).await;
    counted.expect("the database answers").map_or(0, i64::unsigned_abs)
}

/// Waits until all trades have ended.
pub async fn settle(store: &Store) {
    let mut looks = tokio::time::interval(LOOK * 5);
    let start = Instant::now();
    while start.elapsed() < START_TIMEOUT {
        looks.tick().await;
        // Not a count, whose cost would be counted as the database's.
        const SQL: &str = "SELECT 1 FROM trades WHERE ended_at_ms IS NULL LIMIT 1";
        let is_open = store.read((), |tx, ()| Box::pin(tx.exists(SQL, &[]))).await;
        if !is_open.expect("the database answers") {
            return;
        }
    }
    panic!("trades are still open after {START_TIMEOUT:?}");
}
