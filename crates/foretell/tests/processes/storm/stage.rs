//! The environment of a storm: a chain behind two nodes that can fail, a database and a Redis that
//! can crash, processes and users.

use std::path::PathBuf;
use std::sync::Arc;

use foretell::run::Parts;
use store::testing::TestFolder;
use testkit::RpcProxy;

use super::member::{Member, script};
use super::neighbor::Outages;
use super::stranger::Stranger;
use crate::anvil::Anvil;
use crate::clients::Trader;
use crate::cluster;
use crate::service::foretell;

/// Number of confirmations of a final block. Reorganizations are at most one block less deep.
pub const CONFIRMATIONS: u64 = 6;

/// The database of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One process on SQLite.
    Sqlite,
    /// Two processes on PostgreSQL and Redis.
    Postgres,
}

/// A private server, started by a script of the repository and stopped with the test.
pub struct Server {
    name: &'static str,
    folder: PathBuf,
    pub url: String,
}

impl Server {
    async fn start(name: &'static str, folder: PathBuf) -> Self {
        let url = script(name, &["start", &folder.display().to_string()]).await;
        Self { name, folder, url }
    }

    /// Kills the server, like a power failure, and restarts it.
    pub async fn crash(&self) {
        let folder = self.folder.display().to_string();
        script(self.name, &["crash", &folder]).await;
        script(self.name, &["restart", &folder]).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(self.name);
        drop(std::process::Command::new(path).arg("stop").arg(&self.folder).status());
    }
}

/// The environment of a storm.
pub struct Stage {
    pub members: Arc<[Member]>,
    /// The chain itself, without faults.
    pub anvil: Anvil,
    /// The nodes as the service sees them.
    pub nodes: Arc<[RpcProxy]>,
    /// PostgreSQL and Redis, if the service uses them.
    pub servers: Vec<Server>,
    /// A user without a key.
    pub stranger: Stranger,
    /// Users who can trade. The first one is the uninvolved one.
    pub traders: Vec<Trader>,
    pub outages: Outages,
    database_url: String,
    home: TestFolder,
    _folders: Vec<TestFolder>,
}

impl Stage {
    /// Sets up the environment. Returns `None` without anvil, or without the test servers.
    pub async fn set(engine: Engine) -> Option<Self> {
        let anvil = Anvil::start().await?;
        if engine == Engine::Postgres {
            std::env::var_os(store::testing::POSTGRES_URL)?;
        }
        let home = TestFolder::create();
        // PostgreSQL runs as another user, who cannot access the test's folder.
        let place = |name: &str| {
            let id = home.path().file_name().unwrap().to_string_lossy().into_owned();
            std::env::temp_dir().join(format!("{name}-{id}"))
        };
        let servers = match engine {
            Engine::Sqlite => Vec::new(),
            Engine::Postgres => vec![
                Server::start("postgres", place("storm-postgres")).await,
                Server::start("redis", place("storm-redis")).await,
            ],
        };
        let database_url = match servers.first() {
            Some(postgres) => postgres.url.clone(),
            None => format!("sqlite:{}", home.path().join("storm.db").display()),
        };
        cluster::deploy(home.path(), &anvil.url, "3").await;
        let mut migrate = foretell(home.path());
        migrate.args(["--database-url", &database_url, "migrate"]);
        assert!(migrate.status().await.unwrap().success());
        let traders = cluster::populate(home.path(), &database_url, &anvil.url).await;
        let nodes: Arc<[RpcProxy]> =
            [RpcProxy::start(&anvil.url).await, RpcProxy::start(&anvil.url).await].into();
        let stranger =
            Stranger::prepare(&anvil, &cluster::parts(home.path(), &database_url, &anvil.url).await).await;
        anvil.mine_every_second().await;

        let count = if engine == Engine::Postgres { 2 } else { 1 };
        let folders: Vec<TestFolder> = (0..count).map(|_| TestFolder::create()).collect();
        let urls: Vec<String> = nodes.iter().map(|node| node.url().to_owned()).collect();
        let redis = servers.get(1).map(|redis| redis.url.clone());
        let mut members = Vec::new();
        for folder in &folders {
            let settings = Settings {
                folder: folder.path().to_owned(),
                home: home.path().to_owned(),
                database_url: database_url.clone(),
                redis_url: redis.clone(),
                rpc_urls: urls.join(","),
                // Another program must not take the port while the process is down.
                listen: format!("127.0.0.1:{}", script("port", &[]).await),
            };
            members.push(Member::start(format!("http://{}", settings.listen), move || settings.command()));
        }
        let members: Arc<[Member]> = members.into();
        for member in members.iter() {
            member.ready().await;
        }
        let outages = Outages::default();
        Some(Self {
            members,
            anvil,
            nodes,
            servers,
            stranger,
            traders,
            outages,
            database_url,
            home,
            _folders: folders,
        })
    }

    /// Returns the base URLs of the processes.
    pub fn targets(&self) -> Vec<String> {
        self.members.iter().map(|member| member.base_url.clone()).collect()
    }

    /// Opens the service's parts in this process, without faults.
    pub async fn parts(&self) -> Parts {
        cluster::parts(self.home.path(), &self.database_url, &self.anvil.url).await
    }
}

/// The settings of a process.
struct Settings {
    folder: PathBuf,
    home: PathBuf,
    database_url: String,
    redis_url: Option<String>,
    rpc_urls: String,
    listen: String,
}

impl Settings {
    fn command(&self) -> tokio::process::Command {
        let mut command = foretell(&self.folder);
        command.args(["--database-url", &self.database_url, "--rpc-url", &self.rpc_urls]);
        command.arg("--contracts").arg(self.home.join("contracts.json"));
        command.arg("--secrets-file").arg(self.home.join("secrets.json"));
        command.args(["--confirmations", &CONFIRMATIONS.to_string()]);
        if let Some(redis_url) = &self.redis_url {
            command.args(["--redis-url", redis_url]);
        }
        command.args(["serve", "--listen", &self.listen]);
        command.env("RUST_LOG", std::env::var("FORETELL_STORM_LOG").unwrap_or_else(|_| "off".to_owned()));
        command
    }
}
