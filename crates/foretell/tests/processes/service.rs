//! The binary as a process that can be killed.

use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, Permissions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use app::encryption::SealingKeys;
use foretell::entropy::SystemEntropy;
use foretell::secrets::Secrets;
use serde_json::Value;
use store::testing::{TestDatabase, TestFolder};
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;

/// Returns the path of the binary.
pub fn program() -> &'static OsStr {
    OsStr::new(env!("CARGO_BIN_EXE_foretell"))
}

/// Returns a command for the binary that logs to standard error, with all settings unset.
pub fn foretell(data_dir: &Path) -> Command {
    command_of(program(), data_dir)
}

/// Like [`foretell`], for another binary.
pub fn command_of(program: &OsStr, data_dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(data_dir).stdout(Stdio::null()).kill_on_drop(true);
    // Many trades in one market move its price far, and none of them may be rejected for slippage.
    command.env("FORETELL_DEFAULT_SLIPPAGE_BPS", "10000");
    command
}

/// Returns a command for a service with an embedded chain, on SQLite unless it gets a database.
fn dev(data_dir: &Path, database: Option<&TestDatabase>) -> Command {
    let mut command = foretell(data_dir);
    command.args(["dev", "--listen", "127.0.0.1:0"]);
    if let Some(database) = database {
        command.env("FORETELL_DATABASE_URL", &database.url);
    }
    command
}

/// A serving process.
pub struct Process {
    child: Child,
    pub base_url: String,
}

impl Process {
    /// Runs the command and waits until the service of `data_dir` is ready.
    pub async fn start(command: Command, data_dir: &Path) -> Self {
        Self::start_until(command, data_dir, "baseUrl", "/v1/ready").await
    }

    /// Runs the command and waits until the service of `data_dir` responds, ready or not.
    pub async fn start_unready(command: Command, data_dir: &Path) -> Self {
        Self::start_until(command, data_dir, "baseUrl", "/v1/health").await
    }

    /// Runs the command of a process without a public listener, and waits until it is ready. Its base
    /// URL is that of the operator's listener.
    pub async fn start_private(command: Command, data_dir: &Path) -> Self {
        Self::start_until(command, data_dir, "opsUrl", "/readyz").await
    }

    async fn start_until(mut command: Command, data_dir: &Path, url: &str, path: &str) -> Self {
        // Remove the file of the last run, so that its address is not used for this one.
        drop(std::fs::remove_file(data_dir.join("service.json")));
        let mut child = command.spawn().unwrap();
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
        let mut polls = tokio::time::interval(Duration::from_millis(5));
        for _ in 0..24_000 {
            polls.tick().await;
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the service ended by itself: {status}");
            }
            let Some(service) = read_json(&data_dir.join("service.json")) else { continue };
            let base_url = service[url].as_str().unwrap().to_owned();
            let ready = http.get(format!("{base_url}{path}")).send().await;
            if ready.is_ok_and(|ready| ready.status() == 200) {
                return Self { child, base_url };
            }
            // An address without a key has 300 requests per minute.
            drop(tokio::time::timeout(Duration::from_millis(100), child.wait()).await);
        }
        panic!("the service is not ready after two minutes");
    }

    /// Lets the process run for this time.
    pub async fn live_for(&mut self, time: Duration) {
        // The process must not end by itself in this time.
        let ended = tokio::time::timeout(time, self.child.wait()).await;
        assert!(ended.is_err(), "the service ended by itself: {ended:?}");
    }

    /// Returns the peak memory of the process.
    pub fn peak_memory_kib(&self) -> i64 {
        let path = format!("/proc/{}/status", self.child.id().unwrap());
        let status = std::fs::read_to_string(path).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Freezes the process, like a paused machine.
    pub async fn freeze(&self) {
        self.signal("-STOP").await;
    }

    /// Resumes a frozen process.
    pub async fn thaw(&self) {
        self.signal("-CONT").await;
    }

    async fn signal(&self, signal: &str) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
    }

    /// Stops the process with SIGTERM, and waits until it has ended without an error.
    pub async fn terminate(self) {
        self.signal("-TERM").await;
        self.ended().await;
    }

    /// Waits until the process has ended without an error.
    pub async fn ended(mut self) {
        let ended = tokio::time::timeout(Duration::from_secs(60), self.child.wait()).await;
        assert!(ended.expect("the service stops").unwrap().success());
    }

    /// Kills the process, like a power failure.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Reads a JSON file, or returns `None` if it is missing or incomplete.
pub fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// The files and the database after the first start of a service with an embedded chain. All tests copy
/// them, because this start takes longer than most tests.
pub struct Demonstration {
    files: Vec<(OsString, Permissions, Vec<u8>)>,
    /// Stays in the test cluster after the tests.
    database: Option<TestDatabase>,
    /// The contents of `dev.json`.
    pub contents: Value,
}

impl Demonstration {
    /// Returns the demonstration on SQLite, which the first caller makes.
    pub async fn on_sqlite() -> &'static Self {
        static MADE: OnceCell<Demonstration> = OnceCell::const_new();
        MADE.get_or_init(|| Self::make(None)).await
    }

    /// Returns the demonstration on PostgreSQL, which the first caller makes, or `None` if the tests have
    /// no cluster.
    async fn on_postgres() -> Option<&'static Self> {
        static MADE: OnceCell<Option<Demonstration>> = OnceCell::const_new();
        let made = MADE.get_or_init(async || Some(Self::make(Some(TestDatabase::create().await?)).await));
        made.await.as_ref()
    }

    async fn make(database: Option<TestDatabase>) -> Self {
        let folder = TestFolder::create();
        Process::start(dev(folder.path(), database.as_ref()), folder.path()).await.kill().await;
        let contents = read_json(&folder.path().join("dev.json")).unwrap();
        let entries = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
        // The folder has sockets too.
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let read = |file: DirEntry| {
            (file.file_name(), file.metadata().unwrap().permissions(), std::fs::read(file.path()).unwrap())
        };
        Self { files: files.map(read).collect(), database, contents }
    }

    /// Writes a copy of the files.
    pub fn write_to(&self, folder: &Path) {
        for (name, permissions, contents) in &self.files {
            let path = folder.join(name);
            std::fs::write(&path, contents).unwrap();
            std::fs::set_permissions(path, permissions.clone()).unwrap();
        }
    }
}

/// A demonstration service with an embedded chain and its own database.
pub struct Service {
    folder: TestFolder,
    database: Option<TestDatabase>,
    process: Option<Process>,
    demonstration: &'static Demonstration,
}

impl Service {
    /// Returns a service on SQLite.
    pub async fn on_sqlite() -> Self {
        Self::with(Demonstration::on_sqlite().await).await
    }

    /// Returns a service on its own PostgreSQL database, or `None` if the tests have no cluster.
    pub async fn on_postgres() -> Option<Self> {
        Some(Self::with(Demonstration::on_postgres().await?).await)
    }

    async fn with(demonstration: &'static Demonstration) -> Self {
        let folder = TestFolder::create();
        demonstration.write_to(folder.path());
        let database = match &demonstration.database {
            Some(database) => Some(database.copy().await),
            None => None,
        };
        Self { folder, database, process: None, demonstration }
    }

    /// Returns the current base URL.
    pub fn base_url(&self) -> &str {
        &self.process.as_ref().unwrap().base_url
    }

    /// Lifts the rate limits of the demonstration's developer keys, and returns the contents of
    /// `dev.json`.
    pub async fn demonstration(&self) -> Value {
        let store = self.store().await;
        store::testing::lift_request_limits(&store).await;
        store.close().await;
        self.demonstration.contents.clone()
    }

    /// Starts the process and waits until it is ready.
    pub async fn start(&mut self) {
        self.start_with(&[]).await;
    }

    /// Like [`Service::start`], with additional arguments. The process logs to the file `log`.
    pub async fn start_with(&mut self, arguments: &[&str]) {
        self.start_in(&[], arguments).await;
    }

    /// Like [`Service::start_with`], with additional environment variables.
    pub async fn start_in(&mut self, variables: &[(&str, &str)], arguments: &[&str]) {
        let mut command = dev(self.folder.path(), self.database.as_ref());
        command.args(arguments).envs(variables.iter().copied());
        if !arguments.is_empty() {
            command.stderr(std::fs::File::create(self.file("log")).unwrap());
        }
        self.process = Some(Process::start(command, self.folder.path()).await);
    }

    /// Like [`Service::start_with`], for a process whose files get limits: see
    /// [`Service::limit_file_size`]. It does not log.
    pub async fn start_under_limits(&mut self, arguments: &[&str]) {
        let command = dev(self.folder.path(), self.database.as_ref());
        let command = command.as_std();
        // By default, the signal of a write beyond the limit ends the process.
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(command.get_program());
        shell.args(command.get_args()).args(arguments);
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        self.process = Some(Process::start(shell, self.folder.path()).await);
    }

    /// Limits the size of the files that the running process writes: a soft and a hard limit in bytes,
    /// as for `prlimit`.
    pub async fn limit_file_size(&self, limits: &str) {
        let id = self.process.as_ref().unwrap().child.id().unwrap().to_string();
        let limit = format!("--fsize={limits}");
        assert!(Command::new("prlimit").args(["--pid", &id, &limit]).status().await.unwrap().success());
    }

    /// Lets the process run for this time.
    pub async fn live_for(&mut self, time: Duration) {
        self.process.as_mut().unwrap().live_for(time).await;
    }

    /// Kills the process, like a power failure.
    pub async fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill().await;
        }
    }

    /// Stops the process like a supervisor, and waits until it has ended.
    pub async fn terminate(&mut self) {
        self.process.take().unwrap().terminate().await;
    }

    /// Runs `foretell admin` next to the service and returns its JSON output.
    pub async fn admin(&self, args: &[&str]) -> Value {
        let output = self.admin_command(args).output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?} of {args:?}"))
    }

    /// Returns a command for `foretell admin`, not run yet.
    pub fn admin_command(&self, args: &[&str]) -> Command {
        let mut command = foretell(self.folder.path());
        command.args(["admin", "--json"]).args(args).stdout(Stdio::piped());
        if let Some(database) = &self.database {
            command.env("FORETELL_DATABASE_URL", &database.url);
        }
        command
    }

    /// Returns the path of a file in the service's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the peak memory of the process.
    pub fn peak_memory_kib(&self) -> i64 {
        self.process.as_ref().unwrap().peak_memory_kib()
    }

    pub fn sealing_keys(&self) -> SealingKeys {
        Secrets::load(&self.folder.path().join("secrets.json")).unwrap().sealing_keys().unwrap()
    }

    /// Replaces the service's sealing key. The old key can still decrypt. Running processes keep
    /// the keys that they have loaded.
    pub fn change_sealing_key(&self) {
        let path = self.folder.path().join("secrets.json");
        let mut secrets = Secrets::load(&path).unwrap();
        let new = Secrets::generate(&SystemEntropy::default(), 1).sealing_key;
        secrets.other_sealing_keys.extend(std::mem::replace(&mut secrets.sealing_key, new));
        secrets.save(&path).unwrap();
    }

    /// Opens the service's database.
    pub async fn store(&self) -> store::Store {
        let url = match &self.database {
            Some(database) => database.url.clone(),
            None => format!("sqlite:{}", self.folder.path().join("foretell.db").display()),
        };
        store::Store::open(&url).await.unwrap()
    }

    /// Connects to the service's chain over its JSON-RPC.
    pub async fn chain(&self) -> chain::Chain {
        let service = read_json(&self.folder.path().join("service.json")).unwrap();
        let contracts = serde_json::from_value(service["contracts"].clone()).unwrap();
        let provider = chain::provider(service["rpcUrl"].as_str().unwrap()).unwrap();
        chain::Chain::connect(provider, contracts).await.unwrap()
    }
}
