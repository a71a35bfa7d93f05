//! An executor whose key is in AWS KMS. A local server plays the service: see `scripts/kms`.

use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::Address;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::clients::{Trader, post};
use crate::service::{Service, read_json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/kms");
/// The environment variable with the folder of the server.
const FOLDER: &str = "FORETELL_TEST_KMS";
const LOOKS: usize = 600;

/// The server, which knows two users: one may use its keys, the other may not.
struct Kms {
    folder: PathBuf,
    /// The contents of `kms.json`.
    settings: Value,
}

impl Kms {
    fn find() -> Option<Self> {
        let Some(folder) = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()) else {
            eprintln!("{FOLDER} is not set: not run with a key service");
            return None;
        };
        let folder = PathBuf::from(folder);
        let settings = read_json(&folder.join("kms.json")).unwrap();
        Some(Self { folder, settings })
    }

    async fn run(&self, command: &str) {
        let output = Command::new(SCRIPT).arg(command).arg(&self.folder).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns the environment variables with the credentials of a user, and no other credentials.
    fn credentials_of(&self, user: &str) -> Vec<(&str, &str)> {
        let user = &self.settings[user];
        vec![
            ("AWS_ACCESS_KEY_ID", user["id"].as_str().unwrap()),
            ("AWS_SECRET_ACCESS_KEY", user["secret"].as_str().unwrap()),
            ("AWS_SHARED_CREDENTIALS_FILE", "/nowhere"),
            ("AWS_CONFIG_FILE", "/nowhere"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]
    }

    /// Adds the executor of a key with the credentials of a user. Returns the answer of the command.
    async fn add(&self, service: &Service, user: &str, key: &str) -> Value {
        let (key, url) = (self.settings[key].as_str().unwrap(), self.settings["url"].as_str().unwrap());
        let options = ["--signer", "aws-kms", "--signer-key", key, "--signer-url", url];
        let mut command =
            service.admin_command(&[&["executor", "add", "--hourly-cap", "none"], &options[..]].concat());
        command.envs(self.credentials_of(user));
        serde_json::from_slice(&command.output().await.unwrap().stdout).unwrap()
    }
}

/// Waits until a value is as expected.
async fn wait_until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..LOOKS {
        looks.tick().await;
        if is_so().await {
            return;
        }
    }
    panic!("after a minute it is not so: {what}");
}

/// A trader of a running service.
struct Client {
    http: reqwest::Client,
    base_url: String,
    trader: Trader,
}

impl Client {
    async fn buy(&self, name: &str) -> String {
        let body =
            json!({ "marketId": self.trader.markets[0], "outcomeIndex": 0, "side": "buy", "amount": "0.50" });
        let (status, answer) = post(&self.http, &self.base_url, &self.trader.key, name, &body).await.unwrap();
        assert_eq!(status, 201, "{answer}");
        answer["trade"]["id"].as_str().unwrap().to_owned()
    }

    async fn status(&self, trade: &str) -> String {
        let request = self.http.get(format!("{}/v1/trades/{trade}", self.base_url));
        let answer = request.header("X-API-Key", &self.trader.key).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        answer["trade"]["status"].as_str().unwrap_or_else(|| panic!("no trade: {answer}")).to_owned()
    }

    async fn wait_for(&self, trade: &str, status: &str) {
        wait_until(&format!("{trade} is {status}"), async || self.status(trade).await == status).await;
    }
}

fn log_of(service: &Service) -> String {
    std::fs::read_to_string(service.file("log")).unwrap()
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("not an error: {answer}"))
}

/// Adds the executor with the key of the service, and leaves all accounts to it.
async fn leave_all_to_kms(kms: &Kms, service: &mut Service) -> String {
    let stranger = kms.add(service, "stranger", "key").await;
    assert!(message(&stranger).contains("it answered HTTP status 403"), "{stranger}");
    let other_curve = kms.add(service, "user", "otherCurve").await;
    assert!(message(&other_curve).contains("not one of the curve secp256k1"), "{other_curve}");

    let before = service.admin(&["executor", "list"]).await;
    let added = kms.add(service, "user", "key").await;
    assert_eq!((&added["signer"], &added["running"]), (&json!("aws-kms"), &json!(false)), "{added}");
    let executor = added["address"].as_str().unwrap().to_owned();
    service.admin(&["executor", "fund", &executor, "--wei", "1000000000000000000"]).await;
    service.kill().await;
    let credentials = kms.credentials_of("user");
    service.start_in(&credentials, &["--log-level", "info"]).await;
    for row in before.as_array().unwrap() {
        let drained = service.admin(&["executor", "drain", row["address"].as_str().unwrap()]).await;
        assert_eq!(drained["state"], "draining", "{drained}");
    }
    executor
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_whose_key_is_in_aws_kms_stops_without_it_and_continues_with_it() {
    let Some(kms) = Kms::find() else { return };
    let mut service = Service::on_sqlite().await;
    let demonstration = service.demonstration().await;
    service.start().await;
    let executor = leave_all_to_kms(&kms, &mut service).await;
    let client = Client {
        http: reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap(),
        base_url: service.base_url().to_owned(),
        trader: Trader::of_demonstration(&demonstration, 1).remove(0),
    };
    // The lanes are read twice a second.
    let lane = |rows: &Value, address: &str| {
        rows.as_array().unwrap().iter().find(|row| row["address"] == address).cloned().unwrap()
    };
    wait_until("the lane runs", async || {
        lane(&service.admin(&["executor", "list"]).await, &executor)["running"] == true
    })
    .await;
    let sent = async || service.chain().await.transaction_count(executor.parse().unwrap()).await.unwrap();
    assert_eq!(sent().await, 0);
    let mut count = 0;
    // The first trades may be in lanes that had not been drained yet for their process.
    wait_until("the key service signs a batch", async || {
        count += 1;
        let trade = client.buy(&format!("kms-{count}")).await;
        client.wait_for(&trade, "completed").await;
        sent().await > 0
    })
    .await;

    kms.run("crash").await;
    let waiting = client.buy("kms-waiting").await;
    // Errors show addresses with their checksum.
    let reason = format!("the signer of {} is not available", executor.parse::<Address>().unwrap());
    wait_until("the log names the signer", async || log_of(&service).contains(&reason)).await;
    assert_eq!(client.status(&waiting).await, "executing", "its batch is stored, and not signed");
    // Other work goes on: transactions of other keys, and the sync.
    let other = &client.trader.markets[1];
    service.admin(&["market", "freeze", other]).await;
    wait_until("the market is frozen", async || {
        service.admin(&["market", "show", other]).await["status"] == "FROZEN"
    })
    .await;
    assert_eq!(client.status(&waiting).await, "executing");

    kms.run("restart").await;
    client.wait_for(&waiting, "completed").await;
    let log = log_of(&service);
    for user in ["user", "stranger"] {
        for part in ["id", "secret"] {
            let credential = kms.settings[user][part].as_str().unwrap();
            assert!(!log.contains(credential), "the log has a credential");
        }
    }
    service.kill().await;
}
