//! The files of an embedded database and chain: a process whose disk is full, or whose files are damaged,
//! missing or another service's, is never ready.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use store::testing::TestFolder;
use tokio::process::Command;
use tokio::time::{interval, timeout};

use crate::clients::{Trader, post};
use crate::service::{Process, Service, foretell, read_json};

/// A running service with its operator's listener.
struct Watched {
    service: Service,
    http: Client,
    ops_url: String,
}

impl Watched {
    async fn start(mut service: Service) -> Self {
        service.start_under_limits(&["--ops-listen", "127.0.0.1:0"]).await;
        let file = read_json(&service.file("service.json")).unwrap();
        let http = Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
        Self { service, http, ops_url: file["opsUrl"].as_str().unwrap().to_owned() }
    }

    async fn ready(&self) -> (u16, Value) {
        let answer = self.http.get(format!("{}/readyz", self.ops_url)).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Waits until the process is unready for this reason.
    async fn until_unready(&self, reason: &str) {
        let unready = async {
            let mut looks = interval(Duration::from_millis(50));
            loop {
                looks.tick().await;
                let (status, body) = self.ready().await;
                if status == 503 {
                    assert!(body["reasons"].to_string().contains(reason), "{body}");
                    return;
                }
            }
        };
        timeout(Duration::from_secs(30), unready).await.unwrap_or_else(|_| panic!("unready: {reason}"));
    }

    async fn until_ready(&self) {
        let ready = async {
            let mut looks = interval(Duration::from_millis(50));
            while self.ready().await.0 != 200 {
                looks.tick().await;
            }
        };
        timeout(Duration::from_secs(30), ready).await.expect("ready again");
    }

    /// The answer of `GET /v1/ready`, which one address may request only some times per minute.
    async fn service_status(&self) -> (u16, Value) {
        let url = format!("{}/v1/ready", self.service.base_url());
        let answer = self.http.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_disk_is_full_is_not_ready_until_it_has_room() {
    let service = Service::on_sqlite().await;
    let trader = Trader::of_demonstration(&service.demonstration().await, 1).remove(0);
    let watched = Watched::start(service).await;
    watched.until_ready().await;
    // A limit of the size of files stands for the full disk: it needs neither a mount nor rights, and a
    // write beyond it fails likewise.
    watched.service.limit_file_size("1:unlimited").await;
    watched.until_unready("the storage of the database cannot be used").await;
    let (status, body) = watched.service_status().await;
    assert_eq!((status, &body["checks"]["database"]["status"]), (503, &json!("failing")), "{body}");
    let buy = json!({ "marketId": trader.markets[0], "outcomeIndex": 0, "side": "buy", "amount": "1.00" });
    let base_url = watched.service.base_url().to_owned();
    let (status, body) = post(&watched.http, &base_url, &trader.key, "full", &buy).await.unwrap();
    assert_eq!(status, 503, "{body}");
    watched.service.limit_file_size("unlimited:unlimited").await;
    watched.until_ready().await;
    let (status, body) = post(&watched.http, &base_url, &trader.key, "room", &buy).await.unwrap();
    assert_eq!(status, 201, "{body}");
    assert_eq!(watched.service_status().await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_file_is_deleted_or_truncated_is_not_ready() {
    let watched = Watched::start(Service::on_sqlite().await).await;
    watched.until_ready().await;
    fs::remove_file(watched.service.file("chain.db")).unwrap();
    watched.until_unready("its file is gone").await;
    drop(watched);
    let mut service = Service::on_sqlite().await;
    // A stop writes the journal into the file.
    service.start().await;
    service.terminate().await;
    let watched = Watched::start(service).await;
    watched.until_ready().await;
    let file = OpenOptions::new().write(true).open(watched.service.file("foretell.db")).unwrap();
    file.set_len(4_096).unwrap();
    watched.until_unready("the storage of the database cannot be used").await;
}

/// Returns a command that serves the files of a folder.
fn serve(folder: &Path) -> Command {
    let mut command = foretell(folder);
    command.args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    command
}

/// Starts the service on these files, which must fail, and returns its message.
async fn refusal(folder: &Path) -> String {
    let mut command = serve(folder);
    command.stderr(Stdio::piped());
    let output =
        timeout(Duration::from_secs(60), command.output()).await.expect("it ends by itself").unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// Copies the files of a stopped service.
fn copy(folder: &Path) -> TestFolder {
    let copy = TestFolder::create();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    copy
}

/// Returns the files of a service that has run, and whose database knows its chain.
async fn stopped() -> TestFolder {
    let folder = TestFolder::create();
    let process = Process::start(serve(folder.path()), folder.path()).await;
    let url = format!("sqlite:{}", folder.path().join("foretell.db").display());
    let store = store::Store::open(&url).await.unwrap();
    let synced = async {
        let mut looks = interval(Duration::from_millis(50));
        loop {
            looks.tick().await;
            let last = store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
            if last.unwrap().is_some() {
                return;
            }
        }
    };
    timeout(Duration::from_secs(60), synced).await.expect("a block is read");
    store.close().await;
    process.terminate().await;
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_on_damaged_missing_or_foreign_files_is_refused() {
    let (whole, other) = (stopped().await, stopped().await);
    for name in ["foretell.db", "chain.db"] {
        let damaged = copy(whole.path());
        let file = OpenOptions::new().write(true).open(damaged.path().join(name)).unwrap();
        // In the middle of the file, so that opening it does not notice.
        let pages = file.metadata().unwrap().len() / 4_096;
        for page in pages / 3..pages / 3 + pages / 8 {
            file.write_all_at(&[0x5a; 4_096], page * 4_096).unwrap();
        }
        drop(file);
        let message = refusal(damaged.path()).await;
        assert!(message.contains(name) && message.contains("foretell admin restore"), "{message}");

        let no_database = copy(whole.path());
        fs::write(no_database.path().join(name), "A text that somebody has saved here.".repeat(99)).unwrap();
        let message = refusal(no_database.path()).await;
        assert!(message.contains(name) && message.contains("foretell admin restore"), "{message}");

        let missing = copy(whole.path());
        fs::remove_file(missing.path().join(name)).unwrap();
        let message = refusal(missing.path()).await;
        assert!(message.contains(&format!("{name} is missing or empty")), "{message}");
        assert!(!missing.path().join(name).exists(), "nothing is created in its place");

        // The two services were set up at different times, so their chains differ.
        let foreign = copy(whole.path());
        // With the journals, if there are any.
        for file in [name.to_owned(), format!("{name}-wal"), format!("{name}-shm")] {
            drop(fs::remove_file(foreign.path().join(&file)));
            drop(fs::copy(other.path().join(&file), foreign.path().join(&file)));
        }
        let message = refusal(foreign.path()).await;
        assert!(message.contains("chain.db is ") && message.contains("not "), "{message}");
    }
    Process::start(serve(whole.path()), whole.path()).await.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_secrets_are_not_replaced_beside_a_chain() {
    let folder = stopped().await;
    let (secrets, elsewhere) = (folder.path().join("secrets.json"), folder.path().join("elsewhere.json"));
    fs::rename(&secrets, &elsewhere).unwrap();
    let message = refusal(folder.path()).await;
    assert!(message.contains("secrets.json is missing"), "{message}");
    assert!(!secrets.exists(), "nothing is created in its place");
    fs::rename(&elsewhere, &secrets).unwrap();
    Process::start(serve(folder.path()), folder.path()).await.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_program_is_not_touched() {
    let folder = TestFolder::create();
    let path = folder.path().join("foretell.db");
    let tables = store::testing::foreign_sqlite(&path);
    let message = refusal(folder.path()).await;
    assert!(message.contains("the database of another program, with the table"), "{message}");
    assert_eq!(store::testing::tables_of(&path), tables);
}
